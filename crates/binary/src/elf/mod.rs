//! One executable or library: what the analysis needs to know of it without running it.
//!
//! First step of the flow: an instruction pointer becomes a virtual address of a [`Binary`], and the
//! module gives the bounds of the function around it (from `.eh_frame`, which stripped binaries keep,
//! and from symbols), the code bytes, names, and the static arrays. Bytes that are not ELF, or broken
//! ELF, give a module that knows nothing; nothing here fails.

mod relocations;
pub mod statics;
mod symbols;
mod unwind;
mod unwind_row;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use object::{Object, ObjectSection, ObjectSegment, SectionKind, SegmentFlags, SymbolKind, elf};

use crate::arch::linkage_slot;
use crate::build_id::hexadecimal;
use crate::elf::relocations::relocations;
use crate::elf::statics::Remainder;
use crate::elf::symbols::{ElfFile, exports, statics, symbols};
pub use crate::elf::symbols::{STATIC_OBJECT_BYTES, Symbol};
use crate::elf::unwind::UnwindTable;
pub use crate::elf::unwind_row::{Caller, FrameAddress, UnwindRow};
use crate::image::{Image, Wants};

/// A loadable part of the file.
#[derive(Debug, Clone, Copy)]
struct Segment {
    file_offset: u64,
    file_bytes: u64,
    address: u64,
    memory_bytes: u64,
    executable: bool,
    writable: bool,
}

/// What is known of a file that was mapped.
#[derive(Debug, Default)]
pub struct Binary {
    /// Where the file is.
    pub path: String,
    /// Build id in hexadecimal; empty where the linker wrote none.
    pub build_id: String,
    image: Image,
    segments: Vec<Segment>,
    unwind: UnwindTable,
    functions: Vec<(u64, u64)>,
    symbols: Vec<Symbol>,
    /// Variables that the symbol table names, of any size.
    variables: Vec<Symbol>,
    /// Static arrays that are objects of their own.
    pub statics: Vec<Symbol>,
    /// The rest of its data.
    pub other_statics: Remainder,
    /// Whether it is an ELF file; else nothing more is known.
    pub is_elf: bool,
    /// Where the loader starts the program.
    pub entry: u64,
    /// Slots that the loader fills with the address of a function of another module, by address.
    imports: BTreeMap<u64, String>,
    /// Addresses of functions that other modules find by name; versions of one name have several.
    exports: BTreeMap<String, Vec<u64>>,
    /// Own addresses that the loader writes into data.
    kept: BTreeSet<u64>,
}

impl Binary {
    /// Reads what there is to read; a file that is gone or not ELF gives an empty module.
    pub fn read(path: &str) -> Self {
        let mut module = Self { path: path.to_owned(), ..Self::default() };
        let image = Image::read(Path::new(path), Wants::Code).unwrap_or_default();
        if let Ok(file) = object::File::parse(&image) {
            module.is_elf = true;
            module.build_id = file.build_id().ok().flatten().map(hexadecimal).unwrap_or_default();
            module.segments = file.segments().map(|segment| segment_of(&segment)).collect();
            module.symbols = symbols(&file, SymbolKind::Text);
            module.variables = symbols(&file, SymbolKind::Data);
            module.statics = statics(&file, &module.variables);
            module.other_statics = module.remainder();
            module.unwind = UnwindTable::of(&file);
            module.functions = module.unwind.ranges(&file);
            module.functions.extend(module.symbols.iter().map(|symbol| symbol.range));
            module.functions.sort_unstable();
            module.functions.dedup();
            module.entry = file.entry();
            (module.imports, module.kept) = relocations(&file);
            module.exports = exports(&file);
            module.kept.extend(module.linked_addresses(&file, &image));
        }
        module.image = image;
        module
    }

