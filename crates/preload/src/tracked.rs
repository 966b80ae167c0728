//! Which pointers were recorded, so that giving them back is recorded too.
//!
//! glibc's blocks tell it themselves: one whose size lies at or above the smallest that is recorded was
//! recorded, or is not known to the recorder, which then passes over its end.
//!
//! For other allocators there is a set. Every `free` of the program asks here, so the answer must cost
//! next to nothing. The first question
//! goes to a filter of one page that counts recorded addresses by hash: 0 says no, and the filter stays
//! in the first-level cache. Behind it is the set itself: recorded blocks have at least [`GRANULE`]
//! bytes, so at most one begins in each granule of the address space, and a granule has a bucket of
//! eight addresses, one cache line. A full bucket spills into the next ones, and only from then on do
//! questions look there. No lock: an entry is taken and given back by compare-and-swap.
//!
//! Addresses are kept with all bits turned: a leak checker (`LeakSanitizer`, Valgrind) that scans our
//! memory must not take our note of a block for the program's pointer to it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crate::forked;
use crate::settings::{GRANULE, min_bytes};

const SLOTS: usize = 8;
/// 2^15 buckets of 64 bytes: 2 MiB, touched only where there are large blocks.
const BUCKETS: usize = 1 << 15;
const SPILL: usize = 8;
/// Counters of the filter: one page. With a few hundred large blocks alive, one question in twenty
/// gets past it.
const FILTER: usize = 1 << FILTER_BITS;
const FILTER_BITS: u32 = 12;
/// Multiplier of Fibonacci hashing (Knuth, TAOCP 3, 6.4) in 32 bits: the top bits are the best mixed.
pub(crate) const FACTOR: u32 = 0x9e37_79b1;
/// Blocks are 16 bytes apart.
pub(crate) const FILTER_SHIFT_IN: u32 = 4;
/// What is left of 32 bits is the position.
pub(crate) const FILTER_SHIFT_OUT: u32 = 32 - FILTER_BITS;

#[repr(align(64))]
struct Bucket([AtomicU64; SLOTS]);

/// Set of addresses. The filter comes first: the entries of the hooks read it.
#[repr(C, align(64))]
pub(crate) struct Tracked {
    filter: [AtomicU8; FILTER],
    buckets: [Bucket; BUCKETS],
    spilled: AtomicBool,
}

/// The blocks of this process, where they do not tell.
pub(crate) static TRACKED: Tracked = Tracked::new();

/// Notes a block that is recorded; `false` where there is no room, so its `free` will not be seen.
pub(crate) fn note(block: u64) -> bool {
    forked::size_before_block() || TRACKED.insert(block)
}

/// Whether a block was recorded; from now on it is not.
///
/// # Safety
/// The block is the program's to give back, or null.
pub(crate) unsafe fn forget(block: u64) -> bool {
    if forked::size_before_block() {
        // SAFETY: a block of glibc's, which keeps its size there.
        block != 0 && unsafe { *((block - 8) as *const usize) } >= min_bytes()
    } else {
        TRACKED.remove(block)
    }
}

impl Tracked {
    // It only ever initialises a static.
    #[allow(clippy::large_stack_arrays)]
    pub(crate) const fn new() -> Self {
        Self {
            filter: [const { AtomicU8::new(0) }; FILTER],
            buckets: [const { Bucket([const { AtomicU64::new(0) }; SLOTS]) }; BUCKETS],
            spilled: AtomicBool::new(false),
        }
    }

    /// Adds an address; `false` where there is no room, so its `free` will not be seen.
    pub(crate) fn insert(&self, address: u64) -> bool {
        // Counted first: a question may come from another thread as soon as the address is in.
        self.count(address, |count| count.saturating_add(1));
        for distance in 0..SPILL {
            if distance == 1 {
                self.spilled.store(true, Ordering::Relaxed);
            }
            if exchange(self.bucket(address, distance), 0, !address) {
                return true;
            }
        }
        self.count(address, less);
        false
    }

