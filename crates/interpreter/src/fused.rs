//! A product and a sum that are rounded once.

use iced_x86::Mnemonic as M;

use crate::bits::low;
use crate::bytes::Bytes;
use crate::decoded::Decoded;
use crate::ended::Ended;
use crate::machine::Machine;
use crate::number::{Number, Shape};
use crate::vector::source_bytes;

/// A product and a sum that are rounded once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fused {
    /// Which operands are multiplied, and which is added.
    order: [usize; 3],
    negates_product: bool,
    subtracts: bool,
    shape: Shape,
}

impl Fused {
    fn of<F: Number>(self, one: F, times: F, plus: F) -> F {
        let one = if self.negates_product { one.negated() } else { one };
        one.fused(times, if self.subtracts { plus.negated() } else { plus })
    }

    fn lane(self, one: u64, times: u64, plus: u64, own: u64) -> u64 {
        let narrow = |shift: u32| {
            let part = |lane: u64| f32::of(lane >> shift & low(32));
            self.of(part(one), part(times), part(plus)).bits() << shift
        };
        match (self.shape.bits, self.shape.scalar) {
            (32, true) => own & !low(32) | narrow(0),
            (32, false) => narrow(0) | narrow(32),
            _ => self.of(f64::of(one), f64::of(times), f64::of(plus)).bits(),
        }
    }
}

impl<B: Bytes> Machine<B> {
    /// Of one number the rest of the target stays.
    pub(crate) fn fuse(&mut self, decoded: &Decoded, fused: Fused) -> Result<(), Ended> {
        let code = &decoded.code;
        let own = self.lanes(code, 0, 32)?;
        let (second, third) = (self.lanes(code, 1, 32)?, self.lanes(code, 2, source_bytes(code, 2))?);
        let [one, times, plus] = fused.order.map(|at| [own, second, third][at]);
        let mut lanes = own;
        let words = if fused.shape.scalar { 1 } else { 4 };
        for (at, lane) in lanes.iter_mut().enumerate().take(words) {
            *lane = match (one[at], times[at], plus[at], *lane) {
                (Some(one), Some(times), Some(plus), Some(own)) => Some(fused.lane(one, times, plus, own)),
                _ => None,
            };
        }
        self.set_lanes(decoded, lanes)
    }
}

/// Which operands are multiplied and which is added, whether the product is negated, whether the last is subtracted.
type Row = ([usize; 3], bool, bool, [M; 4]);

/// By the shapes below.
#[rustfmt::skip]
const ALL: [Row; 12] = [
    ([0, 2, 1], false, false, [M::Vfmadd132sd, M::Vfmadd132ss, M::Vfmadd132pd, M::Vfmadd132ps]),
    ([1, 0, 2], false, false, [M::Vfmadd213sd, M::Vfmadd213ss, M::Vfmadd213pd, M::Vfmadd213ps]),
    ([1, 2, 0], false, false, [M::Vfmadd231sd, M::Vfmadd231ss, M::Vfmadd231pd, M::Vfmadd231ps]),
    ([0, 2, 1], false, true, [M::Vfmsub132sd, M::Vfmsub132ss, M::Vfmsub132pd, M::Vfmsub132ps]),
    ([1, 0, 2], false, true, [M::Vfmsub213sd, M::Vfmsub213ss, M::Vfmsub213pd, M::Vfmsub213ps]),
    ([1, 2, 0], false, true, [M::Vfmsub231sd, M::Vfmsub231ss, M::Vfmsub231pd, M::Vfmsub231ps]),
    ([0, 2, 1], true, false, [M::Vfnmadd132sd, M::Vfnmadd132ss, M::Vfnmadd132pd, M::Vfnmadd132ps]),
    ([1, 0, 2], true, false, [M::Vfnmadd213sd, M::Vfnmadd213ss, M::Vfnmadd213pd, M::Vfnmadd213ps]),
    ([1, 2, 0], true, false, [M::Vfnmadd231sd, M::Vfnmadd231ss, M::Vfnmadd231pd, M::Vfnmadd231ps]),
    ([0, 2, 1], true, true, [M::Vfnmsub132sd, M::Vfnmsub132ss, M::Vfnmsub132pd, M::Vfnmsub132ps]),
    ([1, 0, 2], true, true, [M::Vfnmsub213sd, M::Vfnmsub213ss, M::Vfnmsub213pd, M::Vfnmsub213ps]),
    ([1, 2, 0], true, true, [M::Vfnmsub231sd, M::Vfnmsub231ss, M::Vfnmsub231pd, M::Vfnmsub231ps]),
];

const SHAPES: [Shape; 4] = [
    Shape { bits: 64, scalar: true },
    Shape { bits: 32, scalar: true },
    Shape { bits: 64, scalar: false },
    Shape { bits: 32, scalar: false },
];

/// What an instruction is, if it is one of these.
pub(crate) fn fused(mnemonic: M) -> Option<Fused> {
    ALL.iter().find_map(|&(order, negates_product, subtracts, of_shapes)| {
        let at = of_shapes.iter().position(|one| *one == mnemonic)?;
        Some(Fused { order, negates_product, subtracts, shape: SHAPES[at] })
    })
}
