//! Where registers have their values from: the caller, or the stack pointer.
//!
//! An argument that is a pointer stays one in the register that it came in, or in one to which it was copied; frame pointers
//! and pointers to local variables are made of the stack pointer. A value that was kept on the stack and comes back is not
//! followed.

use index_vec::{IndexVec, index_vec};

use crate::arch::STACK_POINTER;
use crate::cfg::{BlockId, Function};
use crate::instruction::{Arithmetic, Compute, GENERAL, Gpr, Instruction, Operation, Place, Source};

/// Where a register has its value from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// It is what this register held when the function was entered.
    Entry(Gpr),
    /// It is an address on the stack.
    Stack,
}

/// By register.
type Origins = [Option<Origin>; GENERAL];

/// Where the registers of a function have their values from, by instruction.
#[derive(Debug)]
pub struct RegisterOrigins {
    before: Vec<Origins>,
}

impl RegisterOrigins {
    /// On every way through a function.
    pub fn of(function: &Function) -> Self {
        let entries = entries(function);
        let mut before = Vec::with_capacity(function.instructions.len());
        for block in function.blocks.indices() {
            let mut held = entries[block];
            for instruction in function.instructions_of(block) {
                before.push(held);
                held = after(instruction, held);
            }
        }
        Self { before }
    }

    /// Of a register before the instruction at a position.
    pub fn of_register(&self, position: usize, register: Gpr) -> Option<Origin> {
        self.before[position][register.index()]
    }

    /// Registers before the instruction at a position that hold what one held at the entry, as (register, that one).
    pub fn from_entry(&self, position: usize) -> impl Iterator<Item = (Gpr, Gpr)> {
        Gpr::all().filter_map(move |register| match self.of_register(position, register)? {
            Origin::Entry(from) => Some((register, from)),
            Origin::Stack => None,
        })
    }
}

/// By block: what holds on every way to it.
fn entries(function: &Function) -> IndexVec<BlockId, Origins> {
    let mut least: Origins = [None; GENERAL];
    least[STACK_POINTER.index()] = Some(Origin::Stack);
    let mut known: IndexVec<BlockId, Option<Origins>> = index_vec![None; function.blocks.len()];
    // A way back to the entry comes from inside; what is jumped to by nobody that is known is entered anyhow.
    let begins = |block: BlockId| function.blocks[block].predecessors.is_empty();
    let mut open: Vec<BlockId> = function.blocks.indices().filter(|block| begins(*block)).collect();
    for &block in &open {
        known[block] = Some(least);
    }
    if let Some(first) = function.blocks.indices().next() {
        let caller = |register: Gpr| if register == STACK_POINTER { Origin::Stack } else { Origin::Entry(register) };
        let mut entered: Origins = [None; GENERAL];
        Gpr::all().for_each(|register| entered[register.index()] = Some(caller(register)));
        known[first] = Some(entered);
        open.push(first);
    }
    while let Some(block) = open.pop() {
        let entry = known[block].unwrap_or(least);
        let end = function.instructions_of(block).iter().fold(entry, |held, one| after(one, held));
        for &next in &function.blocks[block].successors {
            // Each way takes some away, until none does.
            let both = known[next].map_or(end, |before| common(&before, &end));
            if known[next].replace(both) != Some(both) {
                open.push(next);
            }
        }
    }
    known.into_iter().map(|held| held.unwrap_or(least)).collect()
}

fn common(one: &Origins, other: &Origins) -> Origins {
    std::array::from_fn(|at| one[at].filter(|origin| other[at] == Some(*origin)))
}

fn after(instruction: &Instruction, held: Origins) -> Origins {
    let mut left = held;
    instruction.clobbered.iter().for_each(|register| left[register.index()] = None);
    if let Some((register, origin)) = made(&instruction.operation, &held) {
        left[register.index()] = Some(origin);
    }
    left[STACK_POINTER.index()] = Some(Origin::Stack);
    left
}

