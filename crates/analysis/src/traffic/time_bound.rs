//! Lines that the time of a function leaves room for.
//!
//! Counts of accesses do not see locality inside an object: a sort, a recursion or a blocked loop comes
//! back to lines that are still in the cache, which `cache_filter` cannot know. But who waits for a line spends
//! time, the time of each function is known, and samples tell in how much of it the function may have waited. No more lines can
//! have come from memory than fit into it, with as many in flight as predictions take them to have. Streams and stores are not
//! waited for one by one: for them all of the function's time counts.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_model::units::{LINE_BYTES_F64, NS};
use tierloom_model::{AccessCount, Pattern, Within};
use tierloom_recording::NearMemory;

use crate::address_space::objects::ObjectId;
use crate::traffic::line_reuse::ByFunction;
use crate::traffic::row::{FREE_LINES, Row, Touches, Traffic};
use crate::traffic::waiting::Spent;
use tierloom_binary::code::FunctionId;

/// What lines take at the least.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Soonest {
    /// Latency of memory.
    ns: f64,
    /// Lines that a core can be waiting for at once.
    lines: f64,
    /// Of them those that loads of the program ask for, and no prefetcher.
    loads: f64,
}

/// Where nobody measured the memory. None behind a last-level cache answers sooner: desktops with tuned memory reach 50 to
/// 60 ns, servers 80 to 150 (assumed). As many misses are held by the first-level cache of Zen 3 and 4 (AMD, *Software
/// Optimization Guide for Family 19h*, 2.12; published).
const ANY_MEMORY: Soonest = Soonest { ns: 60.0, lines: FREE_LINES, loads: 24.0 };

impl From<Option<NearMemory>> for Soonest {
    fn from(measured: Option<NearMemory>) -> Self {
        measured.map_or(ANY_MEMORY, |near| Self {
            ns: near.idle_ns,
            lines: near.stream_lines.max(near.demand_lines),
            loads: near.demand_lines,
        })
    }
}

/// Least time that lines take, ns.
#[derive(Debug, Clone, Copy, Default)]
struct Needed {
    all: f64,
    /// In which threads wait: for loads that no prefetcher foresees.
    waiting: f64,
}

/// So much fewer lines than counts and time say may have come from memory, where a program comes back to lines that are still in
/// a cache. Fitted to 22 programs of docs/traffic.md: within it are 20 of them.
fn reused(pattern: Pattern) -> f64 {
    if pattern == Pattern::Stream { 1.5 } else { 4.0 }
}

/// What the time of each function leaves of its lines.
#[derive(Clone)]
pub(crate) struct TimeBound<'a> {
    touched: &'a ByFunction,
    soonest: Soonest,
    /// CPU time that a sample stands for.
    sample_ns: f64,
    spent: BTreeMap<FunctionId, Spent>,
    /// Functions whose lines were counted: nothing is taken from them.
    counted: BTreeSet<FunctionId>,
    /// The part of its lines that stays, 0 to 1.
    kept: BTreeMap<(FunctionId, Row), f64>,
}

impl<'a> TimeBound<'a> {
    pub(crate) fn new(
        touched: &'a ByFunction,
        spent: BTreeMap<FunctionId, Spent>,
        sample_ns: f64,
        soonest: Soonest,
        counted: Option<&BTreeSet<FunctionId>>,
    ) -> Self {
        let kept = touched.keys().map(|key| (*key, 1.0)).collect();
        Self { touched, soonest, sample_ns, spent, counted: counted.cloned().unwrap_or_default(), kept }
    }

