//! Every policy on one machine and profile, the best of them, and the frontier.

use tierloom_model::units::round_to_u64;
use tierloom_model::{Action, Comparison, Machine, Placement, PolicyResult, Profile};
use tierloom_predict::Predictor;

use crate::context::Context;
use crate::error::PlaceError;
use crate::frontier::{self, Found};
use crate::policy::{self, Policy, Tierloom, Tried};
use crate::request::Request;
use crate::search::Rows;

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
    let predictor = Predictor::new(machine, profile, run)?;
    let context = request.context(machine, profile, &predictor, positions)?;
    let frontier = frontier::frontier(&context.without_budget())?;
    let goal = Goal::new(&context, &frontier, request)?;
    let Reached { context, policies, chosen } = goal.reached(&context, &frontier, request)?;
    Ok(Comparison {
        machine: machine.name.clone(),
        profile: profile.name.clone(),
        socket: machine.sockets[run.socket].name.clone(),
        threads: run.threads,
        anchor: None,
        fast_memory: context.name(context.fast).to_owned(),
        budget_bytes: round_to_u64(context.capacity[context.fast]),
        chosen,
        frontier: envelope(&frontier, &policies),
        policies,
    })
}

/// What is wanted, after the bound on the slow-down was turned into a placement that keeps it.
struct Goal {
    /// The bound, and the placement with the least fast memory that is found to keep it.
    bound: Option<(Bound, Found)>,
}

/// A bound on the slow-down.
struct Bound {
    asked: f64,
    /// With all data in fast memory, s.
    reference_s: f64,
    /// Most run time, s.
    limit_s: f64,
}

/// What the policies come to within a budget with which one of them does what is wanted.
struct Reached<'a> {
    context: Context<'a>,
    policies: Vec<PolicyResult>,
    chosen: String,
}

impl Goal {
    fn new(context: &Context<'_>, frontier: &[Found], request: &Request) -> Result<Self, PlaceError> {
        let Some(asked) = request.max_slowdown else { return Ok(Self { bound: None }) };
        if !(asked.is_finite() && asked >= 0.0) {
            return Err(PlaceError::BadSlowdown { asked });
        }
        let objects = context.profile.objects.len();
        let all_fast = Placement::uniform(objects, context.capacity.len(), context.fast);
        let reference_s = context.predictor.time_s(&context.predictor.demand(all_fast.rows()));
        let bound = Bound { asked, reference_s, limit_s: reference_s * (1.0 + asked) };
        let affordable: Vec<Found> =
            frontier.iter().filter(|found| found.fast_bytes <= context.capacity[context.fast]).cloned().collect();
        let least = frontier::least_memory(context, &affordable, bound.limit_s)?;
        match least.or_else(|| searched(context, &affordable).filter(|found| found.time_s <= bound.limit_s)) {
            Some(found) => Ok(Self { bound: Some((bound, found)) }),
            None => Err(bound.out_of_reach(context, affordable.iter().map(|found| found.time_s))),
        }
    }

