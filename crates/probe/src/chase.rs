//! Dependent loads: each gives the address of the next, so that their time is their latency.

use std::hint::black_box;

use serde::Serialize;
use tierloom_linux::cpus;
use tierloom_model::hash::SplitMix;

use crate::mix::LINE_BYTES;

/// Seed of the random order; every measurement walks the same one.
const SEED: u64 = 0x7469_6572_6c6f_6f6d;

/// Loads between two looks at the loop counter.
const UNROLLED: usize = 16;

/// In which order the lines of a region are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// One random cycle through all lines: prefetchers see nothing.
    Random,
    /// One line after the other: prefetchers see everything.
    Sequential,
}

/// A cycle through all lines of a region, and where we are on it.
#[derive(Debug)]
pub(crate) struct Chase<'a> {
    links: &'a mut [Link],
    next: *const Link,
}

/// A line of the region: its first word is the address of the next line.
#[derive(Debug)]
#[repr(C, align(64))]
struct Link {
    next: *const Link,
    _rest: [u64; LINE_BYTES / 8 - 1],
}

impl<'a> Chase<'a> {
    /// Lays the cycle through the whole lines of `memory`; `None` when there is no line.
    pub(crate) fn new(memory: &'a mut [u8], order: Order) -> Option<Self> {
        // SAFETY: any bytes are addresses (nobody follows them before they are written below) and
        // words, and the other way round.
        let (_, links, _) = unsafe { memory.align_to_mut::<Link>() };
        let count = u32::try_from(links.len()).unwrap_or(u32::MAX);
        let start = links.as_mut_ptr();
        let mut lay = |(link, to): (&mut Link, u32)| link.next = start.wrapping_add(to as usize);
        match order {
            Order::Random => links.iter_mut().zip(sattolo(count, SEED)).for_each(&mut lay),
            Order::Sequential => links.iter_mut().zip((1..count).chain([0])).for_each(&mut lay),
        }
        Some(Self { next: links.first()?, links })
    }

    /// Lines of the cycle.
    pub(crate) fn lines(&self) -> usize {
        self.links.len()
    }

    /// Follows at least `loads` links; ns per load, of this thread's CPU time: while another program
    /// has the CPU, no load waits.
    pub(crate) fn run(&mut self, loads: usize) -> f64 {
        let turns = loads.div_ceil(UNROLLED).max(1);
        let mut next = self.next;
        let start_s = cpus::thread_cpu_s();
        for _ in 0..turns {
            for _ in 0..UNROLLED {
                // SAFETY: `new` wrote an address of this region into every line that is reached, and
                // nobody has changed it since: the memory is borrowed mutably.
                next = unsafe { (*next).next };
            }
        }
        next = black_box(next);
        let elapsed_s = cpus::thread_cpu_s() - start_s;
        self.next = next;
        elapsed_s * 1e9 / (turns * UNROLLED) as f64
    }
}

/// A random permutation of `0..count` that is one single cycle (Sattolo 1986): where to go next.
pub(crate) fn sattolo(count: u32, seed: u64) -> Vec<u32> {
    let mut random = SplitMix::new(seed);
    let mut next: Vec<u32> = (0..count).collect();
    for last in (1..count).rev() {
        next.swap(last as usize, below(&mut random, last) as usize);
    }
    next
}

/// A number below `bound`, by multiplication: the bias is below `bound / 2^32`.
fn below(random: &mut SplitMix, bound: u32) -> u32 {
    u32::try_from(((random.draw() >> 32) * u64::from(bound)) >> 32).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn length_of_cycle(next: &[u32]) -> usize {
        let mut place = next[0];
        let mut length = 1;
        while place != 0 {
            place = next[place as usize];
            length += 1;
        }
        length
    }

    proptest! {
        #[test]
        fn the_permutation_is_one_full_cycle(count in 1_u32..5000, seed: u64) {
            let next = sattolo(count, seed);
            prop_assert_eq!(length_of_cycle(&next), count as usize);
        }
    }

    #[test]
    fn the_cycle_is_random() {
        let next = sattolo(10_000, 1);
        let neighbours = next.iter().zip(0_u32..).filter(|(to, from)| to.abs_diff(*from) < 16).count();
        assert!(neighbours < 100, "{neighbours} of 10000 steps stay within a kilobyte");
        assert_ne!(next, sattolo(10_000, 2));
    }

    #[test]
    fn a_chase_comes_back_after_every_line() {
        for order in [Order::Random, Order::Sequential] {
            let mut memory = vec![0_u8; 65 * LINE_BYTES];
            let offset = memory.as_ptr().align_offset(LINE_BYTES);
            let mut chase = Chase::new(&mut memory[offset..offset + 64 * LINE_BYTES], order).unwrap();
            assert_eq!(chase.lines(), 64);
            let first = chase.next;
            chase.run(16);
            assert_ne!(chase.next, first);
            chase.run(48);
            assert_eq!(chase.next, first);
        }
    }

    #[test]
    fn no_line_makes_no_chase() {
        assert!(Chase::new(&mut [0; 10], Order::Random).is_none());
    }
}
