//! `hottest-first`: objects with the most traffic for their size get fast memory while it has room.

use tierloom_model::Action;

use super::Policy;
use crate::context::Context;
use crate::error::PlaceError;

/// Ranks objects by bytes from memory over size, and fills fast memory from the hottest on.
#[derive(Debug, Clone, Copy)]
pub(super) struct HottestFirst;

impl Policy for HottestFirst {
    fn name(&self) -> String {
        "hottest-first".to_owned()
    }

    fn about(&self) -> String {
        "whole objects to fast memory while it has room, by traffic per byte".to_owned()
    }

    fn actions(&self, context: &Context<'_>) -> Result<Vec<Action>, PlaceError> {
        let heat = |object: &usize| context.predictor.dram_bytes(*object) / context.size(*object).max(1.0);
        let mut hottest: Vec<usize> = (0..context.profile.objects.len()).collect();
        hottest.sort_by(|a, b| heat(b).total_cmp(&heat(a)));

        let mut room = context.capacity[context.fast];
        let mut actions = context.everywhere(&Action::FirstTouch);
        for object in hottest {
            let size = context.size(object);
            let farthest = *context.nodes.last().ok_or(PlaceError::NoNodes)?;
            let node = if size <= room { context.fast } else { farthest };
            room -= if size <= room { size } else { 0.0 };
            actions[object] = Action::Prefer(context.name(node).to_owned());
        }
        Ok(actions)
    }
}
