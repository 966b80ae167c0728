//! The functions behind the hooks: those of the next library in line, usually libc.
//!
//! They are looked up by the constructor, or by the first call if that comes earlier: until then every
//! pointer leads to a function of `early` that looks all of them up, so that a caller never has to ask.

use std::ffi::{CStr, c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::{forked, symbols};

/// What a thread runs.
pub(crate) type Work = extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// One list of functions: name, arguments, result, and what answers where there is none.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*) -> $out:ty, early $early:expr;)*) => {
        $(
            /// The next library's function of this name.
            ///
            /// # Safety
            /// That of the function in libc.
            #[inline]
            pub(crate) unsafe fn $name($($argument: $type),*) -> $out {
                let real = pointers::$name.load(Ordering::Relaxed);
                // SAFETY: the loader found this function under this name, or it is that of `early`.
                let real: unsafe extern "C" fn($($type),*) -> $out = unsafe { std::mem::transmute(real) };
                // SAFETY: the caller's promise.
                unsafe { real($($argument),*) }
            }
        )*

        /// Where they are. Those that this libc does not have stay with `early`.
        #[allow(non_upper_case_globals)]
        pub(crate) mod pointers {
            use super::{AtomicPtr, c_void, early};
            $(pub(crate) static $name: AtomicPtr<c_void> = AtomicPtr::new(early::$name as *mut c_void);)*
        }

        mod early {
            #[allow(clippy::wildcard_imports)]
            use super::*;
            $(
                pub(super) unsafe extern "C" fn $name($($argument: $type),*) -> $out {
                    resolve();
                    if pointers::$name.load(Ordering::Relaxed) != $name as *mut c_void {
                        // SAFETY: the caller's promise.
                        return unsafe { super::$name($($argument),*) };
                    }
                    $early
                }
            )*
        }

        /// Looks the functions up. Any number of threads may do that at once.
        pub(crate) fn resolve() {
            $(look_up(concat!(stringify!($name), "\0"), &pointers::$name);)*
            look_whose();
        }
    };
}

functions! {
    malloc(bytes: usize) -> *mut c_void, early {
        let _ = bytes;
        none()
    };
    calloc(count: usize, bytes: usize) -> *mut c_void, early {
        let _ = (count, bytes);
        none()
    };
    realloc(old: *mut c_void, bytes: usize) -> *mut c_void, early {
        let _ = (old, bytes);
        none()
    };
    free(block: *mut c_void) -> (), early { let _ = block; };
    free_sized(block: *mut c_void, bytes: usize) -> (), early {
        let _ = bytes;
        // SAFETY: C23 7.24.3.4: equivalent to free; whoever the program means by that.
        unsafe { libc::free(block) }
    };
    free_aligned_sized(block: *mut c_void, alignment: usize, bytes: usize) -> (), early {
        let _ = (alignment, bytes);
        // SAFETY: C23 7.24.3.5: equivalent to free; whoever the program means by that.
        unsafe { libc::free(block) }
    };
    posix_memalign(out: *mut *mut c_void, alignment: usize, bytes: usize) -> c_int, early {
        let _ = (out, alignment, bytes);
        libc::ENOMEM
    };
    aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void, early {
        let _ = (alignment, bytes);
        none()
    };
    memalign(alignment: usize, bytes: usize) -> *mut c_void, early {
        let _ = (alignment, bytes);
        none()
    };
    valloc(bytes: usize) -> *mut c_void, early {
        let _ = bytes;
        none()
    };
    pvalloc(bytes: usize) -> *mut c_void, early {
        let _ = bytes;
        none()
    };
    mmap(address: *mut c_void, bytes: usize, access: c_int, flags: c_int, file: c_int, offset: i64) -> *mut c_void,
        early {
            // SAFETY: the caller's promise; this is what libc's mmap does.
            unsafe { libc::syscall(libc::SYS_mmap, address, bytes, access, flags, file, offset) as *mut c_void }
        };
    munmap(address: *mut c_void, bytes: usize) -> c_int,
        // SAFETY: the caller's promise; this is what libc's munmap does.
        early unsafe { -c_int::from(libc::syscall(libc::SYS_munmap, address, bytes) != 0) };
    mprotect(address: *mut c_void, bytes: usize, access: c_int) -> c_int,
        // SAFETY: the caller's promise; this is what libc's mprotect does.
        early unsafe { -c_int::from(libc::syscall(libc::SYS_mprotect, address, bytes, access) != 0) };
    pthread_create(thread: *mut libc::pthread_t, how: *const libc::pthread_attr_t, work: Work, argument: *mut c_void)
        -> c_int, early {
            let _ = (thread, how, work, argument);
            libc::EAGAIN
        };
    syscall(number: i64, one: i64, two: i64, three: i64, four: i64, five: i64, six: i64) -> i64, early {
        let _ = (number, one, two, three, four, five, six);
        -1
    };
    prctl(option: c_int, one: c_ulong, two: c_ulong, three: c_ulong, four: c_ulong) -> c_int,
        // SAFETY: the caller's promise; this is what libc's prctl does.
        early unsafe { c_int::try_from(libc::syscall(libc::SYS_prctl, option, one, two, three, four)).unwrap_or(-1) };
    dlclose(library: *mut c_void) -> c_int, early {
        let _ = library;
        -1
    };
    __cxa_finalize(handle: *mut c_void) -> (), early { let _ = handle; };
    brk(to: *mut c_void) -> c_int, early {
        let _ = (to, none());
        -1
    };
    sbrk(by: isize) -> *mut c_void, early {
        let _ = (by, none());
        libc::MAP_FAILED
    };
    mremap(address: *mut c_void, old: usize, new: usize, flags: c_int, to: *mut c_void) -> *mut c_void,
        // SAFETY: the caller's promise; this is what libc's mremap does.
        early unsafe { libc::syscall(libc::SYS_mremap, address, old, new, flags, to) as *mut c_void };
}

#[cold]
fn look_up(name: &'static str, into: &AtomicPtr<c_void>) {
    if let Some(found) = CStr::from_bytes_with_nul(name.as_bytes()).ok().and_then(symbols::next) {
        into.store(found, Ordering::Release);
    }
}

/// Whether the next library's blocks are glibc's: the word before each holds its size (`mchunk_size` of glibc's
/// `malloc/malloc.c`, at this place since its first version), which `free` and `realloc` read anyway.
#[cold]
fn look_whose() {
    let glibc = [c"gnu_get_libc_version", c"free", c"realloc", c"malloc"];
    forked::tell_size_before_block(symbols::are_of_one_file(&glibc));
}

/// No memory.
fn none() -> *mut c_void {
    // SAFETY: errno is an int of this thread.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    std::ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_of_libc_are_found() {
        resolve();
        // SAFETY: a block is asked for, written within its bounds, and given back once.
        unsafe {
            let block = malloc(100);
            assert!(!block.is_null());
            block.cast::<u8>().write_bytes(1, 100);
            free(block);
        }
    }
}
