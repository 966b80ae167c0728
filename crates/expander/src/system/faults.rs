//! Accesses whose page is not there, and the driver that fetches it.

use std::collections::VecDeque;

use crate::gpu::cores::Access;
use crate::gpu::uvm::{Batch, Driver};
use crate::parameters::Parameters;
use crate::setup::Setup;
use crate::time::Ps;

/// The fault driver with who waits for it.
#[derive(Debug)]
pub(super) struct Faults {
    pub(super) driver: Driver,
    /// Accesses that wait for a page.
    pub(super) waiting: VecDeque<Access>,
    /// A batch is being served.
    pub(super) serving: bool,
}

impl Faults {
    pub(super) fn new(set: &Parameters, setup: &Setup, lines: u32) -> Self {
        let driver = Driver::new(set, setup.config, setup.prefetch, lines, &setup.media);
        Self { driver, waiting: VecDeque::new(), serving: false }
    }

    /// Whether a batch can start.
    pub(super) fn has_work(&self) -> bool {
        !self.serving && !self.waiting.is_empty()
    }

    /// Starts to serve all that wait.
    pub(super) fn serve(&mut self, now: Ps) -> Batch {
        self.serving = true;
        let pages: Vec<u32> = self.waiting.iter().map(|access| self.driver.page(access.line)).collect();
        self.driver.serve(now, pages.into_iter())
    }
}
