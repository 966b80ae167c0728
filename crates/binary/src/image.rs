//! The parts of an ELF file that somebody asks for, in memory; the rest stays on disk.
//!
//! A program maps what it likes: data of a terabyte, with or without an ELF header in front, and
//! libraries whose debug information is a hundred times their code. So a file is told from its first
//! bytes, and of an ELF file the headers are read first; they say where the parts are that [`Wants`]
//! names. To the `object` crate an [`Image`] is a file in which everything else cannot be read. A file
//! that is cut off, or shrinks meanwhile, gives the parts that are there.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use object::elf;
use object::read::elf::{CompressionHeader, FileHeader, ProgramHeader, SectionHeader};
use object::{CompressedData, CompressionFormat, Endianness, ReadCache, ReadRef};

type Header = elf::FileHeader64<Endianness>;

const MAGIC: [u8; 4] = *b"\x7fELF";
/// Bytes that are looked through at once.
const SCANNED: usize = 1 << 20;
/// Deflate packs no better than this (zlib, technical details): more is a lie about the size.
const PACKED_AT_MOST: u64 = 1032;

/// Which parts of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// Headers: what kind of program it is, and its build id.
    Headers,
    /// Names of functions and arrays too.
    Symbols,
    /// And code, its unwind table, and what the loader writes.
    Code,
}

/// An ELF file, as far as it was read.
#[derive(Debug, Default)]
pub struct Image {
    file: Option<File>,
    length: u64,
    /// Ascending and apart.
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    start: u64,
    bytes: Vec<u8>,
}

impl Image {
    /// Reads the wanted parts; empty where the file is no 64-bit ELF file.
    ///
    /// # Errors
    /// It is not there, or may not be read.
    pub fn read(path: &Path, wants: Wants) -> io::Result<Self> {
        // Opening anything else (a pipe, a device) may wait, or do something.
        if !path.metadata()?.is_file() {
            return Ok(Self::default());
        }
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut start = [0; MAGIC.len()];
        if file.read_exact_at(&mut start, 0).is_err() || start != MAGIC {
            return Ok(Self::default());
        }
        let parts = wanted(&file, length, wants).unwrap_or_default();
        let parts = parts.into_iter().filter_map(|range| read_part(&file, &range)).collect();
        Ok(Self { file: Some(file), length, parts })
    }

    /// Bytes at an offset of the file, if they were read.
    pub fn bytes(&self, start: u64, length: u64) -> Option<&[u8]> {
        let part = self.part_at(start)?;
        let from = usize::try_from(start - part.start).ok()?;
        part.bytes.get(from..from.checked_add(usize::try_from(length).ok()?)?)
    }

    /// Looks through words of the file that need not be kept.
    pub fn scan(&self, range: Range<u64>, mut each: impl FnMut(u64)) {
        self.scan_bytes(range, |bytes| {
            let words = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok());
            words.for_each(|word| each(u64::from_le_bytes(word)));
        });
    }

    /// Stretches of whole words, but for the last one.
    fn scan_bytes(&self, range: Range<u64>, mut each: impl FnMut(&[u8])) {
        let Some(file) = &self.file else { return };
        let mut buffer = vec![0; SCANNED];
        let mut at = range.start;
        let end = range.end.min(self.length);
        while at < end {
            let most = usize::try_from(end - at).unwrap_or(SCANNED).min(SCANNED);
            if file.read_exact_at(&mut buffer[..most], at).is_err() {
                return;
            }
            each(&buffer[..most]);
            at += most as u64;
        }
    }

    /// A section as it was before it was packed, read from the file now; [`Image`] keeps nothing of it.
    pub fn section(&self, name: &str) -> Option<Arc<[u8]>> {
        let (endian, section) = self.section_header(name)?;
        let (start, bytes) = section.file_range(endian)?;
        let part = read_part(self.file.as_ref()?, &joined(vec![(start, bytes)], self.length).pop()?)?;
        let part = Self { file: None, length: self.length, parts: vec![part] };
        match section.compression(endian, &part).ok()? {
            None => part.bytes(start, bytes).map(Arc::from),
            Some((header, start, bytes)) => unpacked(header, endian, part.bytes(start, bytes)?),
        }
    }

    /// Whether there is such a section, with bytes in this file.
    pub fn has_section(&self, name: &str) -> bool {
        self.section_header(name)
            .is_some_and(|(endian, section)| section.file_range(endian).is_some_and(|(_, n)| n > 0))
    }

    fn section_header(&self, name: &str) -> Option<(Endianness, &elf::SectionHeader64<Endianness>)> {
        let header = Header::parse(self).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, self).ok()?;
        sections.section_by_name(endian, name.as_bytes()).map(|(_, section)| (endian, section))
    }

    /// Checksum of the whole file (CRC-32), by which a `.gnu_debuglink` knows the file that it names.
    pub fn checksum(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        self.scan_bytes(0..self.length, |bytes| hasher.update(bytes));
        hasher.finalize()
    }

    fn part_at(&self, offset: u64) -> Option<&Part> {
        let after = self.parts.partition_point(|part| part.start <= offset);
        self.parts.get(after.checked_sub(1)?)
    }
}

