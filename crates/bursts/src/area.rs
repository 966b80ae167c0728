//! Memory of the program that copies use: code, and words of data beside it.
//!
//! ```text
//! code   read and executed by the program, written by the recorder
//! data   control words | counters that go down | counters that go up | constants and links
//! ```
//! An instruction reaches data and code within 2 GiB, so there is one area for the program and another for its
//! libraries, wherever they are loaded. The table of addresses that copies look up lies in the first 2 GiB of all
//! addresses, where an index alone reaches it.

use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes for code: a library of some hundred thousand instructions.
pub const CODE_BYTES: u64 = 8 << 20;
/// Bytes for data, of which those in use are touched: what copies of as much code may need.
pub const DATA_BYTES: u64 = 8 << 20;
/// Bytes of an area.
pub const AREA_BYTES: u64 = CODE_BYTES + DATA_BYTES;

const WORD: u64 = 8;
const DOWN: u64 = CONTROL_BYTES;
/// Control words are stored and loaded within some instructions. A processor takes words at the same place of two pages
/// for one at first, and waits (AMD, Software Optimization Guide for Family 19h, 2.12), so no other word has their place.
const CONTROL_BYTES: u64 = 128;
const PAGE: u64 = 4096;
const UP: u64 = 3 << 20;
const CONSTANTS: u64 = 6 << 20;
/// Entries of the table: one for each value of an address's lowest sixteen bits.
const TABLE_ENTRIES: u64 = 1 << 16;
/// Bytes of the table: negative addresses first, then their copies.
pub const TABLE_BYTES: u64 = 2 * TABLE_ENTRIES * WORD;
/// Addresses below are reached by a displacement alone.
pub const TABLE_BELOW: u64 = 1 << 31;
/// Distance that displacements reach for certain, bytes: 2 GiB less what an area and a module may extend.
const REACH: u64 = (2 << 30) - (64 << 20);

/// What a word of an area is for: the first of them, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Control {
    /// `rax` while a copy needs it.
    Rax,
    /// `rcx`, likewise.
    Rcx,
    /// `rdx`, likewise.
    Rdx,
    /// `r11`, likewise.
    R11,
    /// Where a copy jumps to next, in copies.
    Target,
    /// The same place in the program.
    Original,
    /// Last address that was looked for and is not copied; 0 = none.
    Missed,
    /// Where the thread left the copies, in the program; 0 = it did not.
    Left,
    /// Time-stamp counter when it left.
    End,
    /// Time-stamp counter when it came.
    Start,
}

/// Words that the recorder looks at and sets: all of [`Control`].
pub const CONTROL_WORDS: usize = Control::Start as usize + 1;

/// Where an area lies, and how full it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    start: u64,
    code_bytes: u64,
    next: [u64; 3],
    constants: BTreeMap<u64, u64>,
    table: Table,
}

/// The table of addresses that copies look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    start: u64,
}

impl Table {
    /// At an address, [`TABLE_BYTES`] long; `None` where no displacement reaches it.
    pub fn new(start: u64) -> Option<Self> {
        (start + TABLE_BYTES <= TABLE_BELOW).then_some(Self { start })
    }

    /// First address.
    pub fn start(self) -> u64 {
        self.start
    }

    /// Which entry an address has.
    pub(crate) fn slot(key: u64) -> u64 {
        key % TABLE_ENTRIES
    }

    /// Where the negative addresses are.
    pub(crate) fn keys(self) -> u64 {
        self.start
    }

    /// Where their copies are.
    pub(crate) fn copies(self) -> u64 {
        self.start + TABLE_ENTRIES * WORD
    }
}

/// Kinds of words that are handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Counters that leave the copies when they have come to zero.
    Down,
    /// Counters.
    Up,
    /// Addresses.
    Constant,
}

/// First byte and end of each kind of words.
const ROOM: [Range<u64>; 3] = [DOWN..UP, UP..CONSTANTS, CONSTANTS..DATA_BYTES];

