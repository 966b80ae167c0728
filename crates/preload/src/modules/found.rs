//! The file at an address, without the loader's lock.
//!
//! `dl_iterate_phdr` takes a lock that glibc's `fork` does not give back in the child: where another thread has
//! it at that moment, a child that asks waits for ever, and so does one in which something of the program's own
//! asks while we have it. `_dl_find_object` (glibc 2.35) takes none.

use std::ffi::{c_char, c_int, c_void};
use std::mem;
use std::ops::Range;
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::file::{Module, path_of};
use crate::symbols;

/// `struct dl_find_object` of `<dlfcn.h>` on x86-64.
#[repr(C)]
struct Found {
    _flags: u64,
    start: *const u8,
    end: *const u8,
    file: *const LinkMap,
    _unwind_table: *const c_void,
    _reserved: [u64; 7],
}

/// The beginning of `struct link_map` of `<link.h>`.
#[repr(C)]
struct LinkMap {
    base: u64,
    name: *const c_char,
}

type Find = unsafe extern "C" fn(*const c_void, *mut Found) -> c_int;

/// `_dl_find_object`; null where the C library has none.
static FIND: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Looks the function up; called while there is one thread.
pub(crate) fn prepare() {
    if let Some(function) = symbols::next(c"_dl_find_object") {
        FIND.store(function, Ordering::Release);
    }
}

/// Whether files can be found so.
pub(super) fn is_possible() -> bool {
    !FIND.load(Ordering::Acquire).is_null()
}

/// Calls `each` with the file that holds this address and the addresses that are that file's.
pub(super) fn with_file_at<T>(address: u64, each: impl FnOnce(&Module, Range<u64>) -> T) -> Option<T> {
    let find = FIND.load(Ordering::Acquire);
    if find.is_null() {
        return None;
    }
    // SAFETY: `prepare` stored the C library's function of this type.
    let find = unsafe { mem::transmute::<*mut c_void, Find>(find) };
    // SAFETY: plain numbers and pointers, for which zero is valid.
    let mut found: Found = unsafe { mem::zeroed() };
    // SAFETY: `found` is the description that the function fills in; any address may be asked for.
    if unsafe { find(address as *const c_void, &raw mut found) } != 0 {
        return None;
    }
    let headers = headers(found.start)?;
    let mut buffer = [0; tierloom_wire::MAX_PATH_WORDS * 8];
    // SAFETY: the loader's description of a file that is loaded, as code of it runs on this stack.
    let LinkMap { base, name } = unsafe { found.file.read() };
    Some(each(&Module { base, path: path_of(name, &mut buffer), headers }, found.start as u64..found.end as u64))
}

/// The program headers of a file that is mapped from its beginning on; `None` where something else is there.
fn headers<'a>(start: *const u8) -> Option<&'a [libc::Elf64_Phdr]> {
    // SAFETY: the first byte that the loader mapped of a file, which is there while the file is; a segment is at
    // least a page, and only one that begins like a file is taken for its header.
    unsafe {
        if start.cast::<[u8; 4]>().read_unaligned() != *b"\x7fELF" {
            return None;
        }
        let header = start.cast::<libc::Elf64_Ehdr>().read_unaligned();
        let table = start.add(usize::try_from(header.e_phoff).ok()?).cast();
        Some(slice::from_raw_parts(table, usize::from(header.e_phnum)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_our_own_code_is_found() {
        prepare();
        // SAFETY: any of our own functions will do.
        let own = the_file_of_our_own_code_is_found as *const () as u64;
        let (name, inside) = with_file_at(own, |file, range| (file.name(), range.contains(&own))).unwrap();
        let program = std::env::current_exe().unwrap();
        assert_eq!(name, tierloom_wire::hash(program.file_name().unwrap().as_encoded_bytes()));
        assert!(inside);
        assert!(with_file_at(8, |_, _| ()).is_none());
    }
}
