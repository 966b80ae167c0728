//! Functions of the libraries behind this one, found in their symbol tables by hand.
//!
//! `dlsym` would do it, but it allocates (always in old C libraries, and in new ones when a name is not
//! there), and it may be called while the allocator of the program is being set up: a statically linked
//! jemalloc asks for its first memory, our `mmap` asks `dlsym`, `dlsym` asks jemalloc, which waits for
//! itself. Nor may any other function be called that somebody else stands in front of: sanitizers do
//! not know their own `dl_iterate_phdr` yet when they first need our `malloc`. So the loader's list of
//! files, which it keeps for debuggers, is read as it lies in memory.
//!
//! Formats: System V gABI, "Dynamic Section" and "Hash Table"; `struct link_map` and `_r_debug` of
//! `<link.h>`; `DT_GNU_HASH` and versions as in glibc's `elf/dl-lookup.c`.

use std::arch::asm;
use std::ffi::{CStr, c_char, c_int, c_void};

const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DT_VERSYM: u64 = 0x6fff_fff0;
const FUNCTION: u8 = 2;
const INDIRECT_FUNCTION: u8 = 10;
/// Bit of a version: not the one that a name without a version means.
const HIDDEN: u16 = 0x8000;

/// `struct link_map`: one loaded file.
#[repr(C)]
struct Loaded {
    base: u64,
    _name: *const c_char,
    dynamic: *const [u64; 2],
    next: *const Loaded,
}

/// `struct r_debug`.
#[repr(C)]
struct Loader {
    _version: c_int,
    first: *const Loaded,
}

unsafe extern "C" {
    #[link_name = "_r_debug"]
    static LOADER: Loader;
}

/// The function of this name that the loader would find in the files behind this one.
pub(crate) fn next(name: &CStr) -> Option<*mut c_void> {
    found(name).map(|(_, function)| function)
}

/// Whether all of these functions would be found, in one file behind this one.
pub(crate) fn are_of_one_file(names: &[&CStr]) -> bool {
    let mut bases = names.iter().map(|name| found(name).map(|(base, _)| base));
    let first = bases.next().flatten();
    first.is_some() && bases.all(|base| base == first)
}

/// Where a file behind this one was loaded, and its function of this name.
fn found(name: &CStr) -> Option<(u64, *mut c_void)> {
    let ours: *const [u64; 2];
    // SAFETY: the linker defines this name in every file with a dynamic section.
    unsafe { asm!("lea {ours}, [rip + _DYNAMIC]", ours = out(reg) ours, options(pure, nomem, nostack)) };
    // SAFETY: the loader has filled this in before it ran any code of ours.
    let mut file = unsafe { LOADER.first };
    let mut behind_us = false;
    // SAFETY: the list ends with null; a file stays in it while it is loaded, and what is behind us is
    // there since the start.
    while let Some(loaded) = unsafe { file.as_ref() } {
        if behind_us && let Some(found) = Tables::of(loaded).and_then(|tables| tables.function(name)) {
            return Some((loaded.base, found));
        }
        behind_us |= loaded.dynamic == ours;
        file = loaded.next;
    }
    None
}

/// Tables of a loaded file; null where it has none.
struct Tables {
    base: u64,
    strings: *const c_char,
    symbols: *const libc::Elf64_Sym,
    versions: *const u16,
    gnu_hash: *const u32,
    hash: *const u32,
}

impl Tables {
    fn of(file: &Loaded) -> Option<Self> {
        let mut entry = file.dynamic;
        let mut found = [0; 5];
        loop {
            // SAFETY: the dynamic section of a loaded file, which ends with an entry of tag 0.
            let [tag, value] = unsafe { *entry };
            let wanted = [DT_STRTAB, DT_SYMTAB, DT_VERSYM, DT_GNU_HASH, DT_HASH];
            if let Some(position) = wanted.iter().position(|wanted| *wanted == tag) {
                // glibc turns offsets into addresses, except in files whose section it cannot write.
                found[position] = if value < file.base { file.base + value } else { value };
            }
            if tag == 0 {
                break;
            }
            // SAFETY: the entry with tag 0 was not reached.
            entry = unsafe { entry.add(1) };
        }
        let [strings, symbols, versions, gnu_hash, hash] = found;
        (strings != 0 && symbols != 0).then_some(Self {
            base: file.base,
            strings: strings as *const c_char,
            symbols: symbols as *const libc::Elf64_Sym,
            versions: versions as *const u16,
            gnu_hash: gnu_hash as *const u32,
            hash: hash as *const u32,
        })
    }

