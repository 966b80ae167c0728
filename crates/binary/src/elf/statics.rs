//! What of a module's data lies in no array with an object of its own: small variables, constants,
//! tables of the linker.
//!
//! They are one object, as large as they are together: the arrays between them count for themselves,
//! and code is no data.

use std::ops::Range;

/// Ranges of virtual addresses, in their order, each with the bytes of those before it.
#[derive(Debug, Default)]
pub struct Remainder {
    parts: Vec<(Range<u64>, u64)>,
}

impl Remainder {
    /// What arrays leave of segments; both in any order, and arrays may overlap.
    pub fn of(mut segments: Vec<Range<u64>>, mut arrays: Vec<Range<u64>>) -> Self {
        segments.sort_unstable_by_key(|range| range.start);
        arrays.sort_unstable_by_key(|range| range.start);
        let mut rest = Self::default();
        for segment in segments {
            let mut from = segment.start;
            for array in arrays.iter().filter(|array| array.start < segment.end && array.end > segment.start) {
                rest.push(from..array.start);
                from = from.max(array.end);
            }
            rest.push(from..segment.end);
        }
        rest
    }

    fn push(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            let before = self.bytes();
            self.parts.push((range, before));
        }
    }

    /// All together.
    pub fn bytes(&self) -> u64 {
        self.parts.last().map_or(0, |(range, before)| before + (range.end - range.start))
    }

    /// Where an address lies in the object; one that is not in it, such as a constant between
    /// functions, counts as the byte before or after.
    pub fn offset(&self, address: u64) -> u64 {
        let after = self.parts.partition_point(|(range, _)| range.start <= address);
        let Some((range, before)) = after.checked_sub(1).and_then(|at| self.parts.get(at)) else { return 0 };
        before + (address - range.start).min(range.end - range.start - 1)
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_byte_outside_the_arrays_has_an_offset_of_its_own(
            arrays in prop::collection::vec((0_u64..90, 1_u64..30), 0..6),
        ) {
            let arrays: Vec<_> = arrays.into_iter().map(|(start, bytes)| start..start + bytes).collect();
            let segments = vec![60..100, 10..40];
            let rest = Remainder::of(segments.clone(), arrays.clone());
            let is_rest = |address: &u64| {
                segments.iter().any(|range| range.contains(address)) && !arrays.iter().any(|range| range.contains(address))
            };
            let offsets: Vec<u64> = (0..200).filter(is_rest).map(|address| rest.offset(address)).collect();
            prop_assert_eq!(offsets, (0..rest.bytes()).collect::<Vec<_>>());
        }

        #[test]
        fn other_addresses_stay_inside(address in 0_u64..200) {
            let rest = Remainder::of(vec![10..40], vec![20..30]);
            prop_assert!(rest.offset(address) < rest.bytes());
        }
    }

    #[test]
    fn where_there_is_nothing_there_is_no_offset() {
        let rest = Remainder::of(vec![10..20], vec![0..30]);
        assert_eq!((rest.bytes(), rest.offset(15)), (0, 0));
    }
}
