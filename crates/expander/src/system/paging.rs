//! Page faults: accesses that wait for the driver, and what its batches do to the cache.

use super::faults::Faults;
use super::state::System;
use crate::event::Event;
use crate::gpu::cores::Access;
use crate::gpu::uvm::{Batch, Evicted};

impl System {
    /// Whether an access has to wait for its page, which it then does.
    pub(super) fn page_is_missing(&mut self, access: Access) -> bool {
        let Some(faults) = &mut self.faults else { return false };
        let page = faults.driver.page(access.line);
        if faults.driver.touch(page, access.store) {
            return false;
        }
        self.gpu.fault(access.warp);
        faults.waiting.push_back(access);
        self.start_batch();
        true
    }

    /// Lets the driver serve what has faulted, unless it is at work.
    fn start_batch(&mut self) {
        let Some(faults) = self.faults.as_mut().filter(|faults| faults.has_work()) else { return };
        let batch = faults.serve(self.now);
        self.events.at(batch.done, Event::BatchDone);
        self.move_pages(&batch);
    }

    /// The cache gives up the lines of pages that leave; dirty ones go with their page.
    fn move_pages(&mut self, batch: &Batch) {
        let Some(Faults { driver, .. }) = &self.faults else { return };
        for &Evicted { page, dirty } in &batch.evicted {
            for line in driver.lines(page) {
                let removed = self.llc.cache.remove(line);
                if let Some(ledger) = &mut self.ledger {
                    if removed.is_some_and(|entry| entry.dirty) {
                        let value = ledger.cached(line);
                        ledger.put_near(line, value);
                    }
                    ledger.cache(line, None);
                }
            }
            if let Some(ledger) = &mut self.ledger {
                ledger.page_out(driver.lines(page), dirty);
            }
        }
        if let Some(ledger) = &mut self.ledger {
            batch.fetched.iter().for_each(|&page| ledger.page_in(driver.lines(page)));
        }
    }

    /// A batch has been served: who waited for its pages goes on.
    pub(super) fn batch_done(&mut self) {
        for access in self.faults.as_mut().map(|faults| std::mem::take(&mut faults.waiting)).unwrap_or_default() {
            self.gpu.replay(access.warp);
            self.access(access);
            self.issue_next(self.gpu.core_of(access.warp));
        }
        // Only now: what faults again belongs into one batch.
        if let Some(faults) = &mut self.faults {
            faults.serving = false;
        }
        self.start_batch();
    }
}