    /// Takes what there was no time for, with as many lines in flight as `rows` say. Returns the largest part that it took from
    /// what a row of a function had left.
    pub(crate) fn tighten(&mut self, before: &BTreeMap<Row, Traffic>, rows: &BTreeMap<Row, Traffic>) -> f64 {
        let needed = self.needed(before, rows);
        let parts = self.parts(&needed);
        // Each function may have waited as long as its samples allow at the most, but hardly all of them.
        let whole_ns: f64 = needed.iter().map(|(key, needed)| needed.waiting * parts[key]).sum();
        let functions: BTreeSet<FunctionId> = needed.keys().map(|(function, _)| *function).collect();
        let whole = self.part(functions.iter().map(|id| self.spent(*id)).sum::<Spent>().most_waiting(), whole_ns);
        let mut most = 0.0_f64;
        for (key, part) in parts {
            let part = if needed[&key].waiting > 0.0 { part * whole } else { part };
            self.kept.entry(key).and_modify(|kept| *kept *= part);
            most = most.max(1.0 - part);
        }
        most
    }

    /// Of what is needed, the part for which each function has time.
    fn parts(&self, needed: &BTreeMap<(FunctionId, Row), Needed>) -> BTreeMap<(FunctionId, Row), f64> {
        let mut sums: BTreeMap<FunctionId, Needed> = BTreeMap::new();
        for ((function, _), needed) in needed {
            let sum = sums.entry(*function).or_default();
            (sum.all, sum.waiting) = (sum.all + needed.all, sum.waiting + needed.waiting);
        }
        let part = |function: FunctionId, needed: &Needed| {
            let (spent, sum) = (self.spent(function), sums[&function]);
            let waiting = if needed.waiting > 0.0 { self.part(spent.most_waiting(), sum.waiting) } else { 1.0 };
            self.part(spent.most(), sum.all).min(waiting)
        };
        needed.iter().map(|(key, needed)| (*key, part(key.0, needed))).collect()
    }

    fn part(&self, samples: f64, ns: f64) -> f64 {
        (samples * self.sample_ns / ns.max(1.0)).min(1.0)
    }

    fn spent(&self, function: FunctionId) -> Spent {
        self.spent.get(&function).copied().unwrap_or_default()
    }

    /// Says how far what is left may be off, when as many accesses as `counts` says by object may be more or fewer.
    pub(crate) fn set_within(
        &self,
        before: &BTreeMap<Row, Traffic>,
        rows: &mut BTreeMap<Row, Traffic>,
        counts: &BTreeMap<ObjectId, AccessCount>,
    ) {
        let count = |object: ObjectId| counts.get(&object).filter(|count| count.count > 0.0);
        let more = |key: &(FunctionId, Row)| count(key.1.0).map_or(1.0, |count| (count.high / count.count).max(1.0));
        let fewer = |key: &(FunctionId, Row)| count(key.1.0).map_or(1.0, |count| count.low / count.count);
        let all = Self { kept: self.kept.keys().map(|key| (*key, more(key))).collect(), ..self.clone() };
        let needed = all.needed(before, rows);
        let parts = all.parts(&needed);
        let mut ends: BTreeMap<Row, [f64; 3]> = BTreeMap::new();
        for (key, touches) in self.touched {
            let kept = self.kept[key];
            let (least, most) = match parts.get(key) {
                Some(part) => (kept.min(fewer(key)) / reused(key.1.1), kept.max(more(key) * part)),
                None => (kept, kept),
            };
            let [low, middle, high] = ends.entry(key.1).or_default();
            *low += touches.lines * least;
            *middle += touches.lines * kept;
            *high += touches.lines * most;
        }
        for (key, [low, middle, high]) in ends.into_iter().filter(|(_, [_, middle, _])| *middle > 0.0) {
            rows.entry(key).and_modify(|row| row.within = Some(Within { low: low / middle, high: high / middle }));
        }
    }

    fn needed(
        &self,
        before: &BTreeMap<Row, Traffic>,
        rows: &BTreeMap<Row, Traffic>,
    ) -> BTreeMap<(FunctionId, Row), Needed> {
        let of_code = self.touched.iter().filter(|((function, _), _)| !self.counted.contains(function));
        let needed = |(key, touches): (&(FunctionId, Row), &Touches)| {
            let (before, row) = (before.get(&key.1)?, rows.get(&key.1)?);
            let lines = touches.lines * before.waited * self.kept[key];
            Some((*key, self.soonest.needed(lines, key.1.1, row)))
        };
        of_code.filter_map(needed).collect()
    }

