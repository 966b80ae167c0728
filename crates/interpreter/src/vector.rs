//! Moves of vectors, and of words in and out of them.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::alu::{ALL, CARRY, ZERO, flag};
use crate::bits::low;
use crate::bytes::Bytes;
use crate::decoded::{Decoded, Encoding};
use crate::ended::Ended;
use crate::machine::{Done, Machine};
use crate::operands::{bytes_in_memory, vector_bytes};
use crate::registers::Lanes;

/// Vector registers that instructions without `EVEX` know.
const OLD: usize = 16;

impl<B: Bytes> Machine<B> {
    pub(crate) fn vector(&mut self, decoded: &Decoded) -> Result<Done, Ended> {
        use Mnemonic as M;
        let code = &decoded.code;
        match code.mnemonic() {
            M::Movaps
            | M::Movups
            | M::Movapd
            | M::Movupd
            | M::Movdqa
            | M::Movdqu
            | M::Lddqu
            | M::Movntps
            | M::Movntpd
            | M::Movntdq
            | M::Movntdqa
            | M::Vmovaps
            | M::Vmovups
            | M::Vmovapd
            | M::Vmovupd
            | M::Vmovdqa
            | M::Vmovdqu
            | M::Vmovdqu8
            | M::Vmovdqu16
            | M::Vmovdqu32
            | M::Vmovdqu64
            | M::Vmovdqa32
            | M::Vmovdqa64
            | M::Vlddqu
            | M::Vmovntps
            | M::Vmovntpd
            | M::Vmovntdq
            | M::Vmovntdqa => {
                let lanes = self.lanes(code, 1, vector_bytes(code))?;
                self.set_lanes(decoded, lanes)?;
            }
            M::Movd | M::Vmovd => self.word_of_vector(decoded, 4)?,
            M::Movq | M::Vmovq => self.word_of_vector(decoded, 8)?,
            M::Movss | M::Vmovss => self.lowest_moved(decoded, 4)?,
            M::Movsd | M::Vmovsd => self.lowest_moved(decoded, 8)?,
            M::Movlps | M::Movlpd | M::Vmovlps | M::Vmovlpd => self.half_moved(decoded, 0)?,
            M::Movhps | M::Movhpd | M::Vmovhps | M::Vmovhpd => self.half_moved(decoded, 1)?,
            M::Movhlps | M::Vmovhlps => self.mixed(decoded, |first, second| [second[1], first[1]])?,
            M::Movlhps | M::Vmovlhps => self.mixed(decoded, |first, second| [first[0], second[0]])?,
            M::Movddup | M::Vmovddup if vector_bytes(code) == 16 => {
                let lanes = self.lanes(code, 1, 8)?;
                self.set_lanes(decoded, [lanes[0], lanes[0], Some(0), Some(0)])?;
            }
            M::Vbroadcastsd | M::Vpbroadcastq => self.broadcast(decoded, 8)?,
            M::Vbroadcastss | M::Vpbroadcastd => self.broadcast(decoded, 4)?,
            M::Vpbroadcastw => self.broadcast(decoded, 2)?,
            M::Vpbroadcastb => self.broadcast(decoded, 1)?,
            M::Vzeroupper => self.registers.vectors[..OLD].iter_mut().for_each(|lanes| lanes[2..].fill(Some(0))),
            M::Vzeroall => self.registers.vectors[..OLD].fill([Some(0); 4]),
            M::Vextractf128 | M::Vextracti128 => {
                let lanes = self.lanes(code, 1, 32)?;
                let at = if code.immediate8() & 1 == 1 { 2 } else { 0 };
                let half = [lanes[at], lanes[at + 1], Some(0), Some(0)];
                if code.op0_kind() == OpKind::Memory {
                    self.store(code, half, 16)?;
                } else {
                    self.set_lanes(decoded, half)?;
                }
            }
            M::Vinsertf128 | M::Vinserti128 => {
                let (mut lanes, half) = (self.lanes(code, 1, 32)?, self.lanes(code, 2, 16)?);
                let at = if code.immediate8() & 1 == 1 { 2 } else { 0 };
                lanes[at..at + 2].copy_from_slice(&half[..2]);
                self.set_lanes(decoded, lanes)?;
            }
            M::Pextrb | M::Vpextrb => self.extract(code, 1)?,
            M::Pextrw | M::Vpextrw => self.extract(code, 2)?,
            M::Pextrd | M::Vpextrd | M::Extractps | M::Vextractps => self.extract(code, 4)?,
            M::Pextrq | M::Vpextrq => self.extract(code, 8)?,
            M::Pinsrb | M::Vpinsrb => self.insert(decoded, 1)?,
            M::Pinsrw | M::Vpinsrw => self.insert(decoded, 2)?,
            M::Pinsrd | M::Vpinsrd => self.insert(decoded, 4)?,
            M::Pinsrq | M::Vpinsrq => self.insert(decoded, 8)?,
            M::Pmovmskb | M::Vpmovmskb => self.signs(code, 8)?,
            M::Movmskps | M::Vmovmskps => self.signs(code, 32)?,
            M::Movmskpd | M::Vmovmskpd => self.signs(code, 64)?,
            M::Ptest | M::Vptest => self.test(code)?,
            _ => return Ok(Done::Other),
        }
        Ok(Done::Whole)
    }

