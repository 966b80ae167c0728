//! One program, its debug information kept in every way that compilers and distributions know: the same
//! functions and lines each time.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tierloom_binary::debug_info::{DebugInfo, Missing, SourceFrame};
use tierloom_binary::elf::Module;

const SOURCE: &str = "#include <stdlib.h>
static inline __attribute__((always_inline)) char *make(size_t bytes) {
    return malloc(bytes);
}
__attribute__((noinline)) char *build(size_t bytes) {
    char *made = make(bytes);
    made[0] = 1;
    return made;
}
int main(int count, char **words) { return build((size_t)count)[0] + words[0][0]; }
";

/// A folder of its own, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tierloom-debug-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("al.c"), SOURCE).unwrap();
        Self(path)
    }

    fn run(&self, command: &str) -> bool {
        let words: Vec<&str> = command.split(' ').collect();
        let said = Command::new(words[0]).args(&words[1..]).current_dir(&self.0).output();
        said.is_ok_and(|said| said.status.success())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Compiled with these flags; where the function `build` lies.
    fn compile(&self, flags: &str) -> std::ops::Range<u64> {
        assert!(self.run(&format!("gcc -O2 {flags} -Wl,--build-id -o al al.c")), "{flags}");
        self.range()
    }

    fn range(&self) -> std::ops::Range<u64> {
        let module = Module::read(self.path("al").to_str().unwrap());
        module.function_ranges().find(|range| module.function_name(range.start) == Some("build")).unwrap()
    }

    fn debug_info(&self) -> DebugInfo {
        DebugInfo::read(&self.path("al"), &[self.path("debug")])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn frame(function: &str, line: u32) -> SourceFrame {
    SourceFrame { function: Some(function.to_owned()), line: Some(format!("al.c:{line}")) }
}

/// `make` was inlined into `build`.
fn assert_told(debug: &DebugInfo, range: std::ops::Range<u64>, way: &str) {
    let frames: Vec<_> = range.map(|address| debug.frames(address)).collect();
    assert!(frames.contains(&vec![frame("make", 3), frame("build", 6)]), "{way}: {frames:?}");
    assert!(frames.contains(&vec![frame("build", 7)]), "{way}: {frames:?}");
    assert_eq!(debug.missing(), None, "{way}");
}

#[test]
fn in_the_file_itself_packed_or_not() {
    let folder = Folder::new("packed");
    let ways = ["-g", "-g -gz=zlib", "-gdwarf-4", "-gdwarf-4 -gz=zlib"];
    for way in ways {
        let range = folder.compile(way);
        assert_told(&folder.debug_info(), range, way);
    }
    let range = folder.compile("-g");
    // Compilers may not know zstd where the linker's tools do, and the other way round.
    if folder.run("objcopy --compress-debug-sections=zstd al") {
        assert_told(&folder.debug_info(), range, "zstd");
    }
}

#[test]
fn in_a_separate_file_by_name_and_by_build_id() {
    let folder = Folder::new("separate");
    let range = folder.compile("-g");
    assert!(folder.run("objcopy --only-keep-debug al al.debug"));
    assert!(folder.run("strip al") && folder.run("objcopy --add-gnu-debuglink=al.debug al"));
    assert_told(&folder.debug_info(), range.clone(), "beside it");

    fs::create_dir(folder.path(".debug")).unwrap();
    fs::rename(folder.path("al.debug"), folder.path(".debug/al.debug")).unwrap();
    assert_told(&folder.debug_info(), range.clone(), "in .debug");

    let id = Module::read(folder.path("al").to_str().unwrap()).build_id;
    let installed = folder.path("debug/.build-id").join(&id[..2]);
    fs::create_dir_all(&installed).unwrap();
    fs::rename(folder.path(".debug/al.debug"), installed.join(format!("{}.debug", &id[2..]))).unwrap();
    assert_told(&folder.debug_info(), range.clone(), "by build id");

    fs::remove_dir_all(folder.path("debug")).unwrap();
    let debug = folder.debug_info();
    assert_eq!(debug.missing(), Some(&Missing::Elsewhere(Some("al.debug".to_owned()))));
    assert!(debug.frames(range.start).is_empty());
}

#[test]
fn debug_information_of_another_build_is_not_taken() {
    let folder = Folder::new("another");
    assert!(folder.run("gcc -O2 -g -Wl,--build-id=none -o al al.c"));
    let range = folder.range();
    assert!(folder.run("objcopy --only-keep-debug al al.debug"));
    assert!(folder.run("strip al") && folder.run("objcopy --add-gnu-debuglink=al.debug al"));
    assert_told(&folder.debug_info(), range, "by its checksum");
    let mut other = fs::read(folder.path("al.debug")).unwrap();
    other.push(0);
    fs::write(folder.path("al.debug"), other).unwrap();
    assert!(folder.debug_info().missing().is_some());
}

#[test]
fn split_into_a_file_for_each_unit() {
    let folder = Folder::new("split");
    for way in ["-g -gsplit-dwarf", "-gdwarf-4 -gsplit-dwarf"] {
        let range = folder.compile(way);
        let unit = fs::read_dir(&folder.0).unwrap().flatten().map(|entry| entry.path());
        let unit = unit.into_iter().find(|path| path.extension().is_some_and(|end| end == "dwo")).unwrap();
        assert_told(&folder.debug_info(), range.clone(), way);
        // The `dwp` of binutils packs DWARF 4 only.
        if way.contains("dwarf-4") && folder.run(&format!("dwp -o al.dwp {}", unit.display())) {
            fs::remove_file(&unit).unwrap();
            assert_told(&folder.debug_info(), range, &format!("{way} in a package"));
            fs::remove_file(folder.path("al.dwp")).unwrap();
        } else {
            fs::remove_file(&unit).unwrap();
        }
    }
}

#[test]
fn shared_between_files_by_dwz() {
    let folder = Folder::new("shared");
    let range = folder.compile("-g");
    fs::copy(folder.path("al"), folder.path("twin")).unwrap();
    if folder.run("dwz -m common.debug al twin") {
        assert_told(&folder.debug_info(), range, "dwz");
    }
}

#[test]
fn a_program_without_lines_says_why() {
    let folder = Folder::new("without");
    folder.compile("-g0");
    assert_eq!(folder.debug_info().missing(), Some(&Missing::NotBuilt));
    assert!(folder.run("strip al"));
    assert_eq!(folder.debug_info().missing(), Some(&Missing::Elsewhere(None)));
    assert_eq!(DebugInfo::read(Path::new("/etc/passwd"), &[]).missing(), Some(&Missing::Unreadable));
}

#[test]
fn a_size_that_cannot_be_true_is_not_believed() {
    let folder = Folder::new("size");
    folder.compile("-g -gz=zlib");
    let path = folder.path("al");
    let mut bytes = fs::read(&path).unwrap();
    // Compression headers: kind 1, four bytes of padding, the size, an alignment of 1.
    let header = |at: &usize| {
        bytes[*at..*at + 8] == [1, 0, 0, 0, 0, 0, 0, 0] && bytes[*at + 16..*at + 24] == [1, 0, 0, 0, 0, 0, 0, 0]
    };
    let headers: Vec<usize> = (0..bytes.len() - 24).step_by(1).filter(header).collect();
    assert!(!headers.is_empty());
    for at in headers {
        bytes[at + 8..at + 16].copy_from_slice(&(1_u64 << 60).to_le_bytes());
    }
    fs::write(&path, bytes).unwrap();
    assert!(folder.debug_info().frames(0x1000).is_empty());
}
