//! Lines that simulated caches fetched, instruction by instruction, in the place of those that touches and reuse say.
//!
//! An instruction's lines are shared out over the objects that its operands were seen on, by what touches of each would find in
//! a cache of that size. Of code that was not counted touches and reuse tell, as ever.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_binary::code::FunctionId;
use tierloom_model::units::LINE_BYTES_F64;
use tierloom_model::{CountSource, CountedTraffic, MissPoint, share_let_through};
use tierloom_recording::SimulatedCaches;

use crate::address_space::objects::ObjectId;
use crate::attribution::{Observed, OperandId};
use crate::frequency::Counts;
use crate::traffic::accesses::OperandAccesses;
use crate::traffic::address_stream::AddressStream;
use crate::traffic::element_width::operand;
use crate::traffic::line_reuse::ByFunction;
use crate::traffic::misses::Sets;
use crate::traffic::row::{Row, Touches, Traffic};

/// Lines of one row in one function.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counted {
    /// The first level did not have them.
    into_first: f64,
    /// No level had them.
    from_memory: f64,
}

/// What was counted, by whose it is.
#[derive(Debug)]
pub(crate) struct CountedLines {
    caches: SimulatedCaches,
    /// All of them from memory, those of no object too.
    all: f64,
    /// Functions whose lines these are: all of the others are estimated.
    functions: BTreeSet<FunctionId>,
    by_row: BTreeMap<(FunctionId, Row), Counted>,
}

impl CountedLines {
    /// `None` where no caches were simulated. `let_through` gives the share of touches that a cache of so many bytes does not
    /// have, by row.
    pub(crate) fn of(
        observed: &Observed,
        tallies: &[OperandAccesses],
        shapes: &BTreeMap<OperandId, AddressStream>,
        counts: &Counts,
        let_through: impl Fn(u64) -> BTreeMap<Row, f64>,
    ) -> Option<Self> {
        let caches = observed.counted.caches?;
        let counted = counts.blocks.iter().filter(|(_, blocks)| blocks.source == CountSource::Counted);
        let functions: BTreeSet<FunctionId> = counted.map(|(id, _)| *id).collect();
        let by_instruction = by_instruction(observed, tallies, shapes);
        let [first, last] = [caches.first_bytes, caches.last_bytes].map(let_through);
        let mut by_row: BTreeMap<(FunctionId, Row), Counted> = BTreeMap::new();
        let mut all = observed.counted.from_memory;
        for (at, fetched) in &observed.counted.fetched {
            if !functions.contains(&at.0) {
                all -= fetched.from_memory() as f64;
                continue;
            }
            let Some(touching) = by_instruction.get(at) else { continue };
            let sides =
                [(fetched.by_loads, Touching::loading(touching)), (fetched.by_stores, Touching::storing(touching))];
            for (lines, some) in sides {
                for (row, share) in Touching::shares(&some, &first) {
                    by_row.entry((at.0, row)).or_default().into_first += share * lines.into_first as f64;
                }
                for (row, share) in Touching::shares(&some, &last) {
                    by_row.entry((at.0, row)).or_default().from_memory += share * lines.from_memory as f64;
                }
            }
        }
        Some(Self { caches, all, functions, by_row })
    }

    /// Functions whose lines were counted.
    pub(crate) fn functions(&self) -> &BTreeSet<FunctionId> {
        &self.functions
    }

    /// For the reader.
    pub(crate) fn told(&self) -> CountedTraffic {
        let of_objects: f64 = self.by_row.values().map(|counted| counted.from_memory).sum();
        CountedTraffic {
            llc_bytes: self.caches.last_bytes,
            elsewhere_bytes: (self.all - of_objects).max(0.0) * LINE_BYTES_F64,
        }
    }

    /// Touches of counted code are those that the first level did not have; as many of them leave their line dirty as the
    /// function leaves of the object.
    pub(crate) fn replace(&self, touched: &mut ByFunction) {
        let mut estimated: BTreeMap<(FunctionId, ObjectId), Touches> = BTreeMap::new();
        touched.retain(|(function, row), touches| {
            let is_counted = self.functions.contains(function);
            if is_counted {
                *estimated.entry((*function, row.0)).or_default() += *touches;
            }
            !is_counted
        });
        for ((function, row), counted) in &self.by_row {
            let Touches { lines, dirty, stored } = estimated.get(&(*function, row.0)).copied().unwrap_or_default();
            let part = |some: f64| if lines > 0.0 { (some / lines).min(1.0) * counted.into_first } else { 0.0 };
            let touches = Touches { lines: counted.into_first, dirty: part(dirty), stored: part(stored) };
            touched.insert((*function, *row), touches);
        }
    }

