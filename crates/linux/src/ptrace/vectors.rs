//! What a halted thread holds in its vector registers: the kernel tells it as `XSAVE` stores it, in the standard format.

use std::arch::x86_64::__cpuid_count;

use super::Tracer;

/// Vector registers of a thread, and masks of vectors; `None` where the processor has none, or they are not told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vectors {
    /// The low 256 bits of each, four words, lowest first.
    pub registers: [Option<[u64; 4]>; 32],
    /// The masks.
    pub masks: [Option<u64>; 8],
}

/// Where the standard format has the low halves of the first sixteen registers, and what tells which parts are there (Intel
/// SDM vol. 1, 10.5.1 and 13.4).
const LOW: usize = 160;
const PRESENT: usize = 512;
const HEADER_END: usize = 576;
/// Parts, by number (13.1): the upper halves of 256 bits, masks, and all of the sixteen other registers.
const HIGH: u32 = 2;
const MASKS: u32 = 5;
const OTHERS: u32 = 7;

impl Tracer {
    /// Those of a thread that halted; `None` where the kernel does not tell.
    pub fn vectors(&self, tid: u32) -> Option<Vectors> {
        const NT_X86_XSTATE: usize = 0x202;
        // Larger than what any processor has, tiles included.
        let mut area = vec![0_u64; 2048];
        let mut filled = libc::iovec { iov_base: area.as_mut_ptr().cast(), iov_len: size_of_val(area.as_slice()) };
        // SAFETY: the kernel fills at most the bytes of `area` and says how many it did.
        let answer = unsafe {
            let kind = std::ptr::without_provenance_mut::<u8>(NT_X86_XSTATE);
            libc::ptrace(libc::PTRACE_GETREGSET, tid.cast_signed(), kind, &raw mut filled)
        };
        area.truncate(filled.iov_len / 8);
        (answer == 0 && filled.iov_len >= HEADER_END).then(|| of_area(&area, &place))
    }
}

/// Where the standard format has a part, and its bytes; nothing where the processor does not know it.
fn place(part: u32) -> (usize, usize) {
    #[allow(unused_unsafe)]
    // SAFETY: all processors of 64 bits with `XSAVE` know this leaf; others tell nothing.
    let told = unsafe { __cpuid_count(0xd, part) };
    (told.ebx as usize, told.eax as usize)
}

/// A part that is not there is as it was at first: zero.
fn of_area(area: &[u64], place: &dyn Fn(u32) -> (usize, usize)) -> Vectors {
    let word = |at: usize| area.get(at / 8).copied().unwrap_or(0);
    let known = |part: u32| {
        let (offset, bytes) = place(part);
        let is_there = word(PRESENT) >> part & 1 == 1;
        (bytes > 0 && offset + bytes <= 8 * area.len()).then_some((offset, is_there))
    };
    let (high, masks, others) = (known(HIGH), known(MASKS), known(OTHERS));
    let at = |part: Option<(usize, bool)>, distance: usize| {
        part.map(|(offset, is_there)| if is_there { word(offset + distance) } else { 0 })
    };
    let register = |number: usize| {
        if number < 16 {
            let distance = 16 * number;
            let upper = |k: usize| at(high, distance + k).unwrap_or(0);
            return Some([word(LOW + distance), word(LOW + distance + 8), upper(0), upper(8)]);
        }
        let distance = 64 * (number - 16);
        let words = [0, 8, 16, 24].map(|k| at(others, distance + k));
        words[0].is_some().then(|| words.map(Option::unwrap_or_default))
    };
    Vectors { registers: std::array::from_fn(register), masks: std::array::from_fn(|number| at(masks, 8 * number)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_where_the_processor_says_and_absent_ones_are_zero() {
        let mut area = vec![7_u64; 300];
        area[PRESENT / 8] = 1 << HIGH;
        let place = |part| match part {
            HIGH => (600, 256),
            MASKS => (900, 64),
            _ => (0, 0),
        };
        let vectors = of_area(&area, &place);
        assert_eq!(vectors.registers[15], Some([7; 4]));
        assert_eq!((vectors.registers[16], vectors.masks), (None, [Some(0); 8]));
        assert_eq!(of_area(&area[..80], &place).registers[0], Some([7, 7, 0, 0]), "an old processor");
    }
}
