//! The list: every policy but `tierloom`, which starts its search from these.

use super::{Balanced, Bind, FirstTouch, Interleave, Large, ObjectInterleave, Policy, Preferred, Soar, Weighted};
use crate::context::Context;

/// A policy's name, and what makes one.
pub(super) type Listed = (&'static str, fn() -> Box<dyn Policy>);

/// Policies that take neither nodes nor numbers, simple ones first; all are compared.
pub(super) const LISTED: &[Listed] = &[("soar", || Box::new(Soar)), ("balanced", || Box::new(Balanced))];

/// All that make sense on the allowed nodes.
pub(super) fn baselines(context: &Context<'_>) -> Vec<Box<dyn Policy>> {
    let mut policies: Vec<Box<dyn Policy>> = vec![Box::new(FirstTouch)];
    policies.extend(context.nodes.iter().map(|node| boxed(Preferred::new(context, *node))));
    policies.push(Box::new(Bind::new(context, &[context.fast])));
    let sets = node_sets(context);
    policies.extend(sets.iter().map(|nodes| boxed(Interleave::new(context, nodes))));
    policies.extend(sets.iter().map(|nodes| boxed(Weighted::automatic(context, nodes))));
    for large in [Large::BySize, Large::ByTraffic] {
        policies.extend(sets.iter().map(|nodes| boxed(ObjectInterleave::new(context, nodes, large))));
    }
    policies.extend(LISTED.iter().map(|(_, make)| make()));
    policies
}

pub(super) fn boxed(policy: impl Policy + 'static) -> Box<dyn Policy> {
    Box::new(policy)
}

/// Fast memory with each other node, then all nodes; nothing where there is only one.
fn node_sets(context: &Context<'_>) -> Vec<Vec<usize>> {
    let others = context.nodes.iter().filter(|node| **node != context.fast);
    let mut sets: Vec<Vec<usize>> = others.map(|node| vec![context.fast, *node]).collect();
    if sets.len() > 1 {
        sets.push(context.nodes.clone());
    }
    sets
}