    /// To a vector the rest of it is cleared.
    fn word_of_vector(&mut self, decoded: &Decoded, bytes: u32) -> Result<(), Ended> {
        let code = &decoded.code;
        let to_vector = code.op0_kind() == OpKind::Register && code.op0_register().is_xmm();
        let value = self.lanes(code, 1, bytes)?[0].map(|value| value & low(8 * bytes));
        if to_vector { self.set_lanes(decoded, [value, Some(0), Some(0), Some(0)]) } else { self.write(code, 0, value) }
    }

    /// From memory the rest is cleared; between registers it stays that of the first one.
    fn lowest_moved(&mut self, decoded: &Decoded, bytes: u32) -> Result<(), Ended> {
        let code = &decoded.code;
        if code.op0_kind() == OpKind::Memory {
            let value = self.lanes(code, 1, bytes)?[0].map(|value| value & low(8 * bytes));
            return self.write(code, 0, value);
        }
        let last = code.op_count() - 1;
        let moved = self.lanes(code, last, bytes)?[0];
        if code.op_kind(last) == OpKind::Memory {
            return self.set_lanes(decoded, [moved, Some(0), Some(0), Some(0)]);
        }
        let mut lanes = self.lanes(code, last - 1, 16)?;
        lanes[0] = replaced(lanes[0], moved, low(8 * bytes));
        self.set_lanes(decoded, lanes)
    }

    /// One half, from or to memory.
    fn half_moved(&mut self, decoded: &Decoded, half: usize) -> Result<(), Ended> {
        let code = &decoded.code;
        if code.op0_kind() == OpKind::Memory {
            let value = self.lanes(code, 1, 16)?[half];
            return self.write(code, 0, value);
        }
        let last = code.op_count() - 1;
        let mut lanes = self.lanes(code, last - 1, 16)?;
        lanes[half] = self.lanes(code, last, 8)?[0];
        self.set_lanes(decoded, lanes)
    }

    fn mixed(&mut self, decoded: &Decoded, make: impl Fn(Lanes, Lanes) -> [Option<u64>; 2]) -> Result<(), Ended> {
        let code = &decoded.code;
        let last = code.op_count() - 1;
        let (first, second) = (self.lanes(code, last - 1, 16)?, self.lanes(code, last, 16)?);
        let [lower, upper] = make(first, second);
        self.set_lanes(decoded, [lower, upper, Some(0), Some(0)])
    }

    fn broadcast(&mut self, decoded: &Decoded, bytes: u32) -> Result<(), Ended> {
        let code = &decoded.code;
        let element = self.lanes(code, 1, bytes)?[0].map(|value| value & low(8 * bytes));
        let lane = element.map(|value| (0..8 / bytes).fold(0, |all, at| all | value << (8 * bytes * at)));
        self.set_lanes(decoded, [lane; 4])
    }

