//! What each object is asked for: elements, bytes, memory traffic and overlap of misses, by pattern.

pub(crate) mod accesses;
pub(crate) mod address_stream;
pub(crate) mod by_phase;
pub(crate) mod cache_filter;
pub(crate) mod counted_lines;
pub(crate) mod element_width;
pub(crate) mod in_turn;
pub(crate) mod intervals;
pub(crate) mod line_reuse;
pub(crate) mod misses;
pub(crate) mod moving_window;
pub(crate) mod one_way;
pub(crate) mod placement;
pub(crate) mod row;
pub(crate) mod seen_again;
pub(crate) mod string_rounds;
pub(crate) mod time_bound;
pub(crate) mod waiting;

use std::collections::BTreeMap;

use index_vec::IndexSlice;
use tierloom_model::units::LINE_BYTES;
use tierloom_model::{AccessCount, CountedTraffic, MissPoint, Pattern};

use crate::address_space::objects::{DataObject, ObjectId};
use crate::attribution::Observed;
use crate::attribution::OperandId;
use crate::frequency::Counts;
use crate::frequency::trip_count::TripCounts;
use crate::traffic::accesses::OperandAccesses;
use crate::traffic::address_stream::{AddressStream, Forms, shape};
use crate::traffic::by_phase::{phase_shares, split};
use crate::traffic::cache_filter::Miss;
use crate::traffic::counted_lines::{CountedLines, raise};
use crate::traffic::element_width::{Elements, operand};
use crate::traffic::in_turn::InTurn;
use crate::traffic::line_reuse::{Known, touches};
use crate::traffic::misses::Sets;
use crate::traffic::moving_window::follow;
use crate::traffic::one_way::walked;
use crate::traffic::row::{FREE_LINES, Row, Traffic};
use crate::traffic::seen_again::Fresh;
use crate::traffic::time_bound::{Soonest, TimeBound};
use crate::traffic::waiting::Spent;
use tierloom_binary::cfg::{BlockId, LoopId};
use tierloom_binary::code::FunctionId;

/// Instructions that a core looks ahead: reorder buffer of Zen 3 (AMD, *Software Optimization Guide
/// for Family 19h*, 256 entries). Published.
const WINDOW_INSTRUCTIONS: f64 = 256.0;
/// Followers this share of the cache behind still find the line there. Assumed: a few streams share it.
const REACH_SHARE: u64 = 16;
/// How often at most lines are held against the time that they take, and the share that no longer matters.
const MOST_ROUNDS: usize = 50;
const SETTLED: f64 = 1e-3;

/// All rows of a run, and to which pattern's row each operand belongs.
pub(crate) struct Traffics {
    pub(crate) rows: BTreeMap<Row, Traffic>,
    /// The rows of each phase; what they add up to is what the whole run did.
    pub(crate) by_phase: Vec<BTreeMap<Row, Traffic>>,
    /// By object: which share of its touched lines caches of other sizes would let through.
    pub(crate) curves: BTreeMap<ObjectId, Vec<MissPoint>>,
    /// Share of the lines for which there was no time.
    pub(crate) cut: f64,
    /// What simulated caches say of it; `None` where none were there.
    pub(crate) counted: Option<CountedTraffic>,
    pub(crate) patterns: BTreeMap<OperandId, Pattern>,
}

/// How the program ran.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ran<'a> {
    /// First sample of each phase.
    pub(crate) beginnings: &'a [usize],
    /// Its last-level cache.
    pub(crate) llc_bytes: u64,
    /// CPU time that a sample stands for.
    pub(crate) sample_ns: f64,
    /// What lines of its memory take.
    pub(crate) soonest: Soonest,
    /// How sure the counts of accesses are, by object.
    pub(crate) intervals: &'a BTreeMap<ObjectId, AccessCount>,
}

