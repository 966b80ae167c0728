//! What the touches of a run find in last-level caches: that of its machine, and others.
//!
//! Phase by phase, since an object that one phase alone sweeps shares the cache with what that phase touches, and what the
//! phase before has left there is not fetched again.

use std::collections::BTreeMap;

use index_vec::IndexSlice;
use tierloom_model::units::{LINE_BYTES_F64, MIB};
use tierloom_model::{MissPoint, ObjectKind};

use crate::address_space::objects::{DataObject, ObjectId};
use crate::traffic::by_phase::PhaseShares;
use crate::traffic::cache_filter::{Before, Filled, Miss, WorkingSet, characteristic_time};
use crate::traffic::line_reuse::ByFunction;
use crate::traffic::row::{Row, Touches};

/// Caches of other machines, as powers of two MiB: what cores of servers and desktops of 2015 to 2026 reach is between
/// 1.4 MiB (Skylake) and 1.1 GiB (with stacked memory).
const OTHERS: std::ops::RangeInclusive<u32> = 0..=11;

/// Touches of one object in one phase, all patterns together.
#[derive(Debug, Clone, Copy, Default)]
struct InPhase {
    touches: f64,
    swept: f64,
}

/// What all objects of a run ask of a cache.
pub(crate) struct Sets<'a> {
    entries: &'a IndexSlice<ObjectId, [DataObject]>,
    shares: &'a BTreeMap<Row, PhaseShares>,
    pub(crate) by_row: BTreeMap<Row, Touches>,
    written: BTreeMap<ObjectId, f64>,
    phases: Vec<BTreeMap<ObjectId, InPhase>>,
}

impl<'a> Sets<'a> {
    pub(crate) fn of(
        touched: &ByFunction,
        entries: &'a IndexSlice<ObjectId, [DataObject]>,
        shares: &'a BTreeMap<Row, PhaseShares>,
        phases: usize,
    ) -> Self {
        let (by_row, written) = (BTreeMap::new(), BTreeMap::new());
        let mut sets = Self { entries, shares, by_row, written, phases: vec![BTreeMap::new(); phases] };
        for ((_, row), touches) in touched {
            let all = sets.by_row.entry(*row).or_default();
            *all += *touches;
            *sets.written.entry(row.0).or_default() += touches.dirty;
        }
        for (row, touches) in &sets.by_row {
            for (phase, objects) in sets.phases.iter_mut().enumerate() {
                let lines = touches.lines * share(shares, *row, phase);
                let sum = objects.entry(row.0).or_default();
                sum.touches += lines;
                sum.swept += if row.1.is_random() { 0.0 } else { lines };
            }
        }
        sets
    }

    /// By row, what a touch of each phase finds in a cache of so many bytes.
    pub(crate) fn misses(&self, cache_bytes: u64) -> BTreeMap<Row, Vec<Miss>> {
        let cache_lines = cache_bytes as f64 / LINE_BYTES_F64;
        let mut before: BTreeMap<ObjectId, Before> = BTreeMap::new();
        let mut misses: BTreeMap<Row, Vec<Miss>> = BTreeMap::new();
        for (phase, objects) in self.phases.iter().enumerate() {
            let objects: BTreeMap<ObjectId, InPhase> =
                objects.iter().filter(|(_, sums)| sums.touches > 0.0).map(|(object, sums)| (*object, *sums)).collect();
            let set = |object: &ObjectId| self.working_set(phase, *object, None);
            let sets: Vec<WorkingSet> = objects.keys().map(set).collect();
            let time = characteristic_time(&sets, cache_lines);
            for row in self.by_row.keys() {
                let left = before.get(&row.0).copied().unwrap_or_default();
                let miss = self.working_set(phase, row.0, Some(!row.1.is_random())).miss(time, left);
                misses.entry(*row).or_default().push(miss);
            }
            for (object, set) in objects.keys().zip(&sets) {
                let left = before.entry(*object).or_default();
                *left = left.after(set, time);
            }
            push_out(&mut before, &objects, cache_lines);
        }
        misses
    }

