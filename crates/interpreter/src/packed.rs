//! Whole numbers in vectors, element by element.

use iced_x86::{Mnemonic, OpKind};

use crate::bits::{element, greater, low, sign_extended};
use crate::bytes::Bytes;
use crate::decoded::Decoded;
use crate::ended::Ended;
use crate::machine::{Done, Machine};
use crate::operands::vector_bytes;
use crate::vector::{is_of_itself, is_vector, sources};

/// What is made of two elements of so many bits.
type Make = fn(u64, u64, u32) -> u64;

impl<B: Bytes> Machine<B> {
    pub(crate) fn packed(&mut self, decoded: &Decoded) -> Result<Done, Ended> {
        let code = &decoded.code;
        // Not the vectors of MMX.
        if !is_vector(code.op0_register()) {
            return Ok(Done::Other);
        }
        if let Some((bits, make)) = element_wise(code.mnemonic()) {
            self.by_element(decoded, bits, make)?;
        } else if let Some((bits, how)) = shifted(code.mnemonic()) {
            self.shift_elements(decoded, bits, how)?;
        } else if let Some((bits, how)) = shifted_each(code.mnemonic()) {
            self.by_element(decoded, bits, how)?;
        } else if matches!(code.mnemonic(), Mnemonic::Vpternlogd | Mnemonic::Vpternlogq) {
            self.by_table(decoded)?;
        } else {
            return Ok(Done::Other);
        }
        Ok(Done::Whole)
    }

    fn by_element(&mut self, decoded: &Decoded, bits: u32, make: Make) -> Result<(), Ended> {
        let code = &decoded.code;
        let ((first, second), bytes) = (sources(decoded, 0), vector_bytes(code));
        // What is made of a register and itself is the same for all it may hold, of some.
        let itself = is_of_itself(code, first, second) && makes_same_of_itself(code.mnemonic());
        let lanes = if itself {
            [Some(0); 4].map(|lane| (lane, lane))
        } else {
            let (left, right) = (self.lanes(code, first, bytes)?, self.lanes(code, second, bytes)?);
            std::array::from_fn(|at| (left[at], right[at]))
        };
        let lanes = lanes.map(|(left, right)| Some(in_lane(left?, right?, bits, make)));
        self.set_lanes(decoded, lanes)
    }

    /// Each bit by a table of what three bits come to.
    fn by_table(&mut self, decoded: &Decoded) -> Result<(), Ended> {
        let code = &decoded.code;
        let bytes = vector_bytes(code);
        let (one, other, last) =
            (self.lanes(code, 0, bytes)?, self.lanes(code, 1, bytes)?, self.lanes(code, 2, bytes)?);
        let table = code.immediate8();
        let lane = |at: usize| {
            let (one, other, last) = (one[at]?, other[at]?, last[at]?);
            let chosen = (0..8_u8).filter(|row| table >> row & 1 == 1);
            let is = |lane: u64, row: u8, bit: u8| if row >> bit & 1 == 1 { lane } else { !lane };
            Some(chosen.fold(0, |all, row| all | is(one, row, 2) & is(other, row, 1) & is(last, row, 0)))
        };
        self.set_lanes(decoded, std::array::from_fn(lane))
    }

    /// All elements by the same count: a constant, or the lowest word of a vector.
    fn shift_elements(&mut self, decoded: &Decoded, bits: u32, how: Make) -> Result<(), Ended> {
        let code = &decoded.code;
        let (first, last) = sources(decoded, 0);
        let first = if code.op_count() == 3 { 1 } else { first };
        let count = match code.op_kind(last) {
            OpKind::Register | OpKind::Memory => self.lanes(code, last, 16)?[0],
            _ => Some(u64::from(code.immediate8())),
        };
        let lanes = self.lanes(code, first, vector_bytes(code))?;
        let lanes = lanes.map(|lane| {
            let count = count?;
            Some(in_lane(lane?, 0, bits, |element, _, bits| how(element, count, bits)))
        });
        self.set_lanes(decoded, lanes)
    }
}

fn in_lane(left: u64, right: u64, bits: u32, make: impl Fn(u64, u64, u32) -> u64) -> u64 {
    (0..64 / bits).fold(0, |all, at| {
        all | (make(element(left, at, bits), element(right, at, bits), bits) & low(bits)) << (bits * at)
    })
}

fn makes_same_of_itself(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Pxor
            | M::Vpxor
            | M::Vpxord
            | M::Vpxorq
            | M::Xorps
            | M::Vxorps
            | M::Xorpd
            | M::Vxorpd
            | M::Pcmpeqb
            | M::Vpcmpeqb
            | M::Pcmpeqw
            | M::Vpcmpeqw
            | M::Pcmpeqd
            | M::Vpcmpeqd
            | M::Pcmpeqq
            | M::Vpcmpeqq
            | M::Psubb
            | M::Vpsubb
            | M::Psubw
            | M::Vpsubw
            | M::Psubd
            | M::Vpsubd
            | M::Psubq
            | M::Vpsubq
    )
}

fn ones(holds: bool) -> u64 {
    if holds { u64::MAX } else { 0 }
}

