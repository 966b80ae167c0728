//! Threads that keep a memory busy while somebody else measures.
//!
//! Each thread counts the bytes that it has moved, so a window is two readings of the counters and
//! of the clock. Who reads them works too (it loads memory, or chases pointers): no thread sleeps
//! and wakes on a core that is being measured, and nobody waits for anybody.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tierloom_linux::{LinuxError, clock, cpus};

use crate::arena::slices;
use crate::kernels::Kernel;
use crate::mix::LINE_BYTES;

/// What a thread does between two looks at the orders: whole groups of every mix (1, 2 and 3 lines),
/// some µs of work, so that a window of 2 ms is known to about a percent.
const CHUNK_BYTES: usize = 96 << 10;

/// The same while it pauses in between: few lines, so that the traffic is even.
pub(crate) const BURST_BYTES: usize = 12 * LINE_BYTES;

/// Loads between two looks at the orders.
const SCATTERED_LOADS: usize = 4096;

/// What a thread does with its memory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    /// Walks over it again and again.
    Walk(Kernel),
    /// Loads from lines at random, none of them waiting for another.
    Scatter,
}

/// One thread's share of the load.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) cpu: u32,
    pub(crate) memory: &'a mut [u8],
    pub(crate) work: Work,
}

/// Bytes that a thread has moved, on lines of its own (two, because of adjacent-line prefetch).
#[repr(align(128))]
#[derive(Debug, Default)]
struct Counter(AtomicU64);

/// A running team.
#[derive(Debug)]
pub(crate) struct Load {
    counters: Vec<Counter>,
    pause_steps: AtomicU32,
    stop: AtomicBool,
}

/// Ends the threads even when the measurement panics.
struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Load {
    /// Bytes moved so far by all threads.
    pub(crate) fn bytes(&self) -> u64 {
        self.counters.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum()
    }

    /// Pauses of this many [`spin`] steps between bursts; 0 is full speed.
    pub(crate) fn set_pause(&self, steps: u32) {
        self.pause_steps.store(steps, Ordering::Relaxed);
    }

    /// Bandwidth of all threads and of this one, which does `job` too: GB/s of each window, after one
    /// that does not count.
    pub(crate) fn gb_s(&self, job: Job<'_>, windows: usize, window: Duration) -> Vec<f64> {
        let (mut hand, mut own, mut before) = (Hand::new(job), 0, None);
        let mut found = Vec::with_capacity(windows);
        let mut start = Instant::now();
        while found.len() < windows {
            own += hand.step(0);
            let elapsed = start.elapsed();
            if elapsed < window {
                continue;
            }
            let bytes = own + self.bytes();
            found.extend(before.map(|before| (bytes - before) as f64 / elapsed.as_secs_f64() / 1e9));
            before = Some(bytes);
            start += elapsed;
        }
        found
    }

    fn work(&self, job: Job<'_>, counter: &Counter) {
        let (mut hand, mut bytes) = (Hand::new(job), 0);
        while !self.stop.load(Ordering::Relaxed) {
            let pause = self.pause_steps.load(Ordering::Relaxed);
            bytes += hand.step(pause);
            counter.0.store(bytes, Ordering::Relaxed);
            spin(pause);
        }
    }
}

/// A job under way.
struct Hand<'a> {
    job: Job<'a>,
    offset: usize,
    seed: u64,
}

impl<'a> Hand<'a> {
    fn new(job: Job<'a>) -> Self {
        Self { seed: u64::from(job.cpu) + 1, job, offset: 0 }
    }

    /// The next piece of work, a small one where pauses come in between; bytes moved.
    fn step(&mut self, pause: u32) -> u64 {
        let memory = &mut *self.job.memory;
        match self.job.work {
            Work::Walk(kernel) => {
                let bytes = if pause == 0 { CHUNK_BYTES } else { BURST_BYTES }.min(memory.len());
                let start = if self.offset + bytes > memory.len() { 0 } else { self.offset };
                self.offset = start + bytes;
                black_box(kernel.walk(&mut memory[start..self.offset]));
                kernel.mix().traffic(bytes).bytes()
            }
            Work::Scatter => {
                black_box(scatter(memory, SCATTERED_LOADS, &mut self.seed));
                (SCATTERED_LOADS * LINE_BYTES) as u64
            }
        }
    }
}

/// A walker a core, each over its own part; none without a kernel, where the processor lacks its instructions.
pub(crate) fn walkers<'m>(kernel: Option<Kernel>, cores: &[u32], memory: &'m mut [u8]) -> Vec<Job<'m>> {
    let Some(kernel) = kernel else { return Vec::new() };
    let parts = cores.iter().zip(slices(memory, cores.len()));
    parts.map(|(cpu, memory)| Job { cpu: *cpu, memory, work: Work::Walk(kernel) }).collect()
}

