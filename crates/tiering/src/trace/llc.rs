//! A last-level cache that lets only its misses through: 16 ways, least recently used.

use tierloom_model::hash::scatter;
use tierloom_model::units::LINE_BYTES;

use super::access::Access;
use crate::error::TieringError;

/// Lines of a set.
const WAYS: usize = 16;
/// Way that holds nothing.
const EMPTY: u64 = u64::MAX;
/// The line was written.
const DIRTY: u64 = 1 << 63;

/// The cache: 8 bytes a line.
#[derive(Debug, Clone)]
pub struct Llc {
    /// By set, most recently used first: line number, and the dirty bit.
    lines: Vec<[u64; WAYS]>,
}

impl Llc {
    /// A cache of at least one set.
    ///
    /// # Errors
    /// [`TieringError::BadRequest`] for less than 16 lines or more than 4 GiB.
    pub fn new(bytes: u64) -> Result<Self, TieringError> {
        let sets = bytes / LINE_BYTES / WAYS as u64;
        let sets = usize::try_from(sets).ok().filter(|sets| (1..=1 << 22).contains(sets)).ok_or_else(|| {
            let problem = format!("{bytes} bytes are not 1 KiB to 4 GiB");
            TieringError::request("llc", problem, "write for example 32MiB")
        })?;
        Ok(Self { lines: vec![[EMPTY; WAYS]; sets] })
    }

    /// Passes one access; pushes the line that it fetches and the one that it throws out, if any.
    pub fn pass(&mut self, access: Access, out: &mut Vec<Access>) {
        let line = access.address / LINE_BYTES;
        // Hashing spreads strides that are powers of two, as real caches do.
        let hash = ((scatter(line) >> 32) * self.lines.len() as u64) >> 32;
        let set = &mut self.lines[usize::try_from(hash).unwrap_or(0)];
        let found = set.iter().position(|way| *way & !DIRTY == line && *way != EMPTY);
        let at = found.unwrap_or(WAYS - 1);
        let old = set[at];
        set.copy_within(..at, 1);
        let kept = if found.is_some() { old & DIRTY } else { 0 };
        set[0] = line | kept | if access.write { DIRTY } else { 0 };
        if found.is_none() {
            out.push(Access { write: false, ..access });
            if old != EMPTY && old & DIRTY != 0 {
                out.push(Access { address: (old & !DIRTY) * LINE_BYTES, write: true, ..access });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(accesses: impl Iterator<Item = (u64, bool)>, bytes: u64) -> Vec<Access> {
        let (mut llc, mut out) = (Llc::new(bytes).unwrap(), Vec::new());
        for (address, write) in accesses {
            llc.pass(Access { address, write, ..Access::default() }, &mut out);
        }
        out
    }

    #[test]
    fn what_fits_is_fetched_once() {
        let twice = (0..2).flat_map(|_| (0..1024u64).map(|line| (line * 64, false)));
        assert_eq!(run(twice, 4 << 20).len(), 1024);
    }

    #[test]
    fn what_was_written_comes_back_once() {
        let sweep = (0..2).flat_map(|_| (0..65_536u64).map(|line| (line * 64, true)));
        let out = run(sweep, 64 << 10);
        let (reads, writes) = (out.iter().filter(|a| !a.write).count(), out.iter().filter(|a| a.write).count());
        assert_eq!(reads, 2 * 65_536);
        assert!(writes > 2 * 65_536 - 1100 && writes < reads, "{writes}");
    }
}
