//! Every policy on one machine and profile, the best of them, and the frontier.

use tierloom_model::units::round_to_u64;
use tierloom_model::{Comparison, Machine, PolicyResult, Profile};
use tierloom_predict::{Predictor, Run};

use crate::compared::{Choice, Compared};
use crate::context::Context;
use crate::error::PlaceError;
use crate::frontier::{self, Found};
use crate::request::Request;
use crate::slowdown::least_memory;

/// Relative difference in time that no run could show: the simpler policy is chosen (assumed).
const SAME: f64 = 1e-3;

/// Compares policies as a request asks, and chooses.
///
/// Without [`Request::max_slowdown`], the first policy in the list that is within 0.1 % of the least
/// time is chosen: the list goes from simple to elaborate. With it, the one that takes the least fast
/// memory within that bound.
///
/// # Errors
/// [`PlaceError`] for names that are none, data that does not fit, a bound that nothing keeps, or
/// when no policy can be used. A policy that cannot be used beside others that can is no error: its
/// result says why.
pub fn compare(machine: &Machine, profile: &Profile, request: &Request) -> Result<Comparison, PlaceError> {
    let positions = request.positions(machine, profile)?;
    let run = positions.run;
    let predictor = predictor(machine, profile, &[run], request)?;
    let ablated = request.ablated(profile)?;
    let profile = ablated.as_ref().map_or(profile, |ablated| &ablated.likely);
    let context = request.context(machine, profile, &predictor, positions)?;
    let frontier = frontier::frontier(&context.without_budget())?;
    let Choice { compared, chosen, points } = match request.max_slowdown {
        Some(asked) => least_memory(&context, &frontier, request, asked)?,
        None => fastest(context, &frontier, request)?,
    };
    let Compared { context, policies } = compared;
    Ok(Comparison {
        machine: machine.name.clone(),
        profile: profile.name.clone(),
        socket: machine.sockets[run.socket].name.clone(),
        threads: run.threads,
        anchor: None,
        fast_memory: context.name(context.fast).to_owned(),
        budget_bytes: round_to_u64(context.capacity[context.fast]),
        chosen: policies[chosen].policy.clone(),
        unselected: unselected(profile),
        frontier: frontier::envelope(points),
        policies,
    })
}

fn unselected(profile: &Profile) -> Vec<String> {
    let objects = profile.objects.iter().filter(|object| !object.can_be_placed());
    objects.map(|object| object.name.clone()).collect()
}

/// A profile compiled for a run, without the objects that a request asks to cost no memory.
///
/// # Errors
/// As [`Predictor::over`], and where the profile has no such object.
pub fn predictor(
    machine: &Machine,
    profile: &Profile,
    runs: &[Run],
    request: &Request,
) -> Result<Predictor, PlaceError> {
    let Some(ablated) = request.ablated(profile)? else { return Ok(Predictor::over(machine, profile, runs)?) };
    Ok(Predictor::over(machine, &ablated.likely, runs)?.leaving_open(machine, &ablated.uncovered, runs)?)
}

/// The policies within the budget, and the simplest of the fastest.
fn fastest<'a>(context: Context<'a>, frontier: &[Found], request: &Request) -> Result<Choice<'a>, PlaceError> {
    let compared = Compared::new(context, request, frontier)?;
    let least_s = compared.timed().map(|(_, time_s)| time_s).fold(f64::INFINITY, f64::min);
    let fastest = |time_s: f64| time_s <= least_s * (1.0 + SAME);
    let is_fastest = |result: &PolicyResult| result.outcome.as_ref().is_ok_and(|outcome| fastest(outcome.time_s));
    let chosen = compared.policies.iter().position(is_fastest).ok_or_else(|| compared.nothing_fits())?;
    // With every policy's own point, no policy lies below the frontier.
    let points = frontier.iter().map(|found| found.point(compared.context.fast)).chain(compared.points()).collect();
    Ok(Choice { compared, chosen, points })
}
