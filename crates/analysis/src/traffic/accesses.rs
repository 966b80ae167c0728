//! Which operand touched which object how often: block counts times where the operands were seen.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use tierloom_binary::dataflow::origins::Origin;
use tierloom_binary::instruction::Operand;
use tierloom_model::{CountSource, Share, Unplaced};

use crate::address_space::Place;
use crate::address_space::objects::ObjectId;
use crate::attribution::OperandId;
use crate::attribution::operand_addresses::How;
use crate::attribution::unsampled::Unsampled;
use crate::attribution::{ByObject, Observed, OperandAddress};
use crate::confidence::share;
use crate::frequency::Counts;
use crate::frequency::counter_deltas::delta::Count;
use crate::traffic::placement::Placements;
use crate::traffic::string_rounds::StringRounds;

/// Executions of one operand on one object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OperandAccesses {
    pub(crate) operand: OperandId,
    pub(crate) object: ObjectId,
    pub(crate) executions: f64,
}

/// All operands of blocks that ran.
#[derive(Debug, Default)]
pub(crate) struct AllAccesses {
    pub(crate) known: Vec<OperandAccesses>,
    /// Executions of operands whose object no sample shows.
    pub(crate) unseen: f64,
    /// Of those the ones that were counted; their share is not told here.
    pub(crate) not_sampled: Unplaced,
    /// Counted accesses of thread-local storage; their share is not told here.
    pub(crate) thread_local: Unplaced,
    /// Square of the counted executions that may be of objects on which no sample shows their operands.
    pub(crate) elsewhere: f64,
    /// By object: what its count rests on.
    pub(crate) support: BTreeMap<ObjectId, Support>,
}

/// What the count of an object rests on.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Support {
    pub(crate) executions: f64,
    /// Those that were counted.
    pub(crate) counted: f64,
    /// How many of the others there may be more or fewer: one standard deviation, all of them off in the same direction.
    pub(crate) deviation: f64,
    /// Squares of how many may belong elsewhere, where too few samples show what an operand touches, and of others to it.
    pub(crate) below: f64,
    pub(crate) above: f64,
}

/// An operand with how often it was executed, at least once.
#[derive(Debug, Clone, Copy)]
struct Executed<'a> {
    operand: OperandId,
    content: &'a Operand,
    executions: f64,
    /// One standard deviation as a part of the executions.
    relative: f64,
    source: CountSource,
}

impl AllAccesses {
    /// Adds executions of an operand, shared out as it was seen so many times; whether it was. What was on a stack, or on
    /// nothing that is known, is no object's.
    fn add(&mut self, executed: Executed<'_>, by_object: &ByObject, seen: f64) -> bool {
        let total: f64 = by_object.values().sum();
        let is_counted = executed.source == CountSource::Counted;
        let shown = |part: f64| {
            let found = share(part * seen, seen);
            if is_counted && part < 1.0 { by_time(found) } else { found }
        };
        for (object, part) in by_object.iter().filter(|_| total > 0.0) {
            if let Some(object) = object {
                self.add_known(executed, *object, shown(part / total));
            }
        }
        if is_counted && total > 0.0 {
            self.elsewhere += (executed.executions * (1.0 - shown(1.0).low)).powi(2);
        }
        total > 0.0
    }

    /// Adds executions of an operand that no sample shows, as what else there is tells where it points. The stack is no
    /// object's.
    fn add_without_samples(&mut self, executed: Executed<'_>, origin: Option<Origin>, unsampled: &Unsampled) {
        match unsampled.shown(executed.operand, origin) {
            _ if origin == Some(Origin::Stack) => {}
            Some(shown) if executed.source == CountSource::Counted => {
                self.add(executed, shown, shown.values().sum());
            }
            _ => self.add_unseen(executed),
        }
    }

    fn add_known(&mut self, executed: Executed<'_>, object: ObjectId, part: Share) {
        let Executed { operand, executions, relative, source, .. } = executed;
        let own = executions * part.share;
        self.known.push(OperandAccesses { operand, object, executions: own });
        let support = self.support.entry(object).or_default();
        support.executions += own;
        support.counted += if source == CountSource::Counted { own } else { 0.0 };
        support.deviation += relative * own;
        support.below += (executions * (part.share - part.low)).powi(2);
        support.above += (executions * (part.high - part.share)).powi(2);
    }

