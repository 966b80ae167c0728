//! What registers are made of in a round of a loop: multiples of what registers held when the round began.
//!
//! Compilers copy a counter to and fro, add to the copy, choose a neighbour by a branch, and load a base from the stack in each
//! round. No single instruction moves such a register, yet from one round to the next its value moves by a constant. Here each
//! register is followed through a round as a sum: some multiples, and a constant that is known or, where two ways meet or a
//! value is loaded from a place that stays, only known to be there. What stays the same in all rounds moves by nothing.

use crate::cfg::{BlockId, Function, LoopId, Slot};
use crate::dataflow::update::stored;
use crate::instruction::flags::sign_extended;
use crate::instruction::{
    Arithmetic, Compute, EffectiveAddress, GENERAL, Gpr, Instruction, Operand, Operation, Part, Place, Source,
};

/// A sum: multiples of registers at the beginning of the round, and a constant, where it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    times: [i64; GENERAL],
    plus: Option<i64>,
}

/// By register: what it is made of; `None` where that is no sum.
type Forms = [Option<Form>; GENERAL];

impl Form {
    /// The same in each round.
    const STILL: Self = Self { times: [0; GENERAL], plus: None };

    fn constant(value: i64) -> Self {
        Self { plus: Some(value), ..Self::STILL }
    }

    fn register(register: Gpr) -> Self {
        let mut form = Self::constant(0);
        form.times[register.index()] = 1;
        form
    }

    /// This and `scale` times another.
    fn and(self, other: Self, scale: i64) -> Self {
        let mut times = self.times;
        for (sum, one) in times.iter_mut().zip(other.times) {
            *sum = sum.wrapping_add(one.wrapping_mul(scale));
        }
        let plus = self.plus.zip(other.plus).map(|(one, other)| one.wrapping_add(other.wrapping_mul(scale)));
        Self { times, plus }
    }

    fn scaled(self, scale: i64) -> Self {
        Self::constant(0).and(self, scale)
    }

    fn is_still(self) -> bool {
        self.times == [0; GENERAL]
    }

    /// What holds whichever of two ways was taken.
    fn either(self, other: Self) -> Option<Self> {
        let plus = self.plus.filter(|plus| Some(*plus) == other.plus);
        (self.times == other.times).then_some(Self { plus, ..self })
    }
}

/// What registers are made of in a loop, before each of its blocks.
pub struct RoundForms<'a> {
    body: Body<'a>,
    before: Vec<(BlockId, Forms)>,
    /// By register: by how much it is further on from round to round, where that is a constant.
    steps: [Option<i64>; GENERAL],
}

impl<'a> RoundForms<'a> {
    /// Follows a loop's registers through a round.
    pub fn of(function: &'a Function, inside: LoopId) -> Self {
        let blocks = &function.loops[inside].body;
        let mut found = Self { body: Body { function, inside }, before: Vec::new(), steps: [None; GENERAL] };
        let mut known: Vec<Option<Forms>> = vec![None; blocks.len()];
        let position = |block: BlockId| blocks.binary_search(&block).ok();
        let Some(header) = position(function.loops[inside].header) else { return found };
        known[header] = Some(found.body.beginning());
        // Forms only ever get less definite, so this ends.
        let mut changed = true;
        while changed {
            changed = false;
            for (at, block) in blocks.iter().enumerate() {
                let Some(forms) = known[at] else { continue };
                let behind = found.body.through(*block, forms);
                let next = function.blocks[*block].successors.iter().filter_map(|next| position(*next));
                for next in next.filter(|next| *next != header) {
                    let met = known[next].map_or(behind, |there| meet(&there, &behind));
                    changed |= known[next] != Some(met);
                    known[next] = Some(met);
                }
            }
        }
        found.before = blocks.iter().zip(known).filter_map(|(block, forms)| Some((*block, forms?))).collect();
        found.steps = found.steps();
        found
    }

    /// By how many bytes an operand of an instruction is further on from round to round; `None` where that is no constant.
    pub fn stride(&self, position: usize, operand: &Operand) -> Option<i64> {
        let forms = self.forms_before(self.body.function.block_of(position))?;
        moved(&self.body.address(position, operand, forms)?, &self.steps)
    }

    fn forms_before(&self, block: BlockId) -> Option<Forms> {
        let at = self.before.binary_search_by_key(&block, |(block, _)| *block).ok()?;
        Some(self.before[at].1)
    }

