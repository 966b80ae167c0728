//! The regions of one memory node that everything is measured on.

use tierloom_linux::pages::{BASE_PAGE_BYTES, HUGE_PAGE_BYTES, Pages};

use crate::error::ProbeError;
use crate::host::{Host, HostNode, HostSocket};
use crate::mix::LINE_BYTES;
use crate::warning::Warning;

/// A region must be this many times as large as the caches for them to hide little of it; a cyclic
/// walk of this length finds next to nothing in a cache that forgets the oldest line first.
const TIMES_CACHE: u64 = 4;

/// Last-level cache of one core that we take for granted where the kernel does not say, bytes.
pub(crate) const ASSUMED_LLC_BYTES: u64 = 32 << 20;

/// Least memory of a load thread: enough to keep its prefetchers in stride.
const LEAST_PER_THREAD: u64 = 16 << 20;

/// Smallest footprint of the pointer chase: half of the smallest first-level data cache in use.
const SMALLEST_FOOTPRINT: usize = 16 << 10;

/// All regions together take at most this share of what is free on a node.
const SHARE_OF_FREE: u64 = 4;

/// The regions of one node.
#[derive(Debug)]
pub(crate) struct Arena {
    pub(crate) node: u32,
    /// Where latency is measured.
    pub(crate) chase: Pages,
    /// Where load threads work, each on its own slice.
    pub(crate) load: Pages,
}

/// Bytes of an arena's two regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) chase: u64,
    pub(crate) load: u64,
}

impl Sizes {
    fn wanted(host: &Host, most_bytes: u64) -> Self {
        let largest = |pick: fn(&crate::host::HostSocket) -> Option<u64>| {
            host.sockets.iter().filter_map(pick).max().unwrap_or(ASSUMED_LLC_BYTES)
        };
        let cores = host.sockets.iter().map(|socket| socket.cores.len() as u64).max().unwrap_or(1);
        let chase = (TIMES_CACHE * largest(|socket| socket.llc_per_core_bytes)).next_power_of_two();
        let load = (TIMES_CACHE * largest(|socket| socket.llc_bytes)).max(cores * LEAST_PER_THREAD).max(chase);
        Self { chase: chase.min(most_bytes), load: load.min(most_bytes) }
    }

    fn fitting(self, free_bytes: u64) -> Self {
        let most = free_bytes / SHARE_OF_FREE / 2;
        Self { chase: self.chase.min(most), load: self.load.min(most) }
    }
}

impl Arena {
    /// The memory that load threads of a socket work on: of its own node, of the first where it has none.
    pub(crate) fn near(host: &Host, socket: &HostSocket, most_bytes: usize) -> Result<Pages, ProbeError> {
        let own = host.nodes.iter().find(|node| node.node == socket.node);
        let node = own.or(host.nodes.first()).ok_or(ProbeError::NoMachine)?;
        let bytes = Sizes::wanted(host, most_bytes as u64).fitting(node.free_bytes).load;
        if bytes < HUGE_PAGE_BYTES as u64 {
            return Err(no_room());
        }
        Ok(Pages::new(usize::try_from(bytes).unwrap_or(usize::MAX), Some(node.node))?)
    }

    /// The regions of every node that has room for them, and what there is to say about the others.
    pub(crate) fn of_every_node(host: &Host, most_bytes: usize) -> Result<(Vec<Self>, Vec<Warning>), ProbeError> {
        let wanted = Sizes::wanted(host, most_bytes as u64);
        let (mut arenas, mut warnings) = (Vec::new(), Vec::new());
        for node in &host.nodes {
            let sizes = wanted.fitting(node.free_bytes);
            if sizes.chase < HUGE_PAGE_BYTES as u64 {
                warnings.push(Warning::NodeLeftOut { node: node.node });
                continue;
            }
            if sizes != wanted {
                let (bytes, wanted_bytes) = (sizes.chase + sizes.load, wanted.chase + wanted.load);
                warnings.push(Warning::SmallRegion { node: node.node, bytes, wanted_bytes });
            }
            arenas.push(Self::new(node, sizes)?);
        }
        if arenas.is_empty() {
            return Err(no_room());
        }
        warnings.extend(lack_of_huge_pages(&arenas));
        Ok((arenas, warnings))
    }

    pub(crate) fn new(node: &HostNode, sizes: Sizes) -> Result<Self, ProbeError> {
        let pages = |bytes: u64| Pages::new(usize::try_from(bytes).unwrap_or(usize::MAX), Some(node.node));
        Ok(Self { node: node.node, chase: pages(sizes.chase)?, load: pages(sizes.load)? })
    }
}

fn no_room() -> ProbeError {
    ProbeError::NoRoom { needed_bytes: 2 * SHARE_OF_FREE * HUGE_PAGE_BYTES as u64 }
}

/// Below this share of huge pages, latency is that of page walks too.
const ENOUGH_HUGE: f64 = 0.9;

fn lack_of_huge_pages(arenas: &[Arena]) -> Option<Warning> {
    let shares = arenas.iter().flat_map(|arena| [&arena.chase, &arena.load]).map(|p| p.huge_share().unwrap_or(0.0));
    let share = shares.fold(1.0, f64::min);
    (share < ENOUGH_HUGE).then_some(Warning::NoHugePages { share })
}

/// Footprints from the smallest to `most`, each `step` times the one before.
pub(crate) fn footprints(most: usize, step: usize) -> Vec<usize> {
    let smaller = std::iter::successors(Some(SMALLEST_FOOTPRINT), |bytes| bytes.checked_mul(step.max(2)));
    smaller.take_while(|bytes| *bytes < most).chain([most]).collect()
}

/// Equal slices of a region, one a thread, of whole pages of 4 KiB where they are larger than one.
pub(crate) fn slices(memory: &mut [u8], count: usize) -> impl Iterator<Item = &mut [u8]> {
    let bytes = memory.len() / count.max(1);
    let unit = if bytes > BASE_PAGE_BYTES { BASE_PAGE_BYTES } else { LINE_BYTES };
    memory.chunks_exact_mut((bytes / unit * unit).max(LINE_BYTES)).take(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footprints_grow_from_the_smallest_to_the_largest() {
        assert_eq!(footprints(256 << 10, 4), [16 << 10, 64 << 10, 256 << 10]);
        assert_eq!(footprints(100 << 10, 2), [16 << 10, 32 << 10, 64 << 10, 100 << 10]);
    }

    #[test]
    fn slices_are_equal_apart_and_as_many_as_asked() {
        let mut memory = vec![0_u8; 100_000];
        for count in 1..9 {
            let lengths: Vec<usize> = slices(&mut memory, count).map(|slice| slice.len()).collect();
            assert_eq!(lengths.len(), count);
            assert!(lengths.iter().all(|length| *length == lengths[0] && length % BASE_PAGE_BYTES == 0));
        }
    }

    #[test]
    fn regions_leave_most_of_a_node_free() {
        let wanted = Sizes { chase: 1 << 30, load: 4 << 30 };
        let fitting = wanted.fitting(2 << 30);
        assert_eq!(fitting, Sizes { chase: 256 << 20, load: 256 << 20 });
        assert_eq!(wanted.fitting(1 << 40), wanted);
    }
}
