//! Registers of a thread, as far as known.

use iced_x86::Register;

use crate::bits::low;

/// General-purpose registers, numbered as in the encoding (AX CX DX BX SP BP SI DI R8…R15).
const GENERAL: usize = 16;
/// Vector registers that are followed.
pub const VECTORS: usize = 32;
/// Masks of vectors.
pub const MASKS: usize = 8;
/// Words of one: 256 bits.
pub const VECTOR_LANES: usize = 4;

/// Words of a vector, as far as known.
pub(crate) type Lanes = [Option<u64>; VECTOR_LANES];
/// Nothing known.
pub(crate) const UNKNOWN: Lanes = [None; VECTOR_LANES];

/// A word of which each bit is known or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Word {
    bits: u64,
    known: u64,
}

impl Word {
    pub(crate) fn new(bits: u64) -> Self {
        Self { bits, known: u64::MAX }
    }

    /// These bits, where all of them are known.
    pub(crate) fn get(self, mask: u64) -> Option<u64> {
        (self.known & mask == mask).then_some(self.bits & mask)
    }

    pub(crate) fn set(&mut self, mask: u64, value: Option<u64>) {
        match value {
            Some(value) => {
                self.bits = self.bits & !mask | value & mask;
                self.known |= mask;
            }
            None => self.known &= !mask,
        }
    }
}

/// What a thread holds.
#[derive(Debug, Clone)]
pub struct Registers {
    pub(crate) general: [Word; GENERAL],
    pub(crate) vectors: [Lanes; VECTORS],
    pub(crate) masks: [Option<u64>; MASKS],
    pub(crate) flags: Word,
    /// Address of the next instruction.
    pub ip: u64,
    /// Where the segments of thread-local storage begin: FS and GS.
    pub segments: [u64; 2],
}

impl Registers {
    /// Those of a thread.
    ///
    /// # Arguments
    /// * `general` - numbered as in the encoding (AX CX DX BX SP BP SI DI R8…R15).
    /// * `segments` - where thread-local storage begins: FS and GS.
    pub fn new(general: [u64; 16], flags: u64, ip: u64, segments: [u64; 2]) -> Self {
        let (vectors, masks) = ([UNKNOWN; VECTORS], [None; MASKS]);
        Self { general: general.map(Word::new), vectors, masks, flags: Word::new(flags), ip, segments }
    }

    /// The same with the low 256 bits of vector registers, four words each, lowest first, and with masks of vectors.
    #[must_use]
    pub fn with_vectors(self, registers: &[Option<[u64; VECTOR_LANES]>; VECTORS], masks: [Option<u64>; MASKS]) -> Self {
        let vectors = registers.map(|words| words.map_or(UNKNOWN, |words| words.map(Some)));
        Self { vectors, masks, ..self }
    }

    /// What a general-purpose register holds, by its number, where all of it is known.
    pub fn general(&self, number: usize) -> Option<u64> {
        self.general.get(number)?.get(u64::MAX)
    }

    /// What a vector register holds, as far as known.
    pub fn vector(&self, number: usize) -> [Option<u64>; VECTOR_LANES] {
        self.vectors.get(number).copied().unwrap_or(UNKNOWN)
    }

    /// What a mask of vectors is, where it is known.
    pub fn mask_of_vectors(&self, number: usize) -> Option<u64> {
        self.masks.get(number).copied().flatten()
    }

    /// Flags of these bits, where all of them are known.
    pub fn flags(&self, mask: u64) -> Option<u64> {
        self.flags.get(mask)
    }

    pub(crate) fn read(&self, register: Register) -> Option<u64> {
        let Part { number, bits, shift } = part(register)?;
        Some(self.general[number].get(low(bits) << shift)? >> shift)
    }

    /// A write of half a register clears the other half (Intel SDM vol. 1, 3.4.1.1); smaller ones keep what is there.
    pub(crate) fn write(&mut self, register: Register, value: Option<u64>) {
        let Some(Part { number, bits, shift }) = part(register) else { return };
        let word = &mut self.general[number];
        if bits == 32 {
            word.set(u64::MAX, Some(0));
        }
        word.set(low(bits) << shift, value.map(|value| (value & low(bits)) << shift));
    }

    pub(crate) fn lanes(&self, register: Register) -> Lanes {
        vector_number(register).map_or(UNKNOWN, |number| self.vectors[number])
    }

    /// Writes so many words; the rest is cleared or kept.
    pub(crate) fn set_lanes(&mut self, register: Register, lanes: Lanes, words: usize, clears: bool) {
        let Some(number) = vector_number(register) else { return };
        let target = &mut self.vectors[number];
        target[..words].copy_from_slice(&lanes[..words]);
        if clears {
            target[words..].fill(Some(0));
        }
    }

    pub(crate) fn mask(&self, register: Register) -> Option<u64> {
        self.masks.get(register.number()).copied().flatten()
    }

    pub(crate) fn set_mask(&mut self, register: Register, value: Option<u64>) {
        if let Some(mask) = self.masks.get_mut(register.number()) {
            *mask = value;
        }
    }

    /// What a register holds is not known any more.
    pub(crate) fn forget(&mut self, register: Register) {
        if register.is_k() {
            return self.set_mask(register, None);
        }
        if let Some(Part { number, .. }) = part(register) {
            self.general[number].set(u64::MAX, None);
        } else if let Some(number) = vector_number(register) {
            self.vectors[number] = UNKNOWN;
        }
    }
}

/// A general-purpose register, or a part of one.
struct Part {
    number: usize,
    bits: u32,
    shift: u32,
}

fn part(register: Register) -> Option<Part> {
    if !register.is_gpr() {
        return None;
    }
    let is_high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
    let bits = u32::try_from(8 * register.size()).ok()?;
    Some(Part { number: register.full_register().number(), bits, shift: if is_high { 8 } else { 0 } })
}

fn vector_number(register: Register) -> Option<usize> {
    (register.is_xmm() || register.is_ymm() || register.is_zmm()).then(|| register.number()).filter(|at| *at < VECTORS)
}
