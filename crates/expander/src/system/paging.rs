//! Page faults: accesses that wait for the driver, and what its batches do to the cache.

use super::System;
use crate::event::Event;
use crate::gpu::Access;
use crate::uvm::Batch;

impl System {
    /// Whether an access has to wait for its page, which it then does.
    pub(super) fn page_is_missing(&mut self, access: Access) -> bool {
        let Some(driver) = &mut self.driver else { return false };
        let page = driver.page(access.line);
        if driver.touch(page, access.store) {
            return false;
        }
        self.gpu.fault(access.warp);
        self.faulted.push_back(access);
        self.start_batch();
        true
    }

    /// Lets the driver serve what has faulted, unless it is at work.
    fn start_batch(&mut self) {
        let Some(driver) = self.driver.as_mut().filter(|_| !self.serving && !self.faulted.is_empty()) else { return };
        let pages: Vec<u32> = self.faulted.iter().map(|access| driver.page(access.line)).collect();
        let batch = driver.serve(self.now, pages.into_iter());
        self.serving = true;
        self.events.at(batch.done, Event::BatchDone);
        self.move_pages(&batch);
    }

    /// The cache gives up the lines of pages that leave; dirty ones go with their page.
    fn move_pages(&mut self, batch: &Batch) {
        let Some(driver) = &self.driver else { return };
        for &(page, dirty) in &batch.evicted {
            for line in driver.lines(page) {
                let removed = self.llc.remove(line);
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
        for access in std::mem::take(&mut self.faulted) {
            self.gpu.replay(access.warp);
            self.access(access);
            self.issue_next(self.gpu.core_of(access.warp));
        }
        // Only now: what faults again belongs into one batch.
        self.serving = false;
        self.start_batch();
    }
}
