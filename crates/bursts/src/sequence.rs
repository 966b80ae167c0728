//! Instructions that a copy has beside those of the program: counters, calls, returns, ways out.
//!
//! None of them changes a flag that somebody still reads, none writes below the stack pointer, and whatever
//! register one needs is in a word of the area meanwhile. So the state of the program is known before every
//! one of them ([`Origin`]).

use iced_x86::{
    BlockEncoder, BlockEncoderOptions, BlockEncoderResult, Code, Instruction, InstructionBlock, MemoryOperand, Register,
};

use crate::area::{Area, Control};
use crate::log::Log;

/// The program's state before an instruction of a copy: where it would be, and which registers to take back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Where in the program.
    pub place: Place,
    /// Registers that are in words of the area: [`SAVED_RAX`] and the like.
    pub saved: u8,
    /// What the stack pointer lacks, bytes.
    pub popped: u64,
}

/// Where a thread is in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At this address.
    At(u64),
    /// At the address that [`Control::Original`] holds.
    Noted,
}

/// [`Control::Rax`] holds `rax`.
pub const SAVED_RAX: u8 = 1;
/// [`Control::Rcx`] holds `rcx`.
pub const SAVED_RCX: u8 = 2;
/// [`Control::Rdx`] holds `rdx`.
pub const SAVED_RDX: u8 = 4;
/// [`Control::R11`] holds `r11`.
pub const SAVED_R11: u8 = 8;

/// What a thread asks the kernel when it leaves the copies: who traces it is told, and may let it in again (`getppid` of
/// `asm/unistd_64.h`). For one that nobody traces any more it changes nothing.
pub const FAREWELL: u32 = 110;

/// A place within the code that is being made, which instructions jump to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Label(u64);

impl Label {
    /// The address that stands for it.
    pub(crate) fn ip(self) -> u64 {
        self.0
    }
}

/// An instruction and the state of the program before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Emitted {
    pub(crate) instruction: Instruction,
    pub(crate) origin: Origin,
}

/// Code that is being made.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    pub(crate) emitted: Vec<Emitted>,
    labels: u64,
    /// What the next instruction is called.
    pending: Vec<Label>,
}

const WORD: u64 = 8;
/// Labels are the addresses of instructions before they have real ones; no program has code there.
const LABELS: u64 = 0x7000_0000_0000_0000;
/// Instructions without a label.
const UNNAMED: u64 = 0x7800_0000_0000_0000;

impl Sequence {
    /// Code for an address; `None` where something cannot be encoded.
    pub(crate) fn encoded(&self, base: u64) -> Option<BlockEncoderResult> {
        let instructions: Vec<Instruction> = self.emitted.iter().map(|emitted| emitted.instruction).collect();
        if instructions.iter().any(|instruction| instruction.code() == Code::INVALID) {
            return None;
        }
        let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
        BlockEncoder::encode(64, InstructionBlock::new(&instructions, base), options).ok()
    }