    /// The policies within the least of some budgets that does. A placement that is found to keep a bound may be none
    /// that rules can state, which leave arenas where they are; then a little more memory has to.
    fn reached<'a>(
        &self,
        context: &Context<'a>,
        frontier: &[Found],
        request: &Request,
    ) -> Result<Reached<'a>, PlaceError> {
        let most = context.capacity[context.fast];
        let least = self.bound.as_ref().map_or(most, |(_, found)| found.fast_bytes.ceil());
        let between = frontier.iter().map(|found| found.fast_bytes).filter(|bytes| *bytes > least && *bytes < most);
        let mut policies = Vec::new();
        for budget in [least].into_iter().chain(between).chain((most > least).then_some(most)) {
            let context = context.with_budget(budget)?;
            policies = results(&context, request, self.hints(frontier, &context))?;
            if let Some(chosen) = self.choose(&policies).map(|chosen| chosen.policy.clone()) {
                return Ok(Reached { context, policies, chosen });
            }
        }
        let times: Vec<f64> = policies.iter().filter_map(|result| Some(result.outcome.as_ref().ok()?.time_s)).collect();
        match &self.bound {
            Some((bound, _)) if !times.is_empty() => Err(bound.out_of_reach(context, times.into_iter())),
            _ => Err(nothing_fits(&policies)),
        }
    }

    /// Placements that `tierloom` should start from: the frontier's last that fits, the bound's own.
    fn hints(&self, frontier: &[Found], context: &Context<'_>) -> Vec<Rows> {
        let fits = |found: &&Found| found.fast_bytes <= context.capacity[context.fast];
        let last = frontier.iter().rfind(fits);
        last.into_iter().chain(self.bound.as_ref().map(|(_, found)| found)).map(|found| found.rows.clone()).collect()
    }

    fn choose<'p>(&self, policies: &'p [PolicyResult]) -> Option<&'p PolicyResult> {
        let time_s = |result: &PolicyResult| result.outcome.as_ref().map_or(f64::INFINITY, |outcome| outcome.time_s);
        let least_s = policies.iter().map(time_s).fold(f64::INFINITY, f64::min);
        let limit_s = self.bound.as_ref().map_or(least_s * (1.0 + SAME), |(bound, _)| bound.limit_s);
        let mut keeping = policies.iter().filter(|result| result.outcome.is_ok() && time_s(result) <= limit_s);
        match self.bound {
            None => keeping.next(),
            Some(_) => keeping.min_by(|a, b| a.fast_bytes.total_cmp(&b.fast_bytes)),
        }
    }
}

impl Bound {
    /// The bound is not kept: these are the run times that there are, s.
    fn out_of_reach(&self, context: &Context<'_>, times: impl Iterator<Item = f64>) -> PlaceError {
        let percent = |slowdown: f64| format!("{:.1} %", slowdown * 100.0);
        let best = times.fold(f64::INFINITY, f64::min) / self.reference_s - 1.0;
        PlaceError::OutOfReach {
            asked: percent(self.asked),
            best: percent(best),
            fast: context.name(context.fast).to_owned(),
            hint: if best.is_finite() {
                format!("allow {} or more, or give more fast memory", percent(best))
            } else {
                "give more fast memory, or allow more memories".to_owned()
            },
        }
    }
}

/// What the longest search finds with all the fast memory: the frontier's points are searched for less.
fn searched(context: &Context<'_>, frontier: &[Found]) -> Option<Found> {
    let ours = Tierloom { hints: frontier.last().map(|found| found.rows.clone()).into_iter().collect() };
    Some(Found::placed(context, Rows::from(&ours.place(context).ok()?)))
}

fn nothing_fits(policies: &[PolicyResult]) -> PlaceError {
    let reason =
        |result: &PolicyResult| result.outcome.as_ref().err().map(|reason| format!("{}: {reason}", result.policy));
    let first = policies.iter().find_map(reason).unwrap_or_else(|| "no policy was named".to_owned());
    PlaceError::NothingFits { first }
}

fn results(context: &Context<'_>, request: &Request, hints: Vec<Rows>) -> Result<Vec<PolicyResult>, PlaceError> {
    let policies = match &request.policies {
        None => policy::usual(context),
        Some(names) => names.iter().map(|name| policy::by_name(name, context)).collect::<Result<_, _>>()?,
    };
    let ours = Tierloom { hints };
    let mut results: Vec<PolicyResult> = Vec::with_capacity(policies.len());
    for policy in policies {
        results.push(if policy.name() != ours.name() {
            result(context, policy.as_ref(), policy.actions(context))
        } else if request.policies.is_none() {
            // The last of the list, which starts from all others.
            let actions = ours.actions_after(context, results.iter().filter_map(tried).collect());
            result(context, &ours, Ok(actions))
        } else {
            result(context, &ours, ours.actions(context))
        });
    }
    Ok(results)
}

/// A policy that can be used, as a search starts from it.
fn tried(result: &PolicyResult) -> Option<Tried<'_>> {
    let time_s = result.outcome.as_ref().ok()?.time_s;
    let rows = Rows::of(result.fractions.iter().map(Vec::as_slice), result.fractions.first().map_or(1, Vec::len));
    Some(Tried { actions: result.actions.as_slice().into(), rows, time_s })
}

fn result(context: &Context<'_>, policy: &dyn Policy, actions: Result<Vec<Action>, PlaceError>) -> PolicyResult {
    let placed = actions.and_then(|actions| Ok((context.realise(&actions)?, actions)));
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
