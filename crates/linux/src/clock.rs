//! `CLOCK_MONOTONIC`, the clock of samples and of allocation records, the processor's counter behind it, and work of a constant time.

use crate::root::Root;

/// Now, ns.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec that the call may write; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Work that takes the same time whenever it runs at the same clock: so many steps of a chain of shifts (xorshift64, Marsaglia
/// 2003) from a seed other than 0, and its next seed.
///
/// No compiler shortens it, and it stays in registers. A value that goes through memory at each step takes 1 or 2.7 ns for
/// it on a Sapphire Rapids, as the processor forwards the store or not.
pub fn steps(seed: u64, count: u64) -> u64 {
    let step = |mut state: u64, _| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^ (state << 17)
    };
    std::hint::black_box((0..count).fold(std::hint::black_box(seed), step))
}

/// Whether the kernel itself tells the time by the processor's time-stamp counter. It does so only while it
/// has found it constant, running through idle states, and the same on all CPUs (`check_tsc_sync_source` of
/// `arch/x86/kernel/tsc_sync.c`, `mark_tsc_unstable` of `tsc.c`). And it can be read in order.
pub fn is_by_counter(root: &Root) -> bool {
    const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    has_rdtscp() && root.text(CURRENT).as_deref() == Some("tsc")
}

/// Whether the processor has `RDTSCP`: bit 27 of EDX of its leaf `8000_0001h` (AMD APM 3, appendix E).
#[cfg(target_arch = "x86_64")]
fn has_rdtscp() -> bool {
    std::arch::x86_64::__cpuid(0x8000_0001).edx & 1 << 27 != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn has_rdtscp() -> bool {
    false
}

/// The processor's counter and `CLOCK_MONOTONIC` (ns) at one moment: the closest of some tries.
pub fn counter_and_monotonic() -> (u64, u64) {
    /// A try is spoilt only when we are interrupted within its 50 ns.
    const TRIES: usize = 5;
    let tries = (0..TRIES).map(|_| {
        let before = counter();
        let now_ns = monotonic_ns();
        let apart = counter() - before;
        (apart, (before + apart / 2, now_ns))
    });
    tries.min_by_key(|(apart, _)| *apart).map(|(_, pair)| pair).unwrap_or_default()
}

#[cfg(target_arch = "x86_64")]
fn counter() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 processor has both instructions.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    monotonic_ns()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_go_on() {
        let (first, later) = (counter_and_monotonic(), counter_and_monotonic());
        assert!(later.0 > first.0 && later.1 >= first.1);
    }

    #[test]
    fn a_machine_says_by_what_it_tells_the_time() {
        let folder = std::env::temp_dir().join(format!("tierloom-clock-{}", std::process::id()));
        let source = folder.join("sys/devices/system/clocksource/clocksource0");
        std::fs::create_dir_all(&source).unwrap();
        for (name, is) in [("tsc", has_rdtscp()), ("kvm-clock", false)] {
            std::fs::write(source.join("current_clocksource"), format!("{name}\n")).unwrap();
            assert_eq!(is_by_counter(&Root::at(&folder)), is);
        }
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(!is_by_counter(&Root::at(folder)));
    }
}
