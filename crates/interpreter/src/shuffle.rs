//! Elements of vectors in another order, within each 128 bits and across them.

use iced_x86::{Mnemonic, OpKind};

use crate::bits::low;
use crate::bytes::Bytes;
use crate::decoded::Decoded;
use crate::ended::Ended;
use crate::machine::{Done, Machine};
use crate::operands::vector_bytes;
use crate::registers::Lanes;
use crate::vector::{is_vector, source_bytes, sources};

/// The bytes of 128 bits, lowest first.
type Half = [u8; 16];

impl<B: Bytes> Machine<B> {
    pub(crate) fn shuffle(&mut self, decoded: &Decoded) -> Result<Done, Ended> {
        use Mnemonic as M;
        let code = &decoded.code;
        if code.op_count() < 2 || !is_vector(code.op0_register()) {
            return Ok(Done::Other);
        }
        let constant = if code.op_kind(code.op_count() - 1) == OpKind::Immediate8 { code.immediate8() } else { 0 };
        match code.mnemonic() {
            M::Pshufd | M::Vpshufd => self.halves(decoded, 1, |_, half| picked(half, half, 4, &by_two(constant)))?,
            M::Pshuflw | M::Vpshuflw => self.halves(decoded, 1, |_, half| {
                let mut made = half;
                made[..8].copy_from_slice(&picked(half, half, 2, &by_two(constant))[..8]);
                made
            })?,
            M::Shufps | M::Vshufps => self.halves(decoded, 1, |first, second| {
                let at = by_two(constant);
                let (lower, upper) = (picked(first, first, 4, &at), picked(second, second, 4, &at));
                joined(&lower[..8], &upper[8..])
            })?,
            M::Shufpd | M::Vshufpd if vector_bytes(code) == 16 => self.halves(decoded, 1, |first, second| {
                let (lower, upper) = (usize::from(constant & 1), usize::from(constant >> 1 & 1));
                joined(&first[8 * lower..8 * lower + 8], &second[8 * upper..8 * upper + 8])
            })?,
            M::Pshufb | M::Vpshufb => self.halves(decoded, 0, |half, control| {
                control.map(|at| if at & 0x80 != 0 { 0 } else { half[usize::from(at & 15)] })
            })?,
            M::Palignr | M::Vpalignr => self.halves(decoded, 1, |first, second| {
                let both = [second, first].concat();
                std::array::from_fn(|at| both.get(at + usize::from(constant)).copied().unwrap_or(0))
            })?,
            M::Pslldq | M::Vpslldq => self.halves_of_one(decoded, |half| {
                std::array::from_fn(|at| at.checked_sub(usize::from(constant)).map_or(0, |from| half[from]))
            })?,
            M::Psrldq | M::Vpsrldq => self.halves_of_one(decoded, |half| {
                std::array::from_fn(|at| half.get(at + usize::from(constant)).copied().unwrap_or(0))
            })?,
            M::Punpcklbw | M::Vpunpcklbw => self.halves(decoded, 0, |first, second| woven(first, second, 1, 0))?,
            M::Punpcklwd | M::Vpunpcklwd => self.halves(decoded, 0, |first, second| woven(first, second, 2, 0))?,
            M::Punpckldq | M::Vpunpckldq | M::Unpcklps | M::Vunpcklps => {
                self.halves(decoded, 0, |first, second| woven(first, second, 4, 0))?;
            }
            M::Punpcklqdq | M::Vpunpcklqdq | M::Unpcklpd | M::Vunpcklpd => {
                self.halves(decoded, 0, |first, second| woven(first, second, 8, 0))?;
            }
            M::Punpckhbw | M::Vpunpckhbw => self.halves(decoded, 0, |first, second| woven(first, second, 1, 8))?,
            M::Punpckhwd | M::Vpunpckhwd => self.halves(decoded, 0, |first, second| woven(first, second, 2, 8))?,
            M::Punpckhdq | M::Vpunpckhdq | M::Unpckhps | M::Vunpckhps => {
                self.halves(decoded, 0, |first, second| woven(first, second, 4, 8))?;
            }
            M::Punpckhqdq | M::Vpunpckhqdq | M::Unpckhpd | M::Vunpckhpd => {
                self.halves(decoded, 0, |first, second| woven(first, second, 8, 8))?;
            }
            M::Pmovzxbw | M::Vpmovzxbw => self.widened(decoded, (1, 2), false)?,
            M::Pmovzxbd | M::Vpmovzxbd => self.widened(decoded, (1, 4), false)?,
            M::Pmovzxwd | M::Vpmovzxwd => self.widened(decoded, (2, 4), false)?,
            M::Pmovzxdq | M::Vpmovzxdq => self.widened(decoded, (4, 8), false)?,
            M::Pmovsxbw | M::Vpmovsxbw => self.widened(decoded, (1, 2), true)?,
            M::Pmovsxbd | M::Vpmovsxbd => self.widened(decoded, (1, 4), true)?,
            M::Pmovsxwd | M::Vpmovsxwd => self.widened(decoded, (2, 4), true)?,
            M::Pmovsxdq | M::Vpmovsxdq => self.widened(decoded, (4, 8), true)?,
            M::Vpermq | M::Vpermpd if code.op_count() == 3 && constant_is(decoded) => {
                let lanes = self.lanes(code, 1, 32)?;
                self.set_lanes(decoded, by_two(constant).map(|at| lanes[at]))?;
            }
            M::Vperm2f128 | M::Vperm2i128 => {
                let (first, second) = (self.lanes(code, 1, 32)?, self.lanes(code, 2, 32)?);
                let half = |control: u8| {
                    let from = if control & 2 == 0 { first } else { second };
                    let at = usize::from(control & 1) * 2;
                    if control & 8 == 0 { [from[at], from[at + 1]] } else { [Some(0); 2] }
                };
                let ([one, two], [three, four]) = (half(constant & 15), half(constant >> 4));
                self.set_lanes(decoded, [one, two, three, four])?;
            }
            _ => return Ok(Done::Other),
        }
        Ok(Done::Whole)
    }

