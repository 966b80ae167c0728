//! The files that are mapped into this process: told to recorders whom the kernel does not tell, and
//! asked which of them an address belongs to.
//!
//! Libraries that are opened later the recorder finds in `/proc`, if the process lives long enough.

pub(crate) mod found;

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::slice;

use tierloom_wire::{Event, MAX_PATH_WORDS, PAGE_BYTES, Region, RuleFrame, hash, is_same_file, pack_path};

use crate::{forked, report};

/// One loaded file, as the loader describes it.
struct Module<'a> {
    base: u64,
    path: &'a [u8],
    headers: &'a [libc::Elf64_Phdr],
}

/// Calls `each` for every loaded file, until it returns `false`.
fn for_each<F: FnMut(&Module) -> bool>(mut each: F) {
    // SAFETY: `visit::<F>` gets back the pointer to `each`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit::<F>), (&raw mut each).cast()) };
}

/// How many libraries were ever unloaded from this process.
pub(crate) fn unloads() -> u64 {
    unsafe extern "C" fn read(info: *mut libc::dl_phdr_info, _bytes: usize, into: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid description, `unloads` a u64.
        unsafe { *into.cast::<u64>() = (*info).dlpi_subs };
        1
    }
    let mut count = 0_u64;
    // SAFETY: `count` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(read), (&raw mut count).cast()) };
    count
}

unsafe extern "C" fn visit<F: FnMut(&Module) -> bool>(
    info: *mut libc::dl_phdr_info,
    _bytes: usize,
    each: *mut c_void,
) -> c_int {
    let mut buffer = [0_u8; MAX_PATH_WORDS * 8];
    // SAFETY: the loader passes a valid description that lives during this call; `for_each` passed
    // an `F` that nobody else uses now.
    let (info, headers, each) = unsafe {
        let info = &*info;
        (info, slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)), &mut *each.cast::<F>())
    };
    let path = path_of(info.dlpi_name, &mut buffer);
    c_int::from(!each(&Module { base: info.dlpi_addr, path, headers }))
}

/// The loader's name for a file; the program itself has none there.
fn path_of<'a>(name: *const libc::c_char, buffer: &'a mut [u8]) -> &'a [u8] {
    // SAFETY: the loader's names are null or C strings that live as long as the file is loaded.
    let name: &'a CStr = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } };
    if !name.is_empty() {
        return name.to_bytes();
    }
    // SAFETY: the buffer has this many bytes.
    let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
    &buffer[..usize::try_from(length).unwrap_or(0)]
}

impl Module<'_> {
    /// Segments with this type.
    fn segments(&self, kind: u32) -> impl Iterator<Item = &libc::Elf64_Phdr> {
        self.headers.iter().filter(move |header| header.p_type == kind)
    }

    fn holds(&self, address: u64) -> bool {
        let inside = |header: &libc::Elf64_Phdr| {
            let start = self.base + header.p_vaddr;
            (start..start + header.p_memsz).contains(&address)
        };
        self.segments(libc::PT_LOAD).any(inside)
    }

    /// [`hash`] of the file name without its folder.
    fn name(&self) -> u64 {
        hash(self.path.rsplit(|byte| *byte == b'/').next().unwrap_or(self.path))
    }

    /// [`hash`] of the build id; 0 where there is none.
    fn build(&self) -> u64 {
        let id = self.segments(libc::PT_NOTE).find_map(|header| {
            let length = usize::try_from(header.p_memsz).unwrap_or(0);
            // SAFETY: the loader mapped the segment here, and it stays while the file is loaded.
            build_id(unsafe { slice::from_raw_parts((self.base + header.p_vaddr) as *const u8, length) })
        });
        id.map_or(0, hash)
    }
}

/// `NT_GNU_BUILD_ID` in a segment of notes: sizes of name and content, type, then both, each padded
/// to four bytes (ELF gABI, "Note Section").
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    const GNU_BUILD_ID: u32 = 3;
    let word = |notes: &[u8], at: usize| notes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    loop {
        let (name, content) = (word(notes, 0)? as usize, word(notes, 4)? as usize);
        let start = 12 + name.next_multiple_of(4);
        if word(notes, 8)? == GNU_BUILD_ID && notes.get(12..16)? == b"GNU\0" {
            return notes.get(start..start + content);
        }
        notes = notes.get(start + content.next_multiple_of(4)..)?;
    }
}

