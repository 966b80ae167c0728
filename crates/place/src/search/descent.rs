//! Downhill in moves of shrinking size, until none helps.

use super::lattice::Lattice;
use super::moves::{Neighbourhood, Steps};

/// Relative gain below which a placement does not count as faster: a thousandth of a percent.
pub(super) const GAIN: f64 = 1e-5;
/// Up to this many objects the search looks at every candidate and every step size.
const FEW_OBJECTS: usize = 8;
/// Pages of a 32-page round that are moved at once, from large to small.
const STEPS: [u32; 6] = [32, 16, 8, 4, 2, 1];
/// The same for many objects, where the shares of single ones matter less.
const STEPS_OF_MANY: [u32; 3] = [32, 8, 2];
/// Sweeps over the candidates at one step size.
const MOST_SWEEPS: usize = 8;
/// Times that the step sizes are gone through while that still helps.
const MOST_ROUNDS: usize = 4;
/// Candidates in a row that do not help before a sweep over many objects ends.
const MOST_MISSES: usize = 24;

/// Walks downhill until no move helps.
pub(super) fn improved(mut lattice: Lattice<'_>) -> Lattice<'_> {
    let few = lattice.context.profile.objects.len() <= FEW_OBJECTS;
    let steps: &[u32] = if few { &STEPS } else { &STEPS_OF_MANY };
    let mut around = Neighbourhood::of(&lattice, few);
    for _ in 0..MOST_ROUNDS {
        let before_s = lattice.time_s();
        for step in steps {
            let mut sweeps = 0..MOST_SWEEPS;
            while sweeps.next().is_some() && sweep(&mut lattice, &around.in_steps_of(*step), few) {
                around = Neighbourhood::of(&lattice, few);
            }
        }
        if lattice.time_s() >= before_s * (1.0 - GAIN) {
            break;
        }
    }
    lattice
}

/// Tries the candidates of one step size once; says whether any helped.
fn sweep(lattice: &mut Lattice<'_>, steps: &Steps<'_>, few: bool) -> bool {
    let (mut helped, mut misses) = (false, 0);
    for candidate in steps.candidates(lattice) {
        let Some(moves) = steps.moves(lattice, &candidate) else { continue };
        let limit_s = lattice.time_s() * (1.0 - GAIN);
        if lattice.apply_below(&moves, limit_s) {
            (helped, misses) = (true, 0);
        } else {
            misses += 1;
        }
        if misses > MOST_MISSES && !few {
            break;
        }
    }
    helped
}
