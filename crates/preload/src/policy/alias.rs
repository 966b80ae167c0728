//! An object that is always in the cache: all of its pages are the same few, mapped over and over.
//!
//! The program runs the same instructions on the same addresses, and no line of the object comes from memory. What it
//! reads there is what anybody wrote last at an address a whole number of windows away, so its results mean nothing, and
//! it may well fail: whoever asks for this wants to know how long it takes, and nothing else.
//!
//! The window is shared memory, which can be mapped again without a file (`mremap(2)` of no bytes); children share it,
//! too. Each repetition is a mapping of the kernel's, and its pages are brought in at once: they are there already, so a
//! fault for each would be all that remains of what the object costs.

use std::sync::atomic::{AtomicU64, Ordering};

use tierloom_wire::TOO_MANY_MAPPINGS;

use super::kernel;
use crate::real;

/// The largest window that a rule may ask for, bytes; the window is as large, and rules take a part of it.
const MOST_BYTES: usize = 4 << 20;

/// Where the window is; 0 = nowhere yet.
static WINDOW: AtomicU64 = AtomicU64::new(0);

/// Maps the first `window_bytes` of the window over a range until it is full. They are all zeroes then, as memory that
/// was just handed out may have to be. How many mappings that took, of `most`, or the error number.
pub(super) fn alias(window_bytes: u64, start: u64, bytes: u64, most: u64) -> Result<u64, u32> {
    let repetitions = bytes.div_ceil(window_bytes.max(1));
    let window_size = usize::try_from(window_bytes).ok().filter(|size| (1..=MOST_BYTES).contains(size));
    let window_size = window_size.ok_or(libc::EINVAL.unsigned_abs())?;
    if repetitions > most {
        return Err(TOO_MANY_MAPPINGS);
    }
    let window = window(window_size)?;
    let map = |at: u64| kernel::map_again(window, window_bytes.min(bytes - at), start + at);
    if let Some(errno) = (0..bytes).step_by(window_size).map(map).find(|errno| *errno != 0) {
        undo(start, bytes);
        return Err(errno);
    }
    // A kernel before 5.14 cannot: then they come one by one.
    kernel::populate(start, bytes);
    Ok(repetitions)
}

/// Gives a range memory of its own again, all zeroes, before the allocator or the kernel gets it back: an allocator keeps
/// books in blocks that are free, and the kernel moves no range that is many mappings.
pub(super) fn undo(start: u64, bytes: u64) {
    kernel::map_anew(start, bytes);
}

/// Where the window is, with so many bytes cleared.
fn window(bytes: usize) -> Result<u64, u32> {
    let known = WINDOW.load(Ordering::Acquire);
    let window = if known == 0 { map_window()? } else { known };
    // SAFETY: it is mapped for good, no smaller, and may be written; what others write there meanwhile means nothing.
    unsafe { std::ptr::write_bytes(window as *mut u8, 0, bytes) };
    Ok(window)
}

/// Maps the window; the first of several threads wins.
fn map_window() -> Result<u64, u32> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice; it touches no other.
    let start = unsafe { real::mmap(std::ptr::null_mut(), MOST_BYTES, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(libc::ENOMEM.unsigned_abs());
    }
    match WINDOW.compare_exchange(0, start as u64, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Ok(start as u64),
        Err(others) => {
            // SAFETY: it was mapped above, and nobody has seen it.
            unsafe { real::munmap(start, MOST_BYTES) };
            Ok(others)
        }
    }
}

#[cfg(test)]
mod tests {
    use tierloom_wire::PAGE_BYTES;

    use super::*;

    const WINDOW_BYTES: u64 = 16 << 10;

    /// A range of private memory, full of ones.
    fn ones(bytes: u64) -> (u64, &'static [AtomicU64]) {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let length = usize::try_from(bytes).unwrap();
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, kind, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        // SAFETY: words of the mapping above, which stays; atomics may be written by anybody.
        let words = unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), length / 8) };
        for word in words {
            word.store(1, Ordering::Relaxed);
        }
        (start as u64, words)
    }

    fn sum(words: &[AtomicU64]) -> u64 {
        words.iter().map(|word| word.load(Ordering::Relaxed)).sum()
    }

    /// Tests write to the one window, so they are one.
    #[test]
    fn pages_alias_until_that_is_undone() {
        let bytes = 10 * WINDOW_BYTES + PAGE_BYTES;
        let (start, words) = ones(bytes);
        assert_eq!(alias(WINDOW_BYTES, start, bytes, 11), Ok(11));
        assert_eq!(sum(words), 0, "memory that is handed out may have to be zero");
        words[3].store(7, Ordering::Relaxed);
        let step = usize::try_from(WINDOW_BYTES / 8).unwrap();
        assert!(words.iter().skip(3).step_by(step).all(|word| word.load(Ordering::Relaxed) == 7));
        assert_eq!(sum(words), 11 * 7, "and nowhere else");

        let (other, others) = ones(4 * WINDOW_BYTES);
        assert_eq!(alias(2 * WINDOW_BYTES, other, 4 * WINDOW_BYTES, 11), Ok(2));
        others[5].store(9, Ordering::Relaxed);
        assert_eq!(words[5].load(Ordering::Relaxed), 9, "all ranges share the window");

        undo(start, bytes);
        assert_eq!(sum(words), 0);
        words[3].store(7, Ordering::Relaxed);
        assert_eq!((sum(words), others[3].load(Ordering::Relaxed)), (7, 0), "it is its own memory");

        let (much, full) = ones(10 * WINDOW_BYTES);
        assert_eq!(alias(WINDOW_BYTES, much, 10 * WINDOW_BYTES, 9), Err(TOO_MANY_MAPPINGS));
        assert_eq!(alias(2 * MOST_BYTES as u64, much, PAGE_BYTES, 9), Err(libc::EINVAL.unsigned_abs()));
        assert_eq!(sum(full), full.len() as u64, "what is refused is left alone");
    }
}
