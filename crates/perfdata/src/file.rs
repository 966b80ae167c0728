//! The file around the records: header, events, data, features; or a stream of records that says all of it in front
//! (`perf record -o -`).
//!
//! `linux-perf-data` 0.13 reads the same, but believes what it is told: a hundred bytes make it panic (an event of
//! no length) or ask for as much memory as it names.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use tierloom_linux::perf::{Fields, Record};

use crate::attributes::{Attribute, Events};
use crate::compressed::Decompressed;
use crate::error::Flaw;
use crate::features::Features;
use crate::stream::{Stream, damaged_record, own};

const MAGIC: &[u8] = b"PERFILE2";
const SWAPPED: &[u8] = b"2ELIFREP";
/// Until Linux 3.4.
const FIRST_VERSION: &[u8] = b"PERFFILE";
/// A header of this length belongs to a stream, which has no sections.
const STREAM_HEADER: u64 = 16;
/// Of the header: magic, size, size of an attribute, three sections, 256 feature bits.
const HEADER: u64 = 104;
const FEATURE_BITS: Range<usize> = 72..104;
/// Of an attribute's entry behind the attribute: offset and length of its ids.
const IDS: u64 = 16;
/// Of an attribute: where its own length stands.
const ATTRIBUTE_SIZE: usize = 4;
/// More events than this in one file are a damaged length.
const MOST_EVENTS: u64 = 4096;
/// Bytes of records that one compressed byte may stand for: `perf`'s own come to 3 to 50, a file that is made to fill memory
/// to 30,000.
const MOST_RATIO: u64 = 1000;

/// A `perf.data` file in parts.
#[derive(Debug)]
pub(super) struct PerfFile<R> {
    /// At least one.
    parts: Vec<Part<R>>,
    /// At least one.
    pub(super) events: Events,
    pub(super) features: Features,
    /// Where it is damaged: nothing behind that is read.
    pub(super) damaged_at: Option<u64>,
}

/// Records in a row.
#[derive(Debug)]
struct Part<R> {
    source: R,
    /// Where they begin.
    start: u64,
    /// How many bytes of them there are: `None` for all that follow.
    length: Option<u64>,
}

impl<R: Read + Seek> PerfFile<R> {
    pub(super) fn open(mut source: R) -> Result<Self, Flaw> {
        let front = part(&mut source, 0, STREAM_HEADER);
        match front.as_deref().unwrap_or_default().get(..8) {
            Some(MAGIC) => {}
            other => return Err(not_ours(other)),
        }
        let size = front.and_then(|front| Fields(front.get(8..)?).u64());
        if size == Some(STREAM_HEADER) { Self::open_stream(source) } else { Self::open_sections(source) }
    }

    fn open_sections(mut source: R) -> Result<Self, Flaw> {
        let cut = || Flaw::damaged("its header");
        let header = part(&mut source, 0, HEADER).ok_or_else(cut)?;
        let mut fields = Fields(&header[8..]);
        let size = fields.u64().ok_or_else(cut)?;
        let entry = fields.u64().filter(|entry| size >= HEADER && *entry > IDS).ok_or_else(cut)?;
        let mut section = || Some((fields.u64()?, fields.u64()?));
        let (attributes, data) = section().zip(section()).ok_or_else(cut)?;
        let events = events_of(&mut source, attributes, entry).ok_or_else(|| Flaw::damaged("its list of events"))?;
        let (length, is_whole) = records_of(&mut source, data).ok_or_else(|| Flaw::damaged("its list of records"))?;
        let behind = (data.0 + length, &header[FEATURE_BITS]);
        let features = if is_whole { features_of(&mut source, behind.0, behind.1) } else { Features::default() };
        let damaged_at = (!is_whole).then_some(behind.0);
        let parts = vec![Part { source, start: data.0, length: Some(length) }];
        Ok(Self { parts, events, features, damaged_at }.called())
    }

    /// With its events called what it calls them.
    fn called(mut self) -> Self {
        self.events.call(&self.features.names);
        self
    }

    /// Reads on until the first record of the kernel.
    fn open_stream(mut source: R) -> Result<Self, Flaw> {
        let (mut events, mut features) = (Events::default(), Features::default());
        source.seek(SeekFrom::Start(STREAM_HEADER)).map_err(Flaw::Unreadable)?;
        let mut stream = Stream::new(&mut source, None);
        let mut start = 0;
        while let Some(raw) = stream.next()?.filter(|raw| raw.kind >= own::FIRST && raw.compressed().is_none()) {
            match raw.kind {
                own::ATTRIBUTE => add_event(&mut events, raw.body).ok_or_else(|| damaged_record(start))?,
                _ => features.take_record(&raw),
            }
            start = stream.at();
        }
        if events.is_empty() {
            return Err(Flaw::damaged("its list of events"));
        }
        let parts = vec![Part { source, start: STREAM_HEADER + start, length: None }];
        Ok(Self { parts, events, features, damaged_at: None }.called())
    }

    /// Takes a source of nothing but records, of the same events.
    pub(super) fn append(&mut self, source: R) {
        self.parts.push(Part { source, start: 0, length: None });
    }

    /// Hands over all records of the kernel with their events, the compressed ones last; where the file is damaged, those
    /// before that.
    pub(super) fn records(&mut self, mut each: impl FnMut(&Events, &Attribute, Record)) -> Result<(), Flaw> {
        for part in &mut self.parts {
            let at = part.take_all(&self.events, &mut self.features, &mut each)?;
            self.damaged_at = self.damaged_at.or(at);
        }
        Ok(())
    }
}

