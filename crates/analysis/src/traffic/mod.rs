//! What each object is asked for: elements, bytes, memory traffic and overlap of misses, by pattern.

pub(crate) mod accesses;
pub(crate) mod address_stream;
pub(crate) mod cache_filter;
pub(crate) mod element_width;
pub(crate) mod intervals;
pub(crate) mod line_reuse;
pub(crate) mod placement;
pub(crate) mod row;
pub(crate) mod string_rounds;
pub(crate) mod time_bound;

use std::collections::BTreeMap;

use index_vec::IndexSlice;
use tierloom_model::units::LINE_BYTES;
use tierloom_model::{ObjectKind, Pattern};

use crate::address_space::objects::{DataObject, ObjectId};
use crate::attribution::Observed;
use crate::attribution::OperandId;
use crate::frequency::Counts;
use crate::frequency::trip_count::TripCounts;
use crate::traffic::accesses::OperandAccesses;
use crate::traffic::address_stream::{AddressStream, shape};
use crate::traffic::cache_filter::{Filled, WorkingSet, characteristic_time};
use crate::traffic::element_width::{Elements, operand};
use crate::traffic::line_reuse::{ByFunction, Touches, touches};
use crate::traffic::row::Row;
use crate::traffic::row::Traffic;
use crate::traffic::time_bound::limit;
use tierloom_binary::cfg::{BlockId, LoopId};
use tierloom_binary::code::FunctionId;

/// Instructions that a core looks ahead: reorder buffer of Zen 3 (AMD, *Software Optimization Guide
/// for Family 19h*, 256 entries). Published.
const WINDOW_INSTRUCTIONS: f64 = 256.0;
/// Lines that prefetchers keep ahead of a stream: up to 20 by Intel's optimisation manual (2.5.5.4),
/// more with several streams. Engines cap it by the machine's `stream_lines`. Assumed.
const STREAM_LINES: f64 = 32.0;
/// Followers this share of the cache behind still find the line there. Assumed: a few streams share it.
const REACH_SHARE: u64 = 16;

/// All rows of a run, and to which pattern's row each operand belongs.
pub(crate) struct Traffics {
    pub(crate) rows: BTreeMap<Row, Traffic>,
    /// Share of the lines for which there was no time.
    pub(crate) cut: f64,
    pub(crate) patterns: BTreeMap<OperandId, Pattern>,
}

