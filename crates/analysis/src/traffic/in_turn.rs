//! Whether an operand goes over its objects one after the other, or over all of them at once.
//!
//! What a core has in flight together is what it touches within some hundred instructions. A gather over an old and a new
//! vector has misses of one vector in flight there; one over the rows of a table those of any. Samples show which: how
//! often two that follow each other in a thread show the same object, against how often they would if each was of any.

use std::collections::BTreeMap;

use crate::address_space::Place;
use crate::address_space::objects::ObjectId;
use crate::attribution::{Observed, OperandId};

/// By operand, the part of the time that it stays at one object, 0 to 1.
pub(crate) struct InTurn(BTreeMap<OperandId, f64>);

impl InTurn {
    pub(crate) fn find(observed: &Observed) -> Self {
        let mut seen: BTreeMap<OperandId, Sightings> = BTreeMap::new();
        for address in &observed.operand_addresses {
            if let Place::Object(object, _) = address.place {
                let thread = observed.seen[address.seen].thread;
                seen.entry(address.id()).or_default().add(thread, object);
            }
        }
        Self(seen.into_iter().filter_map(|(operand, seen)| Some((operand, seen.staying()?))).collect())
    }

    /// The part of the time, 0 to 1; 0 where samples do not tell.
    pub(crate) fn part(&self, operand: OperandId) -> f64 {
        self.0.get(&operand).copied().unwrap_or(0.0)
    }
}

/// Objects that an operand was seen at, in time order.
#[derive(Debug, Clone, Default)]
struct Sightings {
    last: BTreeMap<usize, ObjectId>,
    by_object: BTreeMap<ObjectId, f64>,
    pairs: f64,
    same: f64,
}

impl Sightings {
    fn add(&mut self, thread: usize, object: ObjectId) {
        *self.by_object.entry(object).or_default() += 1.0;
        if let Some(before) = self.last.insert(thread, object) {
            self.pairs += 1.0;
            self.same += if before == object { 1.0 } else { 0.0 };
        }
    }

    /// How much more often than by chance two in a row are of one object; nothing where there is one object only.
    fn staying(&self) -> Option<f64> {
        let all: f64 = self.by_object.values().sum();
        let by_chance: f64 = self.by_object.values().map(|count| (count / all).powi(2)).sum();
        let tells = self.by_object.len() > 1 && self.pairs > 0.0;
        tells.then(|| ((self.same / self.pairs - by_chance) / (1.0 - by_chance)).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn staying(objects: impl IntoIterator<Item = usize>) -> Option<f64> {
        let mut seen = Sightings::default();
        objects.into_iter().for_each(|object| seen.add(0, ObjectId::new(object)));
        seen.staying()
    }

    #[test]
    fn one_after_the_other_is_told_from_all_at_once() {
        assert!(staying((0..400).map(|sample| sample / 100)).is_some_and(|part| part > 0.97));
        // Multiplied so that no object follows itself more often than by chance.
        assert!(
            staying((0..400_u32).map(|sample| (sample.wrapping_mul(2_654_435_769) >> 30) as usize))
                .is_some_and(|part| part < 0.2)
        );
        assert_eq!(staying([7, 7, 7]), None);
        assert_eq!(staying([7]), None);
    }
}
