//! Where the kernel puts pages: memory policies, full nodes and fallback, in the limit of small pages.
//!
//! One object after the other, in the order of first touch. Each policy deals an object's pages out
//! to nodes by weight; a page whose node is full goes to the first node with room in that node's
//! zonelist, except that a bind allows its own nodes alone (`mm/mempolicy.c`: `policy_nodemask`,
//! `weighted_interleave_nid`; `mm/page_alloc.c`: `get_page_from_freelist`). Nodes fill up one at a
//! time, so an object is placed in at most as many steps as there are nodes, each exact.

/// How one object's pages are dealt out.
#[derive(Debug, Clone)]
pub(crate) struct Deal {
    /// For each node that is asked for: its weight and where its pages go, itself first.
    pub(crate) turns: Vec<Turn>,
}

/// One node's part of a deal.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    /// Pages per round.
    pub(crate) weight: f64,
    /// Nodes to try, in order.
    pub(crate) zonelist: Vec<usize>,
}

/// Room below which a node counts as full: what is left of rounding, bytes.
const FULL_BYTES: f64 = 1e-3;
/// Data below which an object counts as placed: more than all nodes' roundings, bytes.
const PLACED_BYTES: f64 = 1.0;

/// Nodes as they fill up, piece after piece.
///
/// Where a deal's next pages go changes only when a node becomes full, so it is worked out once in between.
#[derive(Debug)]
pub(crate) struct Filling {
    free: Vec<f64>,
    /// Nodes without room; those never get any.
    full: usize,
    deals: Vec<Dealt>,
}

/// A deal and where its pages go now.
#[derive(Debug)]
struct Dealt {
    deal: Deal,
    /// Share of the next pages by node, as it was with so many nodes full; none at first.
    rates: Option<(usize, Vec<f64>)>,
}

impl Filling {
    /// Nodes with so many free bytes, and the deals that [`Filling::place`] refers to by position.
    pub(crate) fn new(free: Vec<f64>, deals: Vec<Deal>) -> Self {
        let full = full(&free);
        Self { free, full, deals: deals.into_iter().map(|deal| Dealt { deal, rates: None }).collect() }
    }

    /// Places a piece, takes its bytes, and adds its `share` of the object to the object's fractions by node.
    ///
    /// # Errors
    /// Bytes that found no room.
    pub(crate) fn place(&mut self, deal: usize, bytes: f64, share: f64, row: &mut [f64]) -> Result<(), f64> {
        let rates = self.deals[deal].rates(self.full, &self.free).ok_or(bytes)?;
        if rates.iter().zip(&self.free).any(|(rate, room)| rate * bytes > *room) {
            return self.place_in_steps(deal, bytes, share, row);
        }
        for ((rate, room), fraction) in rates.iter().zip(&mut self.free).zip(row) {
            *room -= rate * bytes;
            *fraction += rate * share;
        }
        self.full = full(&self.free);
        Ok(())
    }

    /// The same where nodes fill up on the way.
    fn place_in_steps(&mut self, deal: usize, bytes: f64, share: f64, row: &mut [f64]) -> Result<(), f64> {
        let mut placed = vec![0.0; self.free.len()];
        let mut left = bytes;
        loop {
            let rates = self.deals[deal].rates(self.full, &self.free).ok_or(left)?;
            let rooms = rates.iter().zip(&self.free).filter(|(rate, _)| **rate > 0.0);
            let step = rooms.map(|(rate, room)| room / rate).fold(left, f64::min);
            for ((rate, room), placed) in rates.iter().zip(&mut self.free).zip(&mut placed) {
                *placed += rate * step;
                *room = (*room - rate * step).max(0.0);
            }
            left -= step;
            self.full = full(&self.free);
            if left < PLACED_BYTES {
                break;
            }
        }
        let total: f64 = placed.iter().sum();
        for (placed, fraction) in placed.iter().zip(row) {
            *fraction += placed / total * share;
        }
        Ok(())
    }
}

impl Dealt {
    /// Share of the next pages by node; `None` where one of them finds no room.
    fn rates(&mut self, full: usize, free: &[f64]) -> Option<&[f64]> {
        if self.rates.as_ref().is_none_or(|(as_of, _)| *as_of != full) {
            self.rates = Some((full, rates(&self.deal, free)?));
        }
        self.rates.as_ref().map(|(_, rates)| rates.as_slice())
    }
}

fn full(free: &[f64]) -> usize {
    free.iter().filter(|room| **room <= FULL_BYTES).count()
}