    fn add_unseen(&mut self, executed: Executed<'_>) {
        let Executed { content, executions, source, .. } = executed;
        self.unseen += executions;
        if source == CountSource::Counted {
            add_unplaced(&mut self.not_sampled, executions, (content.read, content.write), content.bytes);
        }
    }
}

fn add_unplaced(sum: &mut Unplaced, executions: f64, (read, write): (bool, bool), bytes: u32) {
    let accesses = executions * f64::from(u8::from(read) + u8::from(write));
    sum.accesses += accesses;
    sum.bytes += accesses * f64::from(bytes);
}

/// Executions of an operand on one of several objects, of which samples show this share: they fall where time is spent.
fn by_time(part: Share) -> Share {
    /// So many times as long an operand may take on one object as on another. Assumed.
    const AS_LONG: f64 = 2.0;
    let odds = |share: f64, factor: f64| share * factor / (share * factor + 1.0 - share);
    Share { low: odds(part.low, 1.0 / AS_LONG), high: odds(part.high, AS_LONG), ..part }
}

/// The code itself says where.
const SURE: Share = Share { share: 1.0, low: 1.0, high: 1.0 };

/// An operand that was seen in so many windows is told by them; else by whichever saw it more often, they or samples.
/// Assumed.
const ENOUGH_WINDOWS: usize = 4;

/// Spreads the executions of each operand over the objects it was seen on.
pub(crate) fn tally(
    observed: &Observed,
    counts: &Counts,
    placements: &Placements,
    strings: &StringRounds,
) -> AllAccesses {
    let operand_addresses = by_operand(&observed.operand_addresses);
    let mut tallies = AllAccesses::default();
    for (&id, blocks) in &counts.blocks {
        let function = &observed.code.functions[id].function;
        let origins = LazyCell::new(|| observed.unsampled.entered.origins(id, function));
        for (instruction, content) in function.instructions.iter().enumerate() {
            let block = function.block_of(instruction);
            let executions = blocks.executions[block];
            let relative = blocks.deviations[block] / executions.max(1.0);
            if let Some(own) = content.thread_local.filter(|_| blocks.source == CountSource::Counted) {
                add_unplaced(&mut tallies.thread_local, executions, (own.read, own.write), own.bytes);
            }
            let clock = function.loops_around(block).find_map(|around| counts.by_loop.get(&(id, around)));
            for (operand, content) in content.operands.iter().enumerate() {
                let operand = OperandId { function: id, instruction, operand };
                let executions = strings.accesses(operand, executions);
                if executions < 0.5 {
                    continue;
                }
                let executed = Executed { operand, content, executions, relative, source: blocks.source };
                let seen = operand_addresses.get(&operand).map_or(&[][..], Vec::as_slice);
                if let (Some(Place::Object(object, _)), []) = (observed.fixed.get(&operand), seen) {
                    tallies.add_known(executed, *object, SURE);
                    continue;
                }
                let is_known = match placements.shown(operand) {
                    Some((windows, shown)) if windows >= ENOUGH_WINDOWS.min(seen.len()) => {
                        tallies.add(executed, shown, windows as f64)
                    }
                    _ => tallies.add(executed, &spread(seen, clock), seen.len() as f64),
                };
                if !is_known {
                    let origin = content.base.and_then(|base| origins.of_register(instruction, base));
                    tallies.add_without_samples(executed, origin, &observed.unsampled);
                }
            }
        }
    }
    tallies
}

fn by_operand(operand_addresses: &[OperandAddress]) -> BTreeMap<OperandId, Vec<&OperandAddress>> {
    let mut sorted: BTreeMap<OperandId, Vec<&OperandAddress>> = BTreeMap::new();
    for operand_address in operand_addresses {
        sorted.entry(operand_address.id()).or_default().push(operand_address);
    }
    for list in sorted.values_mut() {
        // Guesses only count where nothing better is known.
        if let Some(best) = list.iter().map(|operand_address| operand_address.how).min() {
            list.retain(|operand_address| operand_address.how == best || best == How::Near);
        }
    }
    sorted
}