    /// Registers that are by a constant further on at the end of each round than at its beginning, and those that are made of
    /// such registers alone: they follow a round later.
    fn steps(&self) -> [Option<i64>; GENERAL] {
        let natural = &self.body.function.loops[self.body.inside];
        let end = |latch: &BlockId| Some(self.body.through(*latch, self.forms_before(*latch)?));
        let ends: Option<Vec<Forms>> = natural.latches.iter().map(end).collect();
        let Some(round) = ends.and_then(|ends| ends.into_iter().reduce(|one, other| meet(&one, &other))) else {
            return [None; GENERAL];
        };
        let mut steps = [Some(0); GENERAL];
        for register in natural.written.iter() {
            let own = Form::register(register).times;
            let behind = round[register.index()].filter(|form| form.times == own);
            steps[register.index()] = behind.and_then(|form| form.plus);
        }
        // Each turn finds one at least, or none is left to be found.
        for _ in 0..GENERAL {
            for register in natural.written.iter().map(Gpr::index) {
                steps[register] = steps[register].or_else(|| moved(&round[register]?, &steps));
            }
        }
        steps
    }
}

/// The code of a loop, and what its instructions make of registers.
pub(super) struct Body<'a> {
    pub(super) function: &'a Function,
    pub(super) inside: LoopId,
}

impl Body<'_> {
    /// Registers made of themselves, but for those that the loop leaves alone.
    fn beginning(&self) -> Forms {
        let mut forms: Forms = [Some(Form::STILL); GENERAL];
        for register in self.function.loops[self.inside].written.iter() {
            forms[register.index()] = Some(Form::register(register));
        }
        forms
    }

    /// What an operand's address adds up of, from what registers are made of where its block begins.
    fn address(&self, position: usize, operand: &Operand, mut forms: Forms) -> Option<Form> {
        for at in self.function.blocks[self.function.block_of(position)].first..position {
            self.step(&self.function.instructions[at], &mut forms);
        }
        sum(operand.base, operand.index, operand.scale, &forms)
    }

    /// Which registers that the loop writes, as they are where its block begins, the address of an operand adds up of, and how
    /// often each is in it; `None` where it is no sum.
    pub(super) fn addends(&self, position: usize, operand: &Operand) -> Option<Vec<(Gpr, i64)>> {
        let address = self.address(position, operand, self.beginning())?;
        let times = Gpr::all().map(|register| (register, address.times[register.index()]));
        Some(times.filter(|(_, times)| *times != 0).collect())
    }

    /// By how much a block moves a register; `None` where it sets it to anything else.
    pub(super) fn moved(&self, block: BlockId, register: Gpr) -> Option<i64> {
        let behind = self.through(block, self.beginning())[register.index()]?;
        behind.plus.filter(|_| behind.times == Form::register(register).times)
    }

    fn through(&self, block: BlockId, mut forms: Forms) -> Forms {
        self.function.instructions_of(block).iter().for_each(|instruction| self.step(instruction, &mut forms));
        forms
    }

    fn step(&self, instruction: &Instruction, forms: &mut Forms) {
        let set = self.result(instruction, forms);
        instruction.clobbered.iter().for_each(|register| forms[register.index()] = None);
        if let Some((register, form)) = set {
            forms[register.index()] = form;
        }
    }

    /// The register that an instruction sets to something that is followed.
    fn result(&self, instruction: &Instruction, forms: &Forms) -> Option<(Gpr, Option<Form>)> {
        let of = |source: Source| self.value(source, instruction, forms);
        match instruction.operation {
            Operation::Move { to: Place::Register(to), from } => Some((wide(to)?, of(from))),
            Operation::Extend { to, from, .. } => Some((wide(to)?, of(from))),
            Operation::Address { to, address } => Some((wide(to)?, effective(&address, forms))),
            Operation::Select { to, from, .. } => {
                let both = forms[to.register.index()].zip(of(from));
                Some((wide(to)?, both.and_then(|(one, other)| one.either(other))))
            }
            Operation::Compute(compute) => {
                let Place::Register(to) = compute.to else { return None };
                Some((wide(to)?, if compute.is_zero() { Some(Form::constant(0)) } else { computed(&compute, of) }))
            }
            _ => None,
        }
    }

    fn value(&self, source: Source, instruction: &Instruction, forms: &Forms) -> Option<Form> {
        match source {
            Source::Register(part) => wide(part).and_then(|register| forms[register.index()]),
            Source::Constant(value) => Some(Form::constant(value.cast_signed())),
            Source::Memory => self.stays(instruction.operands.first()?, forms).then_some(Form::STILL),
            Source::Unknown => None,
        }
    }

    /// Whether a place in memory is the same in each round, and nothing of its name, or on any of its bytes on the stack, is
    /// stored there.
    fn stays(&self, operand: &Operand, forms: &Forms) -> bool {
        let same = |register: Gpr| forms[register.index()].is_some_and(Form::is_still);
        let natural = &self.function.loops[self.inside];
        let mut body = natural.body.iter().flat_map(|block| self.function.instructions_of(*block));
        let overwritten = match Slot::of(operand) {
            Some(slot) => body.any(|instruction| slot.is_written_by(instruction)),
            None => stored(self.function, self.inside, operand),
        };
        operand.registers().iter().all(same) && !overwritten
    }
}

