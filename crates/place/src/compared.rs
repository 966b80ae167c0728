//! What every policy of a request comes to within a budget of fast memory.

use tierloom_model::{Action, Placement, PolicyResult};

use crate::context::Context;
use crate::error::PlaceError;
use crate::frontier::{Found, Point};
use crate::plan::as_planned;
use crate::policy::{self, Policy, Tierloom, Tried, USUAL};
use crate::request::Request;
use crate::search::Rows;

/// Policies with a budget of fast memory, and what each comes to.
pub(crate) struct Compared<'a> {
    pub(crate) context: Context<'a>,
    pub(crate) policies: Vec<PolicyResult>,
}

/// Which of some policies is chosen, and all that was tried on the way.
pub(crate) struct Choice<'a> {
    pub(crate) compared: Compared<'a>,
    /// Position of the policy.
    pub(crate) chosen: usize,
    pub(crate) points: Vec<Point>,
}

impl<'a> Compared<'a> {
    /// Tries the policies of a request; `tierloom` starts from the frontier's last placement that fits, too.
    pub(crate) fn new(context: Context<'a>, request: &Request, frontier: &[Found]) -> Result<Self, PlaceError> {
        let last = frontier.iter().rfind(|found| found.fast_bytes <= context.capacity[context.fast]);
        let policies = results(&context, request, last.map(|found| found.rows.clone()).into_iter().collect())?;
        Ok(Self { context, policies })
    }

    /// Policies that can be used, with their run time, s.
    pub(crate) fn timed(&self) -> impl Iterator<Item = (&PolicyResult, f64)> {
        self.policies.iter().filter_map(|result| Some((result, result.outcome.as_ref().ok()?.time_s)))
    }

    /// What each comes to.
    pub(crate) fn points(&self) -> impl Iterator<Item = Point> {
        let fast = self.context.fast;
        let point = move |(result, time_s): (&PolicyResult, f64)| {
            Point::new(result.fast_bytes, time_s, result.fractions.iter().map(|row| row[fast]))
        };
        self.timed().map(point)
    }

    /// No policy can be used: the first reason.
    pub(crate) fn nothing_fits(&self) -> PlaceError {
        let reason =
            |result: &PolicyResult| result.outcome.as_ref().err().map(|reason| format!("{}: {reason}", result.policy));
        let first = self.policies.iter().find_map(reason).unwrap_or_else(|| "no policy was named".to_owned());
        PlaceError::NothingFits { first }
    }
}

fn results(context: &Context<'_>, request: &Request, hints: Vec<Rows>) -> Result<Vec<PolicyResult>, PlaceError> {
    let usual = vec![USUAL.to_owned()];
    let names = request.policies.as_ref().unwrap_or(&usual);
    let policies = policy::of_names(names, &request.brought, context)?;
    let all_before_ours = names.iter().any(|name| name == USUAL);
    let ours = Tierloom { hints };
    let mut results: Vec<PolicyResult> = Vec::with_capacity(policies.len());
    for policy in policies {
        results.push(if policy.name() != ours.name() {
            result(context, policy.as_ref(), policy.actions(context))
        } else if all_before_ours {
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
    let placed = actions.map(|actions| as_planned(context.profile, actions));
    let placed = placed.and_then(|actions| Ok((context.realise(&actions)?, actions)));
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
