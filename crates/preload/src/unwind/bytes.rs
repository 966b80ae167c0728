//! Numbers in a row, as DWARF 5 writes them (7.6, 7.7.1): read one after another, `None` behind the last.

/// What is left to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn block(&mut self, length: usize) -> Option<&'a [u8]> {
        let (block, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(block)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.block(1).map(|block| block[0])
    }

    /// An unsigned number of so many bytes, lowest first; at most eight.
    pub(super) fn fixed(&mut self, length: usize) -> Option<u64> {
        let block = self.block(length)?;
        Some(block.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }

    /// The same with a sign.
    pub(super) fn fixed_signed(&mut self, length: usize) -> Option<i64> {
        let unused = 64 - 8 * u32::try_from(length).ok()?;
        Some((self.fixed(length)? << unused).cast_signed() >> unused)
    }

    /// `ULEB128`.
    pub(super) fn unsigned(&mut self) -> Option<u64> {
        self.leb128().map(|(number, _)| number)
    }

    /// `SLEB128`: the highest bit that is written is that of the sign.
    pub(super) fn signed(&mut self) -> Option<i64> {
        let (number, bits) = self.leb128()?;
        let unused = 64_u32.saturating_sub(bits);
        Some((number << unused).cast_signed() >> unused)
    }

    fn leb128(&mut self) -> Option<(u64, u32)> {
        let (mut number, mut bits) = (0, 0);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(bits).unwrap_or(0);
            bits += 7;
            if byte & 0x80 == 0 {
                return Some((number, bits));
            }
        }
    }

    /// A block behind its length.
    pub(super) fn counted(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.unsigned()?).ok()?;
        self.block(length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(mut number: i128) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let low = u8::try_from(number & 0x7f).unwrap();
            number >>= 7;
            if (number == 0 && low & 0x40 == 0) || (number == -1 && low & 0x40 != 0) {
                bytes.push(low);
                return bytes;
            }
            bytes.push(low | 0x80);
        }
    }

    proptest! {
        #[test]
        fn numbers_of_any_length_read_back(number: i64, behind in any::<u8>()) {
            let mut bytes = written(i128::from(number));
            bytes.push(behind);
            let mut read = Bytes(&bytes);
            prop_assert_eq!((read.signed(), read.byte(), read.byte()), (Some(number), Some(behind), None));
            let bytes = written(i128::from(number.cast_unsigned()));
            prop_assert_eq!(Bytes(&bytes).unsigned(), Some(number.cast_unsigned()));
            prop_assert_eq!(Bytes(&number.to_le_bytes()).fixed_signed(8), Some(number));
            let short = number >> 48;
            prop_assert_eq!(Bytes(&short.to_le_bytes()).fixed_signed(2), Some(short));
        }

        #[test]
        fn any_bytes_are_survived(noise in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut bytes = Bytes(&noise);
            while !bytes.is_empty() {
                if bytes.signed().is_none() || bytes.counted().is_none() {
                    break;
                }
            }
        }
    }
}
