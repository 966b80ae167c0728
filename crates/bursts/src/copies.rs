//! All copies of a process, growing: where each piece of code has its copy, and what memory must hold for it.
//!
//! Nothing here touches the process. What is to be written into it is told ([`Copies::take_writes`]) and
//! belongs there before a thread is let in; as no thread is in a copy then, no code is changed under
//! anybody's feet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use crate::area::{Area, CONTROL_WORDS, Control, Table};
use crate::blocks::discover;
use crate::counting::Flow;
use crate::fragment::{Fragment, ROUNDS, Surroundings, fragment};
use crate::log::{Log, LoggedOperand, Touched};
use crate::sequence::{Origin, Sequence};
use crate::text::Text;

/// Instructions of one fragment: more are generated tables, or no code at all.
const MOST_INSTRUCTIONS: usize = 20_000;
/// Instructions that are copied at a time with what they call: a millisecond's work.
const MOST_AT_ONCE: usize = 3_000;
/// Words that a fragment's largest part may need; an instruction needs less than two.
const WORDS_PER_INSTRUCTION: u64 = 2;

/// Bytes that belong to an address of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Where.
    pub address: u64,
    /// What.
    pub bytes: Vec<u8>,
}

/// A block of the program that is counted, by the addresses of its instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountedBlock {
    /// First instruction.
    pub start: u64,
    /// One past where the last one begins.
    pub end: u64,
}

/// The copies of a process.
#[derive(Debug)]
pub struct Copies {
    areas: Vec<Filled>,
    /// By start of a block in the program: its copy.
    copied: BTreeMap<u64, u64>,
    /// By address of an instruction in the program: its copy.
    instructions: BTreeMap<u64, u64>,
    /// Addresses where no copy can be made.
    refused: BTreeSet<u64>,
    /// What copied code calls, and was too much to copy at once.
    called: VecDeque<u64>,
    /// Where calls come back to: in the program, and in copies.
    returns: BTreeMap<u64, u64>,
    /// Where copies look addresses up, and which address has which entry.
    table: Table,
    keys: BTreeMap<u64, u64>,
    writes: Vec<Write>,
    /// Where addresses are written down, if that is what these copies are for.
    log: Option<Log>,
    /// Operands, by the numbers that they have there.
    operands: Vec<LoggedOperand>,
}

/// An area and what is in it.
#[derive(Debug)]
struct Filled {
    area: Area,
    /// The way in.
    entry: u64,
    /// By address in the program: words that say where to jump for it.
    linked: BTreeMap<u64, u64>,
    /// Ascending by address.
    origins: Vec<(u64, Origin)>,
    /// Copies of the program's own instructions, ascending.
    own: Vec<u64>,
    /// What counters tell, fragment by fragment.
    flows: Vec<Flow>,
}

/// How a thread is let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayIn {
    /// Its instruction pointer.
    pub address: u64,
    /// What memory must hold first.
    pub writes: Vec<Write>,
}

impl Copies {
    /// Copies that count: none yet, and an empty table in the process.
    pub fn that_count(table: Table) -> Self {
        Self {
            areas: Vec::new(),
            copied: BTreeMap::new(),
            instructions: BTreeMap::new(),
            refused: BTreeSet::new(),
            called: VecDeque::new(),
            returns: BTreeMap::new(),
            table,
            keys: BTreeMap::new(),
            writes: Vec::new(),
            log: None,
            operands: Vec::new(),
        }
    }

    /// Copies that write addresses down: none yet, and an empty table in the process.
    pub fn that_log(table: Table, log: Log) -> Self {
        Self { log: Some(log), ..Self::that_count(table) }
    }

    /// Where addresses are written down.
    pub fn log(&self) -> Option<Log> {
        self.log
    }

    /// What a log with so many entries says, given the bytes that [`Log::filled`] names.
    pub fn touched(&self, count: u64, addresses: &[u8], numbers: &[u8]) -> Vec<Touched> {
        Log::touched(count, addresses, numbers, &self.operands)
    }

    /// Where copies look addresses up.
    pub fn table(&self) -> Table {
        self.table
    }

    /// Whether code at an address needs an area of its own: no area is near enough.
    pub fn lacks_area(&self, address: u64) -> bool {
        !self.areas.iter().any(|filled| filled.area.reaches(address))
    }