fn element_wise(mnemonic: Mnemonic) -> Option<(u32, Make)> {
    use Mnemonic as M;
    const ADD: Make = |left, right, _| left.wrapping_add(right);
    const SUBTRACT: Make = |left, right, _| left.wrapping_sub(right);
    const EQUAL: Make = |left, right, _| ones(left == right);
    const GREATER: Make = |left, right, bits| ones(greater(left, right, bits));
    const LEAST: Make = |left, right, _| left.min(right);
    const MOST: Make = |left, right, _| left.max(right);
    const LEAST_SIGNED: Make = |left, right, bits| if greater(left, right, bits) { right } else { left };
    const MOST_SIGNED: Make = |left, right, bits| if greater(left, right, bits) { left } else { right };
    const MULTIPLY: Make = |left, right, _| left.wrapping_mul(right);
    Some(match mnemonic {
        M::Pxor | M::Vpxor | M::Vpxord | M::Vpxorq | M::Xorps | M::Vxorps | M::Xorpd | M::Vxorpd => {
            (64, |left, right, _| left ^ right)
        }
        M::Pand | M::Vpand | M::Vpandd | M::Vpandq | M::Andps | M::Vandps | M::Andpd | M::Vandpd => {
            (64, |left, right, _| left & right)
        }
        M::Pandn | M::Vpandn | M::Vpandnd | M::Vpandnq | M::Andnps | M::Vandnps | M::Andnpd | M::Vandnpd => {
            (64, |left, right, _| !left & right)
        }
        M::Por | M::Vpor | M::Vpord | M::Vporq | M::Orps | M::Vorps | M::Orpd | M::Vorpd => {
            (64, |left, right, _| left | right)
        }
        M::Paddb | M::Vpaddb => (8, ADD),
        M::Paddw | M::Vpaddw => (16, ADD),
        M::Paddd | M::Vpaddd => (32, ADD),
        M::Paddq | M::Vpaddq => (64, ADD),
        M::Psubb | M::Vpsubb => (8, SUBTRACT),
        M::Psubw | M::Vpsubw => (16, SUBTRACT),
        M::Psubd | M::Vpsubd => (32, SUBTRACT),
        M::Psubq | M::Vpsubq => (64, SUBTRACT),
        M::Psubusb | M::Vpsubusb => (8, |left, right, _| left.saturating_sub(right)),
        M::Psubusw | M::Vpsubusw => (16, |left, right, _| left.saturating_sub(right)),
        M::Paddusb | M::Vpaddusb => (8, |left, right, _| (left + right).min(0xff)),
        M::Paddusw | M::Vpaddusw => (16, |left, right, _| (left + right).min(0xffff)),
        M::Pcmpeqb | M::Vpcmpeqb => (8, EQUAL),
        M::Pcmpeqw | M::Vpcmpeqw => (16, EQUAL),
        M::Pcmpeqd | M::Vpcmpeqd => (32, EQUAL),
        M::Pcmpeqq | M::Vpcmpeqq => (64, EQUAL),
        M::Pcmpgtb | M::Vpcmpgtb => (8, GREATER),
        M::Pcmpgtw | M::Vpcmpgtw => (16, GREATER),
        M::Pcmpgtd | M::Vpcmpgtd => (32, GREATER),
        M::Pcmpgtq | M::Vpcmpgtq => (64, GREATER),
        M::Pminub | M::Vpminub => (8, LEAST),
        M::Pminuw | M::Vpminuw => (16, LEAST),
        M::Pminud | M::Vpminud => (32, LEAST),
        M::Pmaxub | M::Vpmaxub => (8, MOST),
        M::Pmaxuw | M::Vpmaxuw => (16, MOST),
        M::Pmaxud | M::Vpmaxud => (32, MOST),
        M::Pminsb | M::Vpminsb => (8, LEAST_SIGNED),
        M::Pminsw | M::Vpminsw => (16, LEAST_SIGNED),
        M::Pminsd | M::Vpminsd => (32, LEAST_SIGNED),
        M::Pmaxsb | M::Vpmaxsb => (8, MOST_SIGNED),
        M::Pmaxsw | M::Vpmaxsw => (16, MOST_SIGNED),
        M::Pmaxsd | M::Vpmaxsd => (32, MOST_SIGNED),
        M::Pmullw | M::Vpmullw => (16, MULTIPLY),
        M::Pmulld | M::Vpmulld => (32, MULTIPLY),
        M::Pmuludq | M::Vpmuludq => (64, |left, right, _| (left & low(32)).wrapping_mul(right & low(32))),
        M::Pmuldq | M::Vpmuldq => {
            (64, |left, right, _| (sign_extended(left, 32) * sign_extended(right, 32)).cast_unsigned())
        }
        _ => return None,
    })
}

const LEFT: Make = |element, count, bits| if count < u64::from(bits) { element << count } else { 0 };
const RIGHT: Make = |element, count, bits| if count < u64::from(bits) { element >> count } else { 0 };
const RIGHT_SIGNED: Make =
    |element, count, bits| (sign_extended(element, bits) >> count.min(u64::from(bits - 1))).cast_unsigned();

fn shifted(mnemonic: Mnemonic) -> Option<(u32, Make)> {
    use Mnemonic as M;
    Some(match mnemonic {
        M::Psllw | M::Vpsllw => (16, LEFT),
        M::Pslld | M::Vpslld => (32, LEFT),
        M::Psllq | M::Vpsllq => (64, LEFT),
        M::Psrlw | M::Vpsrlw => (16, RIGHT),
        M::Psrld | M::Vpsrld => (32, RIGHT),
        M::Psrlq | M::Vpsrlq => (64, RIGHT),
        M::Psraw | M::Vpsraw => (16, RIGHT_SIGNED),
        M::Psrad | M::Vpsrad => (32, RIGHT_SIGNED),
        _ => return None,
    })
}

/// Each element by a count of its own.
fn shifted_each(mnemonic: Mnemonic) -> Option<(u32, Make)> {
    use Mnemonic as M;
    Some(match mnemonic {
        M::Vpsllvd => (32, LEFT),
        M::Vpsllvq => (64, LEFT),
        M::Vpsrlvd => (32, RIGHT),
        M::Vpsrlvq => (64, RIGHT),
        M::Vpsravd => (32, RIGHT_SIGNED),
        _ => return None,
    })
}
