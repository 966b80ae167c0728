//! Numbers of floating point, alone and in vectors: rounded to the nearest, as programs leave the processor.

use iced_x86::{Instruction, Mnemonic, OpKind};

use crate::alu::{ALL, CARRY, PARITY, ZERO};
use crate::bits::low;
use crate::bytes::Bytes;
use crate::decoded::Decoded;
use crate::ended::Ended;
use crate::fused::fused;
use crate::machine::{Done, Machine};
use crate::number::{Number, Shape, low_replaced};
use crate::operands::vector_bytes;
use crate::registers::Lanes;
use crate::vector::{source_bytes, sources};

/// Two numbers made into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Make {
    Add,
    Subtract,
    Multiply,
    Divide,
    Least,
    Most,
    Root,
}

impl Make {
    /// Of two that are equal, or of which one is no number, the second one is the least and the most.
    fn of<F: Number>(self, left: F, right: F) -> F {
        match self {
            Self::Add => left.plus(right),
            Self::Subtract => left.minus(right),
            Self::Multiply => left.times(right),
            Self::Divide => left.over(right),
            Self::Least if left < right => left,
            Self::Most if left > right => left,
            Self::Least | Self::Most => right,
            Self::Root => right.root(),
        }
    }
}

impl<B: Bytes> Machine<B> {
    pub(crate) fn float(&mut self, decoded: &Decoded) -> Result<Done, Ended> {
        let code = &decoded.code;
        if let Some((make, shape)) = arithmetic(code.mnemonic()) {
            self.made(decoded, make, shape)?;
        } else if let Some(fused) = fused(code.mnemonic()) {
            self.fuse(decoded, fused)?;
        } else if let Some(bits) = compared(code.mnemonic()) {
            self.compare_numbers(code, bits)?;
        } else if let Some(shape) = masked(code.mnemonic()) {
            return self.mask(decoded, shape);
        } else {
            return self.convert(decoded);
        }
        Ok(Done::Whole)
    }

    fn made(&mut self, decoded: &Decoded, make: Make, shape: Shape) -> Result<(), Ended> {
        let code = &decoded.code;
        let (first, second) = sources(decoded, 0);
        let (left, right) =
            (self.lanes(code, first, vector_bytes(code))?, self.lanes(code, second, source_bytes(code, second))?);
        let lanes = by_shape(shape, left, left, right, |left, right| match shape.bits {
            32 => make.of(f32::of(left), f32::of(right)).bits(),
            _ => make.of(f64::of(left), f64::of(right)).bits(),
        });
        self.set_lanes(decoded, lanes)
    }

    /// Unordered is told by all three flags.
    fn compare_numbers(&mut self, code: &Instruction, bits: u32) -> Result<(), Ended> {
        let (left, right) = (self.lanes(code, 0, 16)?[0], self.lanes(code, 1, bits / 8)?[0]);
        let ordered = |left: u64, right: u64| match bits {
            32 => f32::of(left).partial_cmp(&f32::of(right)),
            _ => f64::of(left).partial_cmp(&f64::of(right)),
        };
        let flags = left.zip(right).map(|(left, right)| match ordered(left, right) {
            None => ZERO | PARITY | CARRY,
            Some(std::cmp::Ordering::Less) => CARRY,
            Some(std::cmp::Ordering::Equal) => ZERO,
            Some(std::cmp::Ordering::Greater) => 0,
        });
        self.registers.flags.set(ALL, flags);
        Ok(())
    }

    /// All ones where a comparison holds.
    fn mask(&mut self, decoded: &Decoded, shape: Shape) -> Result<Done, Ended> {
        let code = &decoded.code;
        let predicate = code.immediate8();
        if predicate > 7 {
            return Ok(Done::Other);
        }
        let (first, second) = sources(decoded, 1);
        let (left, right) =
            (self.lanes(code, first, vector_bytes(code))?, self.lanes(code, second, source_bytes(code, second))?);
        let lanes = by_shape(shape, left, left, right, |left, right| {
            let holds = match shape.bits {
                32 => meets(predicate, f32::of(left), f32::of(right)),
                _ => meets(predicate, f64::of(left), f64::of(right)),
            };
            if holds { low(shape.bits) } else { 0 }
        });
        self.set_lanes(decoded, lanes)?;
        Ok(Done::Whole)
    }

