//! What a run leaves open of a prediction for another machine: its phases in each way that they may be there.
//!
//! None of them is the fastest everywhere. Fewer lines from memory mean more from a cache that took the run time, too, and a
//! program may have waited for more or for less than the model says. So a range goes over all of them.

use std::borrow::Cow;

use tierloom_model::{Machine, Phase, Profile};

use crate::behind::{Lines, behind, ran_here};

/// Phases behind a last-level cache of so many bytes: with the fewest lines that it may let through, the likely and the
/// most; each with the waiting that was seen, and where the run was on another machine, also with what the model alone
/// says: how far it was off there may be that machine's and not the program's.
pub(crate) fn open<'p>(machine: &Machine, profile: &'p Profile, cache_bytes: u64) -> Vec<Cow<'p, [Phase]>> {
    let mut open = match behind(profile, cache_bytes, Lines::Likely) {
        as_it_ran @ Cow::Borrowed(_) => vec![as_it_ran],
        likely @ Cow::Owned(_) => {
            vec![behind(profile, cache_bytes, Lines::Fewest), likely, behind(profile, cache_bytes, Lines::Most)]
        }
    };
    if is_anchored(profile) && !ran_here(machine, profile) {
        let modelled: Vec<_> = open.iter().map(|phases| Cow::Owned(without_factors(phases))).collect();
        open.extend(modelled);
    }
    open
}

/// Whether the waiting is what was seen in the run.
pub(crate) fn is_anchored(profile: &Profile) -> bool {
    profile.phases.iter().flat_map(|phase| &phase.accesses).any(|access| access.wait_factor.is_some())
}

fn without_factors(phases: &[Phase]) -> Vec<Phase> {
    let mut phases = phases.to_vec();
    phases.iter_mut().flat_map(|phase| &mut phase.accesses).for_each(|access| access.wait_factor = None);
    phases
}
