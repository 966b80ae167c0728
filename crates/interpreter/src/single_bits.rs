//! Single bits of words, and what asks flags.

use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind};

use crate::alu::{ALL, CARRY, DIGIT_CARRY, Outcome, ZERO, flag, logic};
use crate::bits::{both, low};
use crate::bytes::Bytes;
use crate::decoded::Decoded;
use crate::ended::Ended;
use crate::machine::{Done, Machine};

impl<B: Bytes> Machine<B> {
    pub(crate) fn bit_instruction(&mut self, decoded: &Decoded) -> Result<Done, Ended> {
        let code = &decoded.code;
        match code.mnemonic() {
            Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
                if code.op0_kind() == OpKind::Register || code.op1_kind() != OpKind::Register =>
            {
                self.bit(code)?;
            }
            Mnemonic::Bsf | Mnemonic::Tzcnt => {
                self.zeros(code, |value, bits| {
                    (value | 1_u64.checked_shl(bits).unwrap_or(0)).trailing_zeros().min(bits)
                })?;
            }
            Mnemonic::Bsr => self.highest(code)?,
            Mnemonic::Lzcnt => self.zeros(code, |value, bits| value.leading_zeros() - (64 - bits))?,
            Mnemonic::Popcnt => {
                let outcome = self.read(code, 1)?.map(|value| Outcome {
                    value: u64::from(value.count_ones()),
                    flags: if value == 0 { ZERO } else { 0 },
                    known: ALL,
                });
                self.write_outcome(code, outcome)?;
            }
            Mnemonic::Bswap => {
                let bits = Self::bits(code);
                let value = self.read(code, 0)?.map(|value| value.swap_bytes() >> (64 - bits));
                self.write(code, 0, value)?;
            }
            Mnemonic::Andn => self.bits_of(code, |left, right, bits| (!left & right & low(bits), None))?,
            Mnemonic::Blsr => self.lowest(code, |value| value & value.wrapping_sub(1), |value| value == 0)?,
            Mnemonic::Blsi => self.lowest(code, |value| value & value.wrapping_neg(), |value| value != 0)?,
            Mnemonic::Blsmsk => self.lowest(code, |value| value ^ value.wrapping_sub(1), |value| value == 0)?,
            Mnemonic::Bzhi => self.high_bits_cleared(code)?,
            _ => return self.conditional(code),
        }
        Ok(Done::Whole)
    }

    /// Instructions that ask flags.
    fn conditional(&mut self, code: &Instruction) -> Result<Done, Ended> {
        let condition = code.condition_code();
        if condition == ConditionCode::None || code.op_count() == 0 {
            return Ok(Done::Other);
        }
        let holds = self.holds(condition);
        if code.op_count() == 1 {
            // SETcc
            self.write(code, 0, holds.map(u64::from))?;
            return Ok(Done::Whole);
        }
        // CMOVcc reads its source in any case, and clears the upper half of its target.
        let (own, other) = (self.registers.read(code.op0_register()), self.read(code, 1)?);
        let value = holds.and_then(|holds| if holds { other } else { own });
        self.write(code, 0, value)?;
        Ok(Done::Whole)
    }

    /// One bit into carry; the others of arithmetic are undefined but zero, which stays.
    fn bit(&mut self, code: &Instruction) -> Result<(), Ended> {
        let bits = Self::bits(code);
        let (value, at) = (self.read(code, 0)?, self.read(code, 1)?);
        let parts = both(value, at).map(|(value, at)| (value, 1_u64 << (at & u64::from(bits - 1))));
        let zero = self.registers.flags.get(ZERO);
        self.set_flags(None);
        self.registers.flags.set(ZERO, zero);
        self.registers.flags.set(CARRY, parts.map(|(value, bit)| u64::from(value & bit != 0)));
        let changed = parts.map(|(value, bit)| match code.mnemonic() {
            Mnemonic::Bts => value | bit,
            Mnemonic::Btr => value & !bit,
            _ => value ^ bit,
        });
        if code.mnemonic() == Mnemonic::Bt { Ok(()) } else { self.write(code, 0, changed) }
    }

    /// `BSF` of nothing leaves its target; the others tell their width.
    fn zeros(&mut self, code: &Instruction, count: impl Fn(u64, u32) -> u32) -> Result<(), Ended> {
        let bits = Self::bits(code);
        let value = self.read(code, 1)?;
        let is_scan = code.mnemonic() == Mnemonic::Bsf;
        self.set_flags(None);
        if is_scan {
            self.registers.flags.set(ZERO, value.map(|value| if value == 0 { ZERO } else { 0 }));
        } else {
            let zeros = value.map(|value| count(value, bits));
            let flags = zeros.map(|zeros| flag(CARRY, zeros == bits) | flag(ZERO, zeros == 0));
            self.registers.flags.set(ZERO | CARRY, flags);
        }
        let found = match value {
            Some(0) if is_scan => self.registers.read(code.op0_register()),
            value => value.map(|value| u64::from(count(value, bits))),
        };
        self.write(code, 0, found)
    }

    fn highest(&mut self, code: &Instruction) -> Result<(), Ended> {
        let value = self.read(code, 1)?;
        self.set_flags(None);
        self.registers.flags.set(ZERO, value.map(|value| if value == 0 { ZERO } else { 0 }));
        let found = match value {
            Some(0) => self.registers.read(code.op0_register()),
            value => value.map(|value| u64::from(value.ilog2())),
        };
        self.write(code, 0, found)
    }

    /// Two sources into a third register; flags of the result, and carry where it is told.
    fn bits_of(
        &mut self,
        code: &Instruction,
        make: impl Fn(u64, u64, u32) -> (u64, Option<bool>),
    ) -> Result<(), Ended> {
        let bits = Self::bits(code);
        let made = both(self.read(code, 1)?, self.read(code, 2)?).map(|(left, right)| make(left, right, bits));
        let outcome = made.map(|(value, carry)| with_carry(logic(value, bits), carry));
        self.write_outcome(code, outcome)
    }

    fn lowest(
        &mut self,
        code: &Instruction,
        make: impl Fn(u64) -> u64,
        carry: impl Fn(u64) -> bool,
    ) -> Result<(), Ended> {
        let bits = Self::bits(code);
        let outcome = self.read(code, 1)?.map(|value| with_carry(logic(make(value), bits), Some(carry(value))));
        self.write_outcome(code, outcome)
    }

    fn high_bits_cleared(&mut self, code: &Instruction) -> Result<(), Ended> {
        self.bits_of(code, |value, from, bits| {
            let from = u32::try_from(from & 0xff).unwrap_or(0);
            (value & low(from.min(bits)), Some(from >= bits))
        })
    }
}

fn with_carry(outcome: Outcome, carry: Option<bool>) -> Outcome {
    let carry = u64::from(carry.unwrap_or(false)) * CARRY;
    Outcome { flags: outcome.flags & !CARRY | carry, known: outcome.known & !DIGIT_CARRY, ..outcome }
}
