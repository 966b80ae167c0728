//! General-purpose registers by number, sets of them, and the parts of them that instructions name.

/// General-purpose registers that are followed, numbered as the architecture does.
pub const GENERAL: usize = 16;
/// A general-purpose register, below [`GENERAL`].
pub type Gpr = usize;

/// Set of general-purpose registers, one bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegisterSet(pub u16);

impl RegisterSet {
    /// Whether a register is one of them.
    pub fn contains(self, register: Gpr) -> bool {
        self.0 >> register & 1 == 1
    }

    /// Adds a register.
    pub fn insert(&mut self, register: Gpr) {
        self.0 |= 1 << register;
    }

    /// Registers of either.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Registers of this set that are not in the other.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The registers, by number.
    pub fn iter(self) -> impl Iterator<Item = Gpr> {
        (0..GENERAL).filter(move |register| self.contains(*register))
    }
}

impl FromIterator<Gpr> for RegisterSet {
    fn from_iter<T: IntoIterator<Item = Gpr>>(registers: T) -> Self {
        let mut set = Self::default();
        registers.into_iter().for_each(|register| set.insert(register));
        set
    }
}

/// A general-purpose register, or the low part of it that an instruction names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The whole register.
    pub register: Gpr,
    /// 8, 4, 2 or 1.
    pub bytes: u8,
    /// The second byte instead of the first.
    pub high: bool,
}

impl Part {
    /// The register, where all of it is named.
    pub fn whole(self) -> Option<Gpr> {
        (self.bytes == 8).then_some(self.register)
    }

    /// This part of what the register holds.
    pub fn of(self, value: u64) -> u64 {
        match self.bytes {
            8 => value,
            4 => value & 0xffff_ffff,
            2 => value & 0xffff,
            _ if self.high => value >> 8 & 0xff,
            _ => value & 0xff,
        }
    }
}

/// A vector register at one of its widths: the narrow and the wide name of a register differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorRegister(pub u8);
