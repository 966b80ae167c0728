//! Steps of a register that may go around its width.
//!
//! A compiler may count rounds by a register that it needs anyhow, such as the state of a random number generator,
//! which moves by 11400714819323198485 each round: after a few rounds it has gone around, and only arithmetic modulo
//! the register's width still tells how many there were.

use crate::instruction::flags::low_bits;

/// Steps that lead over a distance in a register of so many bits: the fewest, 0 for no distance; `None` where none do.
pub fn steps(distance: u64, step: u64, bits: u32) -> Option<u64> {
    let (distance, step) = (low_bits(distance, bits), low_bits(step, bits));
    if distance == 0 {
        return Some(0);
    }
    let twos = step.trailing_zeros();
    if step == 0 || distance.trailing_zeros() < twos {
        return None;
    }
    Some(low_bits((distance >> twos).wrapping_mul(inverse(step >> twos)), bits - twos))
}

/// Inverse of an odd number modulo two to the 64th, by Newton's method: each round doubles the bits that are right.
fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_steps_as_were_made() {
        for step in [1, 3, 8, 0x1800, 0x9e37_79b9_7f4a_7c15, 1u64.wrapping_neg(), 24u64.wrapping_neg()] {
            for made in [0, 1, 2, 17, 3_000_000] {
                assert_eq!(steps(step.wrapping_mul(made), step, 64), Some(made), "{made} of {step:#x}");
                let before_it_repeats = made % (1 << (32 - step.trailing_zeros()));
                assert_eq!(steps(step.wrapping_mul(made), step, 32), Some(before_it_repeats), "{made} of {step:#x}");
            }
        }
    }

    #[test]
    fn a_distance_that_no_steps_lead_over() {
        assert_eq!(steps(4, 8, 64), None, "eight never comes to four");
        assert_eq!(steps(4, 0, 64), None);
        assert_eq!(steps(4, 3, 8), Some(172), "once around: 516 is 4 modulo 256");
    }
}
