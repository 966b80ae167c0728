//! The placement policies: one trait, one file each, one list.
//!
//! To add a policy, write its file, declare it, and give it a line in `LISTED` of `baselines.rs`; one that takes nodes
//! or numbers has its line in [`by_name`] and [`SHAPES`], and those that it is compared with in `baselines.rs`.

mod balanced;
mod baselines;
mod bind;
mod first_touch;
mod interleave;
mod object_interleave;
mod preferred;
mod soar;
mod tierloom;
mod weighted;

use std::collections::BTreeSet;
use std::sync::Arc;

use tierloom_model::{Action, Placement};

use crate::context::Context;
use crate::error::PlaceError;

pub use balanced::Balanced;
pub use bind::Bind;
pub use first_touch::FirstTouch;
pub use interleave::Interleave;
pub use object_interleave::{Large, ObjectInterleave};
pub use preferred::Preferred;
pub use soar::Soar;
pub use tierloom::Tierloom;
pub(crate) use tierloom::Tried;
pub use weighted::{Weight, Weighted};

use baselines::{LISTED, baselines, boxed};

/// Decides where each object of a program goes.
///
/// # Contract
/// - Actions are returned, one per object in the profile's order, because actions are what a kernel
///   takes; what they come to, spill included, is [`Context::realise`]'s to say.
/// - Actions name allowed nodes only ([`Context::nodes`]).
/// - The same context gives the same actions: no randomness, no clock, no environment.
/// - A policy that has no sensible answer here returns an error that says why; it does not fall
///   back to another policy.
pub trait Policy {
    /// Name as on the command line; [`by_name`] reads it back.
    fn name(&self) -> String;

    /// What it does, in one line.
    fn about(&self) -> String;

    /// What to ask of the kernel for each object.
    ///
    /// # Errors
    /// [`PlaceError`] with the reason why the policy cannot be used here.
    fn actions(&self, context: &Context<'_>) -> Result<Vec<Action>, PlaceError>;

    /// Where each object ends up.
    ///
    /// # Errors
    /// As for [`Policy::actions`], or when the memories cannot hold what it asks for.
    fn place(&self, context: &Context<'_>) -> Result<Placement, PlaceError> {
        context.realise(&self.actions(context)?)
    }
}

impl<P: Policy + ?Sized> Policy for Arc<P> {
    fn name(&self) -> String {
        (**self).name()
    }

    fn about(&self) -> String {
        (**self).about()
    }

    fn actions(&self, context: &Context<'_>) -> Result<Vec<Action>, PlaceError> {
        (**self).actions(context)
    }
}

/// Policies that whoever asks has brought along.
#[derive(Clone, Default)]
pub struct Brought(Vec<Arc<dyn Policy + Send + Sync>>);

impl Brought {
    /// All of them, each with a name of its own.
    pub fn new(policies: Vec<Arc<dyn Policy + Send + Sync>>) -> Self {
        Self(policies)
    }

    fn by_name(&self, name: &str) -> Option<&Arc<dyn Policy + Send + Sync>> {
        self.0.iter().find(|policy| policy.name() == name)
    }
}

impl std::fmt::Debug for Brought {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(Policy::name)).finish()
    }
}

impl PartialEq for Brought {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(one, two)| Arc::ptr_eq(one, two))
    }
}

/// What stands for every policy that makes sense on the allowed nodes in a list of names.
pub const USUAL: &str = "usual";

/// Every policy that makes sense on the allowed nodes, `tierloom` last.
///
/// Interleaving policies are listed over fast memory with each other node, and over all nodes.
pub fn usual(context: &Context<'_>) -> Vec<Box<dyn Policy>> {
    let mut policies = baselines(context);
    policies.push(Box::new(Tierloom::default()));
    policies
}

/// The policies of some names, each once, in their order; where the usual ones are among them, `tierloom` comes last,
/// since it starts from all others.
///
/// # Errors
/// [`PlaceError`] as [`by_name`].
pub(crate) fn of_names(
    names: &[String],
    brought: &Brought,
    context: &Context<'_>,
) -> Result<Vec<Box<dyn Policy>>, PlaceError> {
    let mut policies: Vec<Box<dyn Policy>> = Vec::new();
    for name in names {
        match brought.by_name(name) {
            Some(policy) => policies.push(Box::new(Arc::clone(policy))),
            None if name == USUAL => policies.extend(usual(context)),
            None => policies.push(by_name(name, context)?),
        }
    }
    let mut seen = BTreeSet::new();
    policies.retain(|policy| seen.insert(policy.name()));
    if names.iter().any(|name| name == USUAL) {
        let ours = Tierloom::default();
        policies.retain(|policy| policy.name() != ours.name());
        policies.push(Box::new(ours));
    }
    Ok(policies)
}

