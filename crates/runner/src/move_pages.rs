//! Pages of a running program, asked about and moved from outside.
//!
//! The kernel's calls come in as a trait, so that what is asked of it can be tested on machines that
//! this one is not.

use std::collections::BTreeMap;
use tierloom_model::units::PAGE_BYTES;

use tierloom_linux::{LinuxError, memory};
use tierloom_wire::{Law, Pages, sampled_page};

use crate::rules::{Place, nodes_of};

/// Pages of one call.
const CHUNK: u64 = 4096;

/// `move_pages(2)` of another process. *Contract*: one answer for each page, in order: the node where
/// it is, or the negative of an error number.
pub(super) trait MemoryCalls {
    /// Where pages are.
    fn locate(&mut self, pid: u32, pages: &[u64]) -> Result<Vec<i32>, LinuxError>;
    /// Moves each page to its node and says where it is then.
    fn relocate(&mut self, pid: u32, pages: &[u64], nodes: &[i32]) -> Result<Vec<i32>, LinuxError>;
}

/// The kernel itself.
#[derive(Debug)]
pub(super) struct Kernel;

impl MemoryCalls for Kernel {
    fn locate(&mut self, pid: u32, pages: &[u64]) -> Result<Vec<i32>, LinuxError> {
        memory::locate_pages(pid, pages)
    }

    fn relocate(&mut self, pid: u32, pages: &[u64], nodes: &[i32]) -> Result<Vec<i32>, LinuxError> {
        memory::move_pages(pid, pages, nodes)
    }
}

/// A range of a process and where its pages belong.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) pid: u32,
    /// First whole page, and bytes of whole pages.
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) place: &'a Place,
    /// Unit by which weights deal it out, bytes; 0 = any node of the place will do.
    pub(super) unit: u64,
}

impl Target<'_> {
    /// The node that a page must be on, given where it is now.
    fn node_for(&self, law: Option<&Law>, address: u64, now: u32) -> Option<u32> {
        if let Some(law) = law {
            return Some(law.node(address));
        }
        let mask = self.place.mask();
        let is_fine = mask == 0 || mask & 1_u64.checked_shl(now).unwrap_or(0) != 0;
        if is_fine { Some(now) } else { nodes_of(mask).next() }
    }
}

/// Where pages of a range are; at most `most` of them are asked about. `None` where the process is
/// gone.
pub(super) fn look(calls: &mut dyn MemoryCalls, target: &Target, most: u64) -> Option<(Pages, BTreeMap<u32, u64>)> {
    let all = target.bytes / PAGE_BYTES;
    let parts = all.min(most);
    let addresses: Vec<u64> =
        (0..parts).map(|part| target.start + sampled_page(part, parts, all) * PAGE_BYTES).collect();
    let turns = target.place.turns();
    let law = Law::new(&turns, target.unit);
    let mut pages = Pages { bytes: target.bytes, ..Pages::default() };
    let mut by_node = BTreeMap::new();
    for (address, status) in addresses.iter().zip(calls.locate(target.pid, &addresses).ok()?) {
        pages.looked += 1;
        match u32::try_from(status) {
            Ok(node) => {
                *by_node.entry(node).or_default() += 1;
                pages.elsewhere += u64::from(target.node_for(law.as_ref(), *address, node) != Some(node));
            }
            Err(_) => pages.absent += 1,
        }
    }
    Some((pages, by_node))
}

/// What became of a range that was moved, bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Moved {
    /// Those that are there.
    pub(super) present: u64,
    /// Those that had to move and did.
    pub(super) went: u64,
    /// Those that had to and did not, by error number.
    pub(super) stuck: BTreeMap<i32, u64>,
}

/// Moves every page of a range that is there to where it belongs.
///
/// # Errors
/// The process is gone or not ours.
pub(super) fn move_range(calls: &mut dyn MemoryCalls, target: &Target) -> Result<Moved, LinuxError> {
    let turns = target.place.turns();
    let law = Law::new(&turns, target.unit.max(PAGE_BYTES));
    let mut total = Moved::default();
    let pages = target.bytes / PAGE_BYTES;
    for first in (0..pages).step_by(usize::try_from(CHUNK).unwrap_or(4096)) {
        let last = pages.min(first + CHUNK);
        let addresses: Vec<u64> = (first..last).map(|page| target.start + page * PAGE_BYTES).collect();
        let status = calls.locate(target.pid, &addresses)?;
        let (mut wrong, mut nodes) = (Vec::new(), Vec::new());
        for (address, now) in addresses.iter().zip(status).filter_map(|(a, s)| Some((*a, u32::try_from(s).ok()?))) {
            total.present += PAGE_BYTES;
            if let Some(node) = target.node_for(law.as_ref(), address, now).filter(|node| *node != now) {
                wrong.push(address);
                nodes.push(node.cast_signed());
            }
        }
        if !wrong.is_empty() {
            let answer = calls.relocate(target.pid, &wrong, &nodes);
            count_moved(answer, &calls.locate(target.pid, &wrong)?, &nodes, &mut total);
        }
    }
    Ok(total)
}