    fn function(&self, name: &CStr) -> Option<*mut c_void> {
        if self.gnu_hash.is_null() { self.by_scan(name) } else { self.by_gnu_hash(name) }
    }

    fn by_gnu_hash(&self, name: &CStr) -> Option<*mut c_void> {
        let wanted =
            name.to_bytes().iter().fold(5381_u32, |sum, byte| sum.wrapping_mul(33).wrapping_add(u32::from(*byte)));
        // SAFETY: the table begins with four words: buckets, first symbol in them, words of the Bloom
        // filter (of 64 bits each), its shift; then filter, buckets, and one word for each symbol, the
        // last of a bucket with its lowest bit set.
        unsafe {
            let word = |at: u32| *self.gnu_hash.add(at as usize);
            let (buckets, first) = (word(0), word(1));
            let buckets_at = 4 + 2 * word(2);
            if buckets == 0 {
                return None;
            }
            let mut index = word(buckets_at + wanted % buckets);
            while index >= first {
                let hash = word(buckets_at + buckets + index - first);
                if hash | 1 == wanted | 1
                    && let Some(address) = self.address(index, name)
                {
                    return Some(address);
                }
                if hash & 1 != 0 {
                    break;
                }
                index += 1;
            }
        }
        None
    }

    /// Old files have only the older table, whose second word is the number of symbols.
    fn by_scan(&self, name: &CStr) -> Option<*mut c_void> {
        if self.hash.is_null() {
            return None;
        }
        // SAFETY: the table begins with two words.
        let symbols = unsafe { *self.hash.add(1) };
        (1..symbols).find_map(|index| self.address(index, name))
    }

    /// Where this symbol is, if it has this name and is a function that the file defines.
    fn address(&self, index: u32, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the tables have an entry for every symbol that a hash table names; names are C strings.
        let (symbol, same, hidden) = unsafe {
            let symbol = &*self.symbols.add(index as usize);
            let same = CStr::from_ptr(self.strings.add(symbol.st_name as usize)) == name;
            (symbol, same, !self.versions.is_null() && *self.versions.add(index as usize) & HIDDEN != 0)
        };
        let address = (self.base + symbol.st_value) as *mut c_void;
        match symbol.st_info & 0xf {
            _ if !same || hidden || symbol.st_shndx == 0 => None,
            FUNCTION => Some(address),
            INDIRECT_FUNCTION => {
                // SAFETY: the address is that of a function that returns the function to call.
                let choose: unsafe extern "C" fn() -> *mut c_void = unsafe { std::mem::transmute(address) };
                // SAFETY: as above.
                Some(unsafe { choose() })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_finds_the_same() {
        for name in [
            c"malloc",
            c"calloc",
            c"free",
            c"mmap",
            c"mremap",
            c"sbrk",
            c"pthread_create",
            c"prctl",
            c"syscall",
            c"dlclose",
            c"__cxa_finalize",
        ] {
            // SAFETY: `name` is a C string.
            let other = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
            assert_eq!(next(name), Some(other), "{name:?}");
        }
        assert_eq!(next(c"no_such_function_anywhere"), None);
    }

    #[test]
    fn functions_of_one_file_are_told_from_others() {
        assert!(are_of_one_file(&[c"gnu_get_libc_version", c"free", c"malloc"]));
        assert!(!are_of_one_file(&[c"free", c"_Unwind_GetIP"]));
        assert!(!are_of_one_file(&[c"free", c"no_such_function_anywhere"]));
    }

    #[test]
    fn an_indirect_function_is_asked_which() {
        // SAFETY: `name` is a C string.
        let other = unsafe { libc::dlsym(libc::RTLD_NEXT, c"memcpy".as_ptr()) };
        assert_eq!(next(c"memcpy"), Some(other));
    }
}