    /// A new name for a place.
    pub(crate) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(LABELS + self.labels * 16)
    }

    /// The next instruction stands at this place.
    pub(crate) fn place(&mut self, label: Label) {
        self.pending.push(label);
    }

    /// One instruction has one name; further ones are those of a `nop` before it.
    pub(crate) fn push(&mut self, instruction: Instruction, origin: Origin) {
        let last = self.pending.pop();
        for label in std::mem::take(&mut self.pending) {
            self.append(Instruction::with(Code::Nopd), origin, Some(label));
        }
        self.append(instruction, origin, last);
    }

    fn append(&mut self, mut instruction: Instruction, origin: Origin, label: Option<Label>) {
        instruction.set_ip(label.map_or(UNNAMED + self.emitted.len() as u64 * 16, |label| label.0));
        self.emitted.push(Emitted { instruction, origin });
    }

    /// Jumps to a label.
    pub(crate) fn jump(&mut self, label: Label, at: u64) {
        self.push(branch(Code::Jmp_rel32_64, label.0), Origin::at(at));
    }

    /// Jumps to an address of copies nearby.
    pub(crate) fn jump_to(&mut self, address: u64, at: u64) {
        self.push(branch(Code::Jmp_rel32_64, address), Origin::at(at));
    }

    /// Jumps to what a word says.
    pub(crate) fn jump_through(&mut self, word: u64, place: Place) {
        self.push(with_1(Code::Jmp_rm64, word), Origin { place, saved: 0, popped: 0 });
    }

    /// A conditional jump of the program, to a label.
    pub(crate) fn branch(&mut self, instruction: &Instruction, label: Label) {
        let mut branch = *instruction;
        branch.set_near_branch64(label.0);
        branch.as_near_branch();
        self.push(branch, Origin::at(instruction.ip()));
    }

    /// A jump on a condition of ours.
    fn branch_if(&mut self, code: Code, label: Label, origin: Origin) {
        self.push(branch(code, label.0), origin);
    }

    /// Counts up.
    pub(crate) fn count(&mut self, area: &Area, word: u64, at: u64, flags_are_free: bool) {
        if flags_are_free {
            return self.push(with_1(Code::Inc_rm64, word), Origin::at(at));
        }
        self.save(area, Register::RCX, at, 0);
        let origin = Origin { place: Place::At(at), saved: SAVED_RCX, popped: 0 };
        self.push(load(Register::RCX, word), origin);
        self.push(step(1), origin);
        self.push(store(word, Register::RCX), origin);
        self.push(load(Register::RCX, area.control(Control::Rcx)), origin);
    }

    /// Counts down, and leaves at zero.
    pub(crate) fn count_down(&mut self, area: &Area, word: u64, at: u64, flags_are_free: bool, way_out: Label) {
        if flags_are_free {
            self.push(with_1(Code::Dec_rm64, word), Origin::at(at));
            return self.branch_if(Code::Je_rel32_64, way_out, Origin::at(at));
        }
        let (empty, done) = (self.label(), self.label());
        self.save(area, Register::RCX, at, 0);
        let origin = Origin { place: Place::At(at), saved: SAVED_RCX, popped: 0 };
        self.push(load(Register::RCX, word), origin);
        self.branch_if(Code::Jrcxz_rel8_64, empty, origin);
        self.push(step(-1), origin);
        self.push(store(word, Register::RCX), origin);
        self.push(load(Register::RCX, area.control(Control::Rcx)), origin);
        self.jump(done, at);
        self.place(empty);
        self.push(load(Register::RCX, area.control(Control::Rcx)), origin);
        self.jump(way_out, at);
        self.place(done);
    }

    /// Writes down an address, which `load` loads into `rdx`, as that of the operand with this number.
    pub(crate) fn log(&mut self, area: &Area, log: Log, load_address: Instruction, number: u32, at: u64) {
        let origin = Origin { place: Place::At(at), saved: SAVED_RDX | SAVED_RCX, popped: 0 };
        let sum = MemoryOperand::with_base_displ(Register::RCX, 1);
        self.save(area, Register::RDX, at, 0);
        self.push(load_address, Origin { saved: SAVED_RDX, ..origin });
        self.save(area, Register::RCX, at, SAVED_RDX);
        self.push(two(Instruction::with2(Code::Mov_r64_rm64, Register::RCX, low(log.count()))), origin);
        self.push(two(Instruction::with2(Code::Lea_r64_m, Register::RCX, sum)), origin);
        self.push(two(Instruction::with2(Code::Mov_rm64_r64, low(log.count()), Register::RCX)), origin);
        self.push(two(Instruction::with2(Code::Movzx_r32_rm16, Register::ECX, Register::CX)), origin);
        let address = entry_of(log.addresses(), 8);
        self.push(two(Instruction::with2(Code::Mov_rm64_r64, address, Register::RDX)), origin);
        let operand = entry_of(log.numbers(), 4);
        self.push(two(Instruction::with2(Code::Mov_rm32_imm32, operand, number)), origin);
        self.restore(area, origin);
    }

    /// Calls what stands at a label, which must go on with [`Sequence::called`]. The processor takes it for a call and
    /// knows where the return will go.
    pub(crate) fn call(&mut self, label: Label, at: u64) {
        self.push(branch(Code::Call_rel32_64, label.0), Origin::at(at));
    }

    /// What a call that was just made has put on the stack becomes the program's own return address, which a word holds.
    /// It is stored whole: a return that reads what came in two halves waits for both.
    pub(crate) fn called(&mut self, word: u64, at: u64) {
        let operand = MemoryOperand::with_base_displ(Register::RSP, WORD.cast_signed());
        let drop = two(Instruction::with2(Code::Lea_r64_m, Register::RSP, operand));
        self.push(drop, Origin { place: Place::At(at), saved: 0, popped: WORD });
        self.push(with_1(Code::Push_rm64, word), Origin::at(at));
    }

    /// Looks an address up that an operand of `instruction` names, or the top of the stack, and jumps to its copy;
    /// where there is none it goes to `way_out`, as if nothing had been.
    pub(crate) fn look_up(&mut self, area: &Area, lookup: &Lookup, way_out: Label) {
        let at = lookup.at;
        let hit = self.label();
        let control = |word| area.control(word);
        let both = SAVED_RDX | SAVED_RCX;
        let origin = Origin { place: Place::At(at), saved: both, popped: 0 };
        self.save(area, Register::RDX, at, 0);
        self.push(lookup.target, Origin { saved: SAVED_RDX, ..origin });
        self.save(area, Register::RCX, at, SAVED_RDX);
        let sum = MemoryOperand::new(Register::RCX, Register::RDX, 1, 0, 0, false, Register::None);
        self.entry(area.table().keys(), origin);
        self.push(two(Instruction::with2(Code::Lea_r64_m, Register::RCX, sum)), origin);
        self.branch_if(Code::Jrcxz_rel8_64, hit, origin);
        self.push(store(control(Control::Missed), Register::RDX), origin);
        self.restore(area, origin);
        self.jump(way_out, at);
        self.place(hit);
        self.push(store(control(Control::Original), Register::RDX), origin);
        self.entry(area.table().copies(), origin);
        if let Then::Return(more) = lookup.then {
            return self.give_back(area, more, origin);
        }
        self.push(store(control(Control::Target), Register::RCX), origin);
        self.restore(area, origin);
        match lookup.then {
            Then::Call(label) => self.call(label, at),
            _ => self.jump_through(control(Control::Target), Place::Noted),
        }
    }

    /// Loads the word of a table for the address in `rdx` into `rcx`.
    fn entry(&mut self, table: u64, origin: Origin) {
        self.push(two(Instruction::with2(Code::Movzx_r32_rm16, Register::ECX, Register::DX)), origin);
        self.push(two(Instruction::with2(Code::Mov_r64_rm64, Register::RCX, entry_of(table, 8))), origin);
    }

    /// Returns to the copy that `rcx` holds, as the processor expects: to behind the call that it took for one.
    fn give_back(&mut self, area: &Area, more: u16, found: Origin) {
        let top = MemoryOperand::with_base(Register::RSP);
        self.push(two(Instruction::with2(Code::Mov_rm64_r64, top, Register::RCX)), found);
        // From here on the stack no longer holds where to go; the word does.
        let popped = WORD + u64::from(more);
        let behind = |saved| Origin { place: Place::Noted, saved, popped };
        self.push(load(Register::RCX, area.control(Control::Rcx)), behind(SAVED_RCX | SAVED_RDX));
        self.push(load(Register::RDX, area.control(Control::Rdx)), behind(SAVED_RDX));
        let back = if more == 0 {
            Instruction::with(Code::Retnq)
        } else {
            two(Instruction::with1(Code::Retnq_imm16, i32::from(more)))
        };
        self.push(back, behind(0));
    }

    /// The way out to an address, which a word holds: notes where and when, says so, and goes there.
    pub(crate) fn leave(&mut self, area: &Area, to: u64, word: u64) {
        self.save(area, Register::RAX, to, 0);
        self.save(area, Register::RDX, to, SAVED_RAX);
        let saved = SAVED_RAX | SAVED_RDX;
        let origin = Origin { place: Place::At(to), saved, popped: 0 };
        self.push(load(Register::RAX, word), origin);
        self.push(store(area.control(Control::Left), Register::RAX), origin);
        self.stamp(area, Control::End, origin);
        self.save(area, Register::RCX, to, saved);
        self.save(area, Register::R11, to, saved | SAVED_RCX);
        let origin = Origin { saved: saved | SAVED_RCX | SAVED_R11, ..origin };
        self.push(two(Instruction::with2(Code::Mov_r32_imm32, Register::EAX, FAREWELL)), origin);
        self.push(Instruction::with(Code::Syscall), origin);
        for register in [Register::RAX, Register::RCX, Register::RDX, Register::R11] {
            self.push(load(register, area.control(word_of(register))), origin);
        }
        self.jump_through(word, Place::At(to));
    }

    /// The way in: notes when, and goes to [`Control::Target`].
    pub(crate) fn enter(&mut self, area: &Area) {
        let noted = |saved| Origin { place: Place::Noted, saved, popped: 0 };
        self.push(store(area.control(Control::Rax), Register::RAX), noted(0));
        self.push(store(area.control(Control::Rdx), Register::RDX), noted(SAVED_RAX));
        let origin = noted(SAVED_RAX | SAVED_RDX);
        self.stamp(area, Control::Start, origin);
        self.push(load(Register::RAX, area.control(Control::Rax)), origin);
        self.push(load(Register::RDX, area.control(Control::Rdx)), origin);
        self.jump_through(area.control(Control::Target), Place::Noted);
    }

    fn stamp(&mut self, area: &Area, word: Control, origin: Origin) {
        let word = area.control(word);
        self.push(Instruction::with(Code::Rdtsc), origin);
        self.push(two(Instruction::with2(Code::Mov_rm32_r32, here(word), Register::EAX)), origin);
        self.push(two(Instruction::with2(Code::Mov_rm32_r32, here(word + 4), Register::EDX)), origin);
    }

    fn save(&mut self, area: &Area, register: Register, at: u64, saved: u8) {
        self.push(store(area.control(word_of(register)), register), Origin { place: Place::At(at), saved, popped: 0 });
    }

    fn restore(&mut self, area: &Area, origin: Origin) {
        for register in [Register::RCX, Register::RDX] {
            self.push(load(register, area.control(word_of(register))), origin);
        }
    }
}

