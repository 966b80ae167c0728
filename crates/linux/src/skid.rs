//! A loop with one load that always waits for memory, at a known instruction: where do samples fall?
//!
//! An interrupt is taken when an instruction retires, so a sample names not the load that waited but
//! an instruction behind it. How far behind, and how reliably, depends on the processor. The loop is
//! fixed machine code, so that no compiler is needed and no compiler can move the load.

mod ptrace;

use std::arch::global_asm;
use std::io;

use crate::error::LinuxError;
use crate::pages::BASE_PAGE_BYTES;
use crate::perf::{Record, Sample, SelfSampler};

/// Instructions of one byte behind the load; skid beyond them cannot be told.
pub const PADDING: usize = 20;

// rdi: memory, rsi: mask of offsets, rdx: rounds, rcx: seed; returns the next seed. The address is that of a linear congruential
// generator (Numerical Recipes, "quick and dirty"), so that no prefetcher finds it, and it does not
// depend on what was loaded.
global_asm!(
    ".text",
    ".p2align 6",
    ".hidden tierloom_skid_loop",
    ".globl tierloom_skid_loop",
    ".type tierloom_skid_loop, @function",
    "tierloom_skid_loop:",
    ".cfi_startproc",
    "mov rax, rcx",
    "2: imul rax, rax, 1664525",
    "add rax, 1013904223",
    "mov rcx, rax",
    "shr rcx, 7",
    "and rcx, rsi",
    ".hidden tierloom_skid_load",
    ".globl tierloom_skid_load",
    "tierloom_skid_load:",
    "mov r8, qword ptr [rdi + rcx]",
    ".hidden tierloom_skid_after",
    ".globl tierloom_skid_after",
    "tierloom_skid_after:",
    ".rept 20",
    "nop",
    ".endr",
    "dec rdx",
    "jnz 2b",
    "ret",
    ".cfi_endproc",
    ".size tierloom_skid_loop, . - tierloom_skid_loop",
);

unsafe extern "C" {
    fn tierloom_skid_loop(memory: *const u8, mask: u64, rounds: u64, seed: u64) -> u64;
    fn tierloom_skid_load();
    fn tierloom_skid_after();
}

/// Independent loads from memory overlap: 10 to 100 ns a round, so a batch is 2 to 20 ms.
const ROUNDS: u64 = 200_000;
const BATCHES: u32 = 100;

/// Samples of the loop by where they fell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Skid {
    /// By the number of instructions behind the load: 0 is the load itself.
    pub behind: [u32; PADDING + 1],
    /// In the rest of the loop.
    pub elsewhere: u32,
}

/// Runs the loop over `bytes` (a power of two) of memory until `samples` were taken, or for about a
/// second, with one sample per `period_ns` of CPU time.
///
/// # Errors
/// The kernel refuses samples or memory.
pub fn measure(bytes: usize, period_ns: u64, samples: u32) -> Result<Skid, LinuxError> {
    let memory = Memory::new(bytes)?;
    let mut sampler = SelfSampler::open(period_ns)?;
    let (load, after) = landmarks();
    let (mut skid, mut taken, mut seed) = (Skid::default(), 0, 12345);
    for _ in 0..BATCHES {
        sampler.enable()?;
        seed = memory.walk(seed);
        sampler.disable()?;
        sampler.drain(|record| {
            if let Record::Sample(Sample { registers: Some(registers), .. }) = record {
                skid.count(registers[8], load, after);
                taken += 1;
            }
        });
        if taken >= samples {
            break;
        }
    }
    Ok(skid)
}

pub use ptrace::measure_by_ptrace;

impl Skid {
    fn count(&mut self, ip: u64, load: u64, after: u64) {
        let behind = match ip.checked_sub(after) {
            Some(distance) => usize::try_from(distance).ok().map(|distance| distance + 1),
            None => (ip == load).then_some(0),
        };
        match behind.and_then(|behind| self.behind.get_mut(behind)) {
            Some(count) => *count += 1,
            None => self.elsewhere += 1,
        }
    }
}

/// Addresses of the load and of the instruction behind it.
fn landmarks() -> (u64, u64) {
    (tierloom_skid_load as *const () as u64, tierloom_skid_after as *const () as u64)
}

/// Memory of our own with real pages behind it: untouched pages would all be the one zero page.
struct Memory {
    start: *mut libc::c_void,
    bytes: usize,
}

impl Memory {
    fn new(bytes: usize) -> Result<Self, LinuxError> {
        let invalid = io::Error::from_raw_os_error(libc::EINVAL);
        if !bytes.is_power_of_two() || bytes < BASE_PAGE_BYTES {
            return Err(LinuxError::new("mmap", format!("{bytes} bytes"), invalid));
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(LinuxError::last("mmap", format!("{bytes} bytes")));
        }
        // Huge pages make it quick to fill; the kernel may have none to give, which only costs time.
        // SAFETY: the range is the mapping just made; writing one byte a page stays inside.
        unsafe {
            libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
            for page in (0..bytes).step_by(BASE_PAGE_BYTES) {
                start.cast::<u8>().add(page).write_volatile(1);
            }
        }
        Ok(Self { start, bytes })
    }

    /// One batch of rounds, from this seed; returns the seed of the next, so that no batch meets the
    /// addresses of an earlier one in the cache.
    fn walk(&self, seed: u64) -> u64 {
        // SAFETY: the mask keeps every offset inside the memory, 64-aligned, so 8 bytes can be read.
        unsafe { tierloom_skid_loop(self.start.cast(), self.bytes as u64 - 64, ROUNDS, seed) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this size and nobody borrows it.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_sorted_by_distance() {
        let mut skid = Skid::default();
        for ip in [100, 104, 104, 123, 124, 90] {
            skid.count(ip, 100, 104);
        }
        assert_eq!((skid.behind[0], skid.behind[1], skid.behind[20], skid.elsewhere), (1, 2, 1, 2));
    }

    #[test]
    fn the_loop_comes_back() {
        let memory = Memory::new(BASE_PAGE_BYTES).unwrap();
        let seeds = [5, 6].map(|seed| memory.walk(seed));
        assert_ne!(seeds[0], seeds[1]);
        assert!(Memory::new(5000).is_err());
    }
}
