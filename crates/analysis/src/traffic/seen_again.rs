//! Touches of lines that are in a cache anyway, as samples show.
//!
//! Where the code does not tell an operand's addresses, they are not therefore spread evenly over all of an object: an
//! interpreter's stack, the head of a structure, the upper levels of a search are touched again and again. Samples see some of
//! the addresses, and two things show it. A line that several samples show is a popular one: of millions of lines that were
//! asked for alike, some thousand samples would hardly show one twice. And where other operands of the same block touch the
//! line, too, through other registers, one of them brings it.
//!
//! Who waits is sampled more often, so samples that did not wait tell what share of the touches that is.

use std::collections::{BTreeMap, BTreeSet};

use index_vec::IndexSlice;
use tierloom_binary::code::FunctionId;
use tierloom_binary::instruction::Gpr;
use tierloom_model::units::{LINE_BYTES, LINE_BYTES_F64};

use crate::address_space::Place;
use crate::address_space::objects::{DataObject, ObjectId};
use crate::attribution::operand_addresses::How;
use crate::attribution::{Observed, OperandId};
use crate::traffic::address_stream::AddressStream;
use crate::traffic::element_width::operand as content;

/// Samples that did not wait, of which an operand needs as many; with fewer, those that waited count, too, which shows too few
/// lines again. Assumed.
const FEWEST: usize = 3;

/// By operand and object, the part of its touches, 0 to 1, whose lines samples do not show again.
pub(crate) struct Fresh(BTreeMap<(OperandId, ObjectId), f64>);

/// An operand whose addresses the code does not tell, at a sample.
struct Point {
    operand: OperandId,
    registers: Registers,
    seen: usize,
    line: u64,
    waited: bool,
}

/// Base and index of an operand.
type Registers = (Option<Gpr>, Option<Gpr>);

impl Fresh {
    pub(crate) fn of(
        observed: &Observed,
        shapes: &BTreeMap<OperandId, AddressStream>,
        entries: &IndexSlice<ObjectId, [DataObject]>,
    ) -> Self {
        let mut fresh = BTreeMap::new();
        for (object, points) in points(observed, shapes) {
            let lines = (entries[object].memory_bytes as f64 / LINE_BYTES_F64).max(1.0);
            for (operand, part) in of_object(&points, lines) {
                fresh.insert((operand, object), part);
            }
        }
        Self(fresh)
    }

    pub(crate) fn part(&self, operand: OperandId, object: ObjectId) -> f64 {
        self.0.get(&(operand, object)).copied().unwrap_or(1.0)
    }
}

fn points(observed: &Observed, shapes: &BTreeMap<OperandId, AddressStream>) -> BTreeMap<ObjectId, Vec<Point>> {
    let mut points: BTreeMap<ObjectId, Vec<Point>> = BTreeMap::new();
    for shown in &observed.operand_addresses {
        // An address of another round may be that of none.
        let Place::Object(object, offset) = shown.place else { continue };
        if shown.how != How::Replayed {
            continue;
        }
        let (operand, seen) = (shown.id(), shown.seen);
        if shapes.get(&operand).is_some_and(|shape| shape.pattern.is_random()) {
            let (content, waited) = (content(observed, operand), observed.seen[seen].waited.is_some());
            let registers = (content.base, content.index);
            let point = Point { operand, registers, seen, line: offset / LINE_BYTES, waited };
            points.entry(object).or_default().push(point);
        }
    }
    points
}

/// The part of each operand's touches whose lines samples do not show again, on an object of so many lines.
fn of_object(points: &[Point], lines: f64) -> BTreeMap<OperandId, f64> {
    let mut shown: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
    let mut together: BTreeMap<(FunctionId, usize, u64), BTreeSet<Registers>> = BTreeMap::new();
    for point in points {
        shown.entry(point.line).or_default().insert(point.seen);
        let place = (point.operand.function, point.seen, point.line);
        together.entry(place).or_default().insert(point.registers);
    }
    let all: usize = shown.values().map(BTreeSet::len).sum();
    let by_chance = 1.0 - (-(all as f64) / lines).exp();
    let mut by_operand: BTreeMap<OperandId, Vec<&Point>> = BTreeMap::new();
    for point in points {
        by_operand.entry(point.operand).or_default().push(point);
    }
    let part = |(operand, mut points): (OperandId, Vec<&Point>)| {
        if points.iter().filter(|point| !point.waited).count() >= FEWEST {
            points.retain(|point| !point.waited);
        }
        let mean =
            |value: &dyn Fn(&Point) -> f64| points.iter().map(|point| value(point)).sum::<f64>() / points.len() as f64;
        let again = mean(&|point| f64::from(shown[&point.line].len() > 1));
        let alone = mean(&|point| 1.0 / together[&(operand.function, point.seen, point.line)].len() as f64);
        let popular = ((again - by_chance) / (1.0 - by_chance).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        (operand, (1.0 - popular) * alone)
    };
    by_operand.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: f64 = 1e6;

    fn operand(instruction: usize) -> OperandId {
        OperandId { function: FunctionId::new(0), instruction, operand: 0 }
    }

    fn point(instruction: u8, seen: usize, line: u64) -> Point {
        let registers = (Some(Gpr::new(instruction)), None);
        Point { operand: operand(instruction.into()), registers, seen, line, waited: false }
    }

    fn part(points: &[Point], lines: f64, instruction: usize) -> f64 {
        of_object(points, lines)[&operand(instruction)]
    }

    #[test]
    fn lines_that_one_sample_each_shows_are_fresh() {
        let points: Vec<Point> = (0..100).map(|k| point(0, k, 17 * k as u64)).collect();
        assert!((part(&points, MANY, 0) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_line_that_several_samples_show_is_in_a_cache() {
        let points: Vec<Point> = (0..100).map(|k| point(0, k, if k % 4 == 0 { 1000 + k as u64 } else { 7 })).collect();
        assert!((part(&points, MANY, 0) - 0.25).abs() < 1e-3);
    }

    #[test]
    fn of_few_lines_samples_show_some_again_by_chance() {
        // 1000 draws of 1000 lines, all alike: 63 % of them fall on a line that another one falls on.
        let mut random = tierloom_model::hash::SplitMix::new(1);
        let points: Vec<Point> = (0..1000).map(|k| point(0, k, random.draw() % 1000)).collect();
        assert!(part(&points, 1000.0, 0) > 0.9);
    }

    #[test]
    fn one_of_the_operands_that_touch_a_line_together_brings_it() {
        let points: Vec<Point> =
            (0..100).flat_map(|k| [0, 1].map(|operand| point(operand, k, 17 * k as u64))).collect();
        assert!((part(&points, MANY, 0) - 0.5).abs() < 1e-3 && (part(&points, MANY, 1) - 0.5).abs() < 1e-3);
    }

    #[test]
    fn samples_that_waited_count_where_there_are_no_others() {
        let fresh = |k: usize| Point { waited: true, ..point(0, k, 17 * k as u64) };
        let waiting: Vec<Point> = (0..100).map(fresh).collect();
        assert!((part(&waiting, MANY, 0) - 1.0).abs() < 1e-3);
        let popular = (0..FEWEST).map(|k| point(0, 200 + k, 5));
        let both: Vec<Point> = waiting.into_iter().chain(popular).collect();
        assert!(part(&both, MANY, 0) < 1e-3);
    }
}
