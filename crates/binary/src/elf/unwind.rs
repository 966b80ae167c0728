//! Where functions begin and end, by the unwind table, which stripped files keep.

use std::ops::Range;

use gimli::UnwindSection;
use object::{Object, ObjectSection};

use crate::elf::symbols::ElfFile;

/// An entry of a procedure linkage table (System V ABI for AMD64, figure 5.2).
pub(super) const LINKAGE_BYTES: u64 = 16;

/// Function bounds from the unwind tables (System V ABI, `.eh_frame`).
pub(super) fn unwind_ranges(file: &ElfFile<'_>) -> Vec<(u64, u64)> {
    let Some(section) = file.section_by_name(".eh_frame") else { return Vec::new() };
    let Ok(data) = section.data() else { return Vec::new() };
    let mut frames = gimli::EhFrame::new(data, gimli::LittleEndian);
    frames.set_address_size(8);
    let text = file.section_by_name(".text").map_or(0, |text| text.address());
    let bases = gimli::BaseAddresses::default().set_eh_frame(section.address()).set_text(text);
    let mut entries = frames.entries(&bases);
    let mut ranges = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(gimli::EhFrame::cie_from_offset) else { continue };
        ranges.push((entry.initial_address(), entry.initial_address() + entry.len()));
    }
    cut_linkage_tables(file, ranges)
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
