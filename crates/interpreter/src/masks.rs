//! Masks of vectors: comparisons into them, and what is made of them.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::alu::{ALL, CARRY, ZERO, flag};
use crate::bits::{element, greater, low};
use crate::bytes::Bytes;
use crate::decoded::Decoded;
use crate::ended::Ended;
use crate::machine::{Done, Machine};
use crate::operands::{is_narrow, vector_bytes};

/// What is made of two masks of so many bits.
type Make = fn(u64, u64, u32) -> u64;
/// Whether a bit of the mask is set for two elements of so many bits.
type Holds = fn(u64, u64, u32) -> bool;

impl<B: Bytes> Machine<B> {
    pub(crate) fn mask_instruction(&mut self, decoded: &Decoded) -> Result<Done, Ended> {
        let code = &decoded.code;
        if let Some((bits, make)) = of_masks(code.mnemonic()) {
            let last = code.op_count() - 1;
            let (left, right) =
                (self.mask_operand(code, last.saturating_sub(1).max(1))?, self.mask_operand(code, last)?);
            let value = left.zip(right).map(|(left, right)| make(left, right, bits) & low(bits));
            self.write_mask(code, value)?;
        } else if let Some((bits, is_test)) = asked(code.mnemonic()) {
            let (left, right) = (self.mask_operand(code, 0)?, self.mask_operand(code, 1)?);
            let flags = left.zip(right).map(|(left, right)| {
                let (first, second) =
                    if is_test { (left & right, !left & right) } else { (left | right, !(left | right)) };
                flag(ZERO, first & low(bits) == 0) | flag(CARRY, second & low(bits) == 0)
            });
            self.registers.flags.set(ALL, flags);
        } else if code.op0_register().is_k() {
            return self.compare_into_mask(code);
        } else {
            return Ok(Done::Other);
        }
        Ok(Done::Whole)
    }

    fn compare_into_mask(&mut self, code: &Instruction) -> Result<Done, Ended> {
        let bytes = vector_bytes(code);
        let Some((bits, holds)) = compared(code).filter(|_| is_narrow(code)) else {
            return Ok(Done::Other);
        };
        let (left, right) = (self.lanes(code, 1, bytes)?, self.lanes(code, 2, bytes)?);
        let elements = 64 / bits;
        let of_lane = |left: u64, right: u64| {
            (0..elements).fold(0_u64, |all, at| {
                all | u64::from(holds(element(left, at, bits), element(right, at, bits), bits)) << at
            })
        };
        let mut value = Some(0);
        for (at, (left, right)) in left.iter().zip(&right).enumerate().take((bytes / 8) as usize) {
            let lane = left.zip(*right).map(|(left, right)| of_lane(left, right));
            let shift = elements * u32::try_from(at).unwrap_or(0);
            value = value.zip(lane).map(|(all, lane)| all | lane << shift);
        }
        // What another mask leaves out is not set.
        let value = match code.op_mask() {
            Register::None => value,
            mask => value.zip(self.registers.mask(mask)).map(|(value, mask)| value & mask),
        };
        self.write_mask(code, value)?;
        Ok(Done::Whole)
    }

    fn mask_operand(&mut self, code: &Instruction, operand: u32) -> Result<Option<u64>, Ended> {
        let register = code.op_register(operand);
        if code.op_kind(operand) == OpKind::Register && register.is_k() {
            return Ok(self.registers.mask(register));
        }
        self.read(code, operand)
    }

    fn write_mask(&mut self, code: &Instruction, value: Option<u64>) -> Result<(), Ended> {
        if code.op0_kind() == OpKind::Register && code.op0_register().is_k() {
            self.registers.set_mask(code.op0_register(), value);
            return Ok(());
        }
        self.write(code, 0, value)
    }
}

