//! Lines that the time of a function leaves room for.
//!
//! Counts of accesses do not see locality inside an object: a sort, a recursion or a blocked loop comes
//! back to lines that are still in the cache, which `cache` cannot know. But who waits for a line spends
//! time, and the time of each function is known. No more lines can have come from memory than fit into it.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_model::Pattern;

use crate::attribution::Observed;
use crate::traffic::line_reuse::ByFunction;
use crate::traffic::row::{Row, Traffic};
use tierloom_binary::code::FunctionId;

/// No memory behind a last-level cache answers sooner, ns: desktops with tuned memory reach 50 to 60, servers
/// 80 to 150. Assumed.
const SOONEST_NS: f64 = 60.0;
/// Lines that a core can be waiting for at once: misses that the second-level cache of Zen 3 to 5 holds (AMD,
/// *Software Optimization Guide for Family 19h*, 2.12). Published.
const MOST_LINES: f64 = 64.0;

/// Takes from the rows what their functions had no time for, but for functions whose lines were counted. Returns the share of
/// all lines that it takes.
pub(crate) fn limit(
    rows: &mut BTreeMap<Row, Traffic>,
    touched: &ByFunction,
    observed: &Observed,
    sample_ns: f64,
    counted: Option<&BTreeSet<FunctionId>>,
) -> f64 {
    let mut samples: BTreeMap<FunctionId, usize> = BTreeMap::new();
    for (function, _) in observed.seen.iter().filter_map(|seen| seen.at) {
        *samples.entry(function).or_default() += 1;
    }
    let mut room = room(rows, touched, &samples, sample_ns);
    for function in counted.into_iter().flatten() {
        room.insert(*function, 1.0);
    }
    cut(rows, touched, &room)
}

fn cut(rows: &mut BTreeMap<Row, Traffic>, touched: &ByFunction, room: &BTreeMap<FunctionId, f64>) -> f64 {
    let mut kept: BTreeMap<Row, (f64, f64)> = BTreeMap::new();
    for ((function, row), touches) in touched {
        let sum = kept.entry(*row).or_default();
        sum.0 += touches.lines * room[function];
        sum.1 += touches.lines;
    }
    let (mut before, mut after) = (0.0, 0.0);
    for (key, (left, all)) in kept {
        let Some(row) = rows.get_mut(&key).filter(|_| all > 0.0) else { continue };
        before += row.dram_read_bytes;
        row.dram_read_bytes *= left / all;
        row.dram_write_bytes *= left / all;
        row.miss *= left / all;
        row.waited *= left / all;
        after += row.dram_read_bytes;
    }
    if before > 0.0 { 1.0 - after / before } else { 0.0 }
}

/// By function: the part of its lines that its time has room for, 0 to 1.
fn room(
    rows: &BTreeMap<Row, Traffic>,
    touched: &ByFunction,
    samples: &BTreeMap<FunctionId, usize>,
    sample_ns: f64,
) -> BTreeMap<FunctionId, f64> {
    let mut needed: BTreeMap<FunctionId, f64> = BTreeMap::new();
    for ((function, row), touches) in touched {
        let lines = touches.lines * rows.get(row).map_or(0.0, |row| row.waited);
        *needed.entry(*function).or_default() += lines * least_ns(row.1);
    }
    let part = |(function, ns): (FunctionId, f64)| {
        let most = most_samples(samples.get(&function).copied().unwrap_or(0)) * sample_ns;
        (function, if ns > most { most / ns } else { 1.0 })
    };
    needed.into_iter().map(part).collect()
}

/// Time that a line of this pattern takes at the least.
fn least_ns(pattern: Pattern) -> f64 {
    match pattern {
        Pattern::Chain => SOONEST_NS,
        Pattern::Stream | Pattern::Strided | Pattern::Random => SOONEST_NS / MOST_LINES,
    }
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
    const ROW: Row = (OBJECT, Pattern::Chain);
    const FIRST: FunctionId = FunctionId::from_raw_unchecked(1);
    const SECOND: FunctionId = FunctionId::from_raw_unchecked(2);

    fn after(lines: f64, samples: usize, pattern: Pattern) -> (f64, f64) {
        let row = (OBJECT, pattern);
        let traffic = Traffic {
            dram_read_bytes: 64.0 * lines,
            dram_write_bytes: 64.0,
            miss: 1.0,
            waited: 1.0,
            ..Traffic::default()
        };
        let mut rows = BTreeMap::from([(row, traffic)]);
        let touched = BTreeMap::from([((FIRST, row), Touches { lines, dirty: 1.0 })]);
        let room = room(&rows, &touched, &BTreeMap::from([(FIRST, samples)]), MS);
        let cut = cut(&mut rows, &touched, &room);
        (rows[&row].dram_read_bytes / 64.0, cut)
    }

    #[test]
    fn a_chain_has_one_line_at_a_time() {
        let (lines, cut) = after(1e9, 100, Pattern::Chain);
        assert!((lines - 123.0 * MS / SOONEST_NS).abs() < 1.0, "{lines}");
        assert!(cut > 0.99);
    }

    #[test]
    fn what_there_is_time_for_stays() {
        assert_eq!(after(1e6, 100, Pattern::Chain), (1e6, 0.0));
        assert_eq!(after(1e8, 100, Pattern::Random), (1e8, 0.0));
        assert_eq!(after(0.0, 0, Pattern::Stream), (0.0, 0.0));
    }

    #[test]
    fn each_function_has_its_own_time() {
        let traffic = Traffic { dram_read_bytes: 128e9, miss: 1.0, waited: 1.0, ..Traffic::default() };
        let mut rows = BTreeMap::from([(ROW, traffic)]);
        let half = Touches { lines: 1e9, dirty: 0.0 };
        let touched = BTreeMap::from([((FIRST, ROW), half), ((SECOND, ROW), half)]);
        let long = 1_000_000;
        let room = room(&rows, &touched, &BTreeMap::from([(FIRST, long), (SECOND, 0)]), MS);
        cut(&mut rows, &touched, &room);
        let lines = rows[&ROW].dram_read_bytes / 64.0;
        assert!((lines - 1e9 - 3.0 * MS / SOONEST_NS).abs() < 1.0, "{lines}");
    }
}
