//! `bind:NODES`: all data on these nodes, or not at all.

use tierloom_model::Action;

use super::Policy;
use crate::context::Context;
use crate::error::PlaceError;

/// `MPOL_BIND`: the nearest of the nodes with room; a program that needs more is killed.
#[derive(Debug, Clone)]
pub struct Bind {
    nodes: Vec<String>,
}

impl Bind {
    /// Binds to nodes by position.
    pub fn new(context: &Context<'_>, nodes: &[usize]) -> Self {
        Self { nodes: context.names(nodes) }
    }
}

impl Policy for Bind {
    fn name(&self) -> String {
        format!("bind:{}", self.nodes.join("+"))
    }

    fn about(&self) -> String {
        format!("all data on {}, nowhere else", self.nodes.join(" and "))
    }

    fn actions(&self, context: &Context<'_>) -> Result<Vec<Action>, PlaceError> {
        Ok(context.everywhere(&Action::Bind(self.nodes.clone())))
    }
}