/// Adds up all operands by object and pattern.
pub(crate) fn traffic(
    observed: &Observed,
    tallies: &[OperandAccesses],
    counts: &Counts,
    entries: &IndexSlice<ObjectId, [DataObject]>,
    trips: &TripCounts,
    ran: Ran<'_>,
) -> Traffics {
    let Ran { beginnings, llc_bytes, sample_ns, soonest, intervals } = ran;
    // A clock that runs on shows that the walk goes on, too.
    let rounds = |id: FunctionId, inside: LoopId| {
        let runs_on = counts.by_loop.contains_key(&(id, inside));
        trips.get(&(id, inside)).filter(|_| !runs_on).map(|trip| trip.rounds)
    };
    let mut shapes = shapes(observed, tallies, rounds);
    let reach = (llc_bytes / REACH_SHARE).max(4 * LINE_BYTES);
    let mut lines = walked(observed, tallies, &mut shapes, counts);
    lines.extend(follow(observed, tallies, &mut shapes, reach));
    let mut rows = by_row(observed, tallies, &shapes);
    let fresh = Fresh::of(observed, &shapes, entries);
    let mut touched = touches(observed, tallies, &shapes, &Known { lines: &lines, fresh: &fresh, reach });
    let shares = phase_shares(observed, counts, tallies, &shapes, beginnings);
    let estimated = |bytes| Sets::of(&touched, entries, &shares, beginnings.len()).let_through(bytes);
    let counted = CountedLines::of(observed, tallies, &shapes, counts, estimated);
    if let Some(counted) = &counted {
        counted.replace(&mut touched);
    }
    let sets = Sets::of(&touched, entries, &shares, beginnings.len());
    let misses = memory(&mut rows, &sets, llc_bytes);
    if let Some(counted) = &counted {
        counted.set(&mut rows, &touched, &sets, llc_bytes);
    }
    let (spent, functions) = (Spent::by_function(observed, counts), counted.as_ref().map(CountedLines::functions));
    let before = rows.clone();
    let in_turn = InTurn::find(observed);
    let mut bound = TimeBound::new(&touched, spent, sample_ns, soonest, functions);
    let cut = in_time(&mut rows, &before, &mut bound, |rows| {
        overlap(rows, observed, tallies, &shapes, counts, &fresh, &in_turn);
    });
    bound.set_within(&before, &mut rows, intervals);
    let by_phase = split(&rows, &shares, &misses, beginnings.len());
    let mut curves = sets.curves(llc_bytes);
    if counted.is_some() {
        raise(&mut curves, &rows, llc_bytes);
    }
    Traffics {
        rows,
        by_phase,
        curves,
        cut,
        counted: counted.as_ref().map(CountedLines::told),
        patterns: shapes.into_iter().map(|(operand, shape)| (operand, shape.pattern)).collect(),
    }
}

fn shapes(
    observed: &Observed,
    tallies: &[OperandAccesses],
    rounds: impl Fn(FunctionId, LoopId) -> Option<f64>,
) -> BTreeMap<OperandId, AddressStream> {
    let mut state = BTreeMap::new();
    for operand_address in &observed.operand_addresses {
        state.entry(operand_address.id()).or_insert(operand_address.seen);
    }
    let mut shapes = BTreeMap::new();
    let mut forms: BTreeMap<FunctionId, Forms<'_>> = BTreeMap::new();
    for id in tallies.iter().map(|tally| tally.operand) {
        shapes.entry(id).or_insert_with(|| {
            let function = &observed.code.functions[id.function].function;
            let seen = state.get(&id).map(|seen| &observed.seen[*seen].state);
            let forms = forms.entry(id.function).or_default();
            let rounds = |inside| rounds(id.function, inside);
            shape(function, id.instruction, operand(observed, id), seen, forms, rounds)
        });
    }
    shapes
}

fn by_row(
    observed: &Observed,
    tallies: &[OperandAccesses],
    shapes: &BTreeMap<OperandId, AddressStream>,
) -> BTreeMap<Row, Traffic> {
    let mut elements = Elements::new(observed, tallies);
    let mut rows: BTreeMap<Row, Traffic> = BTreeMap::new();
    for tally in tallies {
        let content = operand(observed, tally.operand);
        let row = rows.entry((tally.object, shapes[&tally.operand].pattern)).or_default();
        let moved = tally.executions * elements.count(observed, tally);
        let bytes = tally.executions * f64::from(content.bytes);
        if content.read {
            row.reads += moved;
            row.read_bytes += bytes;
        }
        if content.write {
            row.writes += moved;
            row.write_bytes += bytes;
        }
    }
    rows
}

/// Memory traffic of every row, all objects sharing the last-level cache. What touches found, by phase.
fn memory(rows: &mut BTreeMap<Row, Traffic>, sets: &Sets<'_>, llc_bytes: u64) -> BTreeMap<Row, Vec<Miss>> {
    let misses = sets.misses(llc_bytes);
    for (key, touches) in &sets.by_row {
        let Some(row) = rows.get_mut(key) else { continue };
        let miss = sets.on_average(*key, &misses[key]);
        (row.miss, row.waited) = (miss.fetched, miss.waited);
        row.fetch(*touches, touches.lines * miss.fetched);
    }
    misses
}

/// Takes from the rows what there was no time for, and says how many misses are in flight: the fewer lines, the less often
/// together, and the more time each takes. Returns the share of all lines that it takes.
fn in_time(
    rows: &mut BTreeMap<Row, Traffic>,
    before: &BTreeMap<Row, Traffic>,
    bound: &mut TimeBound<'_>,
    overlap: impl Fn(&mut BTreeMap<Row, Traffic>),
) -> f64 {
    overlap(rows);
    let mut cut = 0.0;
    for _ in 0..MOST_ROUNDS {
        let change = bound.tighten(before, rows);
        cut = bound.apply(before, rows);
        overlap(rows);
        if change < SETTLED {
            break;
        }
    }
    cut
}

