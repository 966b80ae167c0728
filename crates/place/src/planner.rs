//! Every policy on one machine and profile, the best of them, and the frontier.

use tierloom_model::units::round_to_u64;
use tierloom_model::{Comparison, Machine, Placement, PolicyResult, Profile};
use tierloom_predict::Predictor;

use crate::context::Context;
use crate::error::PlaceError;
use crate::frontier::{self, Found};
use crate::policy::{self, Policy, Tierloom};
use crate::request::Request;
use crate::search::Rows;

/// Relative difference in time that no run could show: the simpler policy is chosen (assumed).
const SAME: f64 = 1e-3;

/// Compares policies as a request asks, and chooses.
///
/// Without [`Request::max_slowdown`], the first policy in the list that is within 0.1 % of the least
/// time is chosen: the list goes from simple to elaborate. With it, the one that takes the least fast memory within that bound.
///
/// # Errors
/// [`PlaceError`] for names that are none, data that does not fit, a bound that nothing keeps, or
/// when no policy can be used. A policy that cannot be used beside others that can is no error: its
/// result says why.
pub fn compare(machine: &Machine, profile: &Profile, request: &Request) -> Result<Comparison, PlaceError> {
    let positions = request.positions(machine, profile)?;
    let run = positions.run;
    let predictor = Predictor::new(machine, profile, run)?;
    let context = request.context(machine, profile, &predictor, positions.clone())?;
    let whole = Request { budget: None, ..request.clone() }.context(machine, profile, &predictor, positions)?;
    let frontier = frontier::frontier(&whole)?;
    let goal = Goal::new(&context, &frontier, request)?;
    let context = goal.budget.map_or(Ok(context.clone()), |bytes| context.with_budget(bytes))?;
    let policies = results(&context, request, goal.hints(&frontier, &context))?;
    let chosen = goal.choose(&policies)?;
    Ok(Comparison {
        machine: machine.name.clone(),
        profile: profile.name.clone(),
        socket: machine.sockets[run.socket].name.clone(),
        threads: run.threads,
        fast_memory: context.name(context.fast).to_owned(),
        budget_bytes: round_to_u64(context.capacity[context.fast]),
        chosen: chosen.policy.clone(),
        frontier: envelope(&frontier, &policies),
        policies,
    })
}

/// What is wanted, after the bound on the slow-down was turned into a budget.
struct Goal {
    /// Bytes of fast memory that keep the bound.
    budget: Option<f64>,
    /// Most run time, s.
    limit_s: Option<f64>,
    /// The placement that keeps the bound.
    found: Option<Found>,
}

impl Goal {
    fn new(context: &Context<'_>, frontier: &[Found], request: &Request) -> Result<Self, PlaceError> {
        let Some(asked) = request.max_slowdown else { return Ok(Self { budget: None, limit_s: None, found: None }) };
        if !(asked.is_finite() && asked >= 0.0) {
            return Err(PlaceError::BadSlowdown { asked });
        }
        let objects = context.profile.objects.len();
        let all_fast = Placement::uniform(objects, context.capacity.len(), context.fast);
        let reference_s = context.predictor.time_s(&context.predictor.demand(all_fast.rows()));
        let limit_s = reference_s * (1.0 + asked);
        let affordable: Vec<Found> =
            frontier.iter().filter(|found| found.fast_bytes <= context.capacity[context.fast]).cloned().collect();
        let least = frontier::least_memory(context, &affordable, limit_s)?;
        match least.or_else(|| searched(context, &affordable).filter(|found| found.time_s <= limit_s)) {
            Some(found) => {
                Ok(Self { budget: Some(found.fast_bytes.ceil()), limit_s: Some(limit_s), found: Some(found) })
            }
            None => Err(out_of_reach(context, asked, &affordable, reference_s)),
        }
    }

    /// Placements that `tierloom` should start from: the frontier's last that fits, the bound's own.
    fn hints(&self, frontier: &[Found], context: &Context<'_>) -> Vec<Rows> {
        let fits = |found: &&Found| found.fast_bytes <= context.capacity[context.fast];
        let last = frontier.iter().rfind(fits);
        last.into_iter().chain(&self.found).map(|found| found.rows.clone()).collect()
    }

