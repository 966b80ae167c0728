//! What the tests of this crate share.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "every test file uses its own part; a fixture that is wrong should stop"
)]

use tierloom_expander::{Dram, Parameters};
use tierloom_model::hash::SplitMix;

/// The parameter set of the catalog.
pub(crate) fn parameters() -> Parameters {
    let text = include_str!("../../../../python/tierloom/catalog/expander/cxl-gpu.toml");
    Parameters::from_toml(text, "cxl-gpu.toml").unwrap()
}

/// The set's DRAM at the speed that the cycle-level simulators ran: 15 ns are 36 clocks.
pub(crate) fn ddr5_4800() -> Dram {
    let mut dram = parameters().dram;
    dram.mt_s.value = 4800.0;
    for (figure, clocks) in [
        (&mut dram.rcd, 36),
        (&mut dram.cl, 36),
        (&mut dram.cwl, 34),
        (&mut dram.rp, 36),
        (&mut dram.ras, 77),
        (&mut dram.rtp, 18),
        (&mut dram.wr, 72),
        (&mut dram.wtr, 6),
    ] {
        figure.value = clocks;
    }
    dram
}

/// A seeded sequence (`SplitMix64`).
pub(crate) struct Random(SplitMix);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.draw()
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// From above 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}
