//! Which parts of an object are touched most.
//!
//! Sightings are counted in equal stretches of the object, hottest first. A handful of samples always
//! looks uneven, so the shares are only given where they differ by more than chance; engines take an
//! object without them as evenly used.

use std::collections::BTreeMap;

use index_vec::IndexSlice;
use tierloom_model::HOTNESS_BINS;

use crate::address_space::Place;
use crate::address_space::objects::{DataObject, ObjectId};
use crate::attribution::Observed;
use crate::attribution::operand_addresses::How;

/// Sightings that a stretch needs on average.
const FEWEST_PER_BIN: f64 = 50.0;
/// The hottest stretch must lie this many standard deviations above the mean: for the largest of 16,
/// chance alone reaches it less than once in 10,000 objects.
const BEYOND_CHANCE: f64 = 5.0;

/// Memory that is so much of an object's addresses is all of them: a stretch may lack one in ten of its pages. Assumed.
const FULL: f64 = 0.9;

/// Falling shares of the accesses in each sixteenth of an object; only for objects that were allocated
/// once and are not evenly used. Nor for one that has no pages for much of its addresses until the run's end: a sixteenth of
/// these is none of its memory.
pub(crate) fn hotness(
    observed: &Observed,
    entries: &IndexSlice<ObjectId, [DataObject]>,
) -> BTreeMap<ObjectId, Vec<f64>> {
    let mut bins: BTreeMap<ObjectId, [f64; HOTNESS_BINS]> = BTreeMap::new();
    for operand_address in
        observed.operand_addresses.iter().filter(|operand_address| operand_address.how == How::Replayed)
    {
        let Place::Object(object, offset) = operand_address.place else { continue };
        let entry = &entries[object];
        let is_full = entry.memory_bytes as f64 >= FULL * entry.most_bytes as f64;
        if entry.allocations == 1 && entry.most_bytes > 0 && is_full {
            let share = offset as f64 / entry.most_bytes as f64;
            bins.entry(object).or_default()[bin(share)] += 1.0;
        }
    }
    bins.into_iter().filter_map(|(object, counts)| Some((object, falling(counts)?))).collect()
}

fn bin(share: f64) -> usize {
    (0..HOTNESS_BINS - 1).find(|bin| share * (HOTNESS_BINS as f64) < (bin + 1) as f64).unwrap_or(HOTNESS_BINS - 1)
}

fn falling(mut counts: [f64; HOTNESS_BINS]) -> Option<Vec<f64>> {
    counts.sort_by(|left, right| right.total_cmp(left));
    let total: f64 = counts.iter().sum();
    let mean = total / HOTNESS_BINS as f64;
    let uneven = mean >= FEWEST_PER_BIN && counts[0] > mean + BEYOND_CHANCE * mean.sqrt();
    uneven.then(|| counts.iter().map(|count| count / total).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_not_hotness() {
        let mut even = [100.0; HOTNESS_BINS];
        even[3] = 120.0;
        assert_eq!(falling(even), None);
        even[3] = 1000.0;
        let shares = falling(even).unwrap();
        assert!((shares[0] - 0.4).abs() < 1e-9 && shares.windows(2).all(|pair| pair[0] >= pair[1]));
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(falling([1.0; HOTNESS_BINS]), None, "too few to say");
    }

    #[test]
    fn every_offset_has_its_stretch() {
        assert_eq!([bin(0.0), bin(0.0624), bin(0.0626), bin(0.99), bin(1.5)], [0, 0, 1, 15, 15]);
    }
}
