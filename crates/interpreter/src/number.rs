//! Numbers of floating point of both widths.

use crate::bits::low;

/// How wide numbers are, and whether only the lowest is computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) bits: u32,
    pub(crate) scalar: bool,
}

/// What both widths have in common.
pub(crate) trait Number: Copy + PartialOrd {
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    fn root(self) -> Self;
    fn fused(self, times: Self, plus: Self) -> Self;
    fn negated(self) -> Self;
}

macro_rules! number {
    ($float:ty, $word:ty) => {
        impl Number for $float {
            fn of(bits: u64) -> Self {
                #[allow(clippy::cast_possible_truncation)]
                Self::from_bits(bits as $word)
            }

            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }

            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn minus(self, other: Self) -> Self {
                self - other
            }

            fn times(self, other: Self) -> Self {
                self * other
            }

            fn over(self, other: Self) -> Self {
                self / other
            }

            fn root(self) -> Self {
                self.sqrt()
            }

            fn fused(self, times: Self, plus: Self) -> Self {
                self.mul_add(times, plus)
            }

            fn negated(self) -> Self {
                -self
            }
        }
    };
}

number!(f32, u32);
number!(f64, u64);

/// A word of which the lowest number was replaced.
pub(crate) fn low_replaced(whole: Option<u64>, part: Option<u64>, bits: u32) -> Option<u64> {
    if bits == 64 { part } else { Some(whole? & !low(bits) | part? & low(bits)) }
}