    /// Sets rows to what is left of what they were before. Returns the share of all lines that is not.
    pub(crate) fn apply(&self, before: &BTreeMap<Row, Traffic>, rows: &mut BTreeMap<Row, Traffic>) -> f64 {
        let mut kept: BTreeMap<Row, (f64, f64)> = BTreeMap::new();
        for (key, touches) in self.touched {
            let sum = kept.entry(key.1).or_default();
            sum.0 += touches.lines * self.kept[key];
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

impl Soonest {
    /// CPU time that the lines of a row take a thread that waits for them, s.
    pub(crate) fn wait_s(self, pattern: Pattern, row: &Traffic) -> f64 {
        let most = if pattern == Pattern::Random { self.loads } else { self.lines };
        row.one_after_the_other(most) / LINE_BYTES_F64 * self.ns * NS
    }

    /// Least time of so many lines of a pattern, some of which only stores ask for.
    fn needed(self, lines: f64, pattern: Pattern, row: &Traffic) -> Needed {
        let ns = lines * self.ns;
        match pattern {
            // Prefetchers bring them: who reads them waits as little as he computes long.
            Pattern::Stream | Pattern::Strided => Needed { all: ns / self.lines, waiting: 0.0 },
            Pattern::Chain => Needed { all: ns, waiting: ns },
            Pattern::Random => {
                let loaded = 1.0 - row.stored;
                let one_by_one = 1.0 / row.mlp.max(1.0) - row.stored / FREE_LINES;
                Needed { all: ns / self.loads, waiting: ns * one_by_one.max(loaded / self.loads) }
            }
        }
    }
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

    fn waiting(samples: f64) -> Spent {
        Spent { all: samples, on_loads: samples, at_once: 0.0 }
    }

    /// Rows with what there is time for, and the share that there is none for.
    fn bounded(touched: &ByFunction, spent: &[(FunctionId, Spent)], row: (Row, Traffic)) -> (Traffic, f64) {
        let before = BTreeMap::from([row]);
        let mut rows = before.clone();
        let mut bound = TimeBound::new(touched, spent.iter().copied().collect(), MS, ANY_MEMORY, None);
        while bound.tighten(&before, &rows) > 0.0 {}
        let cut = bound.apply(&before, &mut rows);
        (rows[&row.0], cut)
    }

    /// Of so many lines, those that there is time for, and the share that there is none for.
    fn after(lines: f64, spent: Spent, pattern: Pattern, row: Traffic) -> (f64, f64) {
        let key = (OBJECT, pattern);
        let touched = BTreeMap::from([((FIRST, key), Touches { lines, dirty: 1.0, stored: 0.0 })]);
        let (row, cut) = bounded(&touched, &[(FIRST, spent)], (key, row));
        (row.dram_read_bytes / 64.0, cut)
    }

    /// Time of a hundred samples, at most.
    const HUNDRED_NS: f64 = 123.0 * MS;

    #[test]
    fn a_chain_has_one_line_at_a_time() {
        let (lines, cut) = after(1e9, waiting(100.0), Pattern::Chain, read(1e9, 1.0));
        assert!((lines - HUNDRED_NS / ANY_MEMORY.ns).abs() < 1.0, "{lines}");
        assert!(cut > 0.99);
    }

    #[test]
    fn independent_lines_take_time_by_how_many_are_in_flight() {
        for (mlp, in_flight) in [(0.5, 1.0), (8.0, 8.0), (100.0, ANY_MEMORY.loads)] {
            let (lines, _) = after(1e9, waiting(100.0), Pattern::Random, read(1e9, mlp));
            assert!((lines - in_flight * HUNDRED_NS / ANY_MEMORY.ns).abs() < 1.0, "{lines}");
        }
    }

    #[test]
    fn what_there_is_time_for_stays() {
        assert_eq!(after(1e6, waiting(100.0), Pattern::Chain, read(1e6, 1.0)), (1e6, 0.0));
        assert_eq!(after(1e7, waiting(100.0), Pattern::Random, read(1e7, 8.0)), (1e7, 0.0));
        assert_eq!(after(0.0, waiting(0.0), Pattern::Stream, read(0.0, 1.0)), (0.0, 0.0));
    }

    #[test]
    fn loads_have_the_time_that_was_waited_and_stores_all_of_it() {
        let computing = Spent { all: 100.0, on_loads: 0.0, at_once: 0.0 };
        let (loaded, _) = after(1e9, computing, Pattern::Random, read(1e9, 1.0));
        assert!((loaded - 3.0 * MS / ANY_MEMORY.ns).abs() < 1.0, "{loaded}");
        let stores = Traffic { reads: 0.0, writes: 1e9, stored: 1.0, ..read(1e9, FREE_LINES) };
        let (stored, _) = after(1e9, computing, Pattern::Random, stores);
        assert!((stored - ANY_MEMORY.loads * HUNDRED_NS / ANY_MEMORY.ns).abs() < 1.0, "{stored}");
    }

    #[test]
    fn each_function_has_its_own_time() {
        let key = (OBJECT, Pattern::Chain);
        let half = Touches { lines: 1e9, dirty: 0.0, stored: 0.0 };
        let touched = BTreeMap::from([((FIRST, key), half), ((SECOND, key), half)]);
        let spent = [(FIRST, waiting(1e6)), (SECOND, waiting(0.0))];
        let (row, _) = bounded(&touched, &spent, (key, read(2e9, 1.0)));
        let lines = row.dram_read_bytes / 64.0;
        assert!((lines - 1e9 - 3.0 * MS / ANY_MEMORY.ns).abs() < 1.0, "{lines}");
    }

    #[test]
    fn a_machine_that_was_measured_is_held_to_its_own_figures() {
        let near = NearMemory { idle_ns: 150.0, demand_lines: 10.0, stream_lines: 30.0 };
        let known = Soonest::from(Some(near));
        let needed = |pattern, row| known.needed(100.0, pattern, &row);
        let stream = needed(Pattern::Stream, read(100.0, FREE_LINES));
        assert!((stream.all - 500.0).abs() < 1e-9 && stream.waiting == 0.0, "{stream:?}");
        let loads = needed(Pattern::Random, read(100.0, 5.0));
        assert!((loads.all - 1500.0).abs() < 1e-9 && (loads.waiting - 3000.0).abs() < 1e-9, "{loads:?}");
        let stores = needed(Pattern::Random, Traffic { stored: 1.0, ..read(100.0, FREE_LINES) });
        assert!((stores.all - 1500.0).abs() < 1e-9 && stores.waiting.abs() < 1e-9, "{stores:?}");
    }

    #[test]
    fn more_accesses_are_more_lines_as_far_as_there_is_time() {
        let key = (OBJECT, Pattern::Random);
        let touched = BTreeMap::from([((FIRST, key), Touches { lines: 1e6, dirty: 0.0, stored: 0.0 })]);
        let before = BTreeMap::from([(key, read(1e6, 1.0))]);
        let within = |samples: f64, high: f64| {
            let mut rows = before.clone();
            let mut bound = TimeBound::new(&touched, BTreeMap::from([(FIRST, waiting(samples))]), MS, ANY_MEMORY, None);
            while bound.tighten(&before, &rows) > 0.0 {}
            bound.apply(&before, &mut rows);
            let count = AccessCount { count: 1.0, low: 0.5, high, source: tierloom_model::CountSource::Estimated };
            bound.set_within(&before, &mut rows, &BTreeMap::from([(OBJECT, count)]));
            rows[&key].within.unwrap()
        };
        let roomy = within(1000.0, 3.0);
        assert!(
            (roomy.high - 3.0).abs() < 1e-9 && (roomy.low - 0.5 / reused(Pattern::Random)).abs() < 1e-9,
            "{roomy:?}"
        );
        // There is time for 123 ms, and the lines that are said to be there take 60.
        let short = within(100.0, 1e9);
        assert!((short.high - HUNDRED_NS / 60.0 / 1e6).abs() < 1e-6, "{short:?}");
    }
}
