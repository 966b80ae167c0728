//! The memory of a process that its copies have: tables and the log, and areas near its code.
//!
//! It is mapped by calls that a halted thread makes for us, once, and used for as long as the process lives: the
//! process does not grow however often its code changes. Children do not inherit it (`MADV_DONTFORK`), so who has it in
//! its maps without being known shares the memory of another process.

use std::ops::Range;

use tierloom_bursts::{AREA_BYTES, CODE_BYTES, Copies, DATA_BYTES, LOG_BYTES, Log, TABLE_BYTES, Table};
use tierloom_linux::maps::{MappedRange, mapped_ranges};
use tierloom_linux::ptrace::injected::{Caller, Memory};
use tierloom_linux::ptrace::{EXECUTE, Halt, READ, WRITE};
use tierloom_linux::root::Root;
use tierloom_model::units::PAGE_BYTES;

use super::ground;
use super::purpose::Purpose;

/// Areas that a process gets at most for a purpose: one near the program, one near its libraries, and some for what is loaded far
/// away.
const MOST_AREAS: usize = 4;
/// What lies low: a table for each purpose, and the log.
const LOW_BYTES: u64 = (2 * TABLE_BYTES + LOG_BYTES).next_multiple_of(PAGE_BYTES);
/// What others see it called where they look at the process, with the zero that ends it.
const NAME: &[u8] = b"tierloom\0";

/// Memory for copies.
#[derive(Debug)]
pub(super) struct Room {
    tables: [Table; 2],
    log: Log,
    /// Areas that are whole: what for, and first addresses.
    areas: Vec<(Purpose, u64)>,
    /// Made, in this order.
    made: Vec<Part>,
    /// What is still to be made: a signal that comes between ends our turn.
    waiting: Vec<Part>,
}

/// A mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    addresses: Range<u64>,
    access: i32,
    is_mapped: bool,
}

impl Part {
    fn new(start: u64, bytes: u64, access: i32) -> Self {
        Self { addresses: start..start + bytes, access, is_mapped: false }
    }

    fn bytes(&self) -> u64 {
        self.addresses.end - self.addresses.start
    }

    /// Whether it is mapped as it was made; the kernel joins neighbours.
    fn is_in(&self, maps: &[MappedRange]) -> bool {
        maps.iter().any(|range| {
            let holds = range.start <= self.addresses.start && range.start + range.bytes >= self.addresses.end;
            let access = (range.executable, range.writable) == (self.access & EXECUTE != 0, self.access & WRITE != 0);
            holds && access && !range.shared && !range.path.starts_with('/')
        })
    }
}

impl Room {
    /// None yet; `None` where there is no place for the tables.
    pub(super) fn find(maps: &[MappedRange]) -> Option<Self> {
        let start = ground::low(LOW_BYTES, maps)?;
        let waiting = vec![Part::new(start, LOW_BYTES, READ | WRITE)];
        let tables = [Table::new(start)?, Table::new(start + TABLE_BYTES)?];
        Some(Self { tables, log: Log::new(start + 2 * TABLE_BYTES)?, areas: Vec::new(), made: Vec::new(), waiting })
    }

    /// Copies for a purpose, in the areas that there are; none is made yet.
    pub(super) fn copies(&self, purpose: Purpose) -> Copies {
        let table = self.tables[purpose as usize];
        let mut copies = match purpose {
            Purpose::Count => Copies::that_count(table),
            Purpose::Log => Copies::that_log(table, self.log),
        };
        let own = self.areas.iter().filter(|(of, _)| *of == purpose);
        own.for_each(|(_, start)| copies.add_area(*start));
        copies
    }

    /// First addresses of tables.
    pub(super) fn tables(&self) -> impl Iterator<Item = u64> {
        self.tables.iter().map(|table| table.start())
    }

    /// Whether there is any memory for code.
    pub(super) fn has_areas(&self) -> bool {
        !self.areas.is_empty()
    }

    /// Whether all that was made is still there.
    pub(super) fn is_intact(&self, maps: &[MappedRange]) -> bool {
        self.made.iter().all(|part| part.is_in(maps))
    }

    /// Whether this is the memory of a process with these mappings.
    pub(super) fn is_mapped_in(&self, maps: &[MappedRange]) -> bool {
        !self.made.is_empty() && self.is_intact(maps)
    }

    /// Makes what lies low.
    ///
    /// # Errors
    /// Something else happened to the thread: this halt, to be answered.
    pub(super) fn make_low(&mut self, caller: &Caller<'_>, memory: &Memory) -> Result<(), Halt> {
        self.make(caller, memory).map(drop)
    }

    /// Makes an area near some code; `None` where there is no place for it.
    ///
    /// # Errors
    /// As [`Room::make_low`]: the next call goes on with it.
    pub(super) fn make_area(
        &mut self,
        root: &Root,
        pid: u32,
        (purpose, near): (Purpose, u64),
        (caller, memory): (&Caller<'_>, &Memory),
    ) -> Result<Option<u64>, Halt> {
        if self.made.is_empty() || self.areas.iter().filter(|(of, _)| *of == purpose).count() >= MOST_AREAS {
            return Ok(None);
        }
        if self.waiting.is_empty() {
            let Some(start) = ground::near(near, &mapped_ranges(root, pid)) else { return Ok(None) };
            self.waiting.push(Part::new(start + CODE_BYTES, DATA_BYTES, READ | WRITE));
            self.waiting.push(Part::new(start, CODE_BYTES, READ | EXECUTE));
        }
        let made = self.make(caller, memory)?;
        let start = self.made.last().filter(|_| made).map(|part| part.addresses.end - AREA_BYTES);
        self.areas.extend(start.map(|start| (purpose, start)));
        Ok(start)
    }

    /// Makes what is waiting, the last one first; `false` where the kernel refuses.
    fn make(&mut self, caller: &Caller<'_>, memory: &Memory) -> Result<bool, Halt> {
        while let Some(part) = self.waiting.last_mut() {
            if !part.is_mapped {
                if caller.map(part.addresses.start, part.bytes(), part.access)?.is_none() {
                    self.waiting.clear();
                    return Ok(false);
                }
                part.is_mapped = true;
            }
            caller.keep_from_children(part.addresses.start, part.bytes())?;
            // The kernel reads the name from the process itself.
            if memory.write(part.addresses.start, NAME).is_ok() {
                caller.name(part.addresses.start, part.bytes(), part.addresses.start)?;
                let _gone = memory.write(part.addresses.start, &[0; NAME.len()]);
            }
            self.made.extend(self.waiting.pop());
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, bytes: u64, access: i32, path: &str) -> MappedRange {
        let (executable, writable) = (access & EXECUTE != 0, access & WRITE != 0);
        MappedRange { start, bytes, executable, writable, path: path.to_owned(), ..MappedRange::default() }
    }

    #[test]
    fn what_others_put_in_its_place_is_not_ours() {
        let part = Part::new(0x10_0000, TABLE_BYTES, READ | WRITE);
        assert!(part.is_in(&[range(0x10_0000, TABLE_BYTES, READ | WRITE, "[anon:tierloom]")]));
        assert!(part.is_in(&[range(0xf_0000, 2 * TABLE_BYTES, READ | WRITE, "")]));
        for other in [
            range(0x10_0000, TABLE_BYTES - 4096, READ | WRITE, ""),
            range(0x10_0000, TABLE_BYTES, READ, ""),
            range(0x10_0000, TABLE_BYTES, READ | WRITE, "/a/file"),
            range(0x11_0000, TABLE_BYTES, READ | WRITE, ""),
        ] {
            assert!(!part.is_in(&[other]));
        }
    }
}