    /// File name without folders.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Virtual address that a file offset is loaded to.
    pub fn address_of_offset(&self, offset: u64) -> Option<u64> {
        let inside = |segment: &&Segment| {
            let start = segment.file_offset & !0xfff;
            (start..segment.file_offset + segment.file_bytes).contains(&offset)
        };
        let segment = self.segments.iter().find(inside)?;
        Some(segment.address.wrapping_add(offset).wrapping_sub(segment.file_offset))
    }

    fn remainder(&self) -> Remainder {
        let data = self.segments.iter().filter(|segment| !segment.executable);
        let ranges = data.map(|segment| segment.address..segment.address + segment.memory_bytes).collect();
        Remainder::of(ranges, self.statics.iter().map(|symbol| symbol.range.0..symbol.range.1).collect())
    }

    /// Addresses of code in the data of a program that is loaded where it was linked: the linker wrote them.
    fn linked_addresses(&self, file: &ElfFile<'_>, image: &Image) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        if file.kind() != object::ObjectKind::Executable {
            return found;
        }
        let code: Vec<Range<u64>> = self
            .segments
            .iter()
            .filter(|part| part.executable)
            .map(|part| part.address..part.address + part.file_bytes)
            .collect();
        let data =
            file.sections().filter(|section| matches!(section.kind(), SectionKind::Data | SectionKind::ReadOnlyData));
        for (start, bytes) in data.filter_map(|section| section.file_range()) {
            image.scan(start..start.saturating_add(bytes), |word| {
                if code.iter().any(|range| range.contains(&word)) {
                    found.insert(word);
                }
            });
        }
        found
    }

    /// Whether the program cannot write what lies at an address: pages of the file.
    pub fn is_constant(&self, address: u64) -> bool {
        let holds = |part: &&Segment| (part.address..part.address + part.memory_bytes).contains(&address);
        self.segments.iter().find(holds).is_some_and(|part| !part.writable)
    }

    /// One past the last virtual address that the loader maps.
    pub fn end_address(&self) -> u64 {
        self.segments.iter().map(|segment| segment.address + segment.memory_bytes).max().unwrap_or(0)
    }

    /// Smallest known function around an address.
    pub fn function_at(&self, address: u64) -> Option<Range<u64>> {
        // Ranges may nest (an alias inside an assembler routine) but never deeply.
        const NESTING: usize = 16;
        let end = self.functions.partition_point(|range| range.0 <= address);
        let candidates = &self.functions[end.saturating_sub(NESTING)..end];
        let around = candidates.iter().filter(|range| address < range.1);
        around.min_by_key(|range| range.1 - range.0).map(|range| range.0..range.1)
    }

    /// How to find the caller of a function before its instruction at an address.
    pub fn unwind_row(&self, address: u64) -> Option<UnwindRow> {
        self.unwind.row(&self.image, address)
    }

    /// All known functions.
    pub fn function_ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.functions.iter().map(|range| range.0..range.1)
    }

    /// Bytes of the file that are loaded at a range of addresses.
    pub fn code(&self, range: &Range<u64>) -> Option<&[u8]> {
        let segment = self.segments.iter().find(|s| (s.address..s.address + s.file_bytes).contains(&range.start))?;
        self.image.bytes(range.start - segment.address + segment.file_offset, range.end.checked_sub(range.start)?)
    }

    /// Code up to an address of a function, from its beginning.
    pub fn code_before(&self, address: u64) -> Option<&[u8]> {
        self.code(&(self.function_at(address)?.start..address))
    }

    /// Name of the function whose address the loader writes to a slot.
    pub fn import(&self, slot: u64) -> Option<&str> {
        self.imports.get(&slot).map(String::as_str)
    }

    /// Name of the imported function that the linkage table's entry at an address jumps to.
    pub fn import_behind(&self, entry: u64) -> Option<&str> {
        self.import(linkage_slot(self.code(&(entry..entry + 16))?, entry)?)
    }

    /// Own addresses that stand in data: anyone may call the functions there.
    pub fn kept_addresses(&self) -> &BTreeSet<u64> {
        &self.kept
    }

    /// Mangled name of the function at an address.
    pub fn function_name(&self, address: u64) -> Option<&str> {
        named(&self.symbols, address)
    }

    /// Whether other modules find the function that starts at an address by this name.
    pub fn exports(&self, name: &str, address: u64) -> bool {
        self.exports.get(name).is_some_and(|addresses| addresses.contains(&address))
    }

    /// Mangled name of the static variable at an address.
    pub fn variable_name(&self, address: u64) -> Option<&str> {
        named(&self.variables, address)
    }
}