/// Misses in flight, of those that the program waits for, and what they would be if every touch missed.
fn overlap(
    rows: &mut BTreeMap<Row, Traffic>,
    observed: &Observed,
    tallies: &[OperandAccesses],
    shapes: &BTreeMap<OperandId, AddressStream>,
    counts: &Counts,
    fresh: &Fresh,
    in_turn: &InTurn,
) {
    let fresh = |tally: &OperandAccesses| fresh.part(tally.operand, tally.object);
    let waited = |tally: &OperandAccesses, row: Row| rows.get(&row).map_or(0.0, |row| row.waited) * fresh(tally);
    let seen = in_flight(observed, tallies, shapes, counts, in_turn, waited);
    let uncached = in_flight(observed, tallies, shapes, counts, in_turn, |tally, _| fresh(tally));
    for (key, row) in rows.iter_mut() {
        let of_pattern = |independent: &BTreeMap<Row, f64>| match key.1 {
            Pattern::Chain => 1.0,
            Pattern::Stream => FREE_LINES,
            Pattern::Strided | Pattern::Random => independent.get(key).copied().unwrap_or(1.0),
        };
        let with_stores = |mlp: f64| 1.0 / ((1.0 - row.stored) / mlp + row.stored / FREE_LINES);
        (row.mlp, row.uncached_mlp) = (with_stores(of_pattern(&seen)), with_stores(of_pattern(&uncached)));
    }
}

/// Misses in flight of independent accesses: as many as fall into the window of the core, in the loops where they are.
fn in_flight(
    observed: &Observed,
    tallies: &[OperandAccesses],
    shapes: &BTreeMap<OperandId, AddressStream>,
    counts: &Counts,
    in_turn: &InTurn,
    miss: impl Fn(&OperandAccesses, Row) -> f64,
) -> BTreeMap<Row, f64> {
    let row = |tally: &OperandAccesses| (tally.object, shapes[&tally.operand].pattern);
    let independent = |tally: &&OperandAccesses| matches!(row(tally).1, Pattern::Random | Pattern::Strided);
    // Misses of each loop, and executions and misses of each operand.
    let mut misses: BTreeMap<(FunctionId, Option<LoopId>), f64> = BTreeMap::new();
    let mut operands: BTreeMap<OperandId, (f64, f64)> = BTreeMap::new();
    for tally in tallies.iter().filter(independent) {
        let missed = tally.executions * miss(tally, row(tally));
        *misses.entry(place(observed, tally)).or_default() += missed;
        let operand = operands.entry(tally.operand).or_default();
        (operand.0, operand.1) = (operand.0 + tally.executions, operand.1 + missed);
    }
    let mut weighted: BTreeMap<Row, (f64, f64)> = BTreeMap::new();
    for tally in tallies.iter().filter(independent) {
        let place = place(observed, tally);
        let (executions, missed) = operands[&tally.operand];
        // While the operand is at this object, all that it touches is of it.
        let more = in_turn.part(tally.operand) * (executions * miss(tally, row(tally)) - missed);
        let rate = (misses[&place] + more) / instructions(observed, counts, place).max(1.0);
        let sum = weighted.entry(row(tally)).or_default();
        sum.0 += tally.executions * together(WINDOW_INSTRUCTIONS * rate);
        sum.1 += tally.executions;
    }
    weighted.into_iter().map(|(row, (sum, weight))| (row, sum / weight.max(1.0))).collect()
}

/// Misses in flight while there are any, of so many in a window on average, each anywhere (Poisson).
fn together(in_window: f64) -> f64 {
    if in_window > f64::EPSILON { in_window / -(-in_window).exp_m1() } else { 1.0 }
}

fn place(observed: &Observed, tally: &OperandAccesses) -> (FunctionId, Option<LoopId>) {
    let OperandId { function, instruction, .. } = tally.operand;
    let content = &observed.code.functions[function].function;
    (function, content.blocks[content.block_of(instruction)].inner_loop)
}

/// Instructions executed in a loop, inner loops included; in the whole function outside loops.
fn instructions(observed: &Observed, counts: &Counts, (id, inside): (FunctionId, Option<LoopId>)) -> f64 {
    let function = &observed.code.functions[id].function;
    let Some(blocks) = counts.blocks.get(&id) else { return 0.0 };
    let ran = |block: BlockId| blocks.executions[block] * function.blocks[block].len() as f64;
    match inside {
        Some(inside) => function.loops[inside].body.iter().map(|block| ran(*block)).sum(),
        None => function.blocks.indices().map(ran).sum(),
    }
}
