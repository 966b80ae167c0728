//! The law of weighted interleave: which node a page belongs on, as a function of its address alone.
//!
//! It is the kernel's own law for anonymous memory (`weighted_interleave_nid` of `mm/mempolicy.c`:
//! page number modulo the sum of weights, nodes in ascending order), with the weights of one object in
//! place of the host's and a unit in place of the page. Whoever places a page and whoever checks where
//! it went asks here, so that the two cannot disagree.

use crate::layout::PAGE_BYTES;
use crate::scatter::scatter;

/// One node's part of a round: so many units in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// The kernel's number of the node.
    pub node: u32,
    /// Units in a row; 0 takes no part.
    pub units: u32,
}

/// Units of a range dealt out to nodes, round after round, from address 0 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Law<'a> {
    turns: &'a [Turn],
    unit: u64,
    round: u64,
}

/// A part of a range whose pages belong on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stripe {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// Where they belong.
    pub node: u32,
}

impl<'a> Law<'a> {
    /// The law of these turns with units of `unit` bytes, a power of two and at least a page; `None`
    /// where no node takes part or the unit is none.
    pub fn new(turns: &'a [Turn], unit: u64) -> Option<Self> {
        let round = turns.iter().map(|turn| u64::from(turn.units)).sum();
        (round > 0 && unit >= PAGE_BYTES && unit.is_power_of_two()).then_some(Self { turns, unit, round })
    }

    /// Bytes that are dealt out at a time.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// Bytes of one round over all nodes.
    pub fn round_bytes(&self) -> u64 {
        self.unit.saturating_mul(self.round)
    }

    /// The same shares in other units.
    pub fn with_unit(&self, unit: u64) -> Option<Self> {
        Self::new(self.turns, unit)
    }

    /// Where the page at this address belongs.
    pub fn node(&self, address: u64) -> u32 {
        self.turn(address).0
    }

    /// Whose turn an address falls in, and how many bytes of that turn begin there.
    fn turn(&self, address: u64) -> (u32, u64) {
        let mut at = address / self.unit % self.round;
        for turn in self.turns {
            let units = u64::from(turn.units);
            if at < units {
                return (turn.node, (units - at) * self.unit - address % self.unit);
            }
            at -= units;
        }
        // The position in a round is below the sum of its turns.
        (0, self.unit)
    }

    /// A range cut up by node, in ascending order.
    pub fn stripes(self, start: u64, bytes: u64) -> impl Iterator<Item = Stripe> + use<'a> {
        let end = start.saturating_add(bytes);
        let mut at = start;
        core::iter::from_fn(move || {
            let (node, rest) = self.turn(at);
            let stripe = Stripe { start: at, bytes: rest.min(end - at), node };
            at += stripe.bytes;
            (stripe.bytes > 0).then_some(stripe)
        })
    }

    /// How many stripes a range of this length is cut into, to within one round's.
    pub fn stripe_count(&self, bytes: u64) -> u64 {
        let turns = self.turns.iter().filter(|turn| turn.units > 0).count() as u64;
        // 128 bits: a range may have 2^57 bytes.
        let count = u128::from(bytes) * u128::from(turns) / u128::from(self.round_bytes().max(1));
        u64::try_from(count).unwrap_or(u64::MAX).saturating_add(turns)
    }

    /// The nodes that take part, as a mask; nodes from 64 on have no bit.
    pub fn mask(&self) -> u64 {
        let bit = |turn: &Turn| 1_u64.checked_shl(turn.node).unwrap_or(0);
        self.turns.iter().filter(|turn| turn.units > 0).map(bit).fold(0, |mask, bit| mask | bit)
    }
}

/// Which page of a range of `all` pages stands for its `part`th of `parts` equal parts.
///
/// It is drawn by hash of the part: every n-th page would beat with the rounds of an interleave and
/// see one node only. `parts` is at least 1 and at most `all`.
pub fn sampled_page(part: u64, parts: u64, all: u64) -> u64 {
    let first = |part: u64| u64::try_from(u128::from(part) * u128::from(all) / u128::from(parts)).unwrap_or(0);
    let length = first(part + 1) - first(part);
    first(part) + (scatter(part + 1) >> 20) % length.max(1)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn turns(units: &[u32]) -> Vec<Turn> {
        units.iter().zip(0..).map(|(units, node)| Turn { node, units: *units }).collect()
    }

    #[test]
    fn pages_go_round_by_weight() {
        let turns = turns(&[3, 1]);
        let law = Law::new(&turns, 4096).unwrap();
        let nodes: Vec<u32> = (0..8).map(|page| law.node(page * 4096)).collect();
        assert_eq!(nodes, [0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!((law.mask(), law.round_bytes()), (0b11, 16384));
    }

    #[test]
    fn a_law_needs_a_node_and_a_unit() {
        assert_eq!(Law::new(&turns(&[0, 0]), 4096), None);
        assert_eq!(Law::new(&[], 4096), None);
        assert_eq!(Law::new(&turns(&[1]), 2048), None);
        assert_eq!(Law::new(&turns(&[1]), 12288), None);
    }

    /// `weighted_interleave_nid`: the page's number modulo the sum, then weights taken off node by node.
    fn kernel(page: u64, weights: &[u32]) -> u32 {
        let mut target = page % weights.iter().map(|weight| u64::from(*weight)).sum::<u64>();
        for (node, weight) in (0..).zip(weights) {
            if target < u64::from(*weight) {
                return node;
            }
            target -= u64::from(*weight);
        }
        unreachable!("the target is below the sum")
    }

    #[test]
    fn every_part_gives_one_of_its_pages() {
        for (all, parts) in [(10, 10), (1000, 7), (1 << 30, 1024)] {
            for part in 0..parts {
                let page = sampled_page(part, parts, all);
                assert!((part * all / parts..(part + 1) * all / parts).contains(&page));
            }
        }
    }

    #[test]
    fn a_sample_sees_an_interleave_as_it_is() {
        let turns = turns(&[1, 1]);
        let law = Law::new(&turns, 4096).unwrap();
        let on_first = (0..1024).filter(|part| law.node(sampled_page(*part, 1024, 1 << 20) * 4096) == 0).count();
        assert!((400..624).contains(&on_first), "{on_first} of 1024");
    }

    proptest! {
        #[test]
        fn the_law_is_the_kernels(weights in prop::collection::vec(1_u32..=255, 1..5), page in 0_u64..1 << 45) {
            let turns = turns(&weights);
            let law = Law::new(&turns, 4096).unwrap();
            prop_assert_eq!(law.node(page * 4096), kernel(page, &weights));
        }

        #[test]
        fn stripes_cover_a_range_and_obey_the_law(
            weights in prop::collection::vec(0_u32..6, 1..5), start in 0_u64..1 << 20, pages in 0_u64..200, shift in 0_u32..4
        ) {
            let (start, bytes, turns) = (start * 4096, pages * 4096, turns(&weights));
            let Some(law) = Law::new(&turns, 4096 << shift) else { return Ok(()) };
            let mut at = start;
            let mut count = 0;
            for stripe in law.stripes(start, bytes) {
                prop_assert_eq!(stripe.start, at);
                for page in 0..stripe.bytes / 4096 {
                    prop_assert_eq!(law.node(at + page * 4096), stripe.node);
                }
                at += stripe.bytes;
                count += 1;
            }
            prop_assert_eq!(at, start + bytes);
            let turns = weights.iter().filter(|weight| **weight > 0).count() as u64;
            prop_assert!(law.stripe_count(bytes).abs_diff(count) <= turns + 1);
        }
    }
}