    fn convert(&mut self, decoded: &Decoded) -> Result<Done, Ended> {
        use Mnemonic as M;
        let code = &decoded.code;
        match code.mnemonic() {
            M::Cvtsi2sd | M::Vcvtsi2sd => self.number_of(decoded, 64)?,
            M::Cvtsi2ss | M::Vcvtsi2ss => self.number_of(decoded, 32)?,
            M::Cvttsd2si | M::Vcvttsd2si => self.rounded(code, 64, f64::trunc)?,
            M::Cvtsd2si | M::Vcvtsd2si => self.rounded(code, 64, f64::round_ties_even)?,
            M::Cvttss2si | M::Vcvttss2si => self.rounded(code, 32, f64::trunc)?,
            M::Cvtss2si | M::Vcvtss2si => self.rounded(code, 32, f64::round_ties_even)?,
            M::Cvtss2sd | M::Vcvtss2sd => {
                self.between_widths(decoded, 4, |number| (f64::from(f32::of(number)).bits(), 64))?;
            }
            #[allow(clippy::cast_possible_truncation)]
            M::Cvtsd2ss | M::Vcvtsd2ss => {
                self.between_widths(decoded, 8, |number| ((f64::of(number) as f32).bits(), 32))?;
            }
            M::Cvtdq2pd | M::Vcvtdq2pd => {
                let wide = vector_bytes(code);
                let lanes = self.lanes(code, 1, wide / 2)?;
                let made = |at: usize| {
                    let whole = lanes[at / 2]? >> (32 * (at % 2)) & low(32);
                    Some(f64::from(signed(whole)).bits())
                };
                self.set_lanes(decoded, std::array::from_fn(made))?;
            }
            M::Cvtdq2ps | M::Vcvtdq2ps => {
                let lanes = self.lanes(code, 1, vector_bytes(code))?;
                #[allow(clippy::cast_precision_loss)]
                let made = |whole: u64| (signed(whole) as f32).bits();
                let lanes = lanes.map(|lane| lane.map(|lane| made(lane & low(32)) | made(lane >> 32) << 32));
                self.set_lanes(decoded, lanes)?;
            }
            M::Cvttps2dq | M::Vcvttps2dq => {
                let lanes = self.lanes(code, 1, vector_bytes(code))?;
                let made = |number: u64| whole(f64::from(f32::of(number)).trunc(), 32);
                let lanes = lanes.map(|lane| lane.map(|lane| made(lane & low(32)) | made(lane >> 32) << 32));
                self.set_lanes(decoded, lanes)?;
            }
            _ => return Ok(Done::Other),
        }
        Ok(Done::Whole)
    }

    fn number_of(&mut self, decoded: &Decoded, bits: u32) -> Result<(), Ended> {
        let code = &decoded.code;
        let (first, second) = sources(decoded, 0);
        let narrow = match code.op_kind(second) {
            OpKind::Memory => crate::operands::bytes_in_memory(code) == 4,
            _ => code.op_register(second).size() == 4,
        };
        let whole =
            self.read(code, second)?.map(|value| if narrow { i64::from(signed(value)) } else { value.cast_signed() });
        let mut lanes = self.lanes(code, first, 16)?;
        #[allow(clippy::cast_precision_loss)]
        let number = whole.map(|whole| if bits == 32 { (whole as f32).bits() } else { (whole as f64).bits() });
        lanes[0] = low_replaced(lanes[0], number, bits);
        self.set_lanes(decoded, lanes)
    }

    fn rounded(&mut self, code: &Instruction, bits: u32, round: fn(f64) -> f64) -> Result<(), Ended> {
        let number = self.lanes(code, 1, bits / 8)?[0];
        let to = u32::try_from(8 * code.op0_register().size()).unwrap_or(64);
        let number = number.map(|number| if bits == 32 { f64::from(f32::of(number)) } else { f64::of(number) });
        self.registers.write(code.op0_register(), number.map(|number| whole(round(number), to)));
        Ok(())
    }

    fn between_widths(&mut self, decoded: &Decoded, bytes: u32, make: impl Fn(u64) -> (u64, u32)) -> Result<(), Ended> {
        let code = &decoded.code;
        let (first, second) = sources(decoded, 0);
        let number = self.lanes(code, second, bytes)?[0].map(&make);
        let mut lanes = self.lanes(code, first, 16)?;
        let bits = make(0).1;
        lanes[0] = low_replaced(lanes[0], number.map(|(number, _)| number), bits);
        self.set_lanes(decoded, lanes)
    }
}

/// Makes one element, or all of them; of one the rest of `rest` stays.
fn by_shape(shape: Shape, rest: Lanes, left: Lanes, right: Lanes, make: impl Fn(u64, u64) -> u64) -> Lanes {
    let lane = |left: u64, right: u64| match shape.bits {
        32 => make(left & low(32), right & low(32)) | make(left >> 32, right >> 32) << 32,
        _ => make(left, right),
    };
    if shape.scalar {
        let made = left[0].zip(right[0]).map(|(left, right)| make(left & low(shape.bits), right & low(shape.bits)));
        let mut lanes = rest;
        lanes[0] = low_replaced(rest[0], made, shape.bits);
        return lanes;
    }
    std::array::from_fn(|at| Some(lane(left[at]?, right[at]?)))
}

/// As many bits of a whole number as it needs, or what stands for those that do not fit (Intel SDM vol. 1, 4.8.3).
fn whole(number: f64, bits: u32) -> u64 {
    let limit = (2.0_f64).powi(bits.cast_signed() - 1);
    #[allow(clippy::cast_possible_truncation)]
    let fits = (-limit..limit).contains(&number).then_some(number as i64);
    fits.map_or(1 << (bits - 1), |whole| whole.cast_unsigned() & low(bits))
}