/// Where an operand was, by samples.
fn spread(seen: &[&OperandAddress], clock: Option<&Count>) -> ByObject {
    // One that mostly stands still between samples says nothing of the rounds of loops inside.
    let clock = clock.filter(|count| count.executions >= count.visible as f64);
    let mean = clock.map_or(1.0, |count| count.executions / count.visible.max(1) as f64);
    let weight = |seen: usize| clock.and_then(|count| count.by_sample.get(&seen)).copied().unwrap_or(mean);
    let mut by_place = ByObject::new();
    for operand_address in seen {
        *by_place.entry(operand_address.place.object()).or_default() += weight(operand_address.seen);
    }
    by_place
}

#[cfg(test)]
mod tests {
    use tierloom_binary::code::FunctionId;

    use super::*;
    use tierloom_binary::cfg::BlockId;
    use tierloom_binary::instruction::{Element, Gpr};

    fn operand_address(seen: usize, place: Place) -> OperandAddress {
        OperandAddress { seen, function: FunctionId::new(0), instruction: 0, operand: 0, place, how: How::Replayed }
    }

    const CONTENT: Operand = Operand {
        base: Some(Gpr::new(0)),
        index: None,
        scale: 1,
        displacement: 0,
        read: true,
        write: false,
        bytes: 8,
        element: Element::Any,
        gather: false,
        repeats: None,
    };

    fn executed(content: &Operand, source: CountSource) -> Executed<'_> {
        let operand = OperandId { function: FunctionId::new(0), instruction: 0, operand: 0 };
        Executed { operand, content, executions: 100.0, relative: 0.2, source }
    }

    /// Executions of an operand by object, and those that no sample shows.
    fn spread_by(clock: &Count, seen: &[OperandAddress]) -> (Vec<(usize, f64)>, f64) {
        let mut tallies = AllAccesses::default();
        let by_object = spread(&seen.iter().collect::<Vec<_>>(), Some(clock));
        assert!(tallies.add(executed(&CONTENT, CountSource::Estimated), &by_object, seen.len() as f64));
        (tallies.known.iter().map(|tally| (tally.object.index(), tally.executions)).collect(), tallies.unseen)
    }

    #[test]
    fn few_sightings_leave_a_counted_object_in_doubt_and_many_do_not() {
        let half = |seen: f64| {
            let mut tallies = AllAccesses::default();
            let counted = executed(&CONTENT, CountSource::Counted);
            tallies.add(counted, &ByObject::from([(Some(ObjectId::new(7)), 1.0)]), seen);
            tallies.support[&ObjectId::new(7)].below.sqrt()
        };
        assert!(half(1.0) > 50.0 && half(1000.0) < 1.0, "{} {}", half(1.0), half(1000.0));
    }

    #[test]
    fn what_was_counted_and_not_sampled_is_listed_and_what_was_on_a_stack_is_not() {
        let mut tallies = AllAccesses::default();
        let counted = executed(&CONTENT, CountSource::Counted);
        assert!(!tallies.add(counted, &ByObject::new(), 0.0), "nothing is known of it");
        assert!(tallies.add(counted, &ByObject::from([(None, 2.0)]), 2.0), "the stack is no object");
        tallies.add_unseen(executed(&CONTENT, CountSource::Estimated));
        assert_eq!(tallies.not_sampled, Unplaced::default());
        tallies.add_unseen(counted);
        assert_eq!(tallies.not_sampled, Unplaced { accesses: 100.0, bytes: 800.0, share: 0.0 });
        assert!((tallies.unseen - 200.0).abs() < 1e-9 && tallies.known.is_empty());
    }

    #[test]
    fn samples_weigh_as_much_as_ran_since_the_one_before_where_a_clock_tells() {
        let seen = [
            operand_address(1, Place::Object(ObjectId::new(7), 0)),
            operand_address(2, Place::Object(ObjectId::new(9), 0)),
        ];
        let clock = |executions, by_sample| Count {
            function: FunctionId::new(0),
            block: BlockId::new(0),
            executions,
            relative_error: 0.0,
            visible: 10,
            trusted: 10,
            backward: 0.0,
            by_sample,
        };
        let fast = clock(400.0, BTreeMap::from([(1, 30.0), (2, 10.0)]));
        assert_eq!(spread_by(&fast, &seen), (vec![(7, 75.0), (9, 25.0)], 0.0));
        let slow = clock(2.0, BTreeMap::from([(1, 0.0), (2, 0.0)]));
        assert_eq!(spread_by(&slow, &seen), (vec![(7, 50.0), (9, 50.0)], 0.0));
    }
}