    fn extract(&mut self, code: &Instruction, bytes: u32) -> Result<(), Ended> {
        let lanes = self.lanes(code, 1, 16)?;
        let at = u32::from(code.immediate8()) % (16 / bytes);
        let value = lanes[(at * bytes / 8) as usize].map(|lane| lane >> (8 * (at * bytes % 8)) & low(8 * bytes));
        self.write(code, 0, value)
    }

    fn insert(&mut self, decoded: &Decoded, bytes: u32) -> Result<(), Ended> {
        let code = &decoded.code;
        let last = code.op_count() - 2;
        let (mut lanes, value) = (self.lanes(code, last - 1, 16)?, self.lanes(code, last, bytes)?[0]);
        let at = u32::from(code.immediate8()) % (16 / bytes);
        let shift = 8 * (at * bytes % 8);
        let lane = &mut lanes[(at * bytes / 8) as usize];
        *lane = replaced(*lane, value.map(|value| (value & low(8 * bytes)) << shift), low(8 * bytes) << shift);
        self.set_lanes(decoded, lanes)
    }

    /// The highest bit of each element.
    fn signs(&mut self, code: &Instruction, bits: u32) -> Result<(), Ended> {
        let bytes = vector_bytes(code);
        let lanes = self.lanes(code, 1, bytes)?;
        let elements = 64 / bits;
        let of_lane = |lane: u64| (0..elements).fold(0, |all, at| all | (lane >> (bits * (at + 1) - 1) & 1) << at);
        let value =
            (0..bytes / 8).try_fold(0_u64, |all, at| Some(all | of_lane(lanes[at as usize]?) << (elements * at)));
        self.registers.write(code.op0_register(), value);
        Ok(())
    }

    fn test(&mut self, code: &Instruction) -> Result<(), Ended> {
        let bytes = vector_bytes(code);
        let (left, right) = (self.lanes(code, 0, bytes)?, self.lanes(code, 1, bytes)?);
        let words = (bytes / 8) as usize;
        let all = |make: fn(u64, u64) -> u64| {
            let pairs = left.iter().zip(&right).take(words);
            pairs.map(|(left, right)| Some(make((*left)?, (*right)?))).try_fold(0, |all, one| Some(all | one?))
        };
        let flags = all(|left, right| left & right)
            .zip(all(|left, right| !left & right))
            .map(|(both, other)| flag(ZERO, both == 0) | flag(CARRY, other == 0));
        self.registers.flags.set(ALL, flags);
        Ok(())
    }
}

/// A word of which some bits were replaced.
fn replaced(whole: Option<u64>, part: Option<u64>, mask: u64) -> Option<u64> {
    if mask == u64::MAX { part } else { Some(whole? & !mask | part? & mask) }
}

/// Whether two operands are the same vector register, so that some results are known whatever it holds.
pub(crate) fn is_of_itself(code: &Instruction, first: u32, second: u32) -> bool {
    code.op_kind(first) == OpKind::Register
        && code.op_kind(second) == OpKind::Register
        && code.op_register(first) == code.op_register(second)
}

/// Positions of the two sources of an instruction with a target: of the legacy encoding the target is the first one.
pub(crate) fn sources(decoded: &Decoded, constants: u32) -> (u32, u32) {
    let last = decoded.code.op_count() - 1 - constants;
    let first = if decoded.encoding == Encoding::Legacy || last < 2 { last.saturating_sub(1) } else { 1 };
    (first, last)
}

/// Bytes of the last source, where it is in memory, else of all of the vector.
pub(crate) fn source_bytes(code: &Instruction, operand: u32) -> u32 {
    if code.op_kind(operand) == OpKind::Memory { bytes_in_memory(code) } else { vector_bytes(code) }
}

/// Whether a register is a vector's.
pub(crate) fn is_vector(register: Register) -> bool {
    register.is_xmm() || register.is_ymm()
}
