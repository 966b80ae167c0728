//! `/proc/PID/maps`: what is mapped where (`proc_pid_maps(5)`).

use crate::root::Root;

/// One line of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MappedRange {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// Offset of `start` in the file, bytes.
    pub file_offset: u64,
    /// Whether code can run there.
    pub executable: bool,
    /// Whether the program may write there.
    pub writable: bool,
    /// Whether what is written there is seen by others who have the file mapped.
    pub shared: bool,
    /// Path of the file, or `[heap]` and the like; empty for anonymous memory.
    pub path: String,
}

/// The mappings of a process, ascending; none where it has ended or is not ours.
pub fn mapped_ranges(root: &Root, pid: u32) -> Vec<MappedRange> {
    let text = root.text(&format!("/proc/{pid}/maps")).unwrap_or_default();
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<MappedRange> {
    // Address, access, offset, device and inode are single words; the path may hold spaces.
    let mut words = line.splitn(6, ' ');
    let (range, access, offset) = (words.next()?, words.next()?, words.next()?);
    let path = words.nth(2).unwrap_or("").trim_start().to_owned();
    let (start, end) = range.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let file_offset = u64::from_str_radix(offset, 16).ok()?;
    let executable = access.as_bytes().get(2) == Some(&b'x');
    let writable = access.as_bytes().get(1) == Some(&b'w');
    let shared = access.as_bytes().get(3) == Some(&b's');
    Some(MappedRange { start, bytes: end.checked_sub(start)?, file_offset, executable, writable, shared, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line = "7f00-8f00 r-xp 00002000 fd:01 123                        /a folder/lib.so";
        let path = "/a folder/lib.so".to_owned();
        let expected = MappedRange {
            start: 0x7f00,
            bytes: 0x1000,
            file_offset: 0x2000,
            executable: true,
            writable: false,
            shared: false,
            path,
        };
        assert_eq!(parse_line(line), Some(expected));
        assert!(parse_line("7f00-8f00 rw-s 00000000 00:01 7 /dev/zero").unwrap().shared);
        let anonymous = parse_line("7f00-8f00 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!((anonymous.path.as_str(), anonymous.executable), ("", false));
        for damaged in ["", "7f00", "8f00-7f00 r-xp 0 0 0", "x-y r-xp 0 0 0"] {
            assert_eq!(parse_line(damaged), None);
        }
    }

    #[test]
    fn this_process_has_a_program() {
        let own = mapped_ranges(&Root::default(), std::process::id());
        let program = std::env::current_exe().unwrap();
        assert!(own.iter().any(|range| range.executable && range.path == program.to_string_lossy()));
        assert_eq!(mapped_ranges(&Root::default(), u32::MAX), []);
    }
}
