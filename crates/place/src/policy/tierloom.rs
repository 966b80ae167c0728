//! `tierloom`: criticality + load-balanced object interleave.
//!
//! Each object gets its own weights: latency-critical data goes where latency is low, streams are
//! spread so that no memory queues while another idles, and what is rarely waited for makes room.
//! A closed form says where to start, a search over the real curves where to end ([`crate::search`]).
//! Among the starts is every other policy, and their own actions are taken where nothing better is
//! found, so in prediction it is never slower than any of them.

use std::borrow::Cow;

use tierloom_model::{Action, Object};

use super::Policy;
use super::baselines::baselines;
use crate::context::Context;
use crate::error::PlaceError;
use crate::search::{self, Coarse, Rows};

/// Starts that are walked downhill from.
const REFINED: usize = 8;

/// Searches for the fastest placement.
#[derive(Debug, Clone, Default)]
pub struct Tierloom {
    /// Placements to start from besides its own, for example one for a little less memory.
    pub(crate) hints: Vec<Rows>,
}

impl Policy for Tierloom {
    fn name(&self) -> String {
        "tierloom".to_owned()
    }

    fn about(&self) -> String {
        "each object by how much the program waits for it and what it loads, searched on the machine's curves"
            .to_owned()
    }

    fn actions(&self, context: &Context<'_>) -> Result<Vec<Action>, PlaceError> {
        let tried = baselines(context);
        let tried = tried.iter().filter_map(|policy| Tried::new(context, policy.actions(context).ok()?)).collect();
        Ok(self.actions_after(context, tried))
    }
}

impl Tierloom {
    /// Its actions, where the other policies were tried before.
    pub(crate) fn actions_after(&self, context: &Context<'_>, tried: Vec<Tried<'_>>) -> Vec<Action> {
        let found = self.searched(context, &tried).and_then(|whole| {
            let alone = left_alone(context, &whole);
            let beside = beside_unselected(context);
            let beside = beside.and_then(|less| left_alone(context, &self.searched(&less, &tried)?));
            let fastest = alone.into_iter().chain(beside).min_by(|a, b| a.time_s.total_cmp(&b.time_s));
            fastest.or_else(|| Tried::new(context, whole))
        });
        let fastest = tried.into_iter().chain(found).min_by(|a, b| a.time_s.total_cmp(&b.time_s));
        // Nothing fits anywhere: first touch says what is missing.
        fastest.map_or_else(|| context.everywhere(&Action::FirstTouch), |fastest| fastest.actions.into_owned())
    }

    /// What the search ends at, if anything fits.
    fn searched(&self, context: &Context<'_>, tried: &[Tried<'_>]) -> Option<Vec<Action>> {
        let mut starts = search::closed_form(context);
        starts.extend(Coarse::new(context).fitting(context));
        starts.extend(self.hints.iter().cloned());
        starts.extend(tried.iter().map(|tried| tried.rows.clone()));
        search::best_at_length(context, starts, REFINED).map(|lattice| lattice.actions())
    }
}

/// The same with less fast memory by what no rule can select, and first touch puts there: what is chosen for the rest
/// would spill. `None` where there is no such memory, or all data fits.
fn beside_unselected<'a>(context: &Context<'a>) -> Option<Context<'a>> {
    let objects = context.profile.objects.iter().enumerate().filter(|(_, object)| !object.can_be_placed());
    let bytes: f64 = objects.map(|(object, _)| context.size(object)).sum();
    let fast = context.capacity[context.fast];
    (bytes > 0.0 && bytes < fast && fast < context.footprint()).then(|| context.with_budget(fast - bytes).ok())?
}

/// Actions, what they come to, and how long the program then takes.
pub(crate) struct Tried<'a> {
    pub(crate) actions: Cow<'a, [Action]>,
    pub(crate) rows: Rows,
    pub(crate) time_s: f64,
}

impl Tried<'_> {
    /// `None` where the actions do not fit.
    fn new(context: &Context<'_>, actions: Vec<Action>) -> Option<Self> {
        let rows = Rows::from(&context.realise(&actions).ok()?);
        let time_s = context.predictor.time_s(&context.predictor.demand(rows.iter()));
        Some(Self { actions: actions.into(), rows, time_s })
    }
}

/// The same actions with what no rule can select left to first touch; `None` where the other objects then do not fit.
fn left_alone(context: &Context<'_>, actions: &[Action]) -> Option<Tried<'static>> {
    let free = |(object, action): (&Object, &Action)| {
        if object.can_be_placed() { action.clone() } else { Action::FirstTouch }
    };
    Tried::new(context, context.profile.objects.iter().zip(actions).map(free).collect())
}
