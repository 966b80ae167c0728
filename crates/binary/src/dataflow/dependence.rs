//! Which registers feed which from one round of a loop to the next.

use std::collections::{BTreeMap, BTreeSet};

use crate::cfg::{BlockId, Function, LoopId};
use crate::instruction::{GENERAL, Gpr, Operand, RegisterSet};

/// Steps back through blocks after which nothing is said: only loops of interpreters have so many.
const MOST_STEPS: usize = 1 << 16;
/// Values that one is made of, after which nothing more is said.
const MOST_VALUES: usize = 1 << 10;

/// Whether the value that an instruction finds in a register depends on a load at an address made of the value that it
/// found there in a round before.
///
/// Values are followed back from where they are read to where they were written, so a register that is used again for
/// something else does not count as one value.
pub fn feeds_itself(function: &Function, inside: LoopId, position: usize, register: Gpr) -> bool {
    let mut values = Values { function, inside, seen: BTreeSet::new() };
    let own: BTreeSet<Written> = values.written_before(position, Holder::Register(register)).into_iter().collect();
    values.seen.clear();
    let mut open: Vec<(Written, bool)> = own.iter().map(|written| (*written, false)).collect();
    let mut known: BTreeSet<(Written, bool)> = open.iter().copied().collect();
    while let Some(((at, holder), loaded)) = open.pop() {
        for (source, by_load) in values.sources(at, holder) {
            let loaded = loaded || by_load;
            for written in values.written_before_once(at, source, loaded) {
                if loaded && own.contains(&written) {
                    return true;
                }
                if known.insert((written, loaded)) {
                    open.push((written, loaded));
                }
            }
        }
    }
    false
}

/// Whether what an instruction sets a register to is loaded from where other loaded data say: row `queue[i]` of a matrix
/// begins anywhere, and row `i` behind the one before.
pub(super) fn is_indirect(function: &Function, inside: LoopId, position: usize, register: Gpr) -> bool {
    let made = Values { function, inside, seen: BTreeSet::new() }.made_of((position, Holder::Register(register)));
    let varying = varying(&made);
    let loads: BTreeSet<Written> =
        made.keys().copied().filter(|value| addresses(&made, *value).any(|from| varying.contains(&from))).collect();
    loads.iter().any(|load| addresses(&made, *load).any(|from| leads_to(&made, from, &loads)))
}

/// Values by what each is made of, and whether that is the address that it is loaded from.
type Made = BTreeMap<Written, Vec<(Written, bool)>>;

/// What the address is made of that a value is loaded from.
fn addresses(made: &Made, value: Written) -> impl Iterator<Item = Written> {
    made[&value].iter().filter(|from| from.1).map(|from| from.0)
}

/// Those that differ from round to round: made of themselves, or of one that is.
fn varying(made: &Made) -> BTreeSet<Written> {
    let mut left: BTreeSet<Written> = made.keys().copied().collect();
    loop {
        let varies = |value: &Written| made[value].iter().any(|from| left.contains(&from.0));
        let still: BTreeSet<Written> = left.iter().filter(|value| varies(value)).copied().collect();
        if still.len() == left.len() {
            return left;
        }
        left = still;
    }
}

/// Whether a value is one of `ends`, or made of one.
fn leads_to(made: &Made, value: Written, ends: &BTreeSet<Written>) -> bool {
    let (mut open, mut known) = (vec![value], BTreeSet::from([value]));
    while let Some(value) = open.pop() {
        if ends.contains(&value) {
            return true;
        }
        open.extend(made.get(&value).into_iter().flatten().map(|from| from.0).filter(|from| known.insert(*from)));
    }
    false
}

/// What holds a value from one instruction to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Register(Gpr),
    /// Memory at an address that stays where it is: its base, and what is added.
    Memory(Option<Gpr>, u64),
}

/// Position of an instruction, and what it writes.
type Written = (usize, Holder);

/// The values of a loop.
struct Values<'f> {
    function: &'f Function,
    inside: LoopId,
    /// Blocks that were walked back from their end, for what, and whether behind a load.
    seen: BTreeSet<(BlockId, Holder, bool)>,
}