/// Where this file was loaded: the difference between its addresses and its virtual ones. Not told in a forked
/// child, where the lock on the loader's list may be nobody's.
pub(crate) fn base(name: u64, build: u64) -> Option<u64> {
    if forked::is_child() {
        return None;
    }
    let mut found = None;
    for_each(|module| {
        found = is_same_file((module.name(), module.build()), (name, build)).then_some(module.base);
        found.is_none()
    });
    found
}

/// Names each address by file, build and offset; those outside of all files keep their default.
pub(crate) fn name_frames(addresses: &[u64], into: &mut [RuleFrame]) {
    if !found::is_possible() {
        return name_by_list(addresses, into);
    }
    let mut last = None;
    for (address, frame) in addresses.iter().zip(into) {
        if !last.as_ref().is_some_and(|(range, _)| Range::contains(range, address)) {
            last = found::with_file_at(*address, |file, range| (range, Named::of(file)));
        }
        if let Some((_, named)) = &last {
            *frame = named.at(*address);
        }
    }
}

/// The same by the loader's list. A forked child does not ask for it: the lock on it may be nobody's.
fn name_by_list(addresses: &[u64], into: &mut [RuleFrame]) {
    if forked::is_child() {
        return;
    }
    for_each(|module| {
        let ours = |address: &u64| module.holds(*address);
        if addresses.iter().any(ours) {
            let named = Named::of(module);
            for (address, frame) in addresses.iter().zip(&mut *into).filter(|(address, _)| ours(address)) {
                *frame = named.at(*address);
            }
        }
        true
    });
}

/// A file as rules name it.
struct Named {
    name: u64,
    build: u64,
    base: u64,
}

impl Named {
    fn of(file: &Module) -> Self {
        Self { name: file.name(), build: file.build(), base: file.base }
    }

    fn at(&self, address: u64) -> RuleFrame {
        RuleFrame { module: self.name, build: self.build, offset: address - self.base }
    }
}

/// Tells about every loaded segment, if the recorder wants to know.
pub(crate) fn announce() {
    if report::region().is_some_and(Region::wants_modules) {
        for_each(|module| {
            let mut words = [0; MAX_PATH_WORDS];
            let length = pack_path(module.path, &mut words);
            module.segments(libc::PT_LOAD).for_each(|header| announce_segment(module.base, header, &words[..length]));
            true
        });
    }
}

fn announce_segment(base: u64, header: &libc::Elf64_Phdr, path: &[u64]) {
    let before = header.p_vaddr % PAGE_BYTES;
    let event = Event::Module {
        start: base + header.p_vaddr - before,
        bytes: (header.p_memsz + before).next_multiple_of(PAGE_BYTES),
        file_offset: header.p_offset.saturating_sub(before),
        executable: header.p_flags & libc::PF_X != 0,
        path,
    };
    report::send(report::now(), event);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_found_behind_other_notes() {
        let mut notes = Vec::new();
        for (kind, content) in [(1_u32, &b"abc"[..]), (3, b"build")] {
            notes.extend([4_u32, u32::try_from(content.len()).unwrap(), kind].map(u32::to_ne_bytes).concat());
            notes.extend(b"GNU\0");
            notes.extend(content);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id(&notes), Some(&b"build"[..]));
        assert_eq!(build_id(&notes[..24]), None);
        assert_eq!(build_id(&[0xff; 40]), None);
    }

    #[test]
    fn an_address_of_this_program_has_its_name() {
        let here = a_build_id_is_found_behind_other_notes as *const () as u64;
        let mut frames = [RuleFrame::default(); 2];
        name_frames(&[here, 1], &mut frames);
        let program = std::env::current_exe().unwrap();
        let name = hash(program.file_name().unwrap().as_encoded_bytes());
        assert_eq!(frames[0].module, name);
        assert_eq!(Some(here - frames[0].offset), base(name, 0));
        assert_eq!(frames[1], RuleFrame::default());
    }
}
