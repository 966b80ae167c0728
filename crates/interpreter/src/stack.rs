//! What moves the stack pointer.

use iced_x86::{Mnemonic, Register};

use crate::bytes::Bytes;
use crate::decoded::Decoded;
use crate::ended::Ended;
use crate::machine::{Done, Machine};

impl<B: Bytes> Machine<B> {
    pub(crate) fn stack(&mut self, decoded: &Decoded) -> Result<Done, Ended> {
        let code = &decoded.code;
        let bytes = code.stack_pointer_increment().unsigned_abs();
        match code.mnemonic() {
            Mnemonic::Push => {
                let value = self.read(code, 0)?;
                self.push(value, bytes)?;
            }
            Mnemonic::Pop => {
                let value = self.pop(bytes)?;
                self.write(code, 0, value)?;
            }
            Mnemonic::Leave => {
                let frame = self.registers.read(Register::RBP);
                self.registers.write(Register::RSP, frame);
                let value = self.pop(8)?;
                self.registers.write(Register::RBP, value);
            }
            _ => return Ok(Done::Other),
        }
        Ok(Done::Whole)
    }

    pub(crate) fn push(&mut self, value: Option<u64>, bytes: u32) -> Result<(), Ended> {
        let top = self.registers.read(Register::RSP).ok_or(Ended::Unknown)?.wrapping_sub(u64::from(bytes));
        self.registers.write(Register::RSP, Some(top));
        self.memory.write(top, bytes, value);
        Ok(())
    }

    pub(crate) fn pop(&mut self, bytes: u32) -> Result<Option<u64>, Ended> {
        let top = self.registers.read(Register::RSP).ok_or(Ended::Unknown)?;
        let value = self.memory.read(top, bytes)?;
        self.registers.write(Register::RSP, Some(top.wrapping_add(u64::from(bytes))));
        Ok(value)
    }
}
