//! Lines that the time of a function leaves room for.
//!
//! Counts of accesses do not see locality inside an object: a sort, a recursion or a blocked loop comes
//! back to lines that are still in the cache, which `cache_filter` cannot know. But who waits for a line spends
//! time, the time of each function is known, and samples tell in how much of it the function may have waited. No more lines can
//! have come from memory than fit into it, with as many in flight as predictions take them to have. Stores are not waited for
//! one by one: for them all of the function's time counts.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_model::Pattern;

use crate::attribution::{Attribution, Observed, Rest};
use crate::traffic::line_reuse::ByFunction;
use crate::traffic::row::{Row, Traffic};
use tierloom_binary::code::FunctionId;

/// No memory behind a last-level cache answers sooner, ns: desktops with tuned memory reach 50 to 60, servers
/// 80 to 150. Assumed.
const SOONEST_NS: f64 = 60.0;
/// Lines that a core can be waiting for at once: misses that the second-level cache of Zen 3 to 5 holds (AMD,
/// *Software Optimization Guide for Family 19h*, 2.12). Published.
const MOST_LINES: f64 = 64.0;
/// Of them those that loads of the program ask for, and no prefetcher: misses that the first-level cache of Zen 3 and 4
/// holds (the same). Published.
const MOST_LOADS: f64 = 24.0;

/// Samples of a function.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    all: usize,
    /// Those in which it may have waited for a line.
    waiting: usize,
}

/// Least time that lines take, ns.
#[derive(Debug, Clone, Copy, Default)]
struct Needed {
    all: f64,
    /// Of loads.
    loaded: f64,
}

/// What the time of each function leaves of its lines.
pub(crate) struct TimeBound<'a> {
    touched: &'a ByFunction,
    /// CPU time that a sample stands for.
    sample_ns: f64,
    spent: BTreeMap<FunctionId, Spent>,
    /// Functions whose lines were counted: nothing is taken from them.
    counted: BTreeSet<FunctionId>,
    /// By function, the part of its lines that stays, 0 to 1.
    kept: BTreeMap<FunctionId, f64>,
}

impl<'a> TimeBound<'a> {
    pub(crate) fn new(
        touched: &'a ByFunction,
        observed: &Observed,
        sample_ns: f64,
        counted: Option<&BTreeSet<FunctionId>>,
    ) -> Self {
        Self::of(touched, spent(observed), sample_ns, counted.cloned().unwrap_or_default())
    }

    fn of(
        touched: &'a ByFunction,
        spent: BTreeMap<FunctionId, Spent>,
        sample_ns: f64,
        counted: BTreeSet<FunctionId>,
    ) -> Self {
        let kept = touched.keys().map(|(function, _)| (*function, 1.0)).collect();
        Self { touched, sample_ns, spent, counted, kept }
    }

    /// Takes what there was no time for, with as many lines in flight as `rows` say. Returns the largest part that it took from
    /// what a function had left.
    pub(crate) fn tighten(&mut self, before: &BTreeMap<Row, Traffic>, rows: &BTreeMap<Row, Traffic>) -> f64 {
        let mut most = 0.0_f64;
        for (function, needed) in self.needed(before, rows) {
            if self.counted.contains(&function) {
                continue;
            }
            let spent = self.spent.get(&function).copied().unwrap_or_default();
            let part = |ns: f64, samples: usize| (most_samples(samples) * self.sample_ns / ns.max(1.0)).min(1.0);
            let part = part(needed.all, spent.all).min(part(needed.loaded, spent.waiting));
            self.kept.entry(function).and_modify(|kept| *kept *= part);
            most = most.max(1.0 - part);
        }
        most
    }

    fn needed(&self, before: &BTreeMap<Row, Traffic>, rows: &BTreeMap<Row, Traffic>) -> BTreeMap<FunctionId, Needed> {
        let mut needed: BTreeMap<FunctionId, Needed> = BTreeMap::new();
        for ((function, key), touches) in self.touched {
            let (Some(before), Some(row)) = (before.get(key), rows.get(key)) else { continue };
            let lines = touches.lines * before.waited * self.kept[function];
            let ns = lines * least_ns(key.1, row.mlp);
            let sum = needed.entry(*function).or_default();
            sum.all += ns;
            sum.loaded += ns * row.reads / (row.reads + row.writes).max(1.0);
        }
        needed
    }

    /// Sets rows to what is left of what they were before. Returns the share of all lines that is not.
    pub(crate) fn apply(&self, before: &BTreeMap<Row, Traffic>, rows: &mut BTreeMap<Row, Traffic>) -> f64 {
        let mut kept: BTreeMap<Row, (f64, f64)> = BTreeMap::new();
        for ((function, row), touches) in self.touched {
            let sum = kept.entry(*row).or_default();
            sum.0 += touches.lines * self.kept[function];
            sum.1 += touches.lines;
        }
        let (mut all, mut left) = (0.0, 0.0);
        for (key, (some, of)) in kept {
            let (Some(row), Some(before)) = (rows.get_mut(&key).filter(|_| of > 0.0), before.get(&key)) else {
                continue;
            };
            let part = some / of;
            row.dram_read_bytes = before.dram_read_bytes * part;
            row.dram_write_bytes = before.dram_write_bytes * part;
            row.miss = before.miss * part;
            row.waited = before.waited * part;
            all += before.dram_read_bytes;
            left += row.dram_read_bytes;
        }
        if all > 0.0 { 1.0 - left / all } else { 0.0 }
    }
}