    /// Takes an address out; `false` where it was not in.
    pub(crate) fn remove(&self, address: u64) -> bool {
        self.filter[filter_index(address)].load(Ordering::Relaxed) != 0 && self.remove_counted(address)
    }

    #[cold]
    fn remove_counted(&self, address: u64) -> bool {
        let found = exchange(self.bucket(address, 0), !address, 0)
            || (self.spilled.load(Ordering::Relaxed) && self.remove_spilled(address));
        if found {
            self.count(address, less);
        }
        found
    }

    fn count(&self, address: u64, change: impl Fn(u8) -> u8) {
        let counter = &self.filter[filter_index(address)];
        let _always = counter.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |count| Some(change(count)));
    }

    #[cold]
    fn remove_spilled(&self, address: u64) -> bool {
        (1..SPILL).any(|distance| exchange(self.bucket(address, distance), !address, 0))
    }

    fn bucket(&self, address: u64, distance: usize) -> &Bucket {
        // Neighbours within a mebibyte are neighbours here, so that they share pages; which mebibyte
        // lies where is scattered, because blocks may lie a large power of two apart.
        let granule = address / GRANULE;
        #[allow(clippy::cast_possible_truncation)]
        let (nearby, mebibyte) = (granule as u32, (granule >> 5) as u32);
        let scattered = mebibyte.wrapping_mul(FACTOR) >> (32 - BUCKETS.trailing_zeros());
        let index = nearby.wrapping_add(scattered) as usize;
        &self.buckets[(index + distance) % BUCKETS]
    }
}

/// One fewer; a counter that once was full no longer knows, and stays.
fn less(count: u8) -> u8 {
    if count == u8::MAX { count } else { count.saturating_sub(1) }
}

/// The entries of the hooks compute the same in assembly.
fn filter_index(address: u64) -> usize {
    #[allow(clippy::cast_possible_truncation)]
    let low = (address >> FILTER_SHIFT_IN) as u32;
    (low.wrapping_mul(FACTOR) >> FILTER_SHIFT_OUT) as usize
}

/// Replaces one `from` in the bucket by `to`.
#[inline]
fn exchange(bucket: &Bucket, from: u64, to: u64) -> bool {
    bucket.0.iter().any(|slot| {
        slot.load(Ordering::Relaxed) == from
            && slot.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> Box<Tracked> {
        // SAFETY: all fields are atomics, for which zero is valid.
        unsafe { Box::<Tracked>::new_zeroed().assume_init() }
    }

    #[test]
    fn what_went_in_comes_out_once() {
        let set = fresh();
        assert!(!set.remove(1 << 20));
        assert!(set.insert(1 << 20));
        assert!(!set.remove((1 << 20) + 16));
        assert!(set.remove(1 << 20));
        assert!(!set.remove(1 << 20));
    }

    #[test]
    fn a_crowd_spills_and_is_found() {
        let set = fresh();
        let addresses: Vec<u64> = (1..60_000).map(|block| block * GRANULE + 16).collect();
        assert!(addresses.iter().all(|address| set.insert(*address)));
        assert!(addresses.iter().all(|address| set.remove(*address)));
        assert!(addresses.iter().all(|address| !set.remove(*address)));
    }

    #[test]
    fn blocks_at_large_powers_of_two_find_room() {
        for stride in (15..26).map(|bits| 1_u64 << bits) {
            let set = fresh();
            let addresses = (1..=100_000).map(|block| 0x7000_0000_0000 + block * stride + 16);
            assert_eq!(addresses.filter(|address| !set.insert(*address)).count(), 0, "stride {stride}");
        }
    }

    #[test]
    fn the_set_holds_no_pointers() {
        let set = fresh();
        set.insert(1 << 20);
        let holds = |bucket: &Bucket| bucket.0.iter().any(|slot| slot.load(Ordering::Relaxed) == 1 << 20);
        assert!(!set.buckets.iter().any(holds));
    }

    #[test]
    fn a_full_set_says_so() {
        let set = fresh();
        let refused = (1..400_000_u64).filter(|block| !set.insert(block * GRANULE)).count();
        assert!(refused >= 400_000 - BUCKETS * SLOTS - 1);
    }
}