/// Names of the policies that take nodes or numbers.
const SHAPES: [&str; 7] = [
    "preferred:NODE",
    "bind:NODE+…",
    "interleave:NODE+…",
    "weighted:NODE=W+…",
    "weighted-auto:NODE+…",
    "object-interleave:NODE+…",
    "object-interleave-traffic:NODE+…",
];

/// The names that a request may have, as a person reads them: shapes where nodes or numbers belong to one.
pub fn names() -> Vec<&'static str> {
    let listed = LISTED.iter().map(|(name, _)| *name);
    [USUAL, "local"].into_iter().chain(SHAPES).chain(listed).chain(["tierloom"]).collect()
}

/// The policy of a name such as `interleave:ldram+cxl` or `weighted:ldram=3+cxl=1`.
///
/// Interleaving policies without nodes take all allowed ones, `preferred` and `bind` the fast one.
///
/// # Errors
/// [`PlaceError`] for a name, a node or a weight that is none.
pub fn by_name(name: &str, context: &Context<'_>) -> Result<Box<dyn Policy>, PlaceError> {
    let (kind, nodes) = name.split_once(':').map_or((name, None), |(kind, nodes)| (kind, Some(nodes)));
    let listed = LISTED.iter().find(|(known, _)| *known == name);
    if let Some((_, make)) = listed {
        return Ok(make());
    }
    let over = |default: &[usize]| nodes.map_or(Ok(default.to_vec()), |list| parse_nodes(list, context));
    let policy = match (kind, nodes) {
        ("local", None) => boxed(FirstTouch),
        ("tierloom", None) => boxed(Tierloom::default()),
        ("preferred", _) => boxed(Preferred::new(context, nodes.map_or(Ok(context.fast), |node| context.node(node))?)),
        ("bind", _) => boxed(Bind::new(context, &over(&[context.fast])?)),
        ("interleave", _) => boxed(Interleave::new(context, &over(&context.nodes)?)),
        ("weighted", Some(weights)) => boxed(Weighted::new(context, &parse_weights(name, weights, context)?)),
        ("weighted-auto", _) => boxed(Weighted::automatic(context, &over(&context.nodes)?)),
        ("object-interleave", _) => boxed(ObjectInterleave::new(context, &over(&context.nodes)?, Large::BySize)),
        ("object-interleave-traffic", _) => {
            boxed(ObjectInterleave::new(context, &over(&context.nodes)?, Large::ByTraffic))
        }
        _ => return Err(PlaceError::UnknownPolicy { name: name.to_owned(), known: names().join(", ") }),
    };
    Ok(policy)
}

fn parse_nodes(list: &str, context: &Context<'_>) -> Result<Vec<usize>, PlaceError> {
    list.split('+').map(|name| context.node(name)).collect()
}

fn parse_weights(policy: &str, list: &str, context: &Context<'_>) -> Result<Vec<Weight>, PlaceError> {
    let weight = |part: &str| {
        let (name, weight) = part.split_once('=').unwrap_or((part, ""));
        match weight.parse() {
            Ok(pages @ 1..=255) => Ok(Weight { node: context.node(name)?, pages }),
            _ => Err(PlaceError::BadPolicy {
                name: policy.to_owned(),
                problem: format!("`{part}` is not a node with a weight of 1 to 255"),
                hint: format!("write for example weighted:{}=3", context.name(context.fast)),
            }),
        }
    };
    list.split('+').map(weight).collect()
}

#[cfg(test)]
#[path = "../../tests/own_policy/hottest_first.rs"]
mod hottest_first;

/// The policy of docs/policies.md: its file is the module above, and this its line in the list.
#[cfg(test)]
mod tests {
    use super::baselines::Listed;
    use super::*;
    use crate::request::Request;
    use crate::testing::{GIB, machine, small_profile};

    const LINE: Listed = ("hottest-first", || Box::new(super::hottest_first::HottestFirst));

    #[test]
    fn the_documented_policy_is_compared_as_ours_are() -> Result<(), PlaceError> {
        let (name, make) = LINE;
        assert_eq!(make().name(), name);
        let request = Request {
            budget: Some(30 * GIB),
            policies: Some(vec!["local".to_owned(), name.to_owned()]),
            brought: Brought::new(vec![Arc::new(hottest_first::HottestFirst)]),
            ..Request::default()
        };
        let answer = crate::compare(&machine(), &small_profile(), &request)?;
        let fast: Vec<f64> = answer.policies[1].fractions.iter().map(|object| object[0]).collect();
        assert_eq!(fast, [0.0, 1.0, 1.0, 1.0], "the hottest is too large");
        assert!(answer.policies[1].outcome.is_ok());
        Ok(())
    }
}