    fn choose<'p>(&self, policies: &'p [PolicyResult]) -> Result<&'p PolicyResult, PlaceError> {
        let time_s = |result: &PolicyResult| result.outcome.as_ref().map_or(f64::INFINITY, |outcome| outcome.time_s);
        let least_s = policies.iter().map(time_s).fold(f64::INFINITY, f64::min);
        let limit_s = self.limit_s.unwrap_or(least_s * (1.0 + SAME));
        let mut keeping = policies.iter().filter(|result| result.outcome.is_ok() && time_s(result) <= limit_s);
        let chosen = match self.limit_s {
            None => keeping.next(),
            Some(_) => keeping.min_by(|a, b| a.fast_bytes.total_cmp(&b.fast_bytes)),
        };
        chosen.ok_or_else(|| nothing_fits(policies))
    }
}

/// What the longest search finds with all the fast memory: the frontier's points are searched for less.
fn searched(context: &Context<'_>, frontier: &[Found]) -> Option<Found> {
    let ours = Tierloom { hints: frontier.last().map(|found| found.rows.clone()).into_iter().collect() };
    let rows = ours.place(context).ok()?.rows().to_vec();
    Some(Found::placed(context, rows))
}

fn out_of_reach(context: &Context<'_>, asked: f64, frontier: &[Found], reference_s: f64) -> PlaceError {
    let least_s = frontier.iter().map(|found| found.time_s).fold(f64::INFINITY, f64::min);
    let percent = |slowdown: f64| format!("{:.1} %", slowdown * 100.0);
    let best = least_s / reference_s - 1.0;
    PlaceError::OutOfReach {
        asked: percent(asked),
        best: percent(best),
        fast: context.name(context.fast).to_owned(),
        hint: if best.is_finite() {
            format!("allow {} or more, or give more fast memory", percent(best))
        } else {
            "give more fast memory, or allow more memories".to_owned()
        },
    }
}

fn nothing_fits(policies: &[PolicyResult]) -> PlaceError {
    let reason =
        |result: &PolicyResult| result.outcome.as_ref().err().map(|reason| format!("{}: {reason}", result.policy));
    let first = policies.iter().find_map(reason).unwrap_or_else(|| "no policy was named".to_owned());
    PlaceError::NothingFits { first }
}

fn results(context: &Context<'_>, request: &Request, hints: Vec<Rows>) -> Result<Vec<PolicyResult>, PlaceError> {
    let mut policies = Vec::new();
    match &request.policies {
        None => policies = policy::usual(context),
        Some(names) => {
            for name in names {
                policies.push(policy::by_name(name, context)?);
            }
        }
    }
    let ours = Tierloom { hints };
    let result = |policy: &dyn Policy| {
        let policy: &dyn Policy = if policy.name() == ours.name() { &ours } else { policy };
        result(context, policy)
    };
    Ok(policies.iter().map(|policy| result(policy.as_ref())).collect())
}

fn result(context: &Context<'_>, policy: &dyn Policy) -> PolicyResult {
    let placed = policy.actions(context).and_then(|actions| Ok((context.realise(&actions)?, actions)));
    let (policy, about) = (policy.name(), policy.about());
    match placed {
        Err(reason) => PolicyResult {
            policy,
            about,
            outcome: Err(reason.to_string()),
            fast_bytes: 0.0,
            fractions: Vec::new(),
            actions: Vec::new(),
        },
        Ok((placement, actions)) => PolicyResult {
            policy,
            about,
            outcome: Ok(context.predictor.predict(&placement)),
            fast_bytes: fast_bytes(context, &placement),
            fractions: placement.rows().to_vec(),
            actions,
        },
    }
}

fn fast_bytes(context: &Context<'_>, placement: &Placement) -> f64 {
    (0..context.profile.objects.len()).map(|object| placement.row(object)[context.fast] * context.size(object)).sum()
}

/// The frontier with every policy's own point, so that no policy lies below it.
fn envelope(frontier: &[Found], policies: &[PolicyResult]) -> Vec<tierloom_model::FrontierPoint> {
    let found = frontier.iter().map(|found| (found.fast_bytes, found.time_s));
    let tried = policies.iter().filter_map(|result| Some((result.fast_bytes, result.outcome.as_ref().ok()?.time_s)));
    frontier::envelope(found.chain(tried).collect())
}