    /// By row, the share of touches that a cache of so many bytes does not have.
    pub(crate) fn let_through(&self, cache_bytes: u64) -> BTreeMap<Row, f64> {
        let misses = self.misses(cache_bytes);
        misses.iter().map(|(row, by_phase)| (*row, self.on_average(*row, by_phase).fetched)).collect()
    }

    /// By object, how many of its touches that are.
    pub(crate) fn lines_by_object(&self, let_through: &BTreeMap<Row, f64>) -> BTreeMap<ObjectId, f64> {
        let mut sums: BTreeMap<ObjectId, f64> = BTreeMap::new();
        for (row, touches) in &self.by_row {
            *sums.entry(row.0).or_default() += touches.lines * let_through.get(row).copied().unwrap_or(0.0);
        }
        sums
    }

    /// An object in a phase, `sweeping` as told or as most of its touches do.
    fn working_set(&self, phase: usize, object: ObjectId, sweeping: Option<bool>) -> WorkingSet {
        let (entry, sums) = (&self.entries[object], self.phases[phase].get(&object).copied().unwrap_or_default());
        let lines = (entry.memory_bytes as f64 / LINE_BYTES_F64).max(1.0);
        let written = self.written.get(&object).copied().unwrap_or(0.0);
        let is_file = entry.kind == ObjectKind::File;
        let filled = if is_file { Filled::default() } else { Filled::anonymous(written / lines) };
        let sweeping = sweeping.unwrap_or(sums.swept > 0.5 * sums.touches);
        WorkingSet { lines, touches: sums.touches, sweeping, filled }
    }

    /// What a touch of a row finds on average over the phases.
    pub(crate) fn on_average(&self, row: Row, by_phase: &[Miss]) -> Miss {
        let mut mean = Miss::default();
        for (phase, miss) in by_phase.iter().enumerate() {
            let share = share(self.shares, row, phase);
            mean.fetched += miss.fetched * share;
            mean.waited += miss.waited * share;
        }
        mean
    }

    /// By object, the share of its touches that comes from memory, by size of the cache; that of the run is among them.
    /// Objects for which all sizes do the same have none.
    pub(crate) fn curves(&self, llc_bytes: u64) -> BTreeMap<ObjectId, Vec<MissPoint>> {
        let mut sizes: Vec<u64> = OTHERS.map(|power| MIB << power).chain([llc_bytes]).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut curves: BTreeMap<ObjectId, Vec<MissPoint>> = BTreeMap::new();
        for cache_bytes in sizes {
            let mut sums: BTreeMap<ObjectId, (f64, f64)> = BTreeMap::new();
            for (row, by_phase) in self.misses(cache_bytes) {
                let lines = self.by_row[&row].lines;
                let sum = sums.entry(row.0).or_default();
                sum.0 += lines * self.on_average(row, &by_phase).fetched;
                sum.1 += lines;
            }
            for (object, (missed, touched)) in sums {
                let share = (missed / touched.max(f64::MIN_POSITIVE)).min(1.0);
                curves.entry(object).or_default().push(MissPoint { cache_bytes, share });
            }
        }
        let is_flat =
            |curve: &[MissPoint]| curve.first().map(|point| point.share) == curve.last().map(|point| point.share);
        curves.retain(|_, curve| !is_flat(curve));
        curves
    }
}

fn share(shares: &BTreeMap<Row, PhaseShares>, row: Row, phase: usize) -> f64 {
    shares.get(&row).map_or(0.0, |shares| shares.touches[phase])
}

/// What a phase touched pushes out what it did not, as far as there is no room for both.
fn push_out(before: &mut BTreeMap<ObjectId, Before>, touched: &BTreeMap<ObjectId, InPhase>, cache_lines: f64) {
    let held = |recent: bool| -> f64 {
        let some = before.iter().filter(|(object, _)| touched.contains_key(object) == recent);
        some.map(|(_, left)| left.touched * left.held).sum()
    };
    let (recent, older) = (held(true), held(false));
    let part = if older > 0.0 { ((cache_lines - recent) / older).clamp(0.0, 1.0) } else { 1.0 };
    before.iter_mut().filter(|(object, _)| !touched.contains_key(object)).for_each(|(_, left)| left.held *= part);
}