impl<R: Read + Seek> Part<R> {
    /// Hands over its records; where it is damaged.
    fn take_all(
        &mut self,
        events: &Events,
        features: &mut Features,
        each: &mut impl FnMut(&Events, &Attribute, Record),
    ) -> Result<Option<u64>, Flaw> {
        let start = self.start;
        self.source.seek(SeekFrom::Start(start)).map_err(Flaw::Unreadable)?;
        let mut plain = Stream::new(&mut self.source, self.length);
        let taken = take_all(&mut plain, events, features, each)?;
        let damaged_at = taken.damaged_at.map(|at| start + at);
        if taken.compressed == 0 {
            return Ok(damaged_at);
        }
        self.source.seek(SeekFrom::Start(start)).map_err(Flaw::Unreadable)?;
        let inside = Decompressed::new(Stream::new(&mut self.source, self.length));
        let mut records = Stream::new(inside.take(taken.compressed.saturating_mul(MOST_RATIO)), None);
        let inside = take_all(&mut records, events, features, each)?;
        Ok(damaged_at.or(inside.damaged_at.map(|_| start)))
    }
}

/// What came of reading records.
#[derive(Debug, Default)]
struct Taken {
    /// Bytes that are still compressed.
    compressed: u64,
    /// Where a record is damaged: nothing behind it can be found.
    damaged_at: Option<u64>,
}

/// Hands over what the kernel wrote, up to the first damaged record.
fn take_all(
    stream: &mut Stream<impl Read>,
    events: &Events,
    features: &mut Features,
    each: &mut impl FnMut(&Events, &Attribute, Record),
) -> Result<Taken, Flaw> {
    let mut taken = Taken::default();
    loop {
        let at = stream.at();
        let raw = match stream.next() {
            Ok(Some(raw)) => raw,
            Ok(None) => return Ok(taken),
            Err(Flaw::Content { .. }) => return Ok(Taken { damaged_at: Some(at), ..taken }),
            Err(unreadable) => return Err(unreadable),
        };
        if let Some(part) = raw.compressed() {
            taken.compressed += part.len() as u64;
        } else if raw.kind >= own::FIRST {
            features.take_record(&raw);
        } else if let Some(event) = events.of(raw.kind, raw.body) {
            match event.format.record(raw.kind, raw.misc, raw.body) {
                Ok(record) => record.into_iter().for_each(|record| each(events, event, record)),
                Err(_) => return Ok(Taken { damaged_at: Some(at), ..taken }),
            }
        }
    }
}

/// What a file is that begins otherwise.
fn not_ours(magic: Option<&[u8]>) -> Flaw {
    match magic {
        Some(SWAPPED) => Flaw::new("it is from a machine of the other byte order", "read it on such a machine"),
        Some(FIRST_VERSION) => {
            let problem = "it is a perf.data file of version 1: perf of that time took neither accesses nor registers";
            Flaw::new(problem, "record again with perf of Linux 3.10 or newer: perf mem record -- CMD")
        }
        _ => {
            let hint = "give the file that `perf record` wrote";
            Flaw::new("it does not begin like a perf.data file of version 2", hint)
        }
    }
}

/// How many bytes of records there are, and whether these are all: `perf` fills the length in when it ends, and a file
/// may be cut.
fn records_of(source: &mut (impl Read + Seek), (start, length): (u64, u64)) -> Option<(u64, bool)> {
    let there = source.seek(SeekFrom::End(0)).ok()?.checked_sub(start)?;
    let is_whole = length > 0 && length <= there;
    Some((if is_whole { length } else { there }, is_whole))
}

/// The attributes of a file with sections: entries of one length, each with the place of its ids.
fn events_of(source: &mut (impl Read + Seek), (offset, length): (u64, u64), entry: u64) -> Option<Events> {
    if !(1..=MOST_EVENTS).contains(&(length / entry)) {
        return None;
    }
    let (listed, mut events) = (part(source, offset, length)?, Events::default());
    for listed in listed.chunks_exact(usize::try_from(entry).ok()?) {
        let mut fields = Fields(listed);
        let attribute = fields.bytes(entry - IDS)?;
        let ids = part(source, fields.u64()?, fields.u64()?)?;
        events.add(attribute, &ids)?;
    }
    Some(events)
}

/// The attribute of a record, with its ids behind it.
fn add_event(events: &mut Events, body: &[u8]) -> Option<()> {
    let length = Fields(body.get(ATTRIBUTE_SIZE..)?).u32()?;
    let (attribute, ids) = body.split_at_checked(usize::try_from(length).ok()?)?;
    events.add(attribute, ids)
}

/// The table of sections behind the data has an entry for each bit that is set, in their order. What cannot be read is
/// left empty: features help, records count.
fn features_of(source: &mut (impl Read + Seek), table: u64, bits: &[u8]) -> Features {
    let mut features = Features::default();
    let set = (0..8 * bits.len()).filter(|bit| bits[bit / 8] & (1 << (bit % 8)) != 0);
    for (place, bit) in (0..).zip(set).filter(|(_, bit)| Features::are_used(*bit as u64)) {
        let entry = table.checked_add(16 * place).and_then(|at| part(source, at, 16));
        let section = entry.and_then(|entry| Some((Fields(&entry).u64()?, Fields(entry.get(8..)?).u64()?)));
        if let Some(section) = section.and_then(|(offset, length)| part(source, offset, length)) {
            features.take(bit as u64, &section);
        }
    }
    features
}

/// Bytes of a file; `None` where it has fewer.
fn part(source: &mut (impl Read + Seek), offset: u64, length: u64) -> Option<Vec<u8>> {
    let end = source.seek(SeekFrom::End(0)).ok()?;
    offset.checked_add(length).filter(|behind| *behind <= end)?;
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    source.seek(SeekFrom::Start(offset)).ok()?;
    source.read_exact(&mut bytes).ok()?;
    Some(bytes)
}