impl Area {
    /// An empty one, [`AREA_BYTES`] long.
    pub fn new(start: u64, table: Table) -> Self {
        let next = ROOM.map(|room| room.start);
        Self { start, code_bytes: 0, next, constants: BTreeMap::new(), table }
    }

    /// First address.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Addresses of its code.
    pub fn code(&self) -> Range<u64> {
        self.start..self.start + CODE_BYTES
    }

    /// First address of its data.
    pub fn data(&self) -> u64 {
        self.start + CODE_BYTES
    }

    /// Address of a word.
    pub fn control(&self, word: Control) -> u64 {
        self.data() + word as u64 * WORD
    }

    /// Counters that go down, by their addresses.
    pub(crate) fn down(&self) -> Range<u64> {
        self.data() + DOWN..self.data() + self.next[Kind::Down as usize]
    }

    /// Counters that go up, by their addresses.
    pub(crate) fn up(&self) -> Range<u64> {
        self.data() + UP..self.data() + self.next[Kind::Up as usize]
    }

    /// Whether instructions here get at an address, and instructions there at this area.
    pub(crate) fn reaches(&self, address: u64) -> bool {
        self.start.abs_diff(address) < REACH
    }

    /// Where the next code goes.
    pub(crate) fn next_code(&self) -> u64 {
        self.start + self.code_bytes
    }

    /// Takes room for code; `false` where there is none left.
    pub(crate) fn take_code(&mut self, bytes: u64) -> bool {
        const LINE: u64 = 64;
        let taken = (self.code_bytes + bytes).next_multiple_of(LINE);
        let fits = taken <= CODE_BYTES;
        if fits {
            self.code_bytes = taken;
        }
        fits
    }

    /// Whether there is room for so many words of each kind.
    pub(crate) fn has_room(&self, words: u64) -> bool {
        ROOM.iter().zip(self.next).all(|(room, next)| next + 2 * words * WORD <= room.end)
    }

    /// A fresh word.
    pub(crate) fn word(&mut self, kind: Kind) -> u64 {
        let next = &mut self.next[kind as usize];
        if *next % PAGE < CONTROL_BYTES {
            *next += CONTROL_BYTES - *next % PAGE;
        }
        *next += WORD;
        self.data() + self.next[kind as usize] - WORD
    }

    /// The word that holds a value, and whether it is a new one, which must be written.
    pub(crate) fn constant(&mut self, value: u64) -> (u64, bool) {
        if let Some(word) = self.constants.get(&value) {
            return (*word, false);
        }
        let word = self.word(Kind::Constant);
        self.constants.insert(value, word);
        (word, true)
    }

    /// The table that its code looks addresses up in.
    pub(crate) fn table(&self) -> Table {
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Table = Table { start: 0 };

    #[test]
    fn words_lie_apart_and_within_the_area() {
        let mut area = Area::new(0x1000_0000, TABLE);
        let words = [Kind::Down, Kind::Up, Kind::Constant].map(|kind| (area.word(kind), area.word(kind)));
        for (first, second) in words {
            assert_eq!(second, first + WORD);
        }
        assert!(words[2].1 < area.start() + AREA_BYTES);
        assert!(area.control(Control::Start) < words[0].0);
        assert_eq!(area.down(), words[0].0..words[0].1 + WORD);
    }

    #[test]
    fn a_table_lies_where_a_displacement_reaches_it() {
        assert_eq!(Table::new(TABLE_BELOW - TABLE_BYTES + 1), None);
        let table = Table::new(0x1_0000).unwrap();
        assert_eq!(table.copies() + TABLE_ENTRIES * WORD, 0x1_0000 + TABLE_BYTES);
    }

    #[test]
    fn a_value_has_one_word() {
        let mut area = Area::new(0, TABLE);
        let (word, is_new) = area.constant(7);
        assert_eq!((area.constant(7), is_new), ((word, false), true));
    }
}