/// Share of the next pages that each node takes; `None` when one of them finds no room.
fn rates(deal: &Deal, free: &[f64]) -> Option<Vec<f64>> {
    let total: f64 = deal.turns.iter().map(|turn| turn.weight).sum();
    let mut rates = vec![0.0; free.len()];
    for turn in &deal.turns {
        let node = turn.zonelist.iter().find(|node| free[**node] > FULL_BYTES)?;
        rates[*node] += turn.weight / total;
    }
    Some(rates)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: f64 = 1_048_576.0;

    /// Fractions of one object by node; takes its bytes from `free`.
    fn place(deal: &Deal, bytes: f64, free: &mut [f64]) -> Result<Vec<f64>, f64> {
        let mut filling = Filling::new(free.to_vec(), vec![deal.clone()]);
        let mut row = vec![0.0; free.len()];
        filling.place(0, bytes, 1.0, &mut row)?;
        free.copy_from_slice(&filling.free);
        Ok(row)
    }

    fn interleave(weights: &[f64]) -> Deal {
        let nodes = weights.len();
        let turn = |(node, weight): (usize, &f64)| Turn {
            weight: *weight,
            zonelist: (0..nodes).map(|step| (node + step) % nodes).collect(),
        };
        Deal { turns: weights.iter().enumerate().map(turn).collect() }
    }

    /// Measured in a virtual machine with Linux 6.12: 2200 MiB interleaved over a node of 1 GiB and
    /// one of 2 GiB leave 42 % on the small one, not 50 %. An empty node of 1 GiB would take
    /// 1024/2200 = 46.5 %; 42 % are what remains after the kernel took its 100 MiB.
    #[test]
    fn interleave_overflows_to_the_other_node() {
        let row = place(&interleave(&[1.0, 1.0]), 2200.0 * MIB, &mut [1024.0 * MIB, 2048.0 * MIB]).unwrap();
        assert!((row[0] - 1024.0 / 2200.0).abs() < 1e-12);
        let row = place(&interleave(&[1.0, 1.0]), 2200.0 * MIB, &mut [924.0 * MIB, 2048.0 * MIB]).unwrap();
        assert!((row[0] - 0.42).abs() < 1e-12 && (row[0] + row[1] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn each_full_node_hands_its_turn_to_its_own_zonelist() {
        // Node 0 (10) is full after 30 bytes of the 60; from then on its third goes to node 1, which
        // has 15 left and takes two thirds of each byte: 22.5 bytes on. The last 7.5 go to node 2.
        let mut free = [10.0, 25.0, 1000.0];
        let row = place(&interleave(&[1.0; 3]), 60.0, &mut free).unwrap();
        let bytes: Vec<f64> = row.iter().map(|fraction| fraction * 60.0).collect();
        assert!((bytes[0] - 10.0).abs() < 1e-9 && (bytes[1] - 25.0).abs() < 1e-9 && (bytes[2] - 25.0).abs() < 1e-9);
        assert!(free[0].max(free[1]) < 1e-9);
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let bind = Deal { turns: vec![Turn { weight: 1.0, zonelist: vec![0] }] };
        let missing = place(&bind, 100.0, &mut [60.0, 1000.0]).unwrap_err();
        assert!((missing - 40.0).abs() < 1e-9);
    }

    /// The same piece by piece, with nothing kept from one to the next.
    fn place_anew(deal: &Deal, bytes: f64, free: &mut [f64]) -> Option<Vec<f64>> {
        let (mut placed, mut left) = (vec![0.0; free.len()], bytes);
        loop {
            let rates = rates(deal, free)?;
            let rooms = rates.iter().zip(free.iter()).filter(|(rate, _)| **rate > 0.0);
            let step = rooms.map(|(rate, room)| room / rate).fold(left, f64::min);
            for node in 0..free.len() {
                placed[node] += rates[node] * step;
                free[node] = (free[node] - rates[node] * step).max(0.0);
            }
            left -= step;
            if left < PLACED_BYTES {
                let total: f64 = placed.iter().sum();
                return Some(placed.into_iter().map(|bytes| bytes / total).collect());
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_between_pieces_changes_nothing(
            room in prop::collection::vec(1e3f64..1e6, 3),
            weights in prop::collection::vec(prop::collection::vec(1.0f64..9.0, 3), 1..4),
            pieces in prop::collection::vec((0usize..4, 1.0f64..1e5), 1..60),
        ) {
            let deals: Vec<Deal> = weights.iter().map(|weights| interleave(weights)).collect();
            let mut filling = Filling::new(room.clone(), deals.clone());
            let mut free = room;
            for (deal, bytes) in pieces {
                let (deal, mut row) = (deal % deals.len(), vec![0.0; 3]);
                let placed = filling.place(deal, bytes, 0.5, &mut row);
                let Some(anew) = place_anew(&deals[deal], bytes, &mut free) else {
                    prop_assert!(placed.is_err());
                    break;
                };
                prop_assert!(placed.is_ok());
                prop_assert!(row.iter().zip(&anew).all(|(share, whole)| (share - whole * 0.5).abs() < 1e-9));
                prop_assert!(filling.free.iter().zip(&free).all(|(a, b)| (a - b).abs() < 1e-6));
            }
        }
    }

    #[test]
    fn an_object_without_bytes_has_a_place() {
        let row = place(&interleave(&[3.0, 1.0]), 0.0, &mut [10.0, 10.0]).unwrap();
        assert_eq!(row, [0.75, 0.25]);
    }
}