impl Values<'_> {
    /// A value and all that it is made of in the loop.
    fn made_of(&mut self, value: Written) -> Made {
        let (mut made, mut open) = (Made::new(), vec![value]);
        while let Some((at, holder)) = open.pop().filter(|_| made.len() < MOST_VALUES) {
            if made.contains_key(&(at, holder)) {
                continue;
            }
            let sources = self.sources(at, holder);
            let before =
                |(source, by_load)| self.written_before(at, source).into_iter().map(move |from| (from, by_load));
            let from: Vec<(Written, bool)> = sources.into_iter().flat_map(before).collect();
            open.extend(from.iter().map(|from| from.0));
            made.insert((at, holder), from);
        }
        made
    }

    /// Instructions whose value of a holder is the one before a position.
    fn written_before(&mut self, position: usize, holder: Holder) -> Vec<Written> {
        self.seen.clear();
        self.written_before_once(position, holder, false)
    }

    /// The same, but for those behind blocks that were seen before.
    fn written_before_once(&mut self, position: usize, holder: Holder, loaded: bool) -> Vec<Written> {
        let function = self.function;
        let mut found = Vec::new();
        let mut open = vec![(function.block_of(position), position)];
        while let Some((block, end)) = open.pop() {
            let first = function.blocks[block].first;
            let last = (first..end).rev().find(|at| self.sets(*at, holder) || self.loses(*at, holder));
            match last {
                Some(at) if self.sets(at, holder) => found.push((at, holder)),
                Some(_) => {}
                None => {
                    let body = &function.loops[self.inside];
                    for from in function.blocks[block].predecessors.iter().filter(|from| body.contains(**from)) {
                        if self.seen.len() < MOST_STEPS && self.seen.insert((*from, holder, loaded)) {
                            open.push((*from, function.blocks[*from].end));
                        }
                    }
                }
            }
        }
        found
    }

    fn sets(&self, at: usize, holder: Holder) -> bool {
        let instruction = &self.function.instructions[at];
        match holder {
            Holder::Register(register) => !instruction.is_call() && instruction.written.contains(register),
            Holder::Memory(..) => instruction.operands.iter().any(|one| one.write && self.place(one) == Some(holder)),
        }
    }

    /// Whether a call leaves something else there, nobody knows what.
    fn loses(&self, at: usize, holder: Holder) -> bool {
        let instruction = &self.function.instructions[at];
        let Holder::Register(register) = holder else { return false };
        instruction.is_call() && instruction.clobbered.contains(register)
    }

    /// What an instruction makes a value of, each with whether a load at a place that moves lies between.
    fn sources(&self, at: usize, holder: Holder) -> Vec<(Holder, bool)> {
        let instruction = &self.function.instructions[at];
        let mut sources: Vec<(Holder, bool)> =
            instruction.sources.iter().map(|register| (Holder::Register(register), false)).collect();
        for operand in instruction.operands.iter().filter(|operand| operand.read) {
            match self.place(operand) {
                Some(place) => sources.push((place, false)),
                None if matches!(holder, Holder::Register(_)) => {
                    sources.extend(operand.registers().iter().map(|register| (Holder::Register(register), true)));
                }
                None => {}
            }
        }
        sources
    }

    /// The place of an operand whose address is the same in all rounds.
    fn place(&self, operand: &Operand) -> Option<Holder> {
        let moves = operand.base.is_some_and(|base| self.function.loops[self.inside].written.contains(base));
        let still = !moves && operand.index.is_none() && !operand.gather && operand.repeats.is_none();
        still.then_some(Holder::Memory(operand.base, operand.displacement))
    }
}

/// What the values of a register are made of in a loop.
#[derive(Debug, Clone, Copy, Default)]
struct Sources {
    /// Registers of the addresses that it is loaded from.
    loaded: RegisterSet,
    /// Other registers that its writers read.
    plain: RegisterSet,
}