    /// Memory of the process that may be used.
    pub fn add_area(&mut self, start: u64) {
        let area = Area::new(start, self.table);
        let mut filled = Filled {
            entry: area.start(),
            area,
            linked: BTreeMap::new(),
            origins: Vec::new(),
            own: Vec::new(),
            flows: Vec::new(),
        };
        let mut sequence = Sequence::default();
        sequence.enter(&filled.area);
        let Some(encoded) = sequence.encoded(filled.entry) else { return };
        let places = encoded.new_instruction_offsets.iter().map(|offset| filled.entry + u64::from(*offset));
        filled.origins = places.zip(sequence.emitted.iter().map(|emitted| emitted.origin)).collect();
        filled.area.take_code(encoded.code_buffer.len() as u64);
        self.writes.push(Write { address: filled.entry, bytes: encoded.code_buffer });
        self.areas.push(filled);
    }

    /// Whether an address is one of copies.
    pub fn contains(&self, address: u64) -> bool {
        self.area_of(address).is_some()
    }

    /// The state of the program before an instruction of a copy, and the area that holds its registers.
    pub fn origin(&self, address: u64) -> Option<(Origin, &Area)> {
        let filled = self.area_of(address)?;
        let position = filled.origins.binary_search_by_key(&address, |(at, _)| *at).ok()?;
        Some((filled.origins[position].1, &filled.area))
    }

    /// Whether the instruction at an address of copies is one of the program's, or one that was added.
    pub fn is_own(&self, address: u64) -> bool {
        self.area_of(address).is_some_and(|filled| filled.own.binary_search(&address).is_ok())
    }

    /// Copies the code at an address, if that can be done and is not done yet, and what it calls.
    pub fn copy(&mut self, text: &dyn Text, address: u64) -> bool {
        if self.instructions.contains_key(&address) {
            return true;
        }
        self.copy_with_callees(text, address, false);
        self.instructions.contains_key(&address)
    }

    /// Copies the code at an address that code jumps to.
    pub fn copy_target(&mut self, text: &dyn Text, address: u64) -> bool {
        self.copy_with_callees(text, address, true);
        self.copied.contains_key(&address)
    }

    /// Whether there is something that copied code calls, and that was too much to copy with it.
    pub fn has_called(&self) -> bool {
        !self.called.is_empty()
    }

    /// Copies some of that, if it still has no copy.
    pub fn copy_called(&mut self, text: &dyn Text) {
        if let Some(address) = self.called.pop_front() {
            self.copy_with_callees(text, address, true);
        }
    }

    /// Whether the instruction at an address of the program has a copy.
    pub fn has(&self, address: u64) -> bool {
        self.instructions.contains_key(&address)
    }

    /// Whether code that jumps to an address of the program finds a copy. Where calls come back to is none: behind one that
    /// never comes back another function begins.
    pub fn has_target(&self, address: u64) -> bool {
        self.copied.contains_key(&address)
    }

    fn copy_with_callees(&mut self, text: &dyn Text, address: u64, is_target: bool) {
        let mut waiting = vec![address];
        let mut looked_up = Vec::new();
        let mut room = MOST_AT_ONCE;
        while let Some(entry) = waiting.pop() {
            if self.copied.contains_key(&entry) || self.refused.contains(&entry) {
                continue;
            }
            if room == 0 {
                self.called.push_back(entry);
                continue;
            }
            let Some(made) = self.fragment(text, entry, is_target || entry != address) else {
                self.refused.insert(entry);
                continue;
            };
            room = room.saturating_sub(made.instructions.len());
            let linked: Vec<u64> = made.slots.iter().filter_map(|slot| text.word(*slot)).collect();
            waiting.extend(linked.iter().chain(&made.callees).rev());
            looked_up.extend(linked);
            self.take(made);
        }
        for target in looked_up {
            self.publish(target);
        }
    }

    /// Copies look this address up from now on, if it has a copy; one that was missed, whoever has its entry.
    pub fn publish_missed(&mut self, key: u64) {
        self.keys.insert(Table::slot(key), key);
        self.publish(key);
    }

    /// Copies look this address up from now on, if it has a copy.
    fn publish(&mut self, key: u64) {
        let Some(copy) = self.returns.get(&key).or_else(|| self.copied.get(&key)) else { return };
        let slot = Table::slot(key);
        // Of two with one entry the first has it.
        if *self.keys.entry(slot).or_insert(key) == key {
            let words = [(self.table.keys(), key.wrapping_neg()), (self.table.copies(), *copy)];
            let write = |(start, value): (u64, u64)| Write { address: start + slot * 8, bytes: bytes_of(&[value]) };
            self.writes.extend(words.map(write));
        }
    }

    /// What memory must hold before the next thread is let in.
    pub fn take_writes(&mut self) -> Vec<Write> {
        std::mem::take(&mut self.writes)
    }

