//! The loops that load a memory: one per mix and per set of vector instructions.
//!
//! Every kernel walks its memory once, in ascending order, and returns the sum of all 64-bit words
//! that it read. The sum keeps the loads alive, and tests use it to prove that every line was read.
//! Mixes in place add one to every word that they write; the others write [`line::FILL`] or a copy.

mod line;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use serde::Serialize;

use line::{Line, Walk};

use crate::mix::Mix;

/// Vector instructions that a kernel is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Instructions {
    /// What the compiler makes of plain loops; no non-temporal stores.
    Portable,
    /// 128 bits; every x86-64 has it.
    Sse2,
    /// 256 bits.
    Avx2,
    /// 512 bits: one line an instruction.
    Avx512,
}

impl Instructions {
    /// All that this processor has, widest first.
    pub fn available() -> Vec<Self> {
        let mut found = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                found.push(Self::Avx512);
            }
            if is_x86_feature_detected!("avx2") {
                found.push(Self::Avx2);
            }
            found.push(Self::Sse2);
        }
        found.push(Self::Portable);
        found
    }

    /// The widest that this processor has.
    pub fn widest() -> Self {
        Self::available()[0]
    }
}

/// One mix made of one kind of instructions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel {
    mix: Mix,
    walk: Walk,
}

impl Kernel {
    /// The kernel for a mix; `None` where this processor lacks the instructions.
    pub(crate) fn new(mix: Mix, instructions: Instructions) -> Option<Self> {
        if !Instructions::available().contains(&instructions) {
            return None;
        }
        let walk = match instructions {
            Instructions::Portable => portable::walk(mix),
            #[cfg(target_arch = "x86_64")]
            Instructions::Sse2 => Some(x86::sse2::walk(mix)),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => Some(x86::avx2::walk(mix)),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => Some(x86::avx512::walk(mix)),
            #[cfg(not(target_arch = "x86_64"))]
            _ => None,
        };
        Some(Self { mix, walk: walk? })
    }

    /// What it does.
    pub(crate) fn mix(&self) -> Mix {
        self.mix
    }

    /// Walks over the whole groups of `memory` once, from its first line boundary on; the sum of
    /// all words read.
    pub(crate) fn walk(&self, memory: &mut [u8]) -> u64 {
        // SAFETY: any bytes are words, and any words are bytes.
        let (_, lines, _) = unsafe { memory.align_to_mut::<Line>() };
        let groups = lines.len() / self.mix.group_lines();
        // SAFETY: `new` made sure that the processor has the instructions.
        unsafe { (self.walk)(&mut lines[..groups * self.mix.group_lines()]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::LINE_BYTES;

    const LINES: usize = 24;

    /// Lines whose words count up, so that no two sums of different lines agree.
    fn counted() -> Vec<Line> {
        let line = |line: u64| Line(std::array::from_fn(|word| (line * 8 + word as u64 + 1) * 0x1_0001));
        (0..LINES as u64).map(line).collect()
    }

    fn bytes(lines: &mut [Line]) -> &mut [u8] {
        // SAFETY: any words are bytes, and any bytes are words.
        unsafe { lines.align_to_mut().1 }
    }

    fn every_kernel() -> impl Iterator<Item = Kernel> {
        let pairs = Instructions::available().into_iter().flat_map(|set| Mix::ALL.map(|mix| (mix, set)));
        pairs.filter_map(|(mix, set)| Kernel::new(mix, set))
    }

    /// Lines of a group that the mix reads, and that it writes, by position.
    fn touched(mix: Mix, line: usize) -> (bool, bool) {
        let last = line % mix.group_lines() == mix.group_lines() - 1;
        match mix {
            Mix::Reads => (true, false),
            Mix::ThreeToOne | Mix::TwoToOne | Mix::OneToOne => (true, last),
            Mix::Writes | Mix::NonTemporal => (false, true),
            Mix::NonTemporalCopy => (line < LINES / 2, line >= LINES / 2),
        }
    }

    #[test]
    fn every_kernel_reads_and_writes_exactly_the_lines_of_its_mix() {
        for kernel in every_kernel() {
            let (before, mut after) = (counted(), counted());
            let sum = kernel.walk(bytes(&mut after));
            let mut expected = 0_u64;
            for line in 0..LINES {
                let (read, written) = touched(kernel.mix(), line);
                expected += if read { before[line].0.iter().sum() } else { 0 };
                let changed = before[line].0.iter().zip(&after[line].0).filter(|(a, b)| a != b).count();
                assert_eq!(changed, if written { 8 } else { 0 }, "{:?} line {line}", kernel.mix());
            }
            assert_eq!(sum, expected, "{:?}", kernel.mix());
        }
    }

    #[test]
    fn the_bytes_that_a_mix_claims_are_the_bytes_that_it_touches() {
        for mix in Mix::ALL {
            let lines =
                |pick: fn((bool, bool)) -> bool| (0..LINES).filter(|line| pick(touched(mix, *line))).count() as u64;
            let traffic = mix.traffic(LINES * LINE_BYTES);
            assert_eq!(traffic.read_bytes, lines(|line| line.0) * LINE_BYTES as u64, "{mix:?}");
            assert_eq!(traffic.written_bytes, lines(|line| line.1) * LINE_BYTES as u64, "{mix:?}");
            if let Some(fraction) = mix.read_fraction() {
                assert!((fraction - traffic.read_bytes as f64 / traffic.bytes() as f64).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_kernel_stays_inside_its_memory_and_skips_what_makes_no_group() {
        for kernel in every_kernel() {
            let (before, mut after) = (counted(), counted());
            kernel.walk(&mut bytes(&mut after)[8..8 + 7 * LINE_BYTES]);
            assert_eq!(before[0], after[0], "{:?}", kernel.mix());
            assert_eq!(before[7..], after[7..], "{:?}", kernel.mix());
        }
    }

    #[test]
    fn plain_loops_have_no_non_temporal_stores() {
        assert!(Kernel::new(Mix::NonTemporal, Instructions::Portable).is_none());
        assert!(Kernel::new(Mix::Writes, Instructions::Portable).is_some());
    }
}
