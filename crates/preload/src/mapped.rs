//! Tables that only some programs need: their memory is mapped when that is known, so that a process whose
//! address space is limited (`ulimit -v`) does not lack what nobody uses.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::real;

/// What may be made of zeroes, and shared between threads as it is.
///
/// # Safety
/// Zeroes are a valid value.
pub(crate) unsafe trait Zeroed: Sync {}

// SAFETY: zeroes are numbers.
unsafe impl<const COUNT: usize> Zeroed for [AtomicU64; COUNT] {}

/// A table that is there or not; once there, it stays.
pub(crate) struct Mapped<T>(AtomicPtr<T>);

impl<T: Zeroed + 'static> Mapped<T> {
    pub(crate) const fn nothing() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The table, if it is there.
    #[inline]
    pub(crate) fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or what `map` has mapped for good, of this size and zeroed.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Maps it, if there is memory for it. Only one thread calls this: that of the constructor.
    pub(crate) fn map(&self) -> Option<&'static T> {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice; it touches no other.
        let start = unsafe { real::mmap(ptr::null_mut(), size_of::<T>(), access, flags | libc::MAP_NORESERVE, -1, 0) };
        if start != libc::MAP_FAILED {
            self.0.store(start.cast(), Ordering::Release);
        }
        self.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_there_when_it_was_mapped() {
        static TABLE: Mapped<[AtomicU64; 1000]> = Mapped::nothing();
        assert!(TABLE.get().is_none());
        let table = TABLE.map().unwrap();
        assert!(table.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        table[999].store(7, Ordering::Relaxed);
        assert_eq!(TABLE.get().map(|table| table[999].load(Ordering::Relaxed)), Some(7));
    }
}
