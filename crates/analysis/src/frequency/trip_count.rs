//! How often loops go round: what `renewal` finds and others use.

use std::collections::BTreeMap;

use tierloom_binary::cfg::{Function, LoopId};
use tierloom_binary::code::FunctionId;

/// How often a loop goes round each time it is entered, on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TripCount {
    pub(crate) rounds: f64,
    /// One standard deviation, relative.
    pub(crate) relative_error: f64,
    /// Variance over instances, relative to the square of the mean: 1 where rounds end by chance. `None`
    /// where the code alone tells the rounds: what is asked before the loop is then something else.
    pub(crate) variance: Option<f64>,
}

/// Of the loops of all functions, as far as they can be had.
pub(crate) type TripCounts = BTreeMap<(FunctionId, LoopId), TripCount>;

/// Rounds of a loop and of those inside it, for each time that it is entered, as far as they are known: so much rarer the way
/// into it is than what fills the time.
pub(crate) fn rounds_of_nest(function: &Function, id: FunctionId, inside: LoopId, trips: &TripCounts) -> f64 {
    let own = trips.get(&(id, inside)).map_or(1.0, |trip| trip.rounds.max(1.0));
    own * rounds_within(function, id, inside, trips)
}

/// The same of the loops inside alone, for each round.
pub(crate) fn rounds_within(function: &Function, id: FunctionId, inside: LoopId, trips: &TripCounts) -> f64 {
    let children = function.loops.iter_enumerated().filter(|(_, inner)| inner.parent == Some(inside));
    children.map(|(inner, _)| rounds_of_nest(function, id, inner, trips)).fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    // xor ecx,ecx | 2: xor eax,eax | 4: inc eax; cmp eax,40; jne 4 | inc ecx; cmp ecx,5; jne 2 | ret
    const NEST: &[u8] =
        &[0x31, 0xc9, 0x31, 0xc0, 0xff, 0xc0, 0x83, 0xf8, 40, 0x75, 0xf9, 0xff, 0xc1, 0x83, 0xf9, 5, 0x75, 0xf0, 0xc3];

    #[test]
    fn rounds_of_a_nest_are_those_of_all_its_loops_as_far_as_they_are_known() {
        let (function, id) = (Function::decode(NEST, 0), FunctionId::new(0));
        let of = |inner: bool| function.loops.position(|natural| natural.parent.is_some() == inner).unwrap();
        let trip = |rounds| TripCount { rounds, relative_error: 0.001, variance: None };
        let (outer, inner) = ((id, of(false)), (id, of(true)));
        let told = |trips: &TripCounts| {
            (rounds_of_nest(&function, id, outer.1, trips), rounds_within(&function, id, outer.1, trips))
        };
        assert_eq!(told(&TripCounts::from([(outer, trip(5.0)), (inner, trip(40.0))])), (200.0, 40.0));
        assert_eq!(told(&TripCounts::from([(inner, trip(40.0))])), (40.0, 40.0));
        assert_eq!(told(&TripCounts::new()), (1.0, 1.0));
    }
}