fn compared(code: &Instruction) -> Option<(u32, Holds)> {
    use Mnemonic as M;
    const EQUAL: Holds = |left, right, _| left == right;
    const TEST: Holds = |left, right, _| left & right != 0;
    const TEST_NOT: Holds = |left, right, _| left & right == 0;
    Some(match code.mnemonic() {
        M::Vpcmpeqb => (8, EQUAL),
        M::Vpcmpeqw => (16, EQUAL),
        M::Vpcmpeqd => (32, EQUAL),
        M::Vpcmpeqq => (64, EQUAL),
        M::Vpcmpgtb => (8, greater),
        M::Vpcmpgtw => (16, greater),
        M::Vpcmpgtd => (32, greater),
        M::Vpcmpgtq => (64, greater),
        M::Vptestmb => (8, TEST),
        M::Vptestmw => (16, TEST),
        M::Vptestmd => (32, TEST),
        M::Vptestmq => (64, TEST),
        M::Vptestnmb => (8, TEST_NOT),
        M::Vptestnmw => (16, TEST_NOT),
        M::Vptestnmd => (32, TEST_NOT),
        M::Vptestnmq => (64, TEST_NOT),
        M::Vpcmpub => (8, unsigned(code.immediate8())),
        M::Vpcmpuw => (16, unsigned(code.immediate8())),
        M::Vpcmpud => (32, unsigned(code.immediate8())),
        M::Vpcmpuq => (64, unsigned(code.immediate8())),
        M::Vpcmpb => (8, signed(code.immediate8())),
        M::Vpcmpw => (16, signed(code.immediate8())),
        M::Vpcmpd => (32, signed(code.immediate8())),
        M::Vpcmpq => (64, signed(code.immediate8())),
        _ => return None,
    })
}

/// Comparisons by their number (Intel SDM vol. 2, `VPCMPUB`).
fn unsigned(predicate: u8) -> Holds {
    match predicate & 7 {
        0 => |left, right, _| left == right,
        1 => |left, right, _| left < right,
        2 => |left, right, _| left <= right,
        3 => |_, _, _| false,
        4 => |left, right, _| left != right,
        5 => |left, right, _| left >= right,
        6 => |left, right, _| left > right,
        _ => |_, _, _| true,
    }
}

fn signed(predicate: u8) -> Holds {
    match predicate & 7 {
        1 => |left, right, bits| greater(right, left, bits),
        2 => |left, right, bits| !greater(left, right, bits),
        5 => |left, right, bits| !greater(right, left, bits),
        6 => greater,
        other => unsigned(other),
    }
}

/// What is made of two masks, or of one, which is then both.
fn of_masks(mnemonic: Mnemonic) -> Option<(u32, Make)> {
    use Mnemonic as M;
    Some(match mnemonic {
        M::Kmovb => (8, |_, right, _| right),
        M::Kmovw => (16, |_, right, _| right),
        M::Kmovd => (32, |_, right, _| right),
        M::Kmovq => (64, |_, right, _| right),
        M::Knotb => (8, |_, right, _| !right),
        M::Knotw => (16, |_, right, _| !right),
        M::Knotd => (32, |_, right, _| !right),
        M::Knotq => (64, |_, right, _| !right),
        M::Korb => (8, |left, right, _| left | right),
        M::Korw => (16, |left, right, _| left | right),
        M::Kord => (32, |left, right, _| left | right),
        M::Korq => (64, |left, right, _| left | right),
        M::Kandb => (8, |left, right, _| left & right),
        M::Kandw => (16, |left, right, _| left & right),
        M::Kandd => (32, |left, right, _| left & right),
        M::Kandq => (64, |left, right, _| left & right),
        M::Kandnb => (8, |left, right, _| !left & right),
        M::Kandnw => (16, |left, right, _| !left & right),
        M::Kandnd => (32, |left, right, _| !left & right),
        M::Kandnq => (64, |left, right, _| !left & right),
        M::Kxorb => (8, |left, right, _| left ^ right),
        M::Kxorw => (16, |left, right, _| left ^ right),
        M::Kxord => (32, |left, right, _| left ^ right),
        M::Kxorq => (64, |left, right, _| left ^ right),
        M::Kunpckbw => (16, |left, right, _| (left & low(8)) << 8 | right & low(8)),
        M::Kunpckwd => (32, |left, right, _| (left & low(16)) << 16 | right & low(16)),
        M::Kunpckdq => (64, |left, right, _| left << 32 | right & low(32)),
        _ => return None,
    })
}

/// Instructions that set flags by masks of so many bits, and whether they ask what is common.
fn asked(mnemonic: Mnemonic) -> Option<(u32, bool)> {
    use Mnemonic as M;
    Some(match mnemonic {
        M::Kortestb => (8, false),
        M::Kortestw => (16, false),
        M::Kortestd => (32, false),
        M::Kortestq => (64, false),
        M::Ktestb => (8, true),
        M::Ktestw => (16, true),
        M::Ktestd => (32, true),
        M::Ktestq => (64, true),
        _ => return None,
    })
}