impl<'a> ReadRef<'a> for &'a Image {
    fn len(self) -> Result<u64, ()> {
        Ok(self.length)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size == 0 { Ok(&[]) } else { self.bytes(offset, size).ok_or(()) }
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let part = self.part_at(range.start).ok_or(())?;
        let from = usize::try_from(range.start - part.start).map_err(|_| ())?;
        let most = usize::try_from(range.end.saturating_sub(range.start)).map_err(|_| ())?;
        let bytes = part.bytes.get(from..).ok_or(())?;
        let bytes = &bytes[..bytes.len().min(most)];
        bytes.iter().position(|byte| *byte == delimiter).map(|end| &bytes[..end]).ok_or(())
    }
}

/// Bytes that were packed with zlib or zstd.
fn unpacked(header: &elf::CompressionHeader64<Endianness>, endian: Endianness, data: &[u8]) -> Option<Arc<[u8]>> {
    let format = match header.ch_type(endian) {
        elf::ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
        elf::ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
        _ => return None,
    };
    let uncompressed_size = header.ch_size(endian);
    let sane = uncompressed_size <= (data.len() as u64).saturating_mul(PACKED_AT_MOST);
    let bytes = sane.then(|| CompressedData { format, data, uncompressed_size }.decompress())?;
    bytes.ok().map(|bytes| Arc::from(bytes.into_owned()))
}

fn read_part(file: &File, range: &Range<u64>) -> Option<Part> {
    let mut bytes = vec![0; usize::try_from(range.end - range.start).ok()?];
    file.read_exact_at(&mut bytes, range.start).ok()?;
    Some(Part { start: range.start, bytes })
}

/// Where the wanted parts are, by the headers; `None` where these make no sense.
fn wanted(file: &File, length: u64, wants: Wants) -> Option<Vec<Range<u64>>> {
    let cached = ReadCache::new(file);
    let data = &cached;
    let header = Header::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let sections = header.sections(endian, data).ok()?;
    let (segment_table, section_table) = (header.e_phoff(endian), header.e_shoff(endian));
    let mut ranges = vec![
        (0, size_of::<Header>() as u64),
        (segment_table, size_of_val(segments) as u64),
        (section_table, sections.len() as u64 * size_of::<elf::SectionHeader64<Endianness>>() as u64),
    ];
    for section in sections.iter() {
        let name = sections.section_name(endian, section).unwrap_or_default();
        if wants.section(endian, section, name) {
            ranges.extend(section.file_range(endian));
        }
    }
    let notes = segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_NOTE);
    ranges.extend(notes.map(|segment| segment.file_range(endian)));
    if wants == Wants::Code && sections.is_empty() {
        let code = segments.iter().filter(|segment| segment.p_flags(endian) & elf::PF_X == elf::PF_X);
        ranges.extend(code.map(|segment| segment.file_range(endian)));
    }
    Some(joined(ranges, length))
}

