//! Instructions on general-purpose registers and words in memory.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::alu::{
    CARRY, OVERFLOW, Outcome, Shift, add, logic, multiply, multiply_signed, rotate_left, rotate_right, shift, subtract,
};
use crate::bits::{both, low, narrowed, sign_extended};
use crate::bytes::Bytes;
use crate::decoded::Decoded;
use crate::ended::Ended;
use crate::machine::{Done, Machine};

impl<B: Bytes> Machine<B> {
    pub(crate) fn integer(&mut self, decoded: &Decoded) -> Result<Done, Ended> {
        let code = &decoded.code;
        match code.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movnti => {
                let value = self.read(code, 1)?;
                self.write(code, 0, value)?;
            }
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let bits = Self::source_bits(code);
                let value = self.read(code, 1)?.map(|value| sign_extended(value, bits).cast_unsigned());
                self.write(code, 0, value)?;
            }
            Mnemonic::Lea => {
                let address = self.address(code);
                self.write(code, 0, address)?;
            }
            Mnemonic::Nop
            | Mnemonic::Endbr64
            | Mnemonic::Prefetcht0
            | Mnemonic::Prefetcht1
            | Mnemonic::Prefetcht2
            | Mnemonic::Prefetchnta
            | Mnemonic::Prefetchw
            | Mnemonic::Mfence
            | Mnemonic::Lfence
            | Mnemonic::Sfence => {}
            Mnemonic::Add => self.two(code, |left, right, _, bits| add(left, right, 0, bits))?,
            Mnemonic::Adc => self.with_carry(code, add)?,
            Mnemonic::Sub => self.two(code, |left, right, _, bits| subtract(left, right, 0, bits))?,
            Mnemonic::Sbb => self.with_carry(code, subtract)?,
            Mnemonic::And => self.two(code, |left, right, _, bits| logic(left & right, bits))?,
            Mnemonic::Or => self.two(code, |left, right, _, bits| logic(left | right, bits))?,
            Mnemonic::Xor => self.two(code, |left, right, _, bits| logic(left ^ right, bits))?,
            Mnemonic::Cmp => self.compare(code, |left, right, bits| subtract(left, right, 0, bits))?,
            Mnemonic::Test => self.compare(code, |left, right, bits| logic(left & right, bits))?,
            Mnemonic::Inc => self.step_by_one(code, add)?,
            Mnemonic::Dec => self.step_by_one(code, subtract)?,
            Mnemonic::Neg => {
                let outcome = self.read(code, 0)?.map(|value| subtract(0, value, 0, Self::bits(code)));
                self.write_outcome(code, outcome)?;
            }
            Mnemonic::Not => {
                let value = self.read(code, 0)?.map(|value| !value);
                self.write(code, 0, value)?;
            }
            Mnemonic::Shl | Mnemonic::Sal => {
                self.shifted(code, |value, count, bits| shift(Shift::Left, value, count, bits))?;
            }
            Mnemonic::Shr => self.shifted(code, |value, count, bits| shift(Shift::Right, value, count, bits))?,
            Mnemonic::Sar => self.shifted(code, |value, count, bits| shift(Shift::RightSigned, value, count, bits))?,
            Mnemonic::Rol => self.rotated(code, rotate_left)?,
            Mnemonic::Ror => self.rotated(code, rotate_right)?,
            Mnemonic::Shlx | Mnemonic::Shrx | Mnemonic::Sarx | Mnemonic::Rorx => self.shifted_without_flags(code)?,
            Mnemonic::Imul if code.op_count() > 1 => {
                let first = u32::from(code.op_count() == 3);
                let (left, right) = (self.read(code, first)?, self.read(code, first + 1)?);
                let outcome = both(left, right).map(|(left, right)| multiply_signed(left, right, Self::bits(code)).0);
                self.write_outcome(code, outcome)?;
            }
            Mnemonic::Imul => self.product(code, multiply_signed)?,
            Mnemonic::Mul => self.product(code, multiply)?,
            Mnemonic::Div | Mnemonic::Idiv => self.divide(code)?,
            Mnemonic::Cbw => self.extend(Register::AL, Register::AX),
            Mnemonic::Cwde => self.extend(Register::AX, Register::EAX),
            Mnemonic::Cdqe => self.extend(Register::EAX, Register::RAX),
            Mnemonic::Cwd => self.sign_of(Register::AX, Register::DX),
            Mnemonic::Cdq => self.sign_of(Register::EAX, Register::EDX),
            Mnemonic::Cqo => self.sign_of(Register::RAX, Register::RDX),
            Mnemonic::Xchg => {
                let (left, right) = (self.read(code, 0)?, self.read(code, 1)?);
                // Memory first: its address may hang on the register.
                let order =
                    if code.op1_kind() == OpKind::Memory { [(1, left), (0, right)] } else { [(0, right), (1, left)] };
                for (operand, value) in order {
                    self.write(code, operand, value)?;
                }
            }
            Mnemonic::Xadd => {
                let (left, right) = (self.read(code, 0)?, self.read(code, 1)?);
                let outcome = both(left, right).map(|(left, right)| add(left, right, 0, Self::bits(code)));
                let at = self.address(code).filter(|_| code.op0_kind() == OpKind::Memory);
                self.set_flags(outcome);
                self.write(code, 1, left)?;
                let value = outcome.map(|outcome| outcome.value);
                match at {
                    // The register that was just written may be part of the address.
                    Some(at) => self.memory.write(at, Self::bits(code) / 8, value),
                    None => self.write(code, 0, value)?,
                }
            }
            Mnemonic::Cmpxchg => self.compare_and_exchange(code)?,
            Mnemonic::Cld => {}
            _ => return Ok(Done::Other),
        }
        Ok(Done::Whole)
    }

    fn source_bits(code: &Instruction) -> u32 {
        8 * match code.op1_kind() {
            OpKind::Memory => crate::operands::bytes_in_memory(code),
            _ => u32::try_from(code.op1_register().size()).unwrap_or(8),
        }
    }

    /// Of a register and itself some results are known whatever it holds.
    fn two(&mut self, code: &Instruction, make: impl Fn(u64, u64, u64, u32) -> Outcome) -> Result<(), Ended> {
        let bits = Self::bits(code);
        let same = code.op0_kind() == OpKind::Register
            && code.op1_kind() == OpKind::Register
            && code.op0_register() == code.op1_register();
        let is_zero = same && matches!(code.mnemonic(), Mnemonic::Xor | Mnemonic::Sub);
        let (left, right) = if is_zero { (Some(0), Some(0)) } else { (self.read(code, 0)?, self.read(code, 1)?) };
        let outcome = both(left, right).map(|(left, right)| make(left, right, 0, bits));
        self.write_outcome(code, outcome)
    }

    fn with_carry(&mut self, code: &Instruction, make: fn(u64, u64, u64, u32) -> Outcome) -> Result<(), Ended> {
        let (left, right) = (self.read(code, 0)?, self.read(code, 1)?);
        let (carry, bits) = (self.registers.flags.get(CARRY), Self::bits(code));
        let is_borrow = code.mnemonic() == Mnemonic::Sbb && code.op0_register() == code.op1_register();
        let (left, right) =
            if is_borrow && code.op0_kind() == OpKind::Register { (Some(0), Some(0)) } else { (left, right) };
        let outcome = both(left, right).and_then(|(left, right)| Some(make(left, right, carry?, bits)));
        self.write_outcome(code, outcome)
    }

    fn compare(&mut self, code: &Instruction, make: impl Fn(u64, u64, u32) -> Outcome) -> Result<(), Ended> {
        let (left, right) = (self.read(code, 0)?, self.read(code, 1)?);
        let bits = Self::bits(code);
        self.set_flags(both(left, right).map(|(left, right)| make(left, right, bits)));
        Ok(())
    }

    /// Carry stays as it is.
    fn step_by_one(&mut self, code: &Instruction, make: fn(u64, u64, u64, u32) -> Outcome) -> Result<(), Ended> {
        let carry = self.registers.flags.get(CARRY);
        let outcome = self.read(code, 0)?.map(|value| make(value, 1, 0, Self::bits(code)));
        self.write_outcome(code, outcome)?;
        self.registers.flags.set(CARRY, carry);
        Ok(())
    }

    fn shifted(&mut self, code: &Instruction, make: impl Fn(u64, u64, u32) -> Option<Outcome>) -> Result<(), Ended> {
        let bits = Self::bits(code);
        match both(self.read(code, 0)?, self.count(code)?) {
            Some((value, count)) => match make(value, count, bits) {
                Some(outcome) => self.write_outcome(code, Some(outcome)),
                // A shift by nothing still clears the upper half of a register.
                None => self.write(code, 0, Some(value)),
            },
            None => self.write_outcome(code, None),
        }
    }

    /// Rotations leave all flags but carry and overflow.
    fn rotated(&mut self, code: &Instruction, make: fn(u64, u64, u32) -> Option<Outcome>) -> Result<(), Ended> {
        let bits = Self::bits(code);
        let rotated = both(self.read(code, 0)?, self.count(code)?);
        let outcome = rotated.and_then(|(value, count)| make(value, count, bits));
        match (rotated, outcome) {
            (Some((value, _)), None) => self.write(code, 0, Some(value)),
            (_, outcome) => {
                self.registers.flags.set(OVERFLOW | CARRY, None);
                self.registers.flags.set(CARRY, outcome.map(|outcome| outcome.flags));
                self.write(code, 0, outcome.map(|outcome| outcome.value))
            }
        }
    }

    /// By how much is shifted: by one where nothing says so.
    fn count(&mut self, code: &Instruction) -> Result<Option<u64>, Ended> {
        if code.op_count() < 2 { Ok(Some(1)) } else { Ok(self.read(code, 1)?.map(|count| count & 0xff)) }
    }

    fn shifted_without_flags(&mut self, code: &Instruction) -> Result<(), Ended> {
        let bits = Self::bits(code);
        let make = |value, count| {
            let outcome = match code.mnemonic() {
                Mnemonic::Shlx => shift(Shift::Left, value, count, bits),
                Mnemonic::Shrx => shift(Shift::Right, value, count, bits),
                Mnemonic::Sarx => shift(Shift::RightSigned, value, count, bits),
                _ => rotate_right(value, count, bits),
            };
            outcome.map_or(value, |outcome| outcome.value)
        };
        let value = both(self.read(code, 1)?, self.read(code, 2)?).map(|(value, count)| make(value, count));
        self.write(code, 0, value)
    }

    /// Into two registers: AX for bytes, else DX and AX.
    fn product(&mut self, code: &Instruction, make: fn(u64, u64, u32) -> (Outcome, u64)) -> Result<(), Ended> {
        let bits = Self::bits(code);
        let (lower, upper) = halves(bits);
        let product = both(self.read(code, 0)?, self.registers.read(lower)).map(|(one, other)| make(one, other, bits));
        self.set_flags(product.map(|(outcome, _)| outcome));
        if bits == 8 {
            self.registers.write(Register::AX, product.map(|(outcome, upper)| outcome.value | upper << 8));
            return Ok(());
        }
        self.registers.write(lower, product.map(|(outcome, _)| outcome.value));
        self.registers.write(upper, product.map(|(_, upper)| upper));
        Ok(())
    }

    /// What divides by nothing, or does not fit, ends in the kernel.
    fn divide(&mut self, code: &Instruction) -> Result<(), Ended> {
        let bits = Self::bits(code);
        let (lower, upper) = halves(bits);
        let dividend = if bits == 8 {
            self.registers.read(Register::AX).map(u128::from)
        } else {
            both(self.registers.read(lower), self.registers.read(upper))
                .map(|(lower, upper)| u128::from(lower) | u128::from(upper) << bits)
        };
        let parts = match (dividend, self.read(code, 0)?) {
            (Some(dividend), Some(divisor)) => {
                let make = if code.mnemonic() == Mnemonic::Div { quotient } else { signed_quotient };
                Some(make(dividend, divisor, bits).ok_or(Ended::Outside)?)
            }
            _ => None,
        };
        self.set_flags(None);
        if bits == 8 {
            self.registers.write(Register::AX, parts.map(|(whole, rest)| whole | rest << 8));
            return Ok(());
        }
        self.registers.write(lower, parts.map(|(whole, _)| whole));
        self.registers.write(upper, parts.map(|(_, rest)| rest));
        Ok(())
    }

    fn extend(&mut self, from: Register, to: Register) {
        let bits = u32::try_from(8 * from.size()).unwrap_or(64);
        let value = self.registers.read(from).map(|value| sign_extended(value, bits).cast_unsigned());
        self.registers.write(to, value);
    }

    fn sign_of(&mut self, from: Register, to: Register) {
        let bits = u32::try_from(8 * from.size()).unwrap_or(64);
        let value = self.registers.read(from).map(|value| if sign_extended(value, bits) < 0 { u64::MAX } else { 0 });
        self.registers.write(to, value);
    }

    fn compare_and_exchange(&mut self, code: &Instruction) -> Result<(), Ended> {
        let bits = Self::bits(code);
        let accumulator = halves(bits).0;
        let (own, there, fresh) = (self.registers.read(accumulator), self.read(code, 0)?, self.read(code, 1)?);
        let Some((own, there)) = both(own, there) else { return Err(Ended::Unknown) };
        let outcome = subtract(own, there, 0, bits);
        self.set_flags(Some(outcome));
        if outcome.value == 0 {
            return self.write(code, 0, fresh);
        }
        self.registers.write(accumulator, Some(there));
        Ok(())
    }
}

