//! From accesses to cache lines: which accesses of a loop meet in the same line.
//!
//! Operands of a loop that walk through the same object close behind each other (the neighbours of a
//! stencil, both fields of a node, the load and the store of an update) fetch each line once.

use std::collections::BTreeMap;

use tierloom_model::Pattern;
use tierloom_model::units::LINE_BYTES;

use crate::address_space::Place;
use crate::address_space::objects::ObjectId;
use crate::attribution::Observed;
use crate::attribution::OperandId;
use crate::traffic::accesses::OperandAccesses;
use crate::traffic::address_stream::AddressStream;
use crate::traffic::element_width::operand;
use crate::traffic::row::{Row, Touches};
use crate::traffic::seen_again::Fresh;
use tierloom_binary::cfg::LoopId;
use tierloom_binary::code::FunctionId;
use tierloom_binary::instruction::{Gpr, Operand};

/// Touches by function and row of the profile.
pub(crate) type ByFunction = BTreeMap<(FunctionId, Row), Touches>;

/// Operands that may meet: of one loop, on one object, both walking or of the same registers.
type Group = (FunctionId, Option<LoopId>, ObjectId, Option<(Option<Gpr>, Option<Gpr>)>);

/// Where an operand touched an object, relative to others of its loop.
struct Member {
    lines: f64,
    /// Those of them that are stored to, all or none.
    dirty: f64,
    /// It loads, whatever it stores.
    loads: bool,
    offset: i128,
    pattern: Pattern,
}

/// What is known of accesses beside how their addresses move.
pub(crate) struct Known<'a> {
    /// Lines of operands that keep to a window or go one way.
    pub(crate) lines: &'a BTreeMap<(OperandId, ObjectId), f64>,
    pub(crate) fresh: &'a Fresh,
    /// Distance in bytes within which a follower finds the lines of its leader still in the cache.
    pub(crate) reach: u64,
}

/// Sums of line touches by function, object and pattern, but for lines that are in a cache anyway.
pub(crate) fn touches(
    observed: &Observed,
    tallies: &[OperandAccesses],
    shapes: &BTreeMap<OperandId, AddressStream>,
    known: &Known<'_>,
) -> ByFunction {
    let offsets = offsets(observed);
    let mut groups: BTreeMap<Group, Vec<Member>> = BTreeMap::new();
    for tally in tallies {
        let OperandId { function, instruction, .. } = tally.operand;
        let content = operand(observed, tally.operand);
        let shape = shapes[&tally.operand];
        let inside = &observed.code.functions[function].function;
        let walks = matches!(shape.pattern, Pattern::Stream | Pattern::Strided);
        let inner = inside.blocks[inside.block_of(instruction)].inner_loop;
        let told = known.lines.get(&(tally.operand, tally.object)).copied();
        let fresh = || known.fresh.part(tally.operand, tally.object) * tally.executions;
        let lines = told.unwrap_or_else(|| lines_each(shape, content) * fresh());
        let offset = if walks {
            offsets.get(&(tally.operand, tally.object)).copied().unwrap_or(0)
        } else {
            i128::from(content.displacement.cast_signed())
        };
        // Random addresses meet only where they are made of the same registers.
        let registers = (!walks).then_some((content.base, content.index));
        let (dirty, pattern) = (if content.write { lines } else { 0.0 }, shape.pattern);
        let group = groups.entry((function, inner, tally.object, registers)).or_default();
        group.push(Member { lines, dirty, loads: content.read, offset, pattern });
    }
    let mut sums = ByFunction::new();
    for ((function, _, object, registers), members) in groups {
        for (pattern, touches) in meet(members, if registers.is_none() { known.reach } else { LINE_BYTES }) {
            *sums.entry((function, (object, pattern))).or_default() += touches;
        }
    }
    sums
}

