//! General-purpose registers by number, sets of them, and the parts of them that instructions name.

const COUNT: u8 = 16;
/// General-purpose registers that are followed, numbered as the architecture does.
pub const GENERAL: usize = COUNT as usize;

/// A general-purpose register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gpr(u8);

impl Gpr {
    /// The register of a number below [`GENERAL`].
    pub const fn new(number: u8) -> Self {
        assert!(number < COUNT, "there is no such register");
        Self(number)
    }

    /// All there are.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..COUNT).map(Self)
    }

    /// Its number.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Set of general-purpose registers, one bit each. Wider than it needs to be: what is stored as 16 bits and loaded as
/// 32, as compilers do on x86, waits for the store, and emulation does little else than change sets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegisterSet(u32);

impl RegisterSet {
    /// All there are.
    pub const ALL: Self = Self((1 << COUNT) - 1);

    /// The registers of these numbers.
    pub const fn of(mut registers: &[Gpr]) -> Self {
        let mut set = Self(0);
        while let [register, rest @ ..] = registers {
            set.0 |= 1 << register.0;
            registers = rest;
        }
        set
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a register is one of them.
    pub fn contains(self, register: Gpr) -> bool {
        self.0 >> register.0 & 1 == 1
    }

    /// Adds a register.
    pub fn insert(&mut self, register: Gpr) {
        self.0 |= 1 << register.0;
    }

    /// Registers of either.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Registers of both.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Registers of this set that are not in the other.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Registers that are not in this set.
    #[must_use]
    pub fn others(self) -> Self {
        Self::ALL.without(self)
    }

    /// The registers, by number.
    pub fn iter(mut self) -> impl Iterator<Item = Gpr> {
        std::iter::from_fn(move || {
            // An empty set has as many zeros as there are registers.
            let first = (0..COUNT).nth(self.0.trailing_zeros() as usize).map(Gpr)?;
            self = self.without(Self::of(&[first]));
            Some(first)
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_gives_its_registers_in_order_and_can_be_taken_apart() {
        let [first, middle, last] = [0, 4, 15].map(Gpr::new);
        let set = RegisterSet::of(&[last, first, middle]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [first, middle, last]);
        assert_eq!(set.without(RegisterSet::of(&[middle])), RegisterSet::of(&[first, last]));
        assert_eq!(RegisterSet::ALL.iter().count(), GENERAL);
        assert_eq!(RegisterSet::default().iter().next(), None);
    }
}