/// Adds up all operands by object and pattern.
pub(crate) fn traffic(
    observed: &Observed,
    tallies: &[OperandAccesses],
    counts: &Counts,
    entries: &IndexSlice<ObjectId, [DataObject]>,
    trips: &TripCounts,
    llc_bytes: u64,
    sample_ns: f64,
) -> Traffics {
    // A clock that runs on shows that the walk goes on, too.
    let rounds = |id: FunctionId, inside: LoopId| {
        let runs_on = counts.by_loop.contains_key(&(id, inside));
        trips.get(&(id, inside)).filter(|_| !runs_on).map(|trip| trip.rounds)
    };
    let shapes = shapes(observed, tallies, rounds);
    let mut rows = by_row(observed, tallies, &shapes);
    let touched = touches(observed, tallies, &shapes, (llc_bytes / REACH_SHARE).max(4 * LINE_BYTES));
    memory(&mut rows, &touched, entries, llc_bytes);
    overlap(&mut rows, observed, tallies, &shapes, counts);
    let cut = limit(&mut rows, &touched, observed, sample_ns);
    Traffics { rows, cut, patterns: shapes.into_iter().map(|(operand, shape)| (operand, shape.pattern)).collect() }
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
    for id in tallies.iter().map(|tally| tally.operand) {
        shapes.entry(id).or_insert_with(|| {
            let function = &observed.code.functions[id.function].function;
            let seen = state.get(&id).map(|seen| &observed.seen[*seen].state);
            shape(function, id.instruction, operand(observed, id), seen, |inside| rounds(id.function, inside))
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

/// Memory traffic of every row, all objects sharing the last-level cache.
fn memory(
    rows: &mut BTreeMap<Row, Traffic>,
    touched: &ByFunction,
    entries: &IndexSlice<ObjectId, [DataObject]>,
    llc_bytes: u64,
) {
    let line = LINE_BYTES as f64;
    let mut by_object: BTreeMap<ObjectId, OfObject> = BTreeMap::new();
    let mut by_row: BTreeMap<Row, Touches> = BTreeMap::new();
    for ((_, row), touches) in touched {
        let all = by_row.entry(*row).or_default();
        (all.lines, all.dirty) = (all.lines + touches.lines, all.dirty + touches.dirty);
        let sum = by_object.entry(row.0).or_default();
        sum.touches += touches.lines;
        sum.written += touches.dirty;
        sum.swept += if sweeps(row.1) { touches.lines } else { 0.0 };
    }
    let using = |object: ObjectId, sweeping: bool| {
        let (entry, sums) = (&entries[object], by_object[&object]);
        let lines = (entry.memory_bytes as f64 / line).max(1.0);
        let is_file = entry.kind == ObjectKind::File;
        let filled = if is_file { Filled::default() } else { Filled::anonymous(sums.written / lines) };
        WorkingSet { lines, touches: sums.touches, sweeping, filled }
    };
    let uses: Vec<WorkingSet> =
        by_object.iter().map(|(object, sums)| using(*object, sums.swept > 0.5 * sums.touches)).collect();
    let time = characteristic_time(&uses, llc_bytes as f64 / line);
    for (key, row) in rows.iter_mut() {
        let Some(touches) = by_row.get(key) else { continue };
        let miss = using(key.0, sweeps(key.1)).miss(time);
        (row.miss, row.waited) = (miss.fetched, miss.waited);
        row.dram_read_bytes = touches.lines * row.miss * line;
        row.dram_write_bytes = touches.dirty * row.miss * line;
    }
}

/// Touches of an object's lines during the run.
#[derive(Debug, Clone, Copy, Default)]
struct OfObject {
    touches: f64,
    written: f64,
    swept: f64,
}

fn sweeps(pattern: Pattern) -> bool {
    matches!(pattern, Pattern::Stream | Pattern::Strided)
}

/// Misses in flight: one for a chain; as many as fall into the window of the core for independent
/// ones; what the prefetcher keeps for streams, and so for pages that the kernel fills.
fn overlap(
    rows: &mut BTreeMap<Row, Traffic>,
    observed: &Observed,
    tallies: &[OperandAccesses],
    shapes: &BTreeMap<OperandId, AddressStream>,
    counts: &Counts,
) {
    let independent =
        |tally: &&OperandAccesses| matches!(shapes[&tally.operand].pattern, Pattern::Random | Pattern::Strided);
    // Misses of independent accesses in each loop, by instruction executed there.
    let mut misses: BTreeMap<(FunctionId, Option<LoopId>), f64> = BTreeMap::new();
    for tally in tallies.iter().filter(independent) {
        let miss = rows.get(&(tally.object, shapes[&tally.operand].pattern)).map_or(0.0, |row| row.waited);
        *misses.entry(place(observed, tally)).or_default() += tally.executions * miss;
    }
    let mut weighted: BTreeMap<Row, (f64, f64)> = BTreeMap::new();
    for tally in tallies.iter().filter(independent) {
        let place = place(observed, tally);
        let rate = misses[&place] / instructions(observed, counts, place).max(1.0);
        let sum = weighted.entry((tally.object, shapes[&tally.operand].pattern)).or_default();
        sum.0 += tally.executions * (WINDOW_INSTRUCTIONS * rate).max(1.0);
        sum.1 += tally.executions;
    }
    for (key, row) in rows.iter_mut() {
        let of_pattern = match key.1 {
            Pattern::Chain => 1.0,
            Pattern::Stream => STREAM_LINES,
            Pattern::Strided | Pattern::Random => weighted.get(key).map_or(1.0, |(sum, weight)| sum / weight.max(1.0)),
        };
        row.mlp = if row.miss > 0.0 { row.miss / one_after_the_other(row, of_pattern) } else { of_pattern };
    }
}

/// Waits for a line after the other, a touch, when so many of those that the program waits for are in flight at once.
fn one_after_the_other(row: &Traffic, in_flight: f64) -> f64 {
    row.waited / in_flight + (row.miss - row.waited) / STREAM_LINES
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
