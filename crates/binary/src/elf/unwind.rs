//! Where functions begin and end, and where their frames are, by the unwind table, which stripped files keep.

use std::ops::Range;

use gimli::{BaseAddresses, EndianSlice, LittleEndian, UnwindContext, UnwindSection};
use object::{Object, ObjectSection};

use crate::elf::symbols::ElfFile;
use crate::elf::unwind_row::UnwindRow;
use crate::image::Image;

type Table<'d> = gimli::EhFrame<EndianSlice<'d, LittleEndian>>;

/// An entry of a procedure linkage table (System V ABI for AMD64, figure 5.2).
pub(super) const LINKAGE_BYTES: u64 = 16;

/// The unwind table of a file (System V ABI, `.eh_frame`).
#[derive(Debug, Default)]
pub(super) struct UnwindTable {
    bases: BaseAddresses,
    /// Where it is in the file, and its bytes.
    part: (u64, u64),
    /// First address, one past the last, and where in the table; ascending.
    entries: Vec<(u64, u64, usize)>,
}

impl UnwindTable {
    pub(super) fn of(file: &ElfFile<'_>) -> Self {
        let Some(section) = file.section_by_name(".eh_frame") else { return Self::default() };
        let (Ok(data), Some(part)) = (section.data(), section.file_range()) else { return Self::default() };
        let text = file.section_by_name(".text").map_or(0, |text| text.address());
        let bases = BaseAddresses::default().set_eh_frame(section.address()).set_text(text);
        let entries = entries(data, &bases);
        Self { bases, part, entries }
    }

    /// Bounds of functions.
    pub(super) fn ranges(&self, file: &ElfFile<'_>) -> Vec<(u64, u64)> {
        cut_linkage_tables(file, self.entries.iter().map(|(start, end, _)| (*start, *end)).collect())
    }

    /// How to find the caller before the instruction at an address.
    pub(super) fn row(&self, image: &Image, address: u64) -> Option<UnwindRow> {
        let after = self.entries.partition_point(|(start, _, _)| *start <= address);
        let (_, _, offset) = self.entries.get(after.checked_sub(1)?).filter(|(_, end, _)| address < *end)?;
        let table = table(image.bytes(self.part.0, self.part.1)?);
        let entry = table.fde_from_offset(&self.bases, (*offset).into(), gimli::EhFrame::cie_from_offset).ok()?;
        let mut context = UnwindContext::new();
        UnwindRow::of(entry.unwind_info_for_address(&table, &self.bases, &mut context, address).ok()?)
    }
}

fn table(data: &[u8]) -> Table<'_> {
    let mut table = gimli::EhFrame::new(data, gimli::LittleEndian);
    table.set_address_size(8);
    table
}

fn entries(data: &[u8], bases: &BaseAddresses) -> Vec<(u64, u64, usize)> {
    let table = table(data);
    let mut all = table.entries(bases);
    let mut found = Vec::new();
    while let Ok(Some(entry)) = all.next() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(gimli::EhFrame::cie_from_offset) else { continue };
        found.push((entry.initial_address(), entry.end_address(), entry.offset()));
    }
    found.sort_unstable();
    found
}

/// One unwind entry covers a whole linkage table. As one function it would be thousands of indirect jumps, each of
/// which may reach any of the others; so each of its entries is a function of its own.
pub(super) fn cut_linkage_tables(file: &ElfFile<'_>, ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    let linkage = file.sections().filter(|section| section.name().is_ok_and(|name| name.starts_with(".plt")));
    let tables: Vec<Range<u64>> = linkage.map(|table| table.address()..table.address() + table.size()).collect();
    let cut = |(start, end): (u64, u64)| {
        let is_table = tables.iter().any(|table| table.contains(&start));
        let bytes = if is_table { LINKAGE_BYTES } else { (end - start).max(1) };
        let entries = (end - start).div_ceil(bytes);
        (0..entries).map(move |entry| (start + entry * bytes, (start + (entry + 1) * bytes).min(end)))
    };
    ranges.into_iter().flat_map(cut).collect()
}