impl Wants {
    fn section(self, endian: Endianness, section: &elf::SectionHeader64<Endianness>, name: &[u8]) -> bool {
        let kind = section.sh_type(endian);
        let is_code = section.sh_flags(endian) & elf::SHF_EXECINSTR == elf::SHF_EXECINSTR;
        match kind {
            elf::SHT_STRTAB if name == b".shstrtab" => true,
            // `object` reads the table of symbols, not their names, whatever it is asked for.
            elf::SHT_SYMTAB | elf::SHT_DYNSYM | elf::SHT_SYMTAB_SHNDX => self != Self::Headers,
            elf::SHT_STRTAB => matches!(self, Self::Symbols | Self::Code),
            elf::SHT_RELA | elf::SHT_REL | elf::SHT_DYNAMIC => self == Self::Code,
            _ => self == Self::Code && (is_code || name == b".eh_frame"),
        }
    }
}

/// The same bytes, each once, none beyond the end of the file.
fn joined(ranges: Vec<(u64, u64)>, length: u64) -> Vec<Range<u64>> {
    let end_of = |(start, bytes): (u64, u64)| (start, start.saturating_add(bytes).min(length));
    let mut ranges: Vec<(u64, u64)> = ranges.into_iter().map(end_of).filter(|(start, end)| start < end).collect();
    ranges.sort_unstable();
    let mut joined: Vec<Range<u64>> = Vec::new();
    for (start, end) in ranges {
        match joined.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => joined.push(start..end),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use std::fs;

    use object::{Object, ObjectSection, ObjectSymbol};

    use super::*;

    fn own() -> std::path::PathBuf {
        std::env::current_exe().unwrap()
    }

    #[test]
    fn what_is_wanted_reads_as_the_whole_file_does() {
        let (whole, image) = (fs::read(own()).unwrap(), Image::read(&own(), Wants::Code).unwrap());
        let (expected, found) = (object::File::parse(&*whole).unwrap(), object::File::parse(&image).unwrap());
        assert_eq!(found.build_id(), expected.build_id());
        let names = |file: &object::File<'_, _>| -> Vec<String> {
            file.symbols().filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect()
        };
        assert_eq!(found.symbols().count(), expected.symbols().count());
        let names_expected: Vec<String> =
            expected.symbols().filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect();
        assert_eq!(names(&found), names_expected);
        for name in [".text", ".eh_frame", ".plt"] {
            let Some(section) = expected.section_by_name(name) else { continue };
            assert_eq!(found.section_by_name(name).unwrap().data(), section.data());
        }
        let read: usize = image.parts.iter().map(|part| part.bytes.len()).sum();
        assert!(read < whole.len(), "debug information stays on disk");
    }

    #[test]
    fn what_is_not_elf_is_not_read() {
        for path in ["/etc/passwd", "/dev/null", "/proc"] {
            assert!(Image::read(Path::new(path), Wants::Code).unwrap().parts.is_empty());
        }
        assert!(Image::read(Path::new("/no/such/file"), Wants::Code).is_err());
    }

    #[test]
    fn a_file_cut_off_anywhere_gives_what_is_there() {
        let whole = fs::read(own()).unwrap();
        let path = std::env::temp_dir().join(format!("tierloom-image-{}", std::process::id()));
        for part in 0..20 {
            fs::write(&path, &whole[..whole.len() * part / 20]).unwrap();
            let image = Image::read(&path, Wants::Code).unwrap();
            assert!(image.parts.iter().all(|part| part.start + part.bytes.len() as u64 <= image.length));
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_scan_sees_every_word() {
        let image = Image::read(&own(), Wants::Headers).unwrap();
        let whole = fs::read(own()).unwrap();
        let end = (whole.len() as u64).min(3 << 20) & !7;
        let (mut sum, mut words) = (0_u64, 0);
        image.scan(0..end, |word| {
            sum = sum.wrapping_add(word);
            words += 1;
        });
        let expected = whole.chunks_exact(8).take(words).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        assert_eq!((words as u64, sum), (end / 8, expected.fold(0, u64::wrapping_add)));
    }

    #[test]
    fn ranges_are_joined_and_end_with_the_file() {
        assert_eq!(joined(vec![(10, 5), (0, 4), (12, 8), (2, 2), (90, 100), (200, 1)], 100), [0..4, 10..20, 90..100]);
    }
}
