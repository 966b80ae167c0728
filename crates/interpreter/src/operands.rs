//! Operands of instructions: where they are, what they hold, and what is written to them.

use iced_x86::{ConditionCode, Instruction, OpKind, Register};

use crate::alu::{ALL, CARRY, OVERFLOW, Outcome, PARITY, SIGN, ZERO};
use crate::bits::low;
use crate::bytes::Bytes;
use crate::decoded::{Decoded, Encoding};
use crate::ended::Ended;
use crate::machine::Machine;
use crate::registers::{Lanes, UNKNOWN};

impl<B: Bytes> Machine<B> {
    /// Address of the operand in memory, where that is known.
    pub(crate) fn address(&self, code: &Instruction) -> Option<u64> {
        let part = |register: Register| match register {
            Register::None | Register::RIP | Register::EIP => Some(0),
            register => self.registers.read(register),
        };
        let scaled = part(code.memory_index())?.wrapping_mul(u64::from(code.memory_index_scale()));
        let sum = part(code.memory_base())?.wrapping_add(scaled).wrapping_add(code.memory_displacement64());
        let is_narrow = code.memory_base().size() == 4 || code.memory_index().size() == 4;
        let offset = if is_narrow { sum & low(32) } else { sum };
        Some(offset.wrapping_add(match code.memory_segment() {
            Register::FS => self.registers.segments[0],
            Register::GS => self.registers.segments[1],
            _ => 0,
        }))
    }

    /// What an operand of up to eight bytes holds; a constant is extended to 64 bits.
    pub(crate) fn read(&mut self, code: &Instruction, operand: u32) -> Result<Option<u64>, Ended> {
        match code.op_kind(operand) {
            OpKind::Register => Ok(self.registers.read(code.op_register(operand))),
            OpKind::Memory => {
                let bytes = bytes_in_memory(code).min(8);
                let Some(address) = self.address(code) else { return Ok(None) };
                self.memory.read(address, bytes)
            }
            _ => Ok(code.try_immediate(operand).ok()),
        }
    }

    /// Writes an operand of up to eight bytes.
    pub(crate) fn write(&mut self, code: &Instruction, operand: u32, value: Option<u64>) -> Result<(), Ended> {
        match code.op_kind(operand) {
            OpKind::Register => self.registers.write(code.op_register(operand), value),
            OpKind::Memory => {
                let address = self.address(code).ok_or(Ended::Unknown)?;
                self.memory.write(address, bytes_in_memory(code).min(8), value);
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes a result and its flags.
    pub(crate) fn write_outcome(&mut self, code: &Instruction, outcome: Option<Outcome>) -> Result<(), Ended> {
        self.set_flags(outcome);
        self.write(code, 0, outcome.map(|outcome| outcome.value))
    }

    pub(crate) fn set_flags(&mut self, outcome: Option<Outcome>) {
        self.registers.flags.set(ALL, None);
        if let Some(outcome) = outcome {
            self.registers.flags.set(outcome.known, Some(outcome.flags));
        }
    }

    /// Bits of the first operand.
    pub(crate) fn bits(code: &Instruction) -> u32 {
        8 * match code.op0_kind() {
            OpKind::Memory => bytes_in_memory(code),
            _ => u32::try_from(code.op0_register().size()).unwrap_or(8),
        }
    }

    /// What a vector operand of so many bytes holds: a register of any kind, or memory.
    pub(crate) fn lanes(&mut self, code: &Instruction, operand: u32, bytes: u32) -> Result<Lanes, Ended> {
        match code.op_kind(operand) {
            OpKind::Register if code.op_register(operand).is_gpr() => {
                Ok([self.registers.read(code.op_register(operand)), Some(0), Some(0), Some(0)])
            }
            OpKind::Register => Ok(self.registers.lanes(code.op_register(operand))),
            OpKind::Memory => {
                let Some(address) = self.address(code) else { return Ok(UNKNOWN) };
                self.loaded(address, bytes)
            }
            _ => Ok(UNKNOWN),
        }
    }

    /// So many bytes of memory, and zeros.
    pub(crate) fn loaded(&mut self, address: u64, bytes: u32) -> Result<Lanes, Ended> {
        let mut lanes = [Some(0); 4];
        for (lane, first) in lanes.iter_mut().zip((0..bytes).step_by(8)) {
            *lane = self.memory.read(address.wrapping_add(u64::from(first)), (bytes - first).min(8))?;
        }
        Ok(lanes)
    }

    /// So many bytes to memory.
    pub(crate) fn store(&mut self, code: &Instruction, lanes: Lanes, bytes: u32) -> Result<(), Ended> {
        let address = self.address(code).ok_or(Ended::Unknown)?;
        for (lane, first) in lanes.iter().zip((0..bytes).step_by(8)) {
            self.memory.write(address.wrapping_add(u64::from(first)), (bytes - first).min(8), *lane);
        }
        Ok(())
    }

    /// Writes a vector of as many bytes as the first operand has.
    pub(crate) fn set_lanes(&mut self, decoded: &Decoded, lanes: Lanes) -> Result<(), Ended> {
        let code = &decoded.code;
        if code.op0_kind() == OpKind::Memory {
            return self.store(code, lanes, bytes_in_memory(code));
        }
        let words = (code.op0_register().size() / 8).min(4);
        self.registers.set_lanes(code.op0_register(), lanes, words, decoded.encoding != Encoding::Legacy);
        Ok(())
    }

    /// Whether flags are so, where those that are asked are known.
    pub(crate) fn holds(&self, condition: ConditionCode) -> Option<bool> {
        use ConditionCode::{None as Always, a, ae, b, be, e, g, ge, l, le, ne, no, np, ns, o, p, s};
        let flag = |mask| Some(self.registers.flags.get(mask)? != 0);
        let less = || Some(flag(SIGN)? != flag(OVERFLOW)?);
        Some(match condition {
            Always => true,
            o => flag(OVERFLOW)?,
            no => !flag(OVERFLOW)?,
            b => flag(CARRY)?,
            ae => !flag(CARRY)?,
            e => flag(ZERO)?,
            ne => !flag(ZERO)?,
            be => flag(CARRY)? || flag(ZERO)?,
            a => !(flag(CARRY)? || flag(ZERO)?),
            s => flag(SIGN)?,
            ns => !flag(SIGN)?,
            p => flag(PARITY)?,
            np => !flag(PARITY)?,
            l => less()?,
            ge => !less()?,
            le => flag(ZERO)? || less()?,
            g => !(flag(ZERO)? || less()?),
        })
    }
}

/// Bytes of the operand in memory.
pub(crate) fn bytes_in_memory(code: &Instruction) -> u32 {
    u32::try_from(code.memory_size().size()).unwrap_or(0)
}

/// Whether no operand has 512 bits, and none in memory stands for several elements.
pub(crate) fn is_narrow(code: &Instruction) -> bool {
    let is_wide = (0..code.op_count()).any(|operand| code.op_register(operand).is_zmm());
    !is_wide && !code.is_broadcast()
}

/// Bytes of a vector instruction: of its first operand that is a vector register.
pub(crate) fn vector_bytes(code: &Instruction) -> u32 {
    let registers = (0..code.op_count()).map(|operand| code.op_register(operand));
    let sizes = registers.filter(|register| register.is_xmm() || register.is_ymm()).map(Register::size);
    sizes.max().and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(16)
}