    /// The way in for a thread that is at an address of the program.
    pub fn way_in(&self, address: u64) -> Option<WayIn> {
        let mut way_in = self.way_back(address)?;
        for filled in &self.areas {
            way_in.writes.push(filled_with(&filled.area.down(), ROUNDS));
            way_in.writes.push(filled_with(&filled.area.up(), 0));
        }
        let none_yet = |log: Log| Write { address: log.count(), bytes: bytes_of(&[0]) };
        way_in.writes.extend(self.log.map(none_yet));
        Some(way_in)
    }

    /// The way in for a thread that was in already: what was counted stays.
    pub fn way_back(&self, address: u64) -> Option<WayIn> {
        let copy = *self.instructions.get(&address)?;
        let own = self.area_of(copy)?;
        let clear = |filled: &Filled| Write { address: filled.area.data(), bytes: bytes_of(&[0; CONTROL_WORDS]) };
        let mut writes: Vec<Write> = self.areas.iter().map(clear).collect();
        let aim = [(Control::Target, copy), (Control::Original, address)];
        writes.extend(aim.map(|(word, value)| Write { address: own.area.control(word), bytes: bytes_of(&[value]) }));
        Some(WayIn { address: own.entry, writes })
    }

    /// First addresses of the control words, one for each area.
    pub fn controls(&self) -> Vec<u64> {
        self.areas.iter().map(|filled| filled.area.data()).collect()
    }

    /// What the counters hold when a thread is let in.
    pub fn beginning(&self) -> Vec<Vec<u64>> {
        let words = |range: &Range<u64>| usize::try_from((range.end - range.start) / 8).unwrap_or(0);
        let filled = |filled: &Filled| [vec![ROUNDS; words(&filled.area.down())], vec![0; words(&filled.area.up())]];
        self.areas.iter().flat_map(filled).collect()
    }

    /// Addresses of the counters.
    pub fn counters(&self) -> Vec<Range<u64>> {
        self.areas.iter().flat_map(|filled| [filled.area.down(), filled.area.up()]).collect()
    }

    /// How often each block ran between two readings of [`Copies::counters`]; only those that did.
    pub fn executions(&self, before: &[Vec<u64>], after: &[Vec<u64>]) -> BTreeMap<CountedBlock, u64> {
        let mut executions = BTreeMap::new();
        let readings = before.chunks(2).zip(after.chunks(2));
        for (filled, (before, after)) in self.areas.iter().zip(readings) {
            let (down, up) = (filled.area.down(), filled.area.up());
            let counted = |word: u64| {
                let (kind, range) = if down.contains(&word) { (0, &down) } else { (1, &up) };
                let beginning = if kind == 0 { ROUNDS.cast_signed() } else { 0 };
                let at = |words: &[u64]| at(words, range, word).map_or(beginning, u64::cast_signed);
                let counted = at(&after[kind]) - at(&before[kind]);
                if kind == 0 { -counted } else { counted }
            };
            for (start, end, count) in filled.flows.iter().flat_map(|flow| flow.executions(&counted)) {
                *executions.entry(CountedBlock { start, end }).or_default() += count;
            }
        }
        executions
    }

    fn area_of(&self, address: u64) -> Option<&Filled> {
        self.areas.iter().find(|filled| filled.area.code().contains(&address))
    }

    fn fragment(&mut self, text: &dyn Text, entry: u64, is_target: bool) -> Option<Fragment> {
        let filled = self.areas.iter_mut().find(|filled| filled.area.reaches(entry))?;
        let copied = &self.copied;
        let (is_copied, reaches) = (|at| copied.contains_key(&at), |at| filled.area.reaches(at));
        let blocks = discover(text, entry, is_target, &is_copied, &reaches, MOST_INSTRUCTIONS);
        let size: usize = blocks.values().map(crate::blocks::Block::len).sum();
        let words = (size as u64 + blocks.len() as u64) * WORDS_PER_INSTRUCTION + 64;
        if blocks.values().all(|block| block.len() == 0) || !filled.area.has_room(words) {
            return None;
        }
        let known = filled.area.down().end;
        let (area, linked) = (&mut filled.area, &filled.linked);
        let log = self.log.map(|log| (log, &mut self.operands));
        let made = fragment(&blocks, entry, Surroundings { area, copied, linked, log });
        // Whoever is let back finds them at their beginning, too.
        self.writes.push(filled_with(&(known..filled.area.down().end), ROUNDS));
        made
    }

