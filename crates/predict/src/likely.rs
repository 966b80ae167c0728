//! A profile as it likely is on another machine: what engines take that follow one run and give no range.

use std::borrow::Cow;

use tierloom_model::{Machine, Profile};

use crate::anchor::anchored;
use crate::behind::{Lines, behind, cache_of};
use crate::error::PredictError;

/// The profile with the waiting of its run, and behind the last-level cache of a machine's socket, each as far as it is
/// known. `ran_on` is the machine that it was recorded on, where somebody measured it.
///
/// # Errors
/// As [`anchored`].
pub fn likely_on(
    profile: &Profile,
    machine: &Machine,
    socket: usize,
    ran_on: Option<&Machine>,
) -> Result<Profile, PredictError> {
    let known = ran_on.map(|ran_on| anchored(profile, ran_on)).transpose()?.flatten();
    let mut likely = known.map_or_else(|| profile.clone(), |(known, _)| known);
    let cache_bytes = cache_of(machine, profile, std::iter::once(socket));
    if let Cow::Owned(phases) = behind(&likely, cache_bytes, Lines::Likely) {
        (likely.phases, likely.program.llc_bytes) = (phases, cache_bytes);
    }
    Ok(likely)
}
