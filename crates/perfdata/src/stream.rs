//! Records one after the other, whatever they say: out of a file, or of what was compressed in it.

use std::io::Read;

use linux_perf_event_reader::PerfEventHeader;
use tierloom_linux::perf::Fields;

use crate::error::Flaw;

/// Kinds of records that `perf` itself writes (`tools/lib/perf/include/perf/event.h`).
pub(super) mod own {
    /// Records from here on are `perf`'s.
    pub(crate) const FIRST: u32 = 64;
    pub(crate) const ATTRIBUTE: u32 = 64;
    pub(crate) const TRACING_DATA: u32 = 66;
    pub(crate) const BUILD_ID: u32 = 67;
    pub(crate) const AUXTRACE_INFO: u32 = 70;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const EVENT_UPDATE: u32 = 78;
    pub(crate) const FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    /// Since Linux 6.16: begins with its length, and is padded.
    pub(crate) const COMPRESSED2: u32 = 83;
}

/// One record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw<'a> {
    pub(super) kind: u32,
    pub(super) misc: u16,
    pub(super) body: &'a [u8],
}

impl<'a> Raw<'a> {
    /// What it holds of the compressed stream.
    pub(super) fn compressed(&self) -> Option<&'a [u8]> {
        match self.kind {
            own::COMPRESSED => Some(self.body),
            own::COMPRESSED2 => {
                let mut fields = Fields(self.body);
                let length = fields.u64()?;
                fields.bytes(length)
            }
            _ => None,
        }
    }
}

/// What is wrong with a record that begins so many bytes into its data.
pub(super) fn damaged_record(at: u64) -> Flaw {
    Flaw::damaged(&format!("the record at byte {at} of its data"))
}

/// Records in a row.
#[derive(Debug)]
pub(super) struct Stream<R> {
    source: R,
    /// Bytes that were taken.
    at: u64,
    /// Bytes in all; `None` where they end when the source does.
    length: Option<u64>,
    body: Vec<u8>,
}

impl<R: Read> Stream<R> {
    pub(super) fn new(source: R, length: Option<u64>) -> Self {
        Self { source, at: 0, length, body: Vec::new() }
    }

    /// Bytes in front of the next record.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The next record; bytes that follow one and are not in it are passed over.
    pub(super) fn next(&mut self) -> Result<Option<Raw<'_>>, Flaw> {
        let at = self.at;
        let flaw = |error| Flaw::of_reading(error, &format!("the record at byte {at} of its data"));
        let Some(header) = self.header().map_err(flaw)? else { return Ok(None) };
        let PerfEventHeader { type_: kind, misc, size } = header;
        let length = usize::from(size).checked_sub(PerfEventHeader::STRUCT_SIZE).ok_or_else(|| damaged_record(at))?;
        self.body.resize(length, 0);
        self.source.read_exact(&mut self.body).map_err(flaw)?;
        let behind = self.behind(kind).ok_or_else(|| damaged_record(at))?;
        let passed = std::io::copy(&mut (&mut self.source).take(behind), &mut std::io::sink()).map_err(flaw)?;
        self.at = at + u64::from(size) + passed;
        if passed < behind || self.length.is_some_and(|length| self.at > length) {
            return Err(damaged_record(at));
        }
        Ok(Some(Raw { kind, misc, body: &self.body }))
    }

    /// `None` at the end.
    fn header(&mut self) -> std::io::Result<Option<PerfEventHeader>> {
        if self.length.is_some_and(|length| self.at >= length) {
            return Ok(None);
        }
        self.body.clear();
        (&mut self.source).take(PerfEventHeader::STRUCT_SIZE as u64).read_to_end(&mut self.body)?;
        if self.body.is_empty() && self.length.is_none() {
            return Ok(None);
        }
        PerfEventHeader::parse::<_, byteorder::LittleEndian>(&self.body[..]).map(Some)
    }

    /// Bytes of a trace that follow the record, as many as its first word says.
    fn behind(&self, kind: u32) -> Option<u64> {
        let mut fields = Fields(&self.body);
        match kind {
            own::AUXTRACE => fields.u64(),
            own::TRACING_DATA => fields.u32().map(|length| u64::from(length).next_multiple_of(8)),
            _ => Some(0),
        }
    }
}