/// Registers that the values of some registers are made of in a loop, those themselves included.
pub fn sources_of(function: &Function, inside: LoopId, registers: RegisterSet) -> RegisterSet {
    let sources = sources(function, inside);
    let mut found = registers;
    let mut open: Vec<Gpr> = registers.iter().collect();
    while let Some(current) = open.pop() {
        for from in sources[current.index()].loaded.union(sources[current.index()].plain).without(found).iter() {
            found.insert(from);
            open.push(from);
        }
    }
    found
}

fn sources(function: &Function, inside: LoopId) -> [Sources; GENERAL] {
    let mut sources = [Sources::default(); GENERAL];
    let body = function.loops[inside].body.iter().flat_map(|block| function.instructions_of(*block));
    for instruction in body.filter(|instruction| !instruction.is_call()) {
        let address: RegisterSet = instruction.operands.iter().flat_map(|one| one.registers().iter()).collect();
        for target in instruction.written.iter() {
            let known = &mut sources[target.index()];
            known.loaded = known.loaded.union(address);
            known.plain = known.plain.union(instruction.sources);
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(registers: &[u8]) -> RegisterSet {
        registers.iter().map(|number| Gpr::new(*number)).collect()
    }

    #[test]
    fn a_chased_pointer_feeds_itself_through_a_load_and_a_counter_does_not() {
        // 0: add rdx,[rdi+8]; mov rdi,[rdi]; dec rsi; jne 0; ret
        let code = [0x48, 0x03, 0x57, 8, 0x48, 0x8b, 0x3f, 0x48, 0xff, 0xce, 0x75, 0xf4, 0xc3];
        let function = Function::decode(&code, 0);
        assert!(feeds_itself(&function, LoopId::new(0), 0, Gpr::new(7)));
        assert!(!feeds_itself(&function, LoopId::new(0), 2, Gpr::new(6)), "rsi is made of itself alone");
        assert_eq!(sources_of(&function, LoopId::new(0), set(&[2])), set(&[2, 7]));
    }

    #[test]
    fn a_register_that_is_used_again_for_something_else_is_not_one_value() {
        // 0: mov eax,[r8]; mov rdx,[r9+rax*8]; mov eax,[rdx]; add xmm0,[rcx+rax*8]; add r8,4; dec esi; jne 0; ret:
        // row r8[] begins at r9[], and its first entry says which element of rcx[] is meant.
        let code = [
            0x41, 0x8b, 0x00, 0x49, 0x8b, 0x14, 0xc1, 0x8b, 0x02, 0xf2, 0x0f, 0x58, 0x04, 0xc1, 0x49, 0x83, 0xc0, 4,
            0xff, 0xce, 0x75, 0xea, 0xc3,
        ];
        let function = Function::decode(&code, 0);
        for (position, register) in [(1, 0), (2, 2), (3, 0)] {
            assert!(!feeds_itself(&function, LoopId::new(0), position, Gpr::new(register)), "at {position}");
        }
    }

    #[test]
    fn a_chased_pointer_that_is_kept_in_memory_feeds_itself() {
        // 0: mov rax,[rsp+8]; mov rax,[rax]; mov [rsp+8],rax; dec esi; jne 0; ret
        let code =
            [0x48, 0x8b, 0x44, 0x24, 8, 0x48, 0x8b, 0x00, 0x48, 0x89, 0x44, 0x24, 8, 0xff, 0xce, 0x75, 0xef, 0xc3];
        let function = Function::decode(&code, 0);
        assert!(feeds_itself(&function, LoopId::new(0), 1, Gpr::new(0)));
    }

    #[test]
    fn a_copy_forgets_what_was_there() {
        // 0: mov rax,rcx; add rax,[rdx+rax]; add rcx,8; cmp rcx,rsi; jne 0; ret
        let code = [0x48, 0x89, 0xc8, 0x48, 0x03, 0x04, 0x02, 0x48, 0x83, 0xc1, 8, 0x48, 0x39, 0xf1, 0x75, 0xf0, 0xc3];
        let function = Function::decode(&code, 0);
        assert_eq!(sources_of(&function, LoopId::new(0), set(&[1])), set(&[1]));
        assert_eq!(sources_of(&function, LoopId::new(0), set(&[0])), set(&[0, 1, 2]));
    }
}