/// The register that gets a value from elsewhere.
fn made(operation: &Operation, held: &Origins) -> Option<(Gpr, Origin)> {
    let origin = |source: Source| match source {
        Source::Register(part) => held[part.whole()?.index()],
        _ => None,
    };
    let on_stack = |source: Source| origin(source) == Some(Origin::Stack);
    match *operation {
        Operation::Move { to: Place::Register(to), from } => Some((to.whole()?, origin(from)?)),
        Operation::Address { to, address } => {
            let base = address.base?;
            let is_copy = address.index.is_none() && address.displacement == 0;
            held[base.index()]
                .filter(|origin| is_copy || *origin == Origin::Stack)
                .and_then(|origin| Some((to.whole()?, origin)))
        }
        Operation::Compute(Compute { what, to: Place::Register(to), left, right, .. }) if on_stack(left) => {
            let stays = match what {
                Arithmetic::Add | Arithmetic::Subtract => !on_stack(right),
                // Aligned; with few low bits it is a distance.
                Arithmetic::And => matches!(right, Source::Constant(mask) if mask.cast_signed() < 0),
                _ => false,
            };
            stays.then_some((to.whole()?, Origin::Stack))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By instruction: whether its first operand is on the stack.
    fn on_stack(code: &[u8]) -> Vec<Option<bool>> {
        let function = Function::decode(code, 0);
        let known = RegisterOrigins::of(&function);
        let base = |one: &Instruction| one.operands.first()?.base;
        let first = |(at, one): (usize, &Instruction)| Some(known.of_register(at, base(one)?) == Some(Origin::Stack));
        function.instructions.iter().enumerate().map(first).collect()
    }

    #[test]
    fn a_frame_pointer_and_a_pointer_to_a_variable_lead_to_the_stack() {
        // push rbp; mov rbp,rsp; mov [rbp-8],rdi; lea rax,[rbp-0x20]; mov [rax],rsi; mov rdx,[rdi]; leave; ret
        let code = [
            0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0x7d, 0xf8, 0x48, 0x8d, 0x45, 0xe0, 0x48, 0x89, 0x30, 0x48, 0x8b, 0x17,
            0xc9, 0xc3,
        ];
        let told: Vec<bool> = on_stack(&code).into_iter().flatten().collect();
        assert_eq!(told, [true, true, false]);
    }

    #[test]
    fn what_a_call_may_change_is_no_address_any_more() {
        // lea rax,[rsp+8]; mov rbx,rax; call 0x100; mov rcx,[rax]; mov rcx,[rbx]; ret
        let code = [
            0x48, 0x8d, 0x44, 0x24, 0x08, 0x48, 0x89, 0xc3, 0xe8, 0xf3, 0x00, 0x00, 0x00, 0x48, 0x8b, 0x08, 0x48, 0x8b,
            0x0b, 0xc3,
        ];
        let told: Vec<bool> = on_stack(&code).into_iter().flatten().collect();
        assert_eq!(told, [false, true]);
    }

    #[test]
    fn where_two_ways_meet_it_has_to_be_one_on_both() {
        // test rdi,rdi; je past; mov rdi,rsp; past: mov rax,[rdi]; ret
        let code = [0x48, 0x85, 0xff, 0x74, 0x03, 0x48, 0x89, 0xe7, 0x48, 0x8b, 0x07, 0xc3];
        assert_eq!(on_stack(&code).into_iter().flatten().collect::<Vec<_>>(), [false]);
    }

    #[test]
    fn an_argument_is_followed_into_the_registers_that_keep_it() {
        // push rbx; mov rbx,rdi; call 0x100; mov rax,[rbx+8]; mov rax,[rdi]; lea rdx,[rbx+8]; mov rax,[rdx]; pop rbx; ret
        let code = [
            0x53, 0x48, 0x89, 0xfb, 0xe8, 0xf7, 0x00, 0x00, 0x00, 0x48, 0x8b, 0x43, 0x08, 0x48, 0x8b, 0x07, 0x48, 0x8d,
            0x53, 0x08, 0x48, 0x8b, 0x02, 0x5b, 0xc3,
        ];
        let function = Function::decode(&code, 0);
        let known = RegisterOrigins::of(&function);
        let (rbx, rdi) = (Gpr::new(3), Gpr::new(7));
        let bases = function
            .instructions
            .iter()
            .enumerate()
            .filter_map(|(at, one)| Some(known.of_register(at, one.operands.first()?.base?)));
        assert_eq!(bases.collect::<Vec<_>>(), [Some(Origin::Entry(rdi)), None, None]);
        assert!(known.from_entry(3).any(|pair| pair == (rbx, rdi)), "after the call");
        assert!(!known.from_entry(3).any(|(register, _)| register == rdi), "the call may have changed it");
    }

    #[test]
    fn the_low_bits_of_an_address_and_a_distance_are_none() {
        // mov rax,rsp; and rax,-64; mov rcx,[rax]; and rax,15; mov rcx,[rax]; mov rdx,rsp; sub rdx,rsp; mov rcx,[rdx]; ret
        let code = [
            0x48, 0x89, 0xe0, 0x48, 0x83, 0xe0, 0xc0, 0x48, 0x8b, 0x08, 0x48, 0x83, 0xe0, 0x0f, 0x48, 0x8b, 0x08, 0x48,
            0x89, 0xe2, 0x48, 0x29, 0xe2, 0x48, 0x8b, 0x0a, 0xc3,
        ];
        assert_eq!(on_stack(&code).into_iter().flatten().collect::<Vec<_>>(), [true, false, false]);
    }
}