/// The lower half of a word, with its sign.
#[allow(clippy::cast_possible_truncation)]
fn signed(value: u64) -> i32 {
    (value as u32).cast_signed()
}

/// The comparisons of `CMPPD` (Intel SDM vol. 2, table 3-1).
fn meets<F: Number>(predicate: u8, left: F, right: F) -> bool {
    let order = left.partial_cmp(&right);
    match predicate {
        0 => left == right,
        1 => left < right,
        2 => left <= right,
        3 => order.is_none(),
        4 => left != right,
        5 => !matches!(order, Some(std::cmp::Ordering::Less)),
        6 => !matches!(order, Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal)),
        _ => order.is_some(),
    }
}

fn arithmetic(mnemonic: Mnemonic) -> Option<(Make, Shape)> {
    use Mnemonic as M;
    let make = match mnemonic {
        M::Addsd | M::Vaddsd | M::Addss | M::Vaddss | M::Addpd | M::Vaddpd | M::Addps | M::Vaddps => Make::Add,
        M::Subsd | M::Vsubsd | M::Subss | M::Vsubss | M::Subpd | M::Vsubpd | M::Subps | M::Vsubps => Make::Subtract,
        M::Mulsd | M::Vmulsd | M::Mulss | M::Vmulss | M::Mulpd | M::Vmulpd | M::Mulps | M::Vmulps => Make::Multiply,
        M::Divsd | M::Vdivsd | M::Divss | M::Vdivss | M::Divpd | M::Vdivpd | M::Divps | M::Vdivps => Make::Divide,
        M::Minsd | M::Vminsd | M::Minss | M::Vminss | M::Minpd | M::Vminpd | M::Minps | M::Vminps => Make::Least,
        M::Maxsd | M::Vmaxsd | M::Maxss | M::Vmaxss | M::Maxpd | M::Vmaxpd | M::Maxps | M::Vmaxps => Make::Most,
        M::Sqrtsd | M::Vsqrtsd | M::Sqrtss | M::Vsqrtss | M::Sqrtpd | M::Vsqrtpd | M::Sqrtps | M::Vsqrtps => Make::Root,
        _ => return None,
    };
    let shape = match mnemonic {
        M::Addsd
        | M::Vaddsd
        | M::Subsd
        | M::Vsubsd
        | M::Mulsd
        | M::Vmulsd
        | M::Divsd
        | M::Vdivsd
        | M::Minsd
        | M::Vminsd
        | M::Maxsd
        | M::Vmaxsd
        | M::Sqrtsd
        | M::Vsqrtsd => Shape { bits: 64, scalar: true },
        M::Addss
        | M::Vaddss
        | M::Subss
        | M::Vsubss
        | M::Mulss
        | M::Vmulss
        | M::Divss
        | M::Vdivss
        | M::Minss
        | M::Vminss
        | M::Maxss
        | M::Vmaxss
        | M::Sqrtss
        | M::Vsqrtss => Shape { bits: 32, scalar: true },
        M::Addpd
        | M::Vaddpd
        | M::Subpd
        | M::Vsubpd
        | M::Mulpd
        | M::Vmulpd
        | M::Divpd
        | M::Vdivpd
        | M::Minpd
        | M::Vminpd
        | M::Maxpd
        | M::Vmaxpd
        | M::Sqrtpd
        | M::Vsqrtpd => Shape { bits: 64, scalar: false },
        M::Addps
        | M::Vaddps
        | M::Subps
        | M::Vsubps
        | M::Mulps
        | M::Vmulps
        | M::Divps
        | M::Vdivps
        | M::Minps
        | M::Vminps
        | M::Maxps
        | M::Vmaxps
        | M::Sqrtps
        | M::Vsqrtps => Shape { bits: 32, scalar: false },
        _ => return None,
    };
    Some((make, shape))
}

/// Bits of what is compared with flags as the result.
fn compared(mnemonic: Mnemonic) -> Option<u32> {
    use Mnemonic as M;
    match mnemonic {
        M::Comisd | M::Ucomisd | M::Vcomisd | M::Vucomisd => Some(64),
        M::Comiss | M::Ucomiss | M::Vcomiss | M::Vucomiss => Some(32),
        _ => None,
    }
}

/// Likewise with masks as the result.
fn masked(mnemonic: Mnemonic) -> Option<Shape> {
    use Mnemonic as M;
    Some(match mnemonic {
        M::Cmpsd | M::Vcmpsd => Shape { bits: 64, scalar: true },
        M::Cmpss | M::Vcmpss => Shape { bits: 32, scalar: true },
        M::Cmppd | M::Vcmppd => Shape { bits: 64, scalar: false },
        M::Cmpps | M::Vcmpps => Shape { bits: 32, scalar: false },
        _ => return None,
    })
}