impl Origin {
    /// At an address, with all registers as they are.
    pub(crate) fn at(address: u64) -> Self {
        Self { place: Place::At(address), saved: 0, popped: 0 }
    }
}

/// What is looked up.
pub(crate) struct Lookup {
    /// Address of the program's instruction.
    pub(crate) at: u64,
    /// Loads the address that it goes to into `rdx`.
    pub(crate) target: Instruction,
    /// What remains to be done.
    pub(crate) then: Then,
}

/// What a jump does beside jumping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing.
    Jump,
    /// It calls; what stands at the label makes the return address the program's.
    Call(Label),
    /// It returns, and takes so many bytes more off the stack.
    Return(u16),
}

fn word_of(register: Register) -> Control {
    match register {
        Register::RAX => Control::Rax,
        Register::RCX => Control::Rcx,
        Register::R11 => Control::R11,
        _ => Control::Rdx,
    }
}

/// Loads the operand of a jump or call through it into `rdx`.
pub(crate) fn load_target(jump: &Instruction) -> Instruction {
    let mut load = *jump;
    load.set_code(Code::Mov_r64_rm64);
    load.set_op1_kind(jump.op0_kind());
    load.set_op1_register(jump.op0_register());
    load.set_op0_kind(iced_x86::OpKind::Register);
    load.set_op0_register(Register::RDX);
    load.set_has_repne_prefix(false);
    load
}

