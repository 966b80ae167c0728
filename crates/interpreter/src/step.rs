//! One instruction after the other.

use iced_x86::{FlowControl, Instruction, Mnemonic, OpAccess, OpKind, Register, UsedRegister};

use crate::alu::ALL;
use crate::bytes::Bytes;
use crate::decoded::{Decoded, Encoding};
use crate::ended::Ended;
use crate::machine::{Done, Machine};
use crate::operands::is_narrow;
use crate::string::Repeated;

/// What an instruction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its address.
    pub address: u64,
    /// Address of the next one.
    pub next: u64,
    /// Whether it is a jump, a call or a return, taken or not.
    pub jumps: bool,
    /// Of a conditional jump: whether it was taken.
    pub branch: Option<bool>,
    /// Address of the operand in memory that it names, where that is known; none that is thread-local.
    pub touched: Option<u64>,
    /// Of a string instruction: where it began, and how often it was repeated.
    pub repeated: Option<Repeated>,
}

impl<B: Bytes> Machine<B> {
    /// Interprets the next instruction.
    ///
    /// # Errors
    /// It cannot be interpreted; what it holds is then as before it, or in part as behind it.
    pub fn step(&mut self) -> Result<Step, Ended> {
        let address = self.registers.ip;
        let memory = &mut self.memory;
        let decoded = self.code.at(address, |into| memory.code(address, into)).ok_or(Ended::NoCode)?;
        let code = &decoded.code;
        let touched = if names_memory(code) { self.address(code) } else { None };
        let jumps = code.flow_control() != FlowControl::Next;
        let step = Step { address, next: code.next_ip(), jumps, branch: None, touched, repeated: None };
        if let Some(ended) = ends(code.mnemonic()) {
            return Err(ended);
        }
        let step = match code.flow_control() {
            FlowControl::Next => self.execute(&decoded, step)?,
            FlowControl::Interrupt | FlowControl::Exception | FlowControl::XbeginXabortXend => {
                return Err(Ended::Outside);
            }
            _ => self.jump(code, step)?,
        };
        self.registers.ip = step.next;
        Ok(step)
    }

    fn execute(&mut self, decoded: &Decoded, step: Step) -> Result<Step, Ended> {
        let code = &decoded.code;
        if code.is_string_instruction() {
            return self.string(code).map(|repeated| Step { repeated: Some(repeated), touched: None, ..step });
        }
        let is_followed = decoded.encoding != Encoding::Evex || is_narrow(code) && code.op_mask() == Register::None;
        let done = if is_followed { self.understood(decoded)? } else { self.mask_instruction(decoded)? };
        if let Done::Other = done {
            self.forget(code)?;
        }
        Ok(step)
    }

    fn understood(&mut self, decoded: &Decoded) -> Result<Done, Ended> {
        let attempts = [
            Self::integer,
            Self::bit_instruction,
            Self::stack,
            Self::vector,
            Self::float,
            Self::packed,
            Self::shuffle,
            Self::mask_instruction,
        ];
        for attempt in attempts {
            if let Done::Whole = attempt(self, decoded)? {
                return Ok(Done::Whole);
            }
        }
        Ok(Done::Other)
    }

    /// What an instruction that is not understood writes is not known.
    fn forget(&mut self, code: &Instruction) -> Result<(), Ended> {
        let info = self.factory.info(code);
        let written = |access| {
            matches!(access, OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite | OpAccess::ReadCondWrite)
        };
        let registers: Vec<Register> =
            info.used_registers().iter().filter(|used| written(used.access())).map(UsedRegister::register).collect();
        let stores = info.used_memory().iter().filter(|used| written(used.access())).count();
        if stores > 0 {
            let is_named = (0..code.op_count()).any(|operand| code.op_kind(operand) == OpKind::Memory);
            let bytes = u64::try_from(code.memory_size().size()).unwrap_or(0);
            let address = self.address(code).filter(|_| stores == 1 && is_named && bytes > 0).ok_or(Ended::Unknown)?;
            for first in (0..bytes).step_by(8) {
                let length = u32::try_from((bytes - first).min(8)).unwrap_or(8);
                self.memory.write(address.wrapping_add(first), length, None);
            }
        }
        for register in registers {
            self.registers.forget(register);
        }
        self.registers.flags.set(flags_changed(code), None);
        Ok(())
    }

    fn jump(&mut self, code: &Instruction, step: Step) -> Result<Step, Ended> {
        let next = match code.flow_control() {
            FlowControl::UnconditionalBranch => code.near_branch_target(),
            FlowControl::ConditionalBranch => {
                let taken = self.is_taken(code).ok_or(Ended::Unknown)?;
                let next = if taken { code.near_branch_target() } else { step.next };
                return Ok(Step { next, branch: Some(taken), ..step });
            }
            FlowControl::IndirectBranch => self.read(code, 0)?.ok_or(Ended::Unknown)?,
            FlowControl::Call => {
                self.push(Some(step.next), 8)?;
                code.near_branch_target()
            }
            FlowControl::IndirectCall => {
                let target = self.read(code, 0)?.ok_or(Ended::Unknown)?;
                self.push(Some(step.next), 8)?;
                target
            }
            FlowControl::Return => {
                let target = self.pop(8)?.ok_or(Ended::Unknown)?;
                if code.op_count() > 0 {
                    let more = self.read(code, 0)?.unwrap_or(0);
                    let above = self.registers.read(Register::RSP).map(|top| top.wrapping_add(more));
                    self.registers.write(Register::RSP, above);
                }
                target
            }
            _ => return Err(Ended::Outside),
        };
        Ok(Step { next, ..step })
    }

    fn is_taken(&mut self, code: &Instruction) -> Option<bool> {
        if code.is_jcc_short_or_near() {
            return self.holds(code.condition_code());
        }
        match code.mnemonic() {
            Mnemonic::Jrcxz => Some(self.registers.read(Register::RCX)? == 0),
            Mnemonic::Jecxz => Some(self.registers.read(Register::ECX)? == 0),
            Mnemonic::Loop => {
                let left = self.registers.read(Register::RCX)?.wrapping_sub(1);
                self.registers.write(Register::RCX, Some(left));
                Some(left != 0)
            }
            _ => None,
        }
    }
}

/// What only the processor or the kernel can do.
fn ends(mnemonic: Mnemonic) -> Option<Ended> {
    use Mnemonic as M;
    match mnemonic {
        M::Pause | M::Tpause | M::Umwait => Some(Ended::Waits),
        M::Syscall
        | M::Sysenter
        | M::Rdtsc
        | M::Rdtscp
        | M::Rdpmc
        | M::Rdrand
        | M::Rdseed
        | M::Rdpid
        | M::Cpuid
        | M::Xgetbv
        | M::Xrstor
        | M::Xrstor64
        | M::Fxrstor
        | M::Fxrstor64
        | M::Wrfsbase
        | M::Wrgsbase
        | M::Popfq => Some(Ended::Outside),
        _ => None,
    }
}

/// Flags that an instruction changes or leaves undefined.
fn flags_changed(code: &Instruction) -> u64 {
    if code.rflags_modified() == 0 { 0 } else { ALL }
}

/// Whether data of the program lie under the operand that an instruction names; what is thread-local is elsewhere for each
/// thread.
fn names_memory(code: &Instruction) -> bool {
    let is_named = (0..code.op_count()).any(|operand| code.op_kind(operand) == OpKind::Memory);
    let is_own = matches!(code.memory_segment(), Register::FS | Register::GS);
    is_named && !is_own && !matches!(code.mnemonic(), Mnemonic::Lea | Mnemonic::Nop)
}