/// Lines that one execution touches.
fn lines_each(shape: AddressStream, content: &Operand) -> f64 {
    let line = LINE_BYTES as f64;
    if let (Some(rounds), Some(stride)) = (shape.short_walk, shape.stride) {
        // The first line of each walk, and half a line more for where it starts.
        return (stride.unsigned_abs() as f64 * rounds / line + 0.5).max(1.0) / rounds;
    }
    match (shape.pattern, shape.stride) {
        (Pattern::Stream, Some(stride)) => stride.unsigned_abs() as f64 / line,
        (Pattern::Stream, None) => f64::from(content.bytes) / line,
        _ if content.gather => f64::from(content.bytes) / 8.0,
        _ => (f64::from(content.bytes) / line).max(1.0),
    }
}

/// By operand and object: a typical offset, comparable between operands seen by the same sample.
fn offsets(observed: &Observed) -> BTreeMap<(OperandId, ObjectId), i128> {
    let mut offsets = BTreeMap::new();
    // Later samples overwrite earlier ones, so that operands of a loop mostly share the last one.
    for operand_address in &observed.operand_addresses {
        if let Place::Object(object, offset) = operand_address.place {
            offsets.insert((operand_address.id(), object), i128::from(offset));
        }
    }
    offsets
}

/// Clusters members whose offsets follow each other within `reach`: each cluster fetches a line once,
/// as often as its busiest offset asks for it.
fn meet(mut members: Vec<Member>, reach: u64) -> Vec<(Pattern, Touches)> {
    members.sort_by_key(|member| member.offset);
    let mut clusters: Vec<Vec<Member>> = Vec::new();
    for member in members {
        match clusters.last_mut() {
            Some(cluster) if cluster.last().is_some_and(|last| member.offset - last.offset < i128::from(reach)) => {
                cluster.push(member);
            }
            _ => clusters.push(vec![member]),
        }
    }
    clusters.iter().map(|cluster| busiest(cluster)).collect()
}

fn busiest(cluster: &[Member]) -> (Pattern, Touches) {
    // Loads and stores of one offset belong together; loads of one offset at different places are
    // different addresses in the same registers.
    let mut by_offset: BTreeMap<i128, [f64; 3]> = BTreeMap::new();
    for member in cluster {
        let [clean, dirty, loaded] = by_offset.entry(member.offset).or_default();
        *if member.dirty > 0.0 { dirty } else { clean } += member.lines;
        *loaded += if member.loads { member.lines } else { 0.0 };
    }
    let most = |of: fn(&[f64; 3]) -> f64| by_offset.values().map(of).fold(0.0, f64::max);
    let (lines, dirty) = (most(|[clean, dirty, _]| clean.max(*dirty)), most(|[_, dirty, _]| *dirty));
    let stored = (lines - most(|[_, _, loaded]| *loaded)).max(0.0);
    let first = cluster.iter().max_by(|left, right| left.lines.total_cmp(&right.lines));
    (first.map_or(Pattern::Random, |member| member.pattern), Touches { lines, dirty, stored })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(lines: f64, dirty: f64, offset: i128) -> Member {
        Member { lines, dirty, loads: dirty == 0.0, offset, pattern: Pattern::Stream }
    }

    #[test]
    fn neighbours_of_a_stencil_fetch_a_line_once() {
        let met = meet(vec![member(10.0, 0.0, 0), member(10.0, 0.0, 8), member(10.0, 0.0, 16)], 4096);
        assert_eq!(met, vec![(Pattern::Stream, Touches { lines: 10.0, dirty: 0.0, stored: 0.0 })]);
    }

    #[test]
    fn halves_far_apart_fetch_their_own() {
        let met = meet(vec![member(10.0, 0.0, 0), member(10.0, 10.0, 1 << 30)], 4096);
        assert!((met.iter().map(|(_, touches)| touches.lines).sum::<f64>() - 20.0).abs() < 1e-9);
        assert!((met.iter().map(|(_, touches)| touches.dirty).sum::<f64>() - 10.0).abs() < 1e-9);
        assert!((met.iter().map(|(_, touches)| touches.stored).sum::<f64>() - 10.0).abs() < 1e-9);
    }

    #[test]
    fn an_update_fetches_once_and_leaves_the_line_dirty() {
        let met = meet(vec![member(5.0, 0.0, 8), member(5.0, 5.0, 8)], 64);
        assert_eq!(met, vec![(Pattern::Stream, Touches { lines: 5.0, dirty: 5.0, stored: 0.0 })]);
    }
}
