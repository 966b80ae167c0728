//! A workload's regions as pages: one after the other in the address space, with their policies.

use tierloom_model::units::PAGE_BYTES;

use super::filling::{Step, steps};
use crate::kernel::vma::VmaPolicy;
use crate::workload::{Region, Workload};

/// Pages and policies of a workload's regions, one after the other in the address space.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) regions: Vec<Placed>,
    /// In which order their pages are touched first.
    pub(crate) filling: Vec<Step>,
    /// Whether the process's first thread is one of those that work.
    pub(crate) main_works: bool,
}

/// One region.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) name: String,
    /// First page.
    pub(crate) start: u64,
    pub(crate) pages: u64,
    pub(crate) locked: bool,
    pub(crate) policy: VmaPolicy,
}

impl Layout {
    pub(crate) fn new(workload: &Workload, policies: &[VmaPolicy]) -> Self {
        let mut start = 0;
        let place = |(region, policy): (&Region, &VmaPolicy)| {
            let pages = region.size_bytes.div_ceil(PAGE_BYTES);
            // Mappings start on 2 MiB, so that scan windows of one do not reach into the next.
            let placed =
                Placed { name: region.name.clone(), start, pages, locked: region.locked, policy: policy.clone() };
            start += pages.next_multiple_of(512);
            placed
        };
        let regions: Vec<Placed> = workload.regions.iter().zip(policies).map(place).collect();
        let pages: Vec<u64> = regions.iter().map(|region| region.pages).collect();
        Self { filling: steps(workload, &pages, policies), regions, main_works: workload.main_works }
    }

    /// Pages of the address space, gaps included.
    pub(crate) fn span(&self) -> u64 {
        self.regions.last().map_or(0, |region| region.start + region.pages)
    }
}
