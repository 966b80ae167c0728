//! The four kernels of STREAM (version 5.10) over doubles, one thread's part of each.
//!
//! Plain loads and stores: nothing goes past the caches, so a line that is stored to is fetched first,
//! as in the published runs. Copy is written with vectors that the compiler has to load and store as
//! they are; it would call `memcpy` otherwise, which goes past the caches for large arrays.

/// What STREAM multiplies by.
const SCALAR: f64 = 3.0;

/// One of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// c = a
    Copy,
    /// b = q c
    Scale,
    /// c = a + b
    Add,
    /// a = b + q c
    Triad,
}

/// One of the three arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Array {
    /// First.
    A,
    /// Second.
    B,
    /// Third.
    C,
}

impl Kernel {
    /// All, in STREAM's order.
    pub const ALL: [Self; 4] = [Self::Copy, Self::Scale, Self::Add, Self::Triad];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Scale => "scale",
            Self::Add => "add",
            Self::Triad => "triad",
        }
    }

    /// The array that it writes.
    pub(super) fn output(self) -> Array {
        match self {
            Self::Copy | Self::Add => Array::C,
            Self::Scale => Array::B,
            Self::Triad => Array::A,
        }
    }

    /// Runs over equally long parts of the three arrays.
    pub(super) fn run(self, a: &mut [f64], b: &mut [f64], c: &mut [f64]) {
        match self {
            Self::Copy => copy(a, c),
            Self::Scale => b.iter_mut().zip(c).for_each(|(b, c)| *b = SCALAR * *c),
            Self::Add => c.iter_mut().zip(a).zip(b).for_each(|((c, a), b)| *c = *a + *b),
            Self::Triad => a.iter_mut().zip(b).zip(c).for_each(|((a, b), c)| *a = *b + SCALAR * *c),
        }
    }

    /// The same on single numbers.
    pub(super) fn step(self, [a, b, c]: [f64; 3]) -> [f64; 3] {
        match self {
            Self::Copy => [a, b, a],
            Self::Scale => [a, SCALAR * c, c],
            Self::Add => [a, b, a + b],
            Self::Triad => [b + SCALAR * c, b, c],
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn copy(from: &[f64], to: &mut [f64]) {
    use std::arch::x86_64::__m128d;
    // SAFETY: two doubles are a vector and the other way round, whatever their bits.
    let ((head, body, tail), (to_head, to_body, to_tail)) =
        unsafe { (from.align_to::<__m128d>(), to.align_to_mut::<__m128d>()) };
    if head.len() != to_head.len() || tail.len() != to_tail.len() {
        from.iter().zip(to).for_each(|(from, to)| *to = *from);
        return;
    }
    to_head.copy_from_slice(head);
    to_tail.copy_from_slice(tail);
    for (from, to) in body.iter().zip(to_body) {
        // SAFETY: both are references, so aligned and valid.
        unsafe { std::ptr::from_mut(to).write_volatile(std::ptr::from_ref(from).read_volatile()) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn copy(from: &[f64], to: &mut [f64]) {
    from.iter().zip(to).for_each(|(from, to)| *to = *from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::float_cmp, reason = "small whole numbers")]
    #[test]
    fn kernels_are_streams() {
        for length in [0, 1, 2, 7, 100] {
            let (mut a, mut b, mut c) = (vec![1.0; length + 1], vec![2.0; length], vec![0.0; length]);
            let mut expected = [1.0, 2.0, 0.0];
            for kernel in Kernel::ALL {
                kernel.run(&mut a[1..], &mut b, &mut c); // one array that vectors do not fit
                expected = kernel.step(expected);
                assert!(a[1..].iter().all(|value| *value == expected[0]), "{kernel:?}");
                assert!(b.iter().all(|value| *value == expected[1]), "{kernel:?}");
                assert!(c.iter().all(|value| *value == expected[2]), "{kernel:?}");
            }
            assert_eq!(expected, [15.0, 3.0, 4.0]);
        }
    }
}
