//! `tierloom`: criticality + load-balanced object interleave.
//!
//! Each object gets its own weights: latency-critical data goes where latency is low, streams are
//! spread so that no memory queues while another idles, and what is rarely waited for makes room.
//! A closed form says where to start, a search over the real curves where to end ([`crate::search`]).
//! Among the starts is every other policy, and their own actions are taken where nothing better is
//! found, so in prediction it is never slower than any of them.

use tierloom_model::{Action, Object, ObjectKind, Placement};

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
        let placed: Vec<Placed> = baselines(context)
            .iter()
            .filter_map(|policy| Placed::new(context, policy.actions(context).ok()?))
            .collect();
        let mut starts = search::closed_form(context);
        starts.extend(Coarse::new(context).fitting(context));
        starts.extend(self.hints.iter().cloned());
        starts.extend(placed.iter().map(|placed| placed.placement.rows().to_vec()));
        let found = search::best_at_length(context, starts, REFINED).and_then(|lattice| {
            let whole = lattice.actions();
            left_alone(context, &whole).or_else(|| Placed::new(context, whole))
        });
        let fastest = placed.into_iter().chain(found).min_by(|a, b| a.time_s.total_cmp(&b.time_s));
        match fastest {
            Some(fastest) => Ok(fastest.actions),
            // Nothing fits anywhere: first touch says what is missing.
            None => Ok(context.everywhere(&Action::FirstTouch)),
        }
    }
}

/// Actions, what they come to, and how long the program then takes.
struct Placed {
    actions: Vec<Action>,
    placement: Placement,
    time_s: f64,
}

impl Placed {
    /// `None` where the actions do not fit.
    fn new(context: &Context<'_>, actions: Vec<Action>) -> Option<Self> {
        let placement = context.realise(&actions).ok()?;
        let time_s = context.predictor.time_s(&context.predictor.demand(placement.rows()));
        Some(Self { actions, placement, time_s })
    }
}

/// The same actions with arenas left to first touch, as no rule can select them; `None` where the
/// other objects then do not fit.
fn left_alone(context: &Context<'_>, actions: &[Action]) -> Option<Placed> {
    let free = |(object, action): (&Object, &Action)| match object.kind {
        ObjectKind::Arena => Action::FirstTouch,
        _ => action.clone(),
    };
    Placed::new(context, context.profile.objects.iter().zip(actions).map(free).collect())
}
