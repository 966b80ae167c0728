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

/// Places one object, takes its bytes from `free`, and returns its fraction by node.
///
/// # Errors
/// Bytes that found no room.
pub(crate) fn place(deal: &Deal, size_bytes: f64, free: &mut [f64]) -> Result<Vec<f64>, f64> {
    let mut placed = vec![0.0; free.len()];
    let mut left = size_bytes;
    loop {
        let rates = rates(deal, free).ok_or(left)?;
        let step = rates
            .iter()
            .zip(free.iter())
            .filter(|(rate, _)| **rate > 0.0)
            .map(|(rate, room)| room / rate)
            .fold(left, f64::min);
        for node in 0..free.len() {
            placed[node] += rates[node] * step;
            free[node] = (free[node] - rates[node] * step).max(0.0);
        }
        left -= step;
        if left < PLACED_BYTES {
            return Ok(fractions(placed, &rates));
        }
    }
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

/// An object without bytes still has a place: where its pages would have gone.
fn fractions(placed: Vec<f64>, rates: &[f64]) -> Vec<f64> {
    let total: f64 = placed.iter().sum();
    if total > 0.0 { placed.into_iter().map(|bytes| bytes / total).collect() } else { rates.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;

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

    #[test]
    fn an_object_without_bytes_has_a_place() {
        let row = place(&interleave(&[3.0, 1.0]), 0.0, &mut [10.0, 10.0]).unwrap();
        assert_eq!(row, [0.75, 0.25]);
    }
}
