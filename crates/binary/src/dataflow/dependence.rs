//! Which registers feed which from one round of a loop to the next.

use crate::cfg::{Function, LoopId};
use crate::instruction::{GENERAL, Gpr, RegisterSet};

/// What the values of a register are made of in a loop.
#[derive(Debug, Clone, Copy, Default)]
struct Sources {
    /// Registers of the addresses that it is loaded from.
    loaded: RegisterSet,
    /// Other registers that its writers read.
    plain: RegisterSet,
}

/// Whether the value of a register in one round depends on a load at an address made of its value in
/// the round before.
pub fn feeds_itself(function: &Function, inside: LoopId, register: Gpr) -> bool {
    let sources = sources(function, inside);
    // (register, whether a load lies on the way)
    let mut seen = [[false; 2]; GENERAL];
    let mut open = vec![(register, false)];
    while let Some((current, loaded)) = open.pop() {
        let through_load = sources[current.index()].loaded.iter().map(|from| (from, true));
        for (from, loaded) in through_load.chain(sources[current.index()].plain.iter().map(|from| (from, loaded))) {
            if from == register && loaded {
                return true;
            }
            if !std::mem::replace(&mut seen[from.index()][usize::from(loaded)], true) {
                open.push((from, loaded));
            }
        }
    }
    false
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
        assert!(feeds_itself(&function, LoopId::new(0), Gpr::new(7)));
        assert!(!feeds_itself(&function, LoopId::new(0), Gpr::new(6)), "rsi is made of itself alone");
        assert_eq!(sources_of(&function, LoopId::new(0), set(&[2])), set(&[2, 7]));
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
