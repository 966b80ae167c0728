//! The files that are mapped into this process: told to recorders whom the kernel does not tell, and
//! asked which of them an address belongs to.
//!
//! Libraries that are opened later the recorder finds in `/proc`, if the process lives long enough.

mod file;
pub(crate) mod found;

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::slice;

use tierloom_wire::{Event, MAX_PATH_WORDS, PAGE_BYTES, Region, RuleFrame, is_same_file, pack_path};

use crate::{forked, report};
use file::{Module, path_of};

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
    fn an_address_of_this_program_has_its_name() {
        let here = an_address_of_this_program_has_its_name as *const () as u64;
        let mut frames = [RuleFrame::default(); 2];
        name_frames(&[here, 1], &mut frames);
        let program = std::env::current_exe().unwrap();
        let name = tierloom_wire::hash(program.file_name().unwrap().as_encoded_bytes());
        assert_eq!(frames[0].module, name);
        assert_eq!(Some(here - frames[0].offset), base(name, 0));
        assert_eq!(frames[1], RuleFrame::default());
    }
}