    fn take(&mut self, made: Fragment) {
        let Some(first) = made.origins.first().map(|(address, _)| *address) else { return };
        let Some(filled) = self.areas.iter_mut().find(|filled| filled.area.code().contains(&first)) else { return };
        self.writes.push(Write { address: first, bytes: made.code });
        filled.origins.extend(made.origins);
        filled.own.extend(made.own);
        filled.flows.push(made.flow);
        self.copied.extend(&made.blocks);
        for (address, copy) in made.instructions {
            self.instructions.entry(address).or_insert(copy);
        }
        let words = made.constants.iter().map(|(word, value)| (*word, *value));
        // What is copied in another area needs no way out, and has none.
        let target = |to: &u64| self.copied.get(to).or_else(|| made.ways_out.get(to)).copied();
        let links = made.links.iter().filter_map(|(word, to)| Some((*word, target(to)?)));
        self.writes.extend(words.chain(links).map(|(address, value)| Write { address, bytes: bytes_of(&[value]) }));
        filled.linked.extend(made.links.iter().map(|(word, to)| (*to, *word)));
        for (start, copy) in &made.blocks {
            let words = self.areas.iter().filter_map(|filled| filled.linked.get(start));
            self.writes.extend(words.map(|word| Write { address: *word, bytes: bytes_of(&[*copy]) }));
        }
        for (back, copy) in made.returns {
            // The processor expects a return behind the copy of the call that it saw: of several the first is run.
            self.returns.entry(back).or_insert(copy);
            self.publish(back);
        }
    }
}

/// A counter in a reading; `None` of one that came later.
fn at(words: &[u64], range: &Range<u64>, address: u64) -> Option<u64> {
    words.get(usize::try_from((address - range.start) / 8).ok()?).copied()
}

fn filled_with(range: &Range<u64>, value: u64) -> Write {
    let words = vec![value; usize::try_from((range.end - range.start) / 8).unwrap_or(0)];
    Write { address: range.start, bytes: bytes_of(&words) }
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::Bytes;

    const CODE: u64 = 0x40_0000;
    const TABLE: u64 = 0x10_0000;
    const AREA: u64 = 0x1000_0000;

    fn copies() -> Copies {
        let mut copies = Copies::that_count(Table::new(TABLE).unwrap());
        copies.add_area(AREA);
        copies
    }

    #[test]
    fn a_function_behind_a_call_that_never_comes_back_has_no_copy_of_its_own_yet() {
        // call +11; inc eax; ret -- and what is called: ret.
        let code = [0xe8, 3, 0, 0, 0, 0xff, 0xc0, 0xc3, 0xc3];
        let (text, behind) = (Bytes(CODE, &code), CODE + 5);
        let mut copies = copies();
        assert!(copies.copy(&text, CODE));
        assert!(copies.has(behind), "the call may come back to it");
        assert!(!copies.has_target(behind), "who calls it finds nothing");
        assert!(copies.copy_target(&text, behind) && copies.has_target(behind));
    }

    #[test]
    fn a_call_of_what_is_copied_in_another_area_is_linked_to_its_copy() {
        // As far apart as a direct call reaches, so that no area is near to both.
        const CALLEE: u64 = AREA + 0x100_0000;
        const CALLER: u64 = CALLEE + 0x7f00_0000;
        let mut call = vec![0xe8];
        call.extend(u32::try_from(CALLER + 5 - CALLEE).unwrap().wrapping_neg().to_le_bytes());
        call.push(0xc3);
        let mut copies = copies();
        copies.add_area(CALLER + 0x100_0000);
        assert!(copies.copy_target(&Bytes(CALLEE, &[0xc3]), CALLEE));
        let (copy, _) = (copies.copied[&CALLEE], copies.take_writes());
        assert!(copies.copy(&Bytes(CALLER, &call), CALLER));
        assert!(copies.take_writes().iter().any(|write| write.bytes == copy.to_le_bytes()));
    }

    #[test]
    fn what_is_too_much_at_once_is_copied_later() {
        let function = |callee: u32| {
            let mut code = vec![0x90; MOST_AT_ONCE];
            code.push(0xe8);
            code.extend(callee.to_le_bytes());
            code.push(0xc3);
            code
        };
        // Two that are long, each of which calls the next, and a short one.
        let mut code = function(1);
        let second = CODE + code.len() as u64;
        code.extend(function(1));
        let third = CODE + code.len() as u64;
        code.push(0xc3);
        let text = Bytes(CODE, &code);
        let mut copies = copies();
        assert!(copies.copy(&text, CODE));
        assert!(copies.has_called() && !copies.has_target(second) && !copies.has_target(third));
        copies.copy_called(&text);
        assert!(copies.has_target(second) && !copies.has_target(third));
        while copies.has_called() {
            copies.copy_called(&text);
        }
        assert!(copies.has_target(third));
    }
}