    /// Lines from memory are those that were counted. The run's cache may be of another size than the simulated one: then
    /// as many more or fewer as touches of the object would find there.
    pub(crate) fn set(&self, rows: &mut BTreeMap<Row, Traffic>, touched: &ByFunction, sets: &Sets<'_>, llc_bytes: u64) {
        let mut counted: BTreeMap<Row, f64> = BTreeMap::new();
        for ((_, row), lines) in &self.by_row {
            *counted.entry(*row).or_default() += lines.from_memory;
        }
        let mut others: BTreeMap<Row, f64> = BTreeMap::new();
        for ((_, row), touches) in touched.iter().filter(|((function, _), _)| !self.functions.contains(function)) {
            *others.entry(*row).or_default() += touches.lines;
        }
        let there = sets.lines_by_object(&sets.let_through(self.caches.last_bytes));
        let here = sets.lines_by_object(&sets.let_through(llc_bytes));
        for (key, touches) in &sets.by_row {
            let Some(row) = rows.get_mut(key) else { continue };
            let lines = |of: &BTreeMap<Row, f64>| of.get(key).copied().unwrap_or(0.0);
            let own = match (there[&key.0], here[&key.0]) {
                _ if self.caches.last_bytes == llc_bytes => lines(&counted),
                (there, here) if there > 0.0 => lines(&counted) * here / there,
                _ => (touches.lines - lines(&others)) * row.miss,
            };
            row.fetch(*touches, (own + lines(&others) * row.miss).min(touches.lines));
        }
    }
}

/// Curves say no less than what was counted: touches need not be independent of each other.
pub(crate) fn raise(curves: &mut BTreeMap<ObjectId, Vec<MissPoint>>, rows: &BTreeMap<Row, Traffic>, llc_bytes: u64) {
    let mut sums: BTreeMap<ObjectId, (f64, f64)> = BTreeMap::new();
    for ((object, _), row) in rows {
        let sum = sums.entry(*object).or_default();
        (sum.0, sum.1) = (sum.0 + row.dram_read_bytes, sum.1 + row.touched_bytes);
    }
    for (object, curve) in curves {
        let (fetched, touched) = sums.get(object).copied().unwrap_or_default();
        let told = touched * share_let_through(curve, llc_bytes).unwrap_or(0.0);
        let factor = if told > 0.0 { (fetched / told).max(1.0) } else { 1.0 };
        for point in curve {
            point.share = (point.share * factor).min(1.0);
        }
    }
}

/// What an operand did to one object.
#[derive(Debug, Clone, Copy)]
struct Touching {
    row: Row,
    loads: bool,
    stores: bool,
    executions: f64,
}

fn by_instruction(
    observed: &Observed,
    tallies: &[OperandAccesses],
    shapes: &BTreeMap<OperandId, AddressStream>,
) -> BTreeMap<(FunctionId, usize), Vec<Touching>> {
    let mut sorted: BTreeMap<(FunctionId, usize), Vec<Touching>> = BTreeMap::new();
    for OperandAccesses { operand: id, object, executions } in tallies {
        let (row, content) = ((*object, shapes[id].pattern), operand(observed, *id));
        let touching = Touching { row, loads: content.read, stores: content.write, executions: *executions };
        sorted.entry((id.function, id.instruction)).or_default().push(touching);
    }
    sorted
}

impl Touching {
    /// Those whose lines count as loads: what is loaded and stored back is among them.
    fn loading(all: &[Self]) -> Vec<Self> {
        all.iter().filter(|touching| touching.loads).copied().collect()
    }

    /// Those whose lines count as stores.
    fn storing(all: &[Self]) -> Vec<Self> {
        let alone = all.iter().filter(|touching| touching.stores && !touching.loads);
        let alone: Vec<Self> = alone.copied().collect();
        let storing = || all.iter().filter(|touching| touching.stores).copied().collect();
        if alone.is_empty() { storing() } else { alone }
    }