/// Registers of the lower and the upper half of a product.
fn halves(bits: u32) -> (Register, Register) {
    match bits {
        8 => (Register::AL, Register::AH),
        16 => (Register::AX, Register::DX),
        32 => (Register::EAX, Register::EDX),
        _ => (Register::RAX, Register::RDX),
    }
}

/// Quotient and rest; `None` where it does not fit.
fn quotient(dividend: u128, divisor: u64, bits: u32) -> Option<(u64, u64)> {
    let divisor = u128::from(divisor & low(bits));
    let whole = dividend.checked_div(divisor).filter(|whole| *whole <= u128::from(low(bits)))?;
    Some((u64::try_from(whole).ok()?, u64::try_from(dividend % divisor).ok()?))
}

fn signed_quotient(dividend: u128, divisor: u64, bits: u32) -> Option<(u64, u64)> {
    let unused = 128 - 2 * bits;
    let dividend = (dividend << unused).cast_signed() >> unused;
    let divisor = i128::from(sign_extended(divisor, bits));
    let (whole, rest) = (dividend.checked_div(divisor)?, dividend.checked_rem(divisor)?);
    let fits = (-(1_i128 << (bits - 1))..1_i128 << (bits - 1)).contains(&whole);
    let part = |value: i128| narrowed(value.cast_unsigned(), bits);
    fits.then(|| (part(whole), part(rest)))
}
