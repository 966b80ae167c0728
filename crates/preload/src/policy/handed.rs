//! What the program was handed, as far as its placement depends on it.

use tierloom_wire::{PAGE_BYTES, hash};

use super::objects::Kind;

/// What was handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handed {
    /// A block of the allocator.
    Block,
    /// Anonymous memory by `mmap`, `mremap` or `brk`, with the flags of `mmap`.
    Mapping(i32),
    /// Addresses by `mmap` that may not be used yet, with its flags: what they get later has their policy.
    Addresses(i32),
    /// A file by `mmap`: its descriptor.
    File(i32),
}

impl Handed {
    /// What must be undone when it goes.
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Block => Kind::Heap,
            Self::Mapping(_) | Self::Addresses(_) => Kind::Mapping,
            Self::File(_) => Kind::File,
        }
    }

    /// Size of the pages that it asks for itself; `None` where the kernel chooses.
    pub(super) fn page_bytes(self) -> Option<u64> {
        match self {
            Self::Block => None,
            Self::Mapping(flags) | Self::Addresses(flags) => page_of_mapping(flags),
            Self::File(_) => Some(PAGE_BYTES),
        }
    }

    /// [`hash`] of the path of the file that it is.
    pub(super) fn file(self) -> Option<u64> {
        if let Self::File(file) = self { path_of(file) } else { None }
    }
}

/// Size of the huge pages that a mapping asks for (`MAP_HUGE_SHIFT`; two megabytes if it does not say).
fn page_of_mapping(flags: i32) -> Option<u64> {
    match (flags & libc::MAP_HUGETLB != 0, flags.cast_unsigned() >> 26) {
        (false, _) => None,
        (true, 0) => Some(2 << 20),
        (true, shift) => 1_u64.checked_shl(shift),
    }
}

/// [`hash`] of the path of an open file.
fn path_of(file: i32) -> Option<u64> {
    let mut name = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let digits = &mut name[14..25];
    let (mut rest, mut length) = (u32::try_from(file).ok()?, 0);
    while length == 0 || rest > 0 {
        digits.copy_within(0..length, 1);
        digits[0] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        (rest, length) = (rest / 10, length + 1);
    }
    let mut path = [0_u8; 1024];
    // SAFETY: the name ends with a zero byte, the buffer has as many bytes as are said.
    let length = unsafe { libc::readlink(name.as_ptr().cast(), path.as_mut_ptr().cast(), path.len()) };
    Some(hash(path.get(..usize::try_from(length).ok()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_mappings_say_how_huge() {
        assert_eq!(page_of_mapping(libc::MAP_ANONYMOUS), None);
        assert_eq!(page_of_mapping(libc::MAP_HUGETLB), Some(2 << 20));
        assert_eq!(page_of_mapping(libc::MAP_HUGETLB | 30 << 26), Some(1 << 30));
    }

    #[test]
    fn a_file_has_a_path() {
        use std::os::fd::AsRawFd;
        let program = std::env::current_exe().unwrap();
        let file = std::fs::File::open(&program).unwrap();
        assert_eq!(path_of(file.as_raw_fd()), Some(hash(program.as_os_str().as_encoded_bytes())));
        assert_eq!(path_of(-1), None);
    }
}