    /// Makes each 128 bits of those of the two sources.
    fn halves(&mut self, decoded: &Decoded, constants: u32, make: impl Fn(Half, Half) -> Half) -> Result<(), Ended> {
        let code = &decoded.code;
        let (first, second) = sources(decoded, constants);
        let left = self.lanes(code, first, vector_bytes(code))?;
        let right = self.lanes(code, second, source_bytes(code, second))?;
        self.set_lanes(decoded, by_half(left, right, make))
    }

    /// Of one source and a constant.
    fn halves_of_one(&mut self, decoded: &Decoded, make: impl Fn(Half) -> Half) -> Result<(), Ended> {
        let lanes = self.lanes(&decoded.code, decoded.code.op_count() - 2, 32)?;
        self.set_lanes(decoded, by_half(lanes, lanes, |half, _| make(half)))
    }

    /// Elements of so many bytes made into wider ones, from the lowest on.
    fn widened(&mut self, decoded: &Decoded, (from, to): (u32, u32), signed: bool) -> Result<(), Ended> {
        let code = &decoded.code;
        let wide = vector_bytes(code);
        let lanes = self.lanes(code, 1, source_bytes(code, 1))?;
        let element = |at: u32| {
            let byte = at * from;
            let value = lanes[(byte / 8) as usize]? >> (8 * (byte % 8)) & low(8 * from);
            let value = if signed { crate::bits::sign_extended(value, 8 * from).cast_unsigned() } else { value };
            Some(value & low(8 * to))
        };
        let lane = |lane: usize| {
            let elements = 8 / to;
            let first = u32::try_from(lane).unwrap_or(0) * elements;
            (0..elements).try_fold(0, |all, at| Some(all | element(first + at)? << (8 * to * at)))
        };
        let words = (wide / 8) as usize;
        self.set_lanes(decoded, std::array::from_fn(|at| if at < words { lane(at) } else { Some(0) }))
    }
}

fn constant_is(decoded: &Decoded) -> bool {
    decoded.code.op_kind(decoded.code.op_count() - 1) == OpKind::Immediate8
}

fn by_half(left: Lanes, right: Lanes, make: impl Fn(Half, Half) -> Half) -> Lanes {
    let mut made = [None; 4];
    for at in [0, 2] {
        let bytes = |lanes: Lanes| Some(joined(&lanes[at]?.to_le_bytes(), &lanes[at + 1]?.to_le_bytes()));
        if let Some(half) = bytes(left).zip(bytes(right)).map(|(left, right)| make(left, right)) {
            let (lower, upper) = half.split_at(8);
            made[at] = lower.try_into().ok().map(u64::from_le_bytes);
            made[at + 1] = upper.try_into().ok().map(u64::from_le_bytes);
        }
    }
    made
}

fn joined(lower: &[u8], upper: &[u8]) -> Half {
    std::array::from_fn(|at| if at < 8 { lower[at] } else { upper[at - 8] })
}

/// Four positions of two bits each.
fn by_two(constant: u8) -> [usize; 4] {
    [0, 2, 4, 6].map(|shift| usize::from(constant >> shift & 3))
}

/// Elements of so many bytes: those at the positions, the first half of them from one, the others from the other.
fn picked(first: Half, second: Half, bytes: usize, at: &[usize; 4]) -> Half {
    std::array::from_fn(|byte| {
        let (element, within) = (byte / bytes % 4, byte % bytes);
        let from = if element < 2 { first } else { second };
        from[at[element] * bytes + within]
    })
}

/// Elements of so many bytes of both in turn, from a byte on.
fn woven(first: Half, second: Half, bytes: usize, start: usize) -> Half {
    std::array::from_fn(|byte| {
        let (pair, within) = (byte / (2 * bytes), byte % (2 * bytes));
        let at = start + pair * bytes + within % bytes;
        if within < bytes { first[at] } else { second[at] }
    })
}
