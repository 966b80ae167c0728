//! Reads little-endian fields from the front of a slice; everything is an option, nothing panics.

/// What is left to read.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(
    /// The bytes that were not read yet.
    pub &'a [u8],
);

impl<'a> Fields<'a> {
    /// Two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// So many bytes, as a count from the kernel or from a file says them.
    pub fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(front)
    }

    /// Passes over so many bytes.
    pub fn skip(&mut self, count: u64) -> Option<()> {
        self.bytes(count).map(|_| ())
    }

    /// Passes over so many words of eight bytes.
    pub fn skip_words(&mut self, count: u64) -> Option<()> {
        self.skip(count.checked_mul(8)?)
    }

    /// Text up to the first zero byte.
    pub fn text(self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end]).into_owned()
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }
}
