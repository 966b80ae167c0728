//! One file that is mapped into this process.

use std::ffi::CStr;
use std::slice;

use tierloom_wire::hash;

/// One loaded file, as the loader describes it.
pub(super) struct Module<'a> {
    pub(super) base: u64,
    pub(super) path: &'a [u8],
    pub(super) headers: &'a [libc::Elf64_Phdr],
}

/// The loader's name for a file; the program itself has none there.
pub(super) fn path_of<'a>(name: *const libc::c_char, buffer: &'a mut [u8]) -> &'a [u8] {
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
    pub(super) fn segments(&self, kind: u32) -> impl Iterator<Item = &libc::Elf64_Phdr> {
        self.headers.iter().filter(move |header| header.p_type == kind)
    }

    pub(super) fn holds(&self, address: u64) -> bool {
        let inside = |header: &libc::Elf64_Phdr| {
            let start = self.base + header.p_vaddr;
            (start..start + header.p_memsz).contains(&address)
        };
        self.segments(libc::PT_LOAD).any(inside)
    }

    /// [`hash`] of the file name without its folder.
    pub(super) fn name(&self) -> u64 {
        hash(self.path.rsplit(|byte| *byte == b'/').next().unwrap_or(self.path))
    }

    /// [`hash`] of the build id; 0 where there is none.
    pub(super) fn build(&self) -> u64 {
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
}