fn spent(observed: &Observed) -> BTreeMap<FunctionId, Spent> {
    let mut spent: BTreeMap<FunctionId, Spent> = BTreeMap::new();
    for seen in &observed.seen {
        let Some((function, _)) = seen.at else { continue };
        let sum = spent.entry(function).or_default();
        sum.all += 1;
        sum.waiting += usize::from(may_wait(seen.verdict));
    }
    spent
}

fn may_wait(verdict: Attribution) -> bool {
    !matches!(verdict, Attribution::Rest(Rest::Compute | Rest::Stack | Rest::Kernel))
}

/// Time that a line of this pattern takes at the least, with so many in flight.
fn least_ns(pattern: Pattern, mlp: f64) -> f64 {
    let in_flight = match pattern {
        Pattern::Stream | Pattern::Strided => MOST_LINES,
        Pattern::Chain => 1.0,
        Pattern::Random => mlp.clamp(1.0, MOST_LOADS),
    };
    SOONEST_NS / in_flight
}

/// Upper end of a Poisson count's 95 % interval: its square root has a variance of 1/4, and of nothing seen
/// three are possible.
fn most_samples(seen: usize) -> f64 {
    (seen as f64).sqrt().mul_add(2.0, seen as f64 + 3.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address_space::objects::ObjectId;
    use crate::traffic::row::Touches;

    const MS: f64 = 1e6;
    const OBJECT: ObjectId = ObjectId::from_raw_unchecked(7);
    const FIRST: FunctionId = FunctionId::from_raw_unchecked(1);
    const SECOND: FunctionId = FunctionId::from_raw_unchecked(2);

    fn read(lines: f64, mlp: f64) -> Traffic {
        let dram_read_bytes = 64.0 * lines;
        Traffic { reads: lines, dram_read_bytes, miss: 1.0, waited: 1.0, mlp, ..Traffic::default() }
    }

    fn waiting(samples: usize) -> Spent {
        Spent { all: samples, waiting: samples }
    }

    /// Rows with what there is time for, and the share that there is none for.
    fn bounded(touched: &ByFunction, spent: &[(FunctionId, Spent)], row: (Row, Traffic)) -> (Traffic, f64) {
        let before = BTreeMap::from([row]);
        let mut rows = before.clone();
        let mut bound = TimeBound::of(touched, spent.iter().copied().collect(), MS, BTreeSet::new());
        while bound.tighten(&before, &rows) > 0.0 {}
        let cut = bound.apply(&before, &mut rows);
        (rows[&row.0], cut)
    }

    /// Of so many lines, those that there is time for, and the share that there is none for.
    fn after(lines: f64, spent: Spent, pattern: Pattern, row: Traffic) -> (f64, f64) {
        let key = (OBJECT, pattern);
        let touched = BTreeMap::from([((FIRST, key), Touches { lines, dirty: 1.0 })]);
        let (row, cut) = bounded(&touched, &[(FIRST, spent)], (key, row));
        (row.dram_read_bytes / 64.0, cut)
    }

    /// Time of a hundred samples, at most.
    const HUNDRED_NS: f64 = 123.0 * MS;

    #[test]
    fn a_chain_has_one_line_at_a_time() {
        let (lines, cut) = after(1e9, waiting(100), Pattern::Chain, read(1e9, 1.0));
        assert!((lines - HUNDRED_NS / SOONEST_NS).abs() < 1.0, "{lines}");
        assert!(cut > 0.99);
    }

    #[test]
    fn independent_lines_take_time_by_how_many_are_in_flight() {
        for (mlp, in_flight) in [(0.5, 1.0), (8.0, 8.0), (100.0, MOST_LOADS)] {
            let (lines, _) = after(1e9, waiting(100), Pattern::Random, read(1e9, mlp));
            assert!((lines - in_flight * HUNDRED_NS / SOONEST_NS).abs() < 1.0, "{lines}");
        }
    }

    #[test]
    fn what_there_is_time_for_stays() {
        assert_eq!(after(1e6, waiting(100), Pattern::Chain, read(1e6, 1.0)), (1e6, 0.0));
        assert_eq!(after(1e7, waiting(100), Pattern::Random, read(1e7, 8.0)), (1e7, 0.0));
        assert_eq!(after(0.0, waiting(0), Pattern::Stream, read(0.0, 1.0)), (0.0, 0.0));
    }

    #[test]
    fn loads_have_the_time_that_was_waited_and_stores_all_of_it() {
        let computing = Spent { all: 100, waiting: 0 };
        let (loaded, _) = after(1e9, computing, Pattern::Random, read(1e9, 1.0));
        assert!((loaded - 3.0 * MS / SOONEST_NS).abs() < 1.0, "{loaded}");
        let stores = Traffic { reads: 0.0, writes: 1e9, ..read(1e9, 1.0) };
        let (stored, _) = after(1e9, computing, Pattern::Random, stores);
        assert!((stored - HUNDRED_NS / SOONEST_NS).abs() < 1.0, "{stored}");
    }

    #[test]
    fn each_function_has_its_own_time() {
        let key = (OBJECT, Pattern::Chain);
        let half = Touches { lines: 1e9, dirty: 0.0 };
        let touched = BTreeMap::from([((FIRST, key), half), ((SECOND, key), half)]);
        let spent = [(FIRST, waiting(1_000_000)), (SECOND, waiting(0))];
        let (row, _) = bounded(&touched, &spent, (key, read(2e9, 1.0)));
        let lines = row.dram_read_bytes / 64.0;
        assert!((lines - 1e9 - 3.0 * MS / SOONEST_NS).abs() < 1.0, "{lines}");
    }
}
