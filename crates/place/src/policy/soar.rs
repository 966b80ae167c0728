//! `soar`: whole objects to fast memory, the costliest per byte first.
//!
//! Source: Soar (*Tiered Memory Management Beyond Hotness*, OSDI 2025): an object's score is its
//! misses weighted by how long each stalls, latency over memory-level parallelism; objects are
//! ranked by score over size and the first go to fast memory. Its allocator is libnuma's
//! `numa_alloc_onnode`, which prefers a node and does not bind. Published Soar learns scores from
//! Intel counters and buckets them; here the profile's criticality and traffic stand for the score.

use tierloom_model::Action;

use super::Policy;
use crate::context::Context;
use crate::error::PlaceError;

/// Ranks objects by criticality × traffic over size and fills memories from the fastest on.
#[derive(Debug, Clone, Copy)]
pub struct Soar;

impl Policy for Soar {
    fn name(&self) -> String {
        "soar".to_owned()
    }

    fn about(&self) -> String {
        "whole objects to fast memory until it is full, by criticality x traffic per byte".to_owned()
    }

    fn actions(&self, context: &Context<'_>) -> Result<Vec<Action>, PlaceError> {
        let mut free = context.capacity.clone();
        let mut actions = context.everywhere(&Action::FirstTouch);
        for object in ranked(context) {
            let node = first_with_room(context, &free, context.size(object));
            free[node] -= context.size(object);
            actions[object] = Action::Prefer(context.name(node).to_owned());
        }
        Ok(actions)
    }
}

/// Objects by score over size, best first.
fn ranked(context: &Context<'_>) -> Vec<usize> {
    let density = |object: &usize| context.predictor.stall_per_ns(*object) / context.size(*object).max(1.0);
    let mut order: Vec<usize> = (0..context.profile.objects.len()).collect();
    order.sort_by(|a, b| density(b).total_cmp(&density(a)));
    order
}

/// Fast memory, else the nearest node with room for all of it, else the one with the most room.
fn first_with_room(context: &Context<'_>, free: &[f64], size: f64) -> usize {
    let order = || [context.fast].into_iter().chain(context.nodes.iter().copied());
    let roomiest = || order().max_by(|a, b| free[*a].total_cmp(&free[*b]));
    order().find(|node| free[*node] >= size).or_else(roomiest).unwrap_or(context.fast)
}
