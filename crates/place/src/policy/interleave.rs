//! `interleave:NODES`: page by page in turn, whatever the object.

use tierloom_model::Action;

use super::Policy;
use crate::context::Context;
use crate::error::PlaceError;

/// `MPOL_INTERLEAVE` for the whole program; a full node's turns go to its zonelist.
#[derive(Debug, Clone)]
pub struct Interleave {
    nodes: Vec<String>,
}

impl Interleave {
    /// Interleaves over nodes by position.
    pub fn new(context: &Context<'_>, nodes: &[usize]) -> Self {
        Self { nodes: context.names(nodes) }
    }
}

impl Policy for Interleave {
    fn name(&self) -> String {
        format!("interleave:{}", self.nodes.join("+"))
    }

    fn about(&self) -> String {
        format!("every object page by page over {}", self.nodes.join(", "))
    }

    fn actions(&self, context: &Context<'_>) -> Result<Vec<Action>, PlaceError> {
        Ok(context.everywhere(&Action::Interleave(self.nodes.clone())))
    }
}
