//! Source lines by address, from DWARF line tables where a module carries them.

use std::path::Path;

use gimli::{EndianSlice, LittleEndian};
use object::{Object, ObjectSection};

use crate::image::{Image, Wants};

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// Line tables of a module, sorted by address.
#[derive(Debug, Default)]
pub struct Lines {
    rows: Vec<Row>,
    files: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    address: u64,
    /// 0 ends a sequence.
    line: u64,
    file: usize,
}

impl Lines {
    /// Reads what there is; a module without line tables has no lines.
    pub fn read(path: &str) -> Self {
        let mut lines = Self::default();
        let image = Image::read(Path::new(path), Wants::Lines).unwrap_or_default();
        if let Ok(file) = object::File::parse(&image) {
            // A broken table ends the reading; what came before it stays good.
            let _ = lines.collect(&file);
        }
        lines.rows.sort_unstable();
        lines
    }

    /// `file:line` of an address.
    pub fn at(&self, address: u64) -> Option<String> {
        let end = self.rows.partition_point(|row| row.address <= address);
        let row = self.rows[..end].last().filter(|row| row.line > 0)?;
        Some(format!("{}:{}", self.files[row.file], row.line))
    }

    fn collect<'a>(&mut self, file: &object::File<'a, &'a Image>) -> Result<(), gimli::Error> {
        let section = |id: gimli::SectionId| -> Result<Reader<'_>, gimli::Error> {
            let data = file.section_by_name(id.name()).and_then(|section| section.data().ok()).unwrap_or_default();
            Ok(EndianSlice::new(data, LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(section)?;
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            let unit = dwarf.unit(header)?;
            if let Some(program) = unit.line_program.clone() {
                self.run(&dwarf, &unit, program)?;
            }
        }
        Ok(())
    }

    fn run(
        &mut self,
        dwarf: &gimli::Dwarf<Reader<'_>>,
        unit: &gimli::Unit<Reader<'_>>,
        program: gimli::IncompleteLineProgram<Reader<'_>>,
    ) -> Result<(), gimli::Error> {
        let first = self.files.len();
        let mut known: Vec<u64> = Vec::new();
        let mut rows = program.rows();
        while let Some((header, row)) = rows.next_row()? {
            let index = row.file_index();
            let position = known.iter().position(|file| *file == index).unwrap_or_else(|| {
                known.push(index);
                known.len() - 1
            });
            if self.files.len() == first + position {
                let name = header.file(index).map(|entry| dwarf.attr_string(unit, entry.path_name()));
                let name = name.and_then(Result::ok).map(|name| name.to_string_lossy().into_owned());
                let name = name.unwrap_or_default();
                self.files.push(name.rsplit('/').next().unwrap_or_default().to_owned());
            }
            let line = if row.end_sequence() { 0 } else { row.line().map_or(0, std::num::NonZeroU64::get) };
            self.rows.push(Row { address: row.address(), line, file: first + position });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Module;

    #[test]
    fn the_test_program_knows_its_lines() {
        let path = std::env::current_exe().unwrap();
        let module = Module::read(path.to_str().unwrap());
        let lines = Lines::read(&module.path);
        let range = module.function_ranges().find(|range| {
            module.function_name(range.start).is_some_and(|name| name.contains("the_test_program_knows_its_lines"))
        });
        let line = lines.at(range.unwrap().start).unwrap();
        assert!(line.starts_with("debug_info.rs:"), "{line}");
    }

    #[test]
    fn no_table_no_lines() {
        assert_eq!(Lines::read("/etc/passwd").at(0x1000), None);
    }
}
