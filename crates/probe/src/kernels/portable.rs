//! Plain loops over words: what every processor can do, vectorised by the compiler where it likes.

use super::line::{FILL, Line, Walk};
use crate::mix::Mix;

/// The walk of a mix; none for mixes that need stores past the caches.
pub(super) fn walk(mix: Mix) -> Option<Walk> {
    match mix {
        Mix::Reads => Some(update::<1, false>),
        Mix::ThreeToOne => Some(update::<3, true>),
        Mix::TwoToOne => Some(update::<2, true>),
        Mix::OneToOne => Some(update::<1, true>),
        Mix::Writes => Some(fill),
        Mix::NonTemporal | Mix::NonTemporalCopy => None,
    }
}

/// Reads all lines and, with `STORE`, adds one to every word of the last line of each group.
fn update<const LINES: usize, const STORE: bool>(lines: &mut [Line]) -> u64 {
    let mut sum = 0_u64;
    for group in lines.as_chunks_mut::<LINES>().0 {
        for (place, line) in group.iter_mut().enumerate() {
            for word in &mut line.0 {
                sum = sum.wrapping_add(*word);
                if STORE && place == LINES - 1 {
                    *word = word.wrapping_add(1);
                }
            }
        }
    }
    sum
}

/// Writes every word.
fn fill(lines: &mut [Line]) -> u64 {
    lines.fill(Line([FILL; 8]));
    0
}
