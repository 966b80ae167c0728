//! `weighted:NODE=W+…` and `weighted-auto:NODES`: runs of pages by weight, whatever the object.

use tierloom_model::Action;

use super::Policy;
use crate::bandwidth::automatic_weights;
use crate::context::Context;
use crate::error::PlaceError;

/// `MPOL_WEIGHTED_INTERLEAVE` (Linux 6.9) for the whole program.
#[derive(Debug, Clone)]
pub struct Weighted {
    weights: Vec<(String, u32)>,
    automatic: bool,
}

/// Pages of a round that a node gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    /// Position of the node's memory in the machine.
    pub node: usize,
    /// Pages.
    pub pages: u32,
}

impl Weighted {
    /// Interleaves over nodes by position, each with its weight.
    pub fn new(context: &Context<'_>, weights: &[Weight]) -> Self {
        let weights = weights.iter().map(|Weight { node, pages }| (context.name(*node).to_owned(), *pages));
        Self { weights: weights.collect(), automatic: false }
    }

    /// The same with the weights that Linux 6.16 and later sets by itself.
    pub fn automatic(context: &Context<'_>, nodes: &[usize]) -> Self {
        let table = automatic_weights(context.machine);
        let weights: Vec<Weight> = nodes.iter().map(|node| Weight { node: *node, pages: table[*node] }).collect();
        Self { automatic: true, ..Self::new(context, &weights) }
    }

    fn listed(&self, separator: &str) -> String {
        let parts: Vec<String> = self.weights.iter().map(|(node, weight)| format!("{node}={weight}")).collect();
        parts.join(separator)
    }
}

impl Policy for Weighted {
    fn name(&self) -> String {
        if self.automatic {
            let nodes: Vec<&str> = self.weights.iter().map(|(node, _)| node.as_str()).collect();
            return format!("weighted-auto:{}", nodes.join("+"));
        }
        format!("weighted:{}", self.listed("+"))
    }

    fn about(&self) -> String {
        let origin = if self.automatic { ", the kernel's own weights" } else { "" };
        format!("every object in rounds of {} pages{origin}", self.listed(", "))
    }

    fn actions(&self, context: &Context<'_>) -> Result<Vec<Action>, PlaceError> {
        Ok(context.everywhere(&Action::Weighted(self.weights.iter().cloned().collect())))
    }
}
