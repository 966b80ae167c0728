//! `balanced`: one ratio for all data at which no memory is slower than another.
//!
//! Source: Colloid (*Tiered Memory Management: Access Latency is the Key!*, SOSP 2024): shift
//! traffic from the slower to the faster memory until their loaded latencies are within 5 %
//! (Wardrop's equilibrium), halving the step when the direction turns. Colloid moves pages while the
//! program runs; this is the static placement that it would settle at, as one weighted interleave.

use tierloom_model::{Action, Placement};

use super::Policy;
use crate::context::Context;
use crate::error::PlaceError;
use crate::weights::{action, nearest};

/// Latencies closer than this share of the lesser one are equal; published (Colloid's ε).
const EQUAL: f64 = 0.05;
/// First share of the data to shift; the published bisection starts in the middle too.
const FIRST_STEP: f64 = 0.25;
/// Steps below this are finer than weights can tell apart.
const LAST_STEP: f64 = 1.0 / 128.0;
/// Shifts after which it ends in any case.
const MOST_SHIFTS: usize = 400;

/// Equal loaded latency on every memory in use.
#[derive(Debug, Clone, Copy)]
pub struct Balanced;

impl Policy for Balanced {
    fn name(&self) -> String {
        "balanced".to_owned()
    }

    fn about(&self) -> String {
        "every object over all memories, in the one ratio that makes their loaded latencies equal".to_owned()
    }

    fn actions(&self, context: &Context<'_>) -> Result<Vec<Action>, PlaceError> {
        let shares = equilibrium(context)?;
        Ok(context.everywhere(&action(context.machine, &nearest(&shares))))
    }
}

/// Shares of the data by memory at which latencies are equal, as far as capacities allow.
fn equilibrium(context: &Context<'_>) -> Result<Vec<f64>, PlaceError> {
    let footprint = context.footprint().max(1.0);
    let most: Vec<f64> = context.capacity.iter().map(|bytes| bytes / footprint).collect();
    let mut shares = nearest_first(context, &most);
    let (mut step, mut last) = (FIRST_STEP, None);
    for _ in 0..MOST_SHIFTS {
        let latencies = latencies(context, &shares)?;
        let Some((slow, quick)) = slowest_and_quickest(context, &latencies, &shares, &most) else { break };
        if latencies[slow] - latencies[quick] < EQUAL * latencies[quick] {
            break;
        }
        if last == Some((quick, slow)) {
            step /= 2.0;
        }
        if step < LAST_STEP {
            break;
        }
        last = Some((slow, quick));
        let shift = step.min(shares[slow]).min(most[quick] - shares[quick]);
        shares[slow] -= shift;
        shares[quick] += shift;
    }
    Ok(shares)
}

/// All data as near as it fits.
fn nearest_first(context: &Context<'_>, most: &[f64]) -> Vec<f64> {
    let (mut shares, mut left) = (vec![0.0; most.len()], 1.0);
    for node in &context.nodes {
        shares[*node] = most[*node].min(left);
        left -= shares[*node];
    }
    shares
}

/// Loaded latency by memory when every object is shared alike, ns.
fn latencies(context: &Context<'_>, shares: &[f64]) -> Result<Vec<f64>, PlaceError> {
    let total: f64 = shares.iter().sum();
    let row: Vec<f64> = shares.iter().map(|share| share / total).collect();
    let placement = Placement::new(vec![row; context.profile.objects.len()], shares.len())?;
    Ok(context.predictor.predict(&placement).tiers.iter().map(|tier| tier.loaded_ns).collect())
}

/// The slowest memory that holds data and the quickest that has room for more.
fn slowest_and_quickest(
    context: &Context<'_>,
    latencies: &[f64],
    shares: &[f64],
    most: &[f64],
) -> Option<(usize, usize)> {
    let by_latency = |a: &usize, b: &usize| latencies[*a].total_cmp(&latencies[*b]);
    let holding = context.nodes.iter().copied().filter(|node| shares[*node] > 1e-9);
    let roomy = context.nodes.iter().copied().filter(|node| most[*node] - shares[*node] > 1e-9);
    let (slow, quick) = (holding.max_by(by_latency)?, roomy.min_by(by_latency)?);
    (slow != quick).then_some((slow, quick))
}