/// By how much a sum is further on from round to round.
fn moved(form: &Form, steps: &[Option<i64>; GENERAL]) -> Option<i64> {
    let parts = form.times.iter().zip(steps).filter(|(times, _)| **times != 0);
    parts.into_iter().try_fold(0_i64, |sum, (times, step)| Some(sum.wrapping_add(times.wrapping_mul((*step)?))))
}

/// The register of a part that holds an address or a count: eight bytes, or four that fill the rest with zeros.
fn wide(part: Part) -> Option<Gpr> {
    (part.bytes >= 4).then_some(part.register)
}

/// What the registers of an address add up to.
fn sum(base: Option<Gpr>, index: Option<Gpr>, scale: u64, forms: &Forms) -> Option<Form> {
    let part = |register: Option<Gpr>| register.map_or(Some(Form::constant(0)), |one| forms[one.index()]);
    Some(part(base)?.and(part(index)?, scale.cast_signed()))
}

fn effective(address: &EffectiveAddress, forms: &Forms) -> Option<Form> {
    let sum = sum(address.base, address.index, address.scale, forms)?;
    Some(sum.and(Form::constant(address.displacement.cast_signed()), 1))
}

fn computed(compute: &Compute, of: impl Fn(Source) -> Option<Form>) -> Option<Form> {
    let constant = |form: &Form| form.plus.filter(|_| form.is_still());
    let number = |source: Source| {
        let form = of(source)?;
        let extended = |value: i64| Form::constant(sign_extended(value.cast_unsigned(), compute.bits()));
        Some(constant(&form).map_or(form, extended))
    };
    let (left, right) = (number(compute.left)?, number(compute.right)?);
    match compute.what {
        Arithmetic::Add => Some(left.and(right, 1)),
        Arithmetic::Subtract => Some(left.and(right, -1)),
        Arithmetic::Multiply => match (constant(&left), constant(&right)) {
            (_, Some(scale)) => Some(left.scaled(scale)),
            (Some(scale), _) => Some(right.scaled(scale)),
            // What stays is as often in it in each round.
            _ => (left.is_still() && right.is_still()).then_some(Form::STILL),
        },
        Arithmetic::ShiftLeft => {
            let count = u32::try_from(constant(&right)?).ok().filter(|count| *count < 32)?;
            Some(left.scaled(1 << count))
        }
        Arithmetic::And if right.is_still() && is_slow(&left) && constant(&right).is_none_or(is_wide_mask) => {
            Some(Form { plus: None, ..left })
        }
        _ => (left.is_still() && right.is_still()).then_some(Form::STILL),
    }
}

/// Whether a number leaves the lower bits, and so many of them that a counter seldom goes around: an index of a ring.
fn is_wide_mask(number: i64) -> bool {
    const FEWEST: i64 = 0xfff;
    number >= FEWEST && number & number.wrapping_add(1) == 0
}

/// Whether a sum moves by a few of its registers' steps: what is multiplied by more goes around at once, as hashes do.
fn is_slow(form: &Form) -> bool {
    const MOST: u64 = 64;
    form.times.iter().all(|times| times.unsigned_abs() <= MOST)
}

