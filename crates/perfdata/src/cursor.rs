//! Reads little-endian fields from the front of a slice; everything is an option, nothing panics.

/// What is left to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// So many bytes, as a count from the file says them.
    pub(super) fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let count = usize::try_from(count).ok().filter(|count| *count <= self.0.len())?;
        let (front, rest) = self.0.split_at(count);
        self.0 = rest;
        Some(front)
    }

    /// Passes over so many bytes.
    pub(super) fn skip(&mut self, count: u64) -> Option<()> {
        self.bytes(count).map(|_| ())
    }

    /// Text up to the first zero byte.
    pub(super) fn text(self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end]).into_owned()
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }
}

/// A part of a file by offset and length.
pub(super) fn section(bytes: &[u8], offset: u64, length: u64) -> Option<&[u8]> {
    let end = offset.checked_add(length)?;
    bytes.get(usize::try_from(offset).ok()?..usize::try_from(end).ok()?)
}
