//! Which build of a program or a library a file is.
//!
//! The linker says so in a note, the build id. Files without one (those of `lld` and Go, unless asked) are
//! told by a hash of what the processor runs: of the segments of code, and where they are loaded. A time
//! would change with every copy; the headers alone would not change with a constant; of a whole file even
//! `strip` makes another, whose code is the same.

use std::fmt::Write;
use std::path::Path;

use object::Endianness;
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID, PF_X, PT_LOAD, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use xxhash_rust::xxh3::Xxh3;

use crate::image::{Image, Wants};

/// In front of a hash, so that nobody takes it for the linker's.
const HASHED: &str = "code-";

type Segment = ProgramHeader64<Endianness>;

/// The build that a file is; nothing where it is no ELF file, or cannot be read.
pub fn build_of(path: &Path) -> Option<String> {
    let image = Image::read(path, Wants::Headers).ok()?;
    let (segments, endian) = segments(&image)?;
    Some(linked(&image).unwrap_or_else(|| hash_of_code(segments, endian, &image)))
}

/// The linker's note, if there is one.
pub(crate) fn linked(image: &Image) -> Option<String> {
    let (segments, endian) = segments(image)?;
    let notes = segments.iter().filter_map(|segment| segment.notes(endian, image).ok().flatten());
    // A note that makes no sense ends its segment's; an iterator of results would go on for ever.
    let mut notes = notes.flat_map(|mut notes| std::iter::from_fn(move || notes.next().ok().flatten()));
    let note = notes.find(|note| note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID)?;
    Some(hexadecimal(note.desc()))
}

/// Bytes as build ids are written.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn segments(image: &Image) -> Option<(&[Segment], Endianness)> {
    let header = FileHeader64::<Endianness>::parse(image).ok()?;
    let endian = header.endian().ok()?;
    header.program_headers(endian, image).ok().map(|segments| (segments, endian))
}

fn hash_of_code(segments: &[Segment], endian: Endianness, image: &Image) -> String {
    let mut hash = Xxh3::new();
    let is_code = |segment: &&Segment| segment.p_type(endian) == PT_LOAD && segment.p_flags(endian) & PF_X == PF_X;
    for segment in segments.iter().filter(is_code) {
        let (start, bytes) = segment.file_range(endian);
        for word in [segment.p_vaddr(endian), bytes] {
            hash.update(&word.to_le_bytes());
        }
        image.scan(start..start.saturating_add(bytes), |word| hash.update(&word.to_le_bytes()));
    }
    format!("{HASHED}{:016x}", hash.digest())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    fn built(folder: &Path, name: &str, source: &str, flags: &[&str]) -> String {
        let (code, path) = (folder.join("a.c"), folder.join(name));
        fs::write(&code, source).unwrap();
        let made = Command::new("cc").arg("-o").arg(&path).arg(&code).args(flags).status().unwrap();
        assert!(made.success());
        build_of(&path).unwrap()
    }

    #[test]
    fn a_rebuilt_program_is_another_build_with_and_without_the_linkers_id() {
        let folder = std::env::temp_dir().join(format!("tierloom-build-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for flags in [&["-Wl,--build-id"][..], &["-Wl,--build-id=none"]] {
            let [three, four] = ["3", "4"]
                .map(|constant| built(&folder, constant, &format!("int main() {{ return {constant}; }}"), flags));
            assert_ne!(three, four);
            assert_eq!(three.starts_with(HASHED), flags[0].ends_with("none"), "{three}");
            fs::copy(folder.join("3"), folder.join("copy")).unwrap();
            assert!(Command::new("strip").arg(folder.join("copy")).status().unwrap().success());
            assert_eq!(build_of(&folder.join("copy")), Some(three), "a copy without symbols is the same build");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_no_program_is_no_build() {
        assert_eq!(build_of(Path::new("/etc/passwd")), None);
        assert_eq!(build_of(Path::new("/no/such/file")), None);
    }
}