/// What holds at a block that two ways come to.
fn meet(left: &Forms, right: &Forms) -> Forms {
    let mut met: Forms = [None; GENERAL];
    for ((met, left), right) in met.iter_mut().zip(left).zip(right) {
        *met = left.zip(*right).and_then(|(left, right)| left.either(right));
    }
    met
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stride(code: &[u8], position: usize) -> Option<i64> {
        let function = Function::decode(code, 0);
        let operand = function.instructions[position].operands[0];
        RoundForms::of(&function, LoopId::new(0)).stride(position, &operand)
    }

    #[test]
    fn a_counter_that_is_copied_to_and_fro_moves_what_it_counts() {
        // 0: addsd xmm0,[rdi+rax*8]; lea rcx,[rax+1]; cmp rax,rdx; mov rax,rcx; jne 0 | ret
        let code =
            [0xf2, 0x0f, 0x58, 0x04, 0xc7, 0x48, 0x8d, 0x48, 1, 0x48, 0x39, 0xd0, 0x48, 0x89, 0xc8, 0x75, 0xef, 0xc3];
        assert_eq!(stride(&code, 0), Some(8));
    }

    #[test]
    fn a_register_that_is_set_to_a_counter_follows_it() {
        // 0: addsd xmm0,[rdi+rax*8]; mov rax,rcx; cmp rcx,rdx; lea rcx,[rcx+1]; jne 0 | ret
        let code =
            [0xf2, 0x0f, 0x58, 0x04, 0xc7, 0x48, 0x89, 0xc8, 0x48, 0x39, 0xd1, 0x48, 0x8d, 0x49, 1, 0x75, 0xef, 0xc3];
        assert_eq!(stride(&code, 0), Some(8));
    }

    #[test]
    fn a_neighbour_that_a_branch_chooses_moves_like_the_counter() {
        // 0: lea rcx,[rax-1]; test [rsi+rax*8],1; je d; lea rcx,[rax+1] | d: addsd xmm0,[rdi+rcx*8]; inc rax; cmp rax,rdx; jne 0
        let code = [
            0x48, 0x8d, 0x48, 0xff, 0xf6, 0x04, 0xc6, 1, 0x74, 4, 0x48, 0x8d, 0x48, 1, 0xf2, 0x0f, 0x58, 0x04, 0xcf,
            0x48, 0xff, 0xc0, 0x48, 0x39, 0xd0, 0x75, 0xe5, 0xc3,
        ];
        assert_eq!(stride(&code, 4), Some(8));
    }

    #[test]
    fn a_base_that_is_loaded_in_each_round_stays_unless_it_is_stored() {
        // 0: mov rcx,[rsp+8]; addsd xmm0,[rcx+rax*8]; inc rax; cmp rax,rdx; jne 0 | ret
        let code = [
            0x48, 0x8b, 0x4c, 0x24, 8, 0xf2, 0x0f, 0x58, 0x04, 0xc1, 0x48, 0xff, 0xc0, 0x48, 0x39, 0xd0, 0x75, 0xee,
            0xc3,
        ];
        assert_eq!(stride(&code, 1), Some(8));
        // With mov [rsp+8],rsi in it.
        let stored = [&code[..16], &[0x48, 0x89, 0x74, 0x24, 8, 0x75, 0xe9, 0xc3]].concat();
        assert_eq!(stride(&stored, 1), None);
        // With mov dword [rsp+12],1 in it: its upper half.
        let upper = [&code[..16], &[0xc7, 0x44, 0x24, 12, 1, 0, 0, 0, 0x75, 0xe6, 0xc3]].concat();
        assert_eq!(stride(&upper, 1), None);
    }

    #[test]
    fn an_index_of_a_ring_follows_its_counter() {
        // 0: mov edx,eax; and edx,0xffffff; mov [rbx+rdx*4],eax; inc eax; cmp eax,ecx; jne 0 | ret
        let code = [
            0x89, 0xc2, 0x81, 0xe2, 0xff, 0xff, 0xff, 0x00, 0x89, 0x04, 0x93, 0xff, 0xc0, 0x39, 0xc8, 0x75, 0xef, 0xc3,
        ];
        assert_eq!(stride(&code, 2), Some(4));
        // Of eight elements it would go around all the time.
        let short = [&code[..4], &[7, 0, 0, 0], &code[8..]].concat();
        assert_eq!(stride(&short, 2), None);
    }

    #[test]
    fn a_gather_and_a_chase_are_no_sums() {
        // 0: mov eax,[rdi+rcx*4]; add edx,[rsi+rax*4]; inc rcx; cmp rcx,r8; jne 0 | ret
        let gather = [0x8b, 0x04, 0x8f, 0x03, 0x14, 0x86, 0x48, 0xff, 0xc1, 0x4c, 0x39, 0xc1, 0x75, 0xf2, 0xc3];
        assert_eq!((stride(&gather, 0), stride(&gather, 1)), (Some(4), None));
        // 0: add rdx,[rdi+8]; mov rdi,[rdi]; dec rsi; jne 0
        let chase = [0x48, 0x03, 0x57, 8, 0x48, 0x8b, 0x3f, 0x48, 0xff, 0xce, 0x75, 0xf4, 0xc3];
        assert_eq!((stride(&chase, 0), stride(&chase, 1)), (None, None));
    }
}