/// The symbol around an address; ranges may nest, but never deeply.
fn named(symbols: &[Symbol], address: u64) -> Option<&str> {
    let end = symbols.partition_point(|symbol| symbol.range.0 <= address);
    let around = symbols[..end].iter().rev().take(16).find(|symbol| address < symbol.range.1);
    around.map(|symbol| symbol.name.as_str())
}

fn segment_of<'data>(segment: &impl ObjectSegment<'data>) -> Segment {
    let (file_offset, file_bytes) = segment.file_range();
    let flags = segment.flags();
    let may = |what: elf::ProgramFlags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags & what == what);
    let (executable, writable) = (may(elf::PF_X), may(elf::PF_W));
    Segment { file_offset, file_bytes, address: segment.address(), memory_bytes: segment.size(), executable, writable }
}

#[cfg(test)]
mod tests {
    use super::unwind::{LINKAGE_BYTES, cut_linkage_tables};
    use super::*;

    #[test]
    fn the_test_program_itself_has_functions_and_names() {
        let path = std::env::current_exe().unwrap();
        let module = Binary::read(path.to_str().unwrap());
        assert!(module.is_elf && !module.symbols.is_empty());
        let symbol = module.symbols.iter().find(|s| s.name == "main").unwrap();
        let range = module.function_at(symbol.range.0).unwrap();
        assert_eq!((range.start, range.end), symbol.range);
        assert_eq!(module.function_name(symbol.range.0), Some(symbol.name.as_str()));
        assert_eq!(module.code(&range).unwrap().len() as u64, range.end - range.start);
    }

    #[test]
    fn each_entry_of_a_linkage_table_is_a_function() {
        let path = std::env::current_exe().unwrap();
        let module = Binary::read(path.to_str().unwrap());
        let file = object::File::parse(&module.image).unwrap();
        let table = file.section_by_name(".plt").or_else(|| file.section_by_name(".plt.got")).unwrap();
        let whole = vec![(table.address(), table.address() + table.size()), (8, 4096)];
        let cut = cut_linkage_tables(&file, whole);
        let entries = usize::try_from(table.size().div_ceil(LINKAGE_BYTES)).unwrap();
        assert_eq!(cut.len(), entries + 1);
        assert!(cut[..entries].iter().all(|range| range.1 - range.0 <= LINKAGE_BYTES));
        assert_eq!(cut[entries], (8, 4096));
    }

    #[test]
    fn constants_are_in_segments_that_nobody_writes() {
        let path = std::env::current_exe().unwrap();
        let module = Binary::read(path.to_str().unwrap());
        let file = object::File::parse(&module.image).unwrap();
        let address = |name| file.section_by_name(name).unwrap().address();
        assert!(module.is_constant(module.entry) && module.is_constant(address(".rodata")));
        assert!(!module.is_constant(address(".data")) && !module.is_constant(address(".bss")));
        assert!(!module.is_constant(u64::MAX));
    }

    #[test]
    fn what_is_not_elf_knows_nothing() {
        let module = Binary::read(&std::env::current_dir().unwrap().join("Cargo.toml").to_string_lossy());
        assert!(!module.is_elf);
        assert_eq!(module.function_at(0x1000), None);
        assert_eq!(module.address_of_offset(0), None);
        assert_eq!(module.name(), "Cargo.toml");
    }
}