/// Counts by where the pages are then: a huge page goes as a whole with the first of its pages, and of the
/// next one the kernel says `EBUSY`. Its answer is the reason of those that stayed.
fn count_moved(answer: Result<Vec<i32>, LinuxError>, now: &[i32], nodes: &[i32], total: &mut Moved) {
    let refused = |errno: i32| vec![-errno; nodes.len()];
    let answer = answer.unwrap_or_else(|error| refused(error.errno().unwrap_or(libc_eio())));
    for ((said, now), node) in answer.iter().zip(now).zip(nodes) {
        if now == node {
            total.went += PAGE_BYTES;
        } else {
            // A page that stayed says where it is; why, only the negative ones say.
            *total.stuck.entry((-said).max(0)).or_default() += PAGE_BYTES;
        }
    }
}

/// `EIO`: the kernel gave no reason.
const fn libc_eio() -> i32 {
    5
}

#[cfg(test)]
pub(super) mod tests {
    use std::io;

    use tierloom_wire::Turn;

    use super::*;

    /// A machine with so many nodes, where each page of a process is where it was last moved; some
    /// pages are missing, and some never move (`EBUSY`).
    #[derive(Debug, Default)]
    pub(crate) struct Recorded {
        pub(crate) nodes: BTreeMap<u64, i32>,
        pub(crate) missing: Vec<u64>,
        pub(crate) busy: Vec<u64>,
        /// Pages that go with the page before them; asked to move by themselves, they are busy.
        pub(crate) tails: Vec<u64>,
        pub(crate) calls: usize,
    }

    impl MemoryCalls for Recorded {
        fn locate(&mut self, pid: u32, pages: &[u64]) -> Result<Vec<i32>, LinuxError> {
            if pid == 0 {
                return Err(LinuxError::new("move_pages", "process 0", io::Error::from_raw_os_error(3)));
            }
            let at = |page: &u64| if self.missing.contains(page) { -2 } else { *self.nodes.get(page).unwrap_or(&0) };
            Ok(pages.iter().map(at).collect())
        }

        fn relocate(&mut self, _pid: u32, pages: &[u64], nodes: &[i32]) -> Result<Vec<i32>, LinuxError> {
            self.calls += 1;
            let mut answer = Vec::new();
            for (page, node) in pages.iter().zip(nodes) {
                if self.busy.contains(page) {
                    answer.push(-16);
                } else {
                    self.nodes.insert(*page, *node);
                    answer.push(if self.tails.contains(page) { -16 } else { *node });
                }
            }
            Ok(answer)
        }
    }

    fn weighted() -> Place {
        Place::Weighted(vec![Turn { node: 0, units: 3 }, Turn { node: 1, units: 1 }])
    }

    #[test]
    fn pages_go_where_the_law_wants_them_and_only_those() {
        let place = weighted();
        let target = Target { pid: 7, start: 0x10_0000, bytes: 64 * PAGE_BYTES, place: &place, unit: PAGE_BYTES };
        let mut kernel = Recorded { missing: vec![0x10_0000], busy: vec![0x10_3000], ..Recorded::default() };
        let moved = move_range(&mut kernel, &target).unwrap();
        assert_eq!(moved.present, 63 * PAGE_BYTES);
        assert_eq!(moved.went, 15 * PAGE_BYTES);
        assert_eq!(moved.stuck, BTreeMap::from([(16, PAGE_BYTES)]));
        let (pages, by_node) = look(&mut kernel, &target, 1000).unwrap();
        assert_eq!((pages.looked, pages.absent, pages.elsewhere), (64, 1, 1));
        assert_eq!(by_node, BTreeMap::from([(0, 48), (1, 15)]));
        assert_eq!(move_range(&mut kernel, &target).unwrap().went, 0, "nothing moves twice");
    }

    #[test]
    fn a_huge_page_that_went_is_not_stuck() {
        let place = Place::Bind(0b10);
        let target = Target { pid: 7, start: 0, bytes: 8 * PAGE_BYTES, place: &place, unit: 0 };
        let mut kernel = Recorded { tails: vec![PAGE_BYTES], ..Recorded::default() };
        let moved = move_range(&mut kernel, &target).unwrap();
        assert_eq!(moved, Moved { present: 8 * PAGE_BYTES, went: 8 * PAGE_BYTES, stuck: BTreeMap::new() });
    }

    #[test]
    fn several_nodes_will_do() {
        let place = Place::Bind(0b110);
        let target = Target { pid: 7, start: 0, bytes: 4 * PAGE_BYTES, place: &place, unit: 0 };
        let mut kernel = Recorded { nodes: BTreeMap::from([(PAGE_BYTES, 2)]), ..Recorded::default() };
        assert_eq!(look(&mut kernel, &target, 9).unwrap().0.elsewhere, 3);
        assert_eq!(move_range(&mut kernel, &target).unwrap().went, 3 * PAGE_BYTES);
        assert_eq!(kernel.nodes[&PAGE_BYTES], 2, "it was on one of them");
        assert_eq!(kernel.nodes[&0], 1);
    }

    #[test]
    fn first_touch_moves_nothing_and_a_process_that_is_gone_is_said() {
        let target = Target { pid: 7, start: 0, bytes: 9000 * PAGE_BYTES, place: &Place::FirstTouch, unit: 0 };
        let mut kernel = Recorded::default();
        assert_eq!(move_range(&mut kernel, &target).unwrap().went, 0);
        assert_eq!(kernel.calls, 0);
        assert!(move_range(&mut kernel, &Target { pid: 0, ..target }).is_err());
        assert!(look(&mut kernel, &Target { pid: 0, ..target }, 9).is_none());
    }
}
