//! The file around the records: header, attributes with their ids, data, features.

use crate::Flaw;
use crate::attributes::Attribute;
use crate::cursor::{Fields, section};
use crate::features::Features;

const MAGIC: &[u8; 8] = b"PERFILE2";
const SWAPPED: &[u8; 8] = b"2ELIFREP";
/// A header of this length belongs to a stream (`perf record -o -`), which has no sections.
const PIPE_HEADER: u64 = 16;
/// Of the header: magic, size, `attr_size`, three sections, 256 feature bits.
const HEADER: u64 = 104;
/// Of an attribute's entry behind the attribute: offset and length of its ids.
const IDS: u64 = 16;
/// More events than this in one file are a damaged length.
const MOST_ATTRIBUTES: u64 = 4096;

/// A `perf.data` file in parts.
#[derive(Debug)]
pub(super) struct PerfFile<'a> {
    /// Events, at least one.
    pub(super) attributes: Vec<Attribute>,
    /// Records, back to back.
    pub(super) data: &'a [u8],
    pub(super) features: Features,
}

impl<'a> PerfFile<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Flaw> {
        let mut fields = Fields(bytes);
        match fields.bytes(8) {
            Some(magic) if magic == MAGIC => {}
            Some(magic) if magic == SWAPPED => {
                return Err(Flaw::new("it is from a machine of the other byte order", "read it on such a machine"));
            }
            _ => {
                let hint = "give the file that `perf record` wrote";
                return Err(Flaw::new("it does not begin like a perf.data file of version 2", hint));
            }
        }
        Self::behind_magic(bytes, fields)
    }

    fn behind_magic(bytes: &'a [u8], mut fields: Fields<'a>) -> Result<Self, Flaw> {
        let cut = || Flaw::damaged("its header");
        let size = fields.u64().ok_or_else(cut)?;
        if size == PIPE_HEADER {
            let problem = "it was written as a stream, without an index";
            return Err(Flaw::new(problem, "let `perf record -o perf.data` write a file, not a pipe"));
        }
        let entry = fields.u64().filter(|entry| size >= HEADER && *entry > IDS).ok_or_else(cut)?;
        let mut part = || Some((fields.u64()?, fields.u64()?));
        let (attributes, data) = part().zip(part()).ok_or_else(cut)?;
        let bits = section(bytes, HEADER - 32, 32).ok_or_else(cut)?;
        let listed = section(bytes, attributes.0, attributes.1).ok_or_else(|| Flaw::damaged("its list of events"))?;
        let records = section(bytes, data.0, data.1).ok_or_else(|| Flaw::damaged("its list of records"))?;
        if records.is_empty() {
            return Err(Flaw::new("it holds no records", "record again, and let `perf record` end by itself"));
        }
        Ok(Self {
            attributes: attributes_of(bytes, listed, entry)?,
            data: records,
            features: Features::read(bytes, data.0 + data.1, bits),
        })
    }
}

fn attributes_of(bytes: &[u8], listed: &[u8], entry: u64) -> Result<Vec<Attribute>, Flaw> {
    let cut = || Flaw::damaged("its list of events");
    let count = listed.len() as u64 / entry;
    if !(1..=MOST_ATTRIBUTES).contains(&count) {
        return Err(cut());
    }
    let mut fields = Fields(listed);
    let mut attribute = || {
        let raw = fields.bytes(entry - IDS)?;
        let ids = section(bytes, fields.u64()?, fields.u64()?)?;
        Attribute::read(raw, ids)
    };
    (0..count).map(|_| attribute().ok_or_else(cut)).collect()
}