/// Runs `body` while every job runs on its own thread, held on its CPU.
///
/// # Errors
/// A CPU is not allowed or offline.
pub(crate) fn under_load<R>(jobs: Vec<Job<'_>>, body: impl FnOnce(&Load) -> R) -> Result<R, LinuxError> {
    let counters = jobs.iter().map(|_| Counter::default()).collect();
    let load = Load { counters, pause_steps: AtomicU32::new(0), stop: AtomicBool::new(false) };
    let (ready, refused) = (Barrier::new(jobs.len() + 1), Mutex::new(None));
    std::thread::scope(|scope| {
        let stop = StopWhenDropped(&load.stop);
        for (job, counter) in jobs.into_iter().zip(&load.counters) {
            let (load, ready, refused) = (&load, &ready, &refused);
            scope.spawn(move || {
                let held = cpus::run_on(&[job.cpu]);
                if let Err(error) = held {
                    *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
                ready.wait();
                load.work(job, counter);
            });
        }
        ready.wait();
        let refused = refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        let answer = refused.map_or_else(|| Ok(body(&load)), Err);
        drop(stop);
        answer
    })
}

/// Loads one byte from each of `loads` lines at random; the sum keeps the loads alive.
///
/// The address comes from a linear congruential generator (Knuth's MMIX constants), not from memory.
fn scatter(memory: &[u8], loads: usize, seed: &mut u64) -> u64 {
    let lines = (memory.len() / LINE_BYTES) as u64;
    let (mut state, mut sum) = (*seed, 0);
    for _ in 0..loads {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let line = (((state >> 32) * lines) >> 32) as usize;
        sum += u64::from(memory[line * LINE_BYTES]);
    }
    *seed = state;
    sum
}

/// Arithmetic that waits for itself: time without memory traffic.
pub(crate) fn spin(steps: u32) {
    clock::steps(1, u64::from(steps));
}

/// ns that one [`spin`] step takes now: the best of a few tries.
pub(crate) fn spin_step_ns() -> f64 {
    const STEPS: u32 = 20_000;
    let tries = (0..5).map(|_| {
        let start = Instant::now();
        spin(STEPS);
        start.elapsed().as_secs_f64() * 1e9 / f64::from(STEPS)
    });
    tries.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Instructions;
    use crate::mix::Mix;

    fn first_cpu() -> u32 {
        cpus::allowed_cpus().unwrap()[0]
    }

    #[test]
    fn chunks_and_bursts_are_whole_groups_of_every_mix() {
        for mix in Mix::ALL {
            assert_eq!(CHUNK_BYTES % (mix.group_lines() * LINE_BYTES), 0, "{mix:?}");
            assert_eq!(BURST_BYTES % (mix.group_lines() * LINE_BYTES), 0, "{mix:?}");
        }
    }

    #[test]
    fn a_team_counts_what_it_does_to_its_memory() {
        let kernel = Kernel::new(Mix::OneToOne, Instructions::Portable).unwrap();
        let mut memory = vec![0_u8; BURST_BYTES + LINE_BYTES];
        let offset = memory.as_ptr().align_offset(LINE_BYTES);
        let lines = &mut memory[offset..offset + BURST_BYTES];
        let job = Job { cpu: first_cpu(), memory: &mut *lines, work: Work::Walk(kernel) };
        let counted = under_load(vec![job], |load| {
            while load.bytes() == 0 {
                std::thread::yield_now();
            }
            load.bytes()
        });
        // Every word counts the passes, and a pass moves the memory in both directions.
        let passes = u64::from_le_bytes(lines[..8].try_into().unwrap());
        let counted = counted.unwrap();
        assert_eq!(counted % (2 * BURST_BYTES as u64), 0);
        assert!(counted <= passes * 2 * BURST_BYTES as u64);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        let job = Job { cpu: 1023, memory: &mut [0; 64], work: Work::Scatter };
        assert_eq!(under_load(vec![job], Load::bytes).unwrap_err().call, "sched_setaffinity");
    }

    #[test]
    fn scattered_loads_reach_every_line() {
        let mut memory = vec![0_u8; 32 * LINE_BYTES];
        memory[31 * LINE_BYTES] = 1;
        memory[0] = 1;
        let sum = scatter(&memory, 3200, &mut 1);
        assert!((100..300).contains(&sum), "{sum} of 200 expected");
    }

    /// What judges the machine: `make live`.
    mod live {
        use super::*;

        #[test]
        #[ignore = "live"]
        fn the_one_who_measures_counts_too() {
            let kernel = Kernel::new(Mix::Reads, Instructions::Portable).unwrap();
            let mut memory = vec![0_u8; 1 << 20];
            let job = Job { cpu: first_cpu(), memory: &mut memory, work: Work::Walk(kernel) };
            let alone = under_load(Vec::new(), |load| load.gb_s(job, 3, Duration::from_micros(100))).unwrap();
            assert_eq!(alone.len(), 3);
            assert!(alone.iter().all(|gb_s| *gb_s > 0.0), "{alone:?}");
        }
    }
}
