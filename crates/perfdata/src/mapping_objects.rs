//! Anonymous memory as objects, for want of allocations: each mapping that the kernel reported.
//!
//! Where the preload library did not run, nobody tells which site allocated what. What is left are the
//! kernel's reports of new mappings (`perf record -d`). Large allocations are mappings of their own, so
//! they can be told apart by order and size; small ones share the heap. The kernel joins neighbours
//! and reports the whole, so only the part of a report that was not mapped before is new. Shared and huge ones
//! (`/dev/zero (deleted)`, `/anon_hugepage (deleted)`) have a file behind them that nobody else opens; the kernel does
//! not join these.

use std::collections::BTreeMap;

use tierloom_recording::Mapping;

/// Smaller mappings are stacks, arenas and allocators' own: glibc's threshold for `mmap` is 128 KiB.
const LEAST_BYTES: u64 = 128 << 10;

/// Files that the kernel itself puts behind memory without a file: `mm/shmem.c`, `ipc/shm.c`, `mm/memfd.c`,
/// `fs/hugetlbfs/inode.c`. They begin so.
const BACKING: [&str; 4] = ["/dev/zero", "/anon_hugepage", "/SYSV", "/memfd:"];

/// Whether nothing but the kernel's own file is behind it, and no code is in it.
pub(super) fn is_anonymous(mapping: &Mapping) -> bool {
    !mapping.executable && (is_private(&mapping.path) || is_backed(&mapping.path))
}

/// Whether it is a file of code of this process.
pub(super) fn is_code_of(mapping: &Mapping, pid: u32) -> bool {
    mapping.pid == pid && mapping.executable && mapping.path.starts_with('/')
}

fn is_private(path: &str) -> bool {
    path.is_empty() || path.starts_with("//anon")
}

fn is_backed(path: &str) -> bool {
    BACKING.iter().any(|file| path.starts_with(file))
}

/// Names anonymous mappings, and cuts them to what is new.
#[derive(Debug, Default)]
pub(super) struct Anonymous {
    count: usize,
    /// End by start of every range that was reported, by process.
    ranges: BTreeMap<u32, BTreeMap<u64, u64>>,
}

impl Anonymous {
    /// The mapping as an object's, where it is one.
    pub(super) fn name(&mut self, mut mapping: Mapping) -> Mapping {
        if !is_anonymous(&mapping) {
            return mapping;
        }
        let backed = is_backed(&mapping.path);
        if !backed {
            self.cut(&mut mapping);
        }
        if backed || mapping.bytes >= LEAST_BYTES {
            self.count += 1;
            let size = tierloom_model::units::format_bytes(mapping.bytes);
            mapping.path = format!("[anon:{} {size}]", self.count);
        }
        mapping
    }

    /// Mappings that were named.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Leaves out what was reported before at either end; a report that was all known is new again.
    fn cut(&mut self, mapping: &mut Mapping) {
        let ranges = self.ranges.entry(mapping.pid).or_default();
        let (start, end) = (mapping.start, mapping.start + mapping.bytes);
        let inside: Vec<(u64, u64)> =
            ranges.range(start..end).map(|(from, to)| (*from, *to)).filter(|(_, to)| *to <= end).collect();
        let mut new = (start, end);
        for (from, to) in &inside {
            if *from == new.0 {
                new.0 = *to;
            }
        }
        for (from, to) in inside.iter().rev() {
            if *to == new.1 {
                new.1 = *from;
            }
        }
        if new.0 < new.1 {
            (mapping.start, mapping.bytes) = (new.0, new.1 - new.0);
        } else {
            for (from, _) in &inside {
                ranges.remove(from);
            }
        }
        ranges.insert(mapping.start, mapping.start + mapping.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, bytes: u64) -> Mapping {
        Mapping { time_ns: 0, pid: 1, start, bytes, file_offset: 0, executable: false, path: "//anon".to_owned() }
    }

    #[test]
    fn what_the_kernel_joined_is_told_apart() {
        let mut anonymous = Anonymous::default();
        let first = anonymous.name(mapping(0x4000_0000, 1 << 20));
        let below = anonymous.name(mapping(0x4000_0000 - (2 << 20), 3 << 20));
        let above = anonymous.name(mapping(0x4000_0000 - (2 << 20), 4 << 20));
        assert_eq!(first.path, "[anon:1 1MiB]");
        assert_eq!((below.path.as_str(), below.start), ("[anon:2 2MiB]", 0x4000_0000 - (2 << 20)));
        assert_eq!((above.path.as_str(), above.start), ("[anon:3 1MiB]", 0x4000_0000 + (1 << 20)));
    }

    #[test]
    fn small_ones_and_code_stay_without_a_name() {
        let mut anonymous = Anonymous::default();
        assert_eq!(anonymous.name(mapping(0x1000, 0x1000)).path, "//anon");
        let code = Mapping { executable: true, ..mapping(0x10_0000, 1 << 20) };
        assert_eq!(anonymous.name(code.clone()), code);
    }

    #[test]
    fn files_of_the_kernels_own_are_one_object_a_mapping() {
        let mut anonymous = Anonymous::default();
        let of = |path: &str, start| Mapping { path: path.to_owned(), ..mapping(start, 1 << 21) };
        let files =
            ["/anon_hugepage (deleted)", "/dev/zero (deleted)", "/SYSV00000000 (deleted)", "/memfd:x (deleted)"];
        for (count, file) in (1..).zip(files) {
            let named = anonymous.name(of(file, 0x4000_0000));
            assert_eq!((named.path, named.bytes), (format!("[anon:{count} 2MiB]"), 1 << 21));
        }
        assert_eq!(anonymous.name(of("/dev/shm/table", 0x4000_0000)).path, "/dev/shm/table", "it can be opened again");
    }

    #[test]
    fn a_place_that_is_mapped_again_is_a_new_object() {
        let mut anonymous = Anonymous::default();
        let paths = [1, 2].map(|_| anonymous.name(mapping(0x4000_0000, 1 << 20)).path);
        assert_eq!(paths, ["[anon:1 1MiB]", "[anon:2 1MiB]"]);
    }
}