/// Loads the top of the stack into `rdx`.
pub(crate) fn load_top() -> Instruction {
    two(Instruction::with2(Code::Mov_r64_rm64, Register::RDX, MemoryOperand::with_base(Register::RSP)))
}

/// A word in the first 2 GiB.
fn low(word: u64) -> MemoryOperand {
    MemoryOperand::new(Register::None, Register::None, 1, word.cast_signed(), 4, false, Register::None)
}

/// The entry whose number `rcx` holds, of entries of so many bytes in the first 2 GiB.
fn entry_of(first: u64, bytes: u32) -> MemoryOperand {
    MemoryOperand::new(Register::None, Register::RCX, bytes, first.cast_signed(), 4, false, Register::None)
}

fn here(word: u64) -> MemoryOperand {
    MemoryOperand::with_base_displ(Register::RIP, word.cast_signed())
}

fn load(register: Register, word: u64) -> Instruction {
    two(Instruction::with2(Code::Mov_r64_rm64, register, here(word)))
}

fn store(word: u64, register: Register) -> Instruction {
    two(Instruction::with2(Code::Mov_rm64_r64, here(word), register))
}

/// `lea rcx, [rcx + by]`.
fn step(by: i64) -> Instruction {
    two(Instruction::with2(Code::Lea_r64_m, Register::RCX, MemoryOperand::with_base_displ(Register::RCX, by)))
}

fn with_1(code: Code, word: u64) -> Instruction {
    two(Instruction::with1(code, here(word)))
}

fn branch(code: Code, to: u64) -> Instruction {
    two(Instruction::with_branch(code, to))
}

/// The operands above are of the kinds that their codes take; the encoder says so if not.
fn two(made: Result<Instruction, iced_x86::IcedError>) -> Instruction {
    made.unwrap_or_default()
}
