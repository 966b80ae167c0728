//! The directory: which arrays a pool has, and where.
//!
//! An entry changes only inside transactions, so an entry is never seen half written; its checksum is
//! there for damage from outside. Free space is what no entry covers: there is no second record of it
//! that could disagree.

use std::ops::Range;

use tierloom_model::units::PAGE_BYTES;

use crate::error::PmemError;
use crate::layout::{ENTRY, Layout, NAME_BYTES, TYPE_BYTES, damaged, seal, sealed, up, word};
use crate::medium::Medium;
use crate::sums::{CHUNK, Sums};

/// An array of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name, unique in the pool.
    pub name: String,
    /// What its elements are and how they are arranged, in the words of who made it.
    pub kind: String,
    /// First byte in the file; a multiple of 4096.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// A number for whoever keeps several versions of a thing.
    pub version: u64,
    /// Whether checksums lie behind its bytes (`crate::sums`).
    pub checked: bool,
}

/// What is found in a slot of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Slot {
    Free,
    Used(Entry),
    /// Not what was ever written there, and why.
    Broken(&'static str),
}

const USED: u64 = 0x5553_4544;
/// Where an entry says how many bytes are under one checksum: zero where it has none, as in version 1.
const CHUNK_AT: usize = 32 + NAME_BYTES + TYPE_BYTES;
const OUTSIDE: &str = "it leads out of the pool's data";

impl Entry {
    /// An array that lies nowhere yet.
    pub fn new(name: &str, kind: &str, bytes: u64, version: u64) -> Self {
        Self { name: name.to_owned(), kind: kind.to_owned(), offset: 0, bytes, version, checked: false }
    }

    /// The same with checksums, or without.
    #[must_use]
    pub fn with_checksums(self, checked: bool) -> Self {
        Self { checked, ..self }
    }

    /// Bytes that it keeps from others.
    pub(crate) fn span(&self) -> u64 {
        up(self.stored_bytes().max(1), PAGE_BYTES)
    }

    /// Bytes of the array and of its checksums.
    pub(crate) fn stored_bytes(&self) -> u64 {
        if self.checked { Sums::stored_bytes(self.bytes) } else { self.bytes }
    }

    /// Where its checksums are; none where it carries none.
    pub(crate) fn sums(&self) -> Option<Sums> {
        self.checked.then(|| Sums::new(self.offset, self.bytes))
    }

    /// # Errors
    /// A name or a description that is empty, too long, or holds zero bytes.
    pub(crate) fn encode(&self) -> Result<[u8; ENTRY], PmemError> {
        let mut slot = [0; ENTRY];
        for (at, word) in [USED, self.offset, self.bytes, self.version].iter().enumerate() {
            slot[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        }
        put_text(&mut slot[32..32 + NAME_BYTES], "name", &self.name)?;
        put_text(&mut slot[32 + NAME_BYTES..32 + NAME_BYTES + TYPE_BYTES], "description", &self.kind)?;
        let chunk = if self.checked { CHUNK } else { 0 };
        slot[CHUNK_AT..CHUNK_AT + 8].copy_from_slice(&chunk.to_le_bytes());
        seal(&mut slot);
        Ok(slot)
    }
}

impl Slot {
    pub(crate) fn read(medium: &impl Medium, layout: &Layout, index: u64) -> Self {
        let slot = Self::decode(&medium.copy(layout.entry(index), ENTRY), layout.data()..layout.bytes);
        match slot {
            Self::Used(entry) if !entry.offset.is_multiple_of(PAGE_BYTES) => Self::Broken(OUTSIDE),
            slot => slot,
        }
    }

    /// What a slot's bytes say of arrays that lie in `data`.
    pub(crate) fn decode(slot: &[u8], data: Range<u64>) -> Self {
        if slot.iter().all(|byte| *byte == 0) {
            return Self::Free;
        }
        if !sealed(slot) || word(slot, 0) != USED {
            return Self::Broken("its checksum is wrong");
        }
        let texts = (text(&slot[32..32 + NAME_BYTES]), text(&slot[32 + NAME_BYTES..32 + NAME_BYTES + TYPE_BYTES]));
        let (Some(name), Some(kind)) = texts else { return Self::Broken("its name is no text") };
        let checked = match word(slot, CHUNK_AT) {
            0 => false,
            CHUNK => true,
            _ => return Self::Broken("its checksums are of another kind"),
        };
        let (offset, bytes, version) = (word(slot, 8), word(slot, 16), word(slot, 24));
        let entry = Entry { name, kind, offset, bytes, version, checked };
        let end = entry.offset.checked_add(entry.stored_bytes());
        let inside = entry.offset >= data.start && end.is_some_and(|end| end <= data.end);
        if inside { Self::Used(entry) } else { Self::Broken(OUTSIDE) }
    }
}

/// All slots of a directory.
///
/// # Errors
/// One of them is broken.
pub(crate) fn read_all(medium: &impl Medium, layout: &Layout) -> Result<Vec<Option<Entry>>, PmemError> {
    let read = |index| match Slot::read(medium, layout, index) {
        Slot::Free => Ok(None),
        Slot::Used(entry) => Ok(Some(entry)),
        Slot::Broken(why) => {
            Err(damaged(format!("directory entry {index}: {why}"), "`pmem repair` drops it and keeps the others"))
        }
    };
    (0..layout.entries).map(read).collect()
}

/// Gaps between arrays as (offset, bytes), in order.
pub(crate) fn gaps(layout: &Layout, entries: &[Entry]) -> Vec<(u64, u64)> {
    let mut taken: Vec<(u64, u64)> = entries.iter().map(|entry| (entry.offset, entry.span())).collect();
    taken.push((layout.bytes / PAGE_BYTES * PAGE_BYTES, 0));
    taken.sort_unstable();
    let mut gaps = Vec::new();
    let mut at = layout.data();
    for (offset, span) in taken {
        if offset > at {
            gaps.push((at, offset - at));
        }
        at = at.max(offset + span);
    }
    gaps
}

fn put_text(field: &mut [u8], what: &str, text: &str) -> Result<(), PmemError> {
    if text.is_empty() || text.len() > field.len() || text.contains('\0') {
        let what =
            format!("an array's {what} has 1 to {} bytes and no zero byte, `{text}` has {}", field.len(), text.len());
        return Err(PmemError::Request { what, hint: "use a shorter text" });
    }
    field[..text.len()].copy_from_slice(text.as_bytes());
    Ok(())
}

fn text(field: &[u8]) -> Option<String> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let text = std::str::from_utf8(&field[..end]).ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}