    /// Shares that add up to 1, by how many of their touches are let through.
    fn shares(all: &[Self], let_through: &BTreeMap<Row, f64>) -> Vec<(Row, f64)> {
        let missed = |one: &Self| one.executions * let_through.get(&one.row).copied().unwrap_or(0.0);
        let executed = |one: &Self| one.executions;
        let is_told = all.iter().map(missed).sum::<f64>() > 0.0;
        let weight = |one: &Self| if is_told { missed(one) } else { executed(one) };
        let sum: f64 = all.iter().map(weight).sum();
        all.iter().map(|one| (one.row, weight(one) / sum.max(f64::MIN_POSITIVE))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierloom_model::Pattern;

    const FUNCTION: FunctionId = FunctionId::from_raw_unchecked(1);
    const OTHER: FunctionId = FunctionId::from_raw_unchecked(2);
    const LARGE: Row = (ObjectId::from_raw_unchecked(7), Pattern::Random);
    const SMALL: Row = (ObjectId::from_raw_unchecked(9), Pattern::Random);

    fn counted(lines: &[(Row, f64, f64)]) -> CountedLines {
        let by_row = lines.iter().map(|(row, into_first, from_memory)| {
            ((FUNCTION, *row), Counted { into_first: *into_first, from_memory: *from_memory })
        });
        CountedLines {
            caches: SimulatedCaches { first_bytes: 1 << 15, last_bytes: 1 << 20 },
            all: 1000.0,
            functions: BTreeSet::from([FUNCTION]),
            by_row: by_row.collect(),
        }
    }

    #[test]
    fn lines_of_an_instruction_are_those_of_the_object_that_does_not_fit() {
        let of = |row, executions| Touching { row, loads: true, stores: false, executions };
        let both = [of(LARGE, 10.0), of(SMALL, 90.0)];
        let shares = |let_through: &[(Row, f64)]| -> Vec<f64> {
            let let_through = let_through.iter().copied().collect();
            Touching::shares(&both, &let_through).iter().map(|(_, share)| *share).collect()
        };
        assert_eq!(shares(&[(LARGE, 0.5), (SMALL, 0.0)]), [1.0, 0.0]);
        assert_eq!(shares(&[]), [0.1, 0.9], "by executions where nothing says more");
    }

    #[test]
    fn what_is_loaded_and_stored_back_counts_as_a_load_and_what_is_stored_alone_as_a_store() {
        let of = |loads, stores| Touching { row: LARGE, loads, stores, executions: 1.0 };
        let (load, store, both) = (of(true, false), of(false, true), of(true, true));
        let count = |all: &[Touching]| (Touching::loading(all).len(), Touching::storing(all).len());
        assert_eq!(count(&[load, store]), (1, 1));
        assert_eq!(count(&[both, store]), (1, 1));
        assert_eq!(count(&[both]), (1, 1));
        assert_eq!(count(&[load]), (1, 0), "the stack, of which nobody keeps accounts, had the store");
    }

    #[test]
    fn touches_of_counted_code_are_those_that_were_counted_and_as_dirty_as_before() {
        let lines = counted(&[(LARGE, 100.0, 40.0)]);
        let touches = |lines, dirty| Touches { lines, dirty, stored: 0.0 };
        let mut touched = ByFunction::from([
            ((FUNCTION, LARGE), touches(4000.0, 1000.0)),
            ((FUNCTION, SMALL), touches(10.0, 0.0)),
            ((OTHER, LARGE), touches(5.0, 5.0)),
        ]);
        lines.replace(&mut touched);
        let expected = [((FUNCTION, LARGE), touches(100.0, 25.0)), ((OTHER, LARGE), touches(5.0, 5.0))];
        assert_eq!(touched, ByFunction::from(expected), "what was never fetched touches nothing");
    }

    #[test]
    fn a_curve_goes_up_to_what_was_counted_and_not_down() {
        let curve = || vec![(1, 0.8), (2, 0.4), (4, 0.0)];
        let points = |curve: Vec<(u64, f64)>| -> Vec<MissPoint> {
            curve.into_iter().map(|(cache_bytes, share)| MissPoint { cache_bytes, share }).collect()
        };
        let raised = |fetched| {
            let row = Traffic { touched_bytes: 100.0, dram_read_bytes: fetched, ..Traffic::default() };
            let mut curves = BTreeMap::from([(LARGE.0, points(curve()))]);
            raise(&mut curves, &BTreeMap::from([(LARGE, row)]), 2);
            curves[&LARGE.0].clone()
        };
        assert!((raised(60.0)[1].share - 0.6).abs() < 1e-9);
        assert!((raised(60.0)[0].share - 1.0).abs() < 1e-9);
        assert_eq!(raised(10.0), points(curve()));
    }

    #[test]
    fn what_is_of_no_object_is_told() {
        let told = counted(&[(LARGE, 100.0, 40.0), (SMALL, 10.0, 10.0)]).told();
        assert_eq!(told.llc_bytes, 1 << 20);
        assert!((told.elsewhere_bytes - 950.0 * 64.0).abs() < 1e-6);
    }
}
