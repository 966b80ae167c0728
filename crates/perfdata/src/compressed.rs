//! Records of `perf record -z`: one Zstandard stream, cut into records of their own.
//!
//! `perf` flushes the stream into each record and never ends it (`tools/perf/util/zstd.c`), and a block may begin in
//! one record and end in the next. What comes out is as long as the file says, so it is read piece by piece.

use std::io::{Error, ErrorKind, Read, Result};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::stream::Stream;

/// An empty last block and room for a checksum (RFC 8878, 3.1.1): decoders hold back a window's worth of bytes
/// until a frame ends.
const END: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
/// Window of the highest level that `perf` takes (22), bytes.
const LARGEST_WINDOW: u64 = 128 << 20;

/// What was compressed.
pub(super) struct Decompressed<R> {
    parts: Parts<R>,
    decoder: FrameDecoder,
}

impl<R: Read> Decompressed<R> {
    /// Of the compressed ones among these records.
    pub(super) fn new(records: Stream<R>) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(LARGEST_WINDOW);
        Self { parts: Parts { records, part: Vec::new(), taken: 0, ended: false }, decoder }
    }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        while self.decoder.can_collect() == 0 {
            if self.decoder.is_finished() {
                if !self.parts.fill()? {
                    return Ok(0);
                }
                self.decoder.reset(&mut self.parts).map_err(damaged)?;
            }
            self.decoder.decode_blocks(&mut self.parts, BlockDecodingStrategy::UptoBlocks(1)).map_err(damaged)?;
        }
        self.decoder.read(into)
    }
}

fn damaged(why: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::InvalidData, why)
}

/// The stream as it was before it was cut, and [`END`].
struct Parts<R> {
    records: Stream<R>,
    part: Vec<u8>,
    taken: usize,
    ended: bool,
}

impl<R: Read> Parts<R> {
    /// Whether there is more of what the file holds.
    fn fill(&mut self) -> Result<bool> {
        while !self.ended && self.taken == self.part.len() {
            self.taken = 0;
            if let Some(record) = self.records.next().map_err(|_| Error::from(ErrorKind::InvalidData))? {
                self.part.clear();
                self.part.extend_from_slice(record.compressed().unwrap_or_default());
            } else {
                self.ended = true;
                self.part = END.to_vec();
            }
        }
        Ok(!self.ended)
    }
}

impl<R: Read> Read for Parts<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        self.fill()?;
        let count = (&self.part[self.taken..]).read(into)?;
        self.taken += count;
        Ok(count)
    }
}
