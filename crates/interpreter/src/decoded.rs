//! Instructions as they were decoded, once each.

use foldhash::HashMap;
use iced_x86::{Decoder, DecoderOptions, Instruction};

/// The longest instruction of x86-64 (Intel SDM vol. 2, 2.3.11).
pub(crate) const LONGEST_INSTRUCTION: usize = 15;

/// How the operands of a vector instruction are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// The first operand is read, too, and what is above it stays.
    Legacy,
    /// `VEX`: the first operand is only written, and what is above it is cleared.
    Vex,
    /// `EVEX`, with masks and 512 bits, which are not followed.
    Evex,
}

/// An instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decoded {
    pub(crate) code: Instruction,
    pub(crate) encoding: Encoding,
}

impl Decoded {
    /// The first one of some bytes at an address; `None` where they are none.
    fn of(bytes: &[u8], address: u64) -> Option<Self> {
        let code = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        (!code.is_invalid()).then(|| Self { code, encoding: encoding(bytes) })
    }
}

/// Prefixes that may come before: those of segments and of the width of addresses.
fn encoding(bytes: &[u8]) -> Encoding {
    const PREFIXES: [u8; 7] = [0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67];
    match bytes.iter().find(|byte| !PREFIXES.contains(byte)) {
        Some(0xc4 | 0xc5) => Encoding::Vex,
        Some(0x62) => Encoding::Evex,
        _ => Encoding::Legacy,
    }
}

/// Instructions by address: code does not change while a thread is halted.
#[derive(Debug, Default)]
pub(crate) struct Code(HashMap<u64, Option<Decoded>>);

impl Code {
    /// The instruction at an address; `bytes` reads what is there.
    pub(crate) fn at(&mut self, address: u64, bytes: impl FnOnce(&mut [u8]) -> usize) -> Option<Decoded> {
        *self.0.entry(address).or_insert_with(|| {
            let mut read = [0; LONGEST_INSTRUCTION];
            let length = bytes(&mut read);
            Decoded::of(&read[..length], address)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_told_behind_prefixes() {
        let of = |bytes: &[u8]| Decoded::of(bytes, 0).unwrap().encoding;
        assert_eq!(of(&[0x0f, 0x28, 0xc1]), Encoding::Legacy); // movaps xmm0, xmm1
        assert_eq!(of(&[0xc5, 0xf8, 0x28, 0xc1]), Encoding::Vex); // vmovaps xmm0, xmm1
        assert_eq!(of(&[0x64, 0xc5, 0xf8, 0x28, 0x00]), Encoding::Vex); // vmovaps xmm0, fs:[rax]
        assert_eq!(of(&[0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc1]), Encoding::Evex); // vmovaps zmm0, zmm1
        assert!(Decoded::of(&[0x06], 0).is_none());
    }
}
