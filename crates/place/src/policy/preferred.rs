//! `preferred:NODE`: all data on one node while it has room.

use tierloom_model::Action;

use super::Policy;
use crate::context::Context;
use crate::error::PlaceError;

/// `MPOL_PREFERRED`: that node first, then its zonelist.
#[derive(Debug, Clone)]
pub struct Preferred {
    node: String,
}

impl Preferred {
    /// Prefers a node by position.
    pub fn new(context: &Context<'_>, node: usize) -> Self {
        Self { node: context.name(node).to_owned() }
    }
}

impl Policy for Preferred {
    fn name(&self) -> String {
        format!("preferred:{}", self.node)
    }

    fn about(&self) -> String {
        format!("all data on {} while it has room, then by distance from it", self.node)
    }

    fn actions(&self, context: &Context<'_>) -> Result<Vec<Action>, PlaceError> {
        Ok(context.everywhere(&Action::Prefer(self.node.clone())))
    }
}
