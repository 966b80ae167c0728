//! `local`: what happens when nobody asks for anything.

use tierloom_model::Action;

use super::Policy;
use crate::context::Context;
use crate::error::PlaceError;

/// First touch: on the node of the thread that touches a page first; when it is full, on the
/// nearest one with room. Which objects spill is therefore decided by the order of first touch.
#[derive(Debug, Clone, Copy)]
pub struct FirstTouch;

impl Policy for FirstTouch {
    fn name(&self) -> String {
        "local".to_owned()
    }

    fn about(&self) -> String {
        "first touch on the nearest memory, in touch order; what does not fit spills by distance".to_owned()
    }

    fn actions(&self, context: &Context<'_>) -> Result<Vec<Action>, PlaceError> {
        Ok(context.everywhere(&Action::FirstTouch))
    }
}
