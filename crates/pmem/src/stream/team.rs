//! The threads that run the kernels together, and what they do about durability.
//!
//! What goes wrong in one of them is noted, and all of them stop at the same barrier.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError, RwLock};
use std::time::Instant;

use tierloom_linux::cpus;

use super::kernels::Kernel;
use super::setup::{Persist, Setup, Times};
use crate::backend::Backend;
use crate::error::PmemError;

/// Address of an array's first element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start(pub(super) *mut f64);

// SAFETY: threads work on parts that do not overlap.
unsafe impl Send for Start {}
// SAFETY: as above.
unsafe impl Sync for Start {}

/// The pool below the arrays.
pub(super) struct Ground<'a> {
    pub(super) pool: &'a mut dyn Backend,
    pub(super) offsets: [u64; 3],
    /// Of each array.
    pub(super) bytes: u64,
}

/// One thread's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    first: usize,
    count: usize,
}

/// Elements of two cache lines: no two threads write to one line, wherever in a line the array begins.
const TOGETHER: usize = 16;

fn parts(elements: usize, threads: usize) -> Vec<Part> {
    let each = elements.div_ceil(threads.max(1)).next_multiple_of(TOGETHER);
    let part = |index: usize| {
        let first = (index * each).min(elements);
        Part { first, count: each.min(elements - first) }
    };
    (0..threads).map(part).collect()
}

/// Times of all kernels on three arrays of `setup.elements` doubles, which nobody else uses meanwhile.
pub(super) fn measure(setup: &Setup, arrays: [Start; 3], ground: Option<Ground<'_>>) -> Result<Times, PmemError> {
    let parts = parts(setup.elements, setup.cpus.len());
    let team = Team {
        persist: if ground.is_some() { setup.persist } else { Persist::None },
        rounds: setup.rounds,
        arrays,
        ground: RwLock::new(ground),
        barrier: Barrier::new(parts.len()),
        trouble: Mutex::new(None),
        stop: AtomicBool::new(false),
    };
    let hands = setup.cpus.iter().zip(&parts).enumerate();
    let times = std::thread::scope(|scope| {
        let team = &team;
        let started: Vec<_> =
            hands.map(|(rank, (cpu, part))| scope.spawn(move || team.work(rank == 0, *cpu, *part))).collect();
        let ended: Vec<_> = started.into_iter().map(|hand| hand.join().map_err(|_| PmemError::Lost)).collect();
        ended.into_iter().next().unwrap_or(Err(PmemError::Lost))
    });
    match team.trouble.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => times,
    }
}

/// What the threads share.
struct Team<'a> {
    persist: Persist,
    rounds: usize,
    arrays: [Start; 3],
    ground: RwLock<Option<Ground<'a>>>,
    barrier: Barrier,
    /// What went wrong first.
    trouble: Mutex<Option<PmemError>>,
    /// Written by the leader between two barriers, so that all read the same.
    stop: AtomicBool,
}

impl Team<'_> {
    /// One thread's work; the leader's answer has the times.
    fn work(&self, leads: bool, cpu: u32, part: Part) -> Times {
        self.note(cpus::run_on(&[cpu]).map_err(PmemError::from));
        // SAFETY: the arrays are `setup.elements` long and parts of them do not overlap.
        let [a, b, c] =
            self.arrays.map(|start| unsafe { std::slice::from_raw_parts_mut(start.0.add(part.first), part.count) });
        a.fill(START[0]);
        b.fill(START[1]);
        c.fill(START[2]);
        let mut times = Times::default();
        for round in 0..self.rounds {
            for (kernel, times) in Kernel::ALL.into_iter().zip(&mut times) {
                if self.stops(leads) {
                    return Times::default();
                }
                let start = Instant::now();
                self.before(leads, kernel);
                kernel.run(a, b, c);
                self.after(leads, kernel, part);
                if leads && round > 0 {
                    times.push(start.elapsed().as_secs_f64());
                }
            }
        }
        self.note(verify([a, b, c], part.first, self.rounds));
        times
    }

    /// All are done with what came before; whether something went wrong in it.
    fn stops(&self, leads: bool) -> bool {
        self.barrier.wait();
        if leads && self.trouble.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            self.stop.store(true, Ordering::Relaxed);
            // The library wants a transaction to end in the thread that began it: this one.
            self.note(self.on_ground(|ground| if ground.pool.in_transaction() { ground.pool.abort() } else { Ok(()) }));
        }
        self.barrier.wait();
        self.stop.load(Ordering::Relaxed)
    }

    /// Transactions begin before anyone stores.
    fn before(&self, leads: bool, kernel: Kernel) {
        if self.persist != Persist::Transaction {
            return;
        }
        if leads {
            self.note(self.on_ground(|ground| {
                ground.pool.begin()?;
                ground.pool.save(ground.offsets[kernel.output() as usize], ground.bytes)
            }));
        }
        self.barrier.wait();
    }

    /// When the leader returns from here, the output is as durable as it was to be.
    fn after(&self, leads: bool, kernel: Kernel, part: Part) {
        if self.persist == Persist::Flush {
            self.note(self.flush(kernel, part));
        }
        self.barrier.wait();
        if leads && self.persist == Persist::Transaction {
            self.note(self.on_ground(
                |ground| {
                    if ground.pool.in_transaction() { ground.pool.commit() } else { Ok(()) }
                },
            ));
        }
    }

    fn flush(&self, kernel: Kernel, part: Part) -> Result<(), PmemError> {
        let ground = self.ground.read().unwrap_or_else(PoisonError::into_inner);
        let Some(ground) = ground.as_ref() else { return Ok(()) };
        let start = ground.offsets[kernel.output() as usize] + (part.first * size_of::<f64>()) as u64;
        ground.pool.flush(start, (part.count * size_of::<f64>()) as u64)
    }

    fn on_ground(&self, work: impl FnOnce(&mut Ground<'_>) -> Result<(), PmemError>) -> Result<(), PmemError> {
        let mut ground = self.ground.write().unwrap_or_else(PoisonError::into_inner);
        ground.as_mut().map_or(Ok(()), work)
    }

    fn note(&self, outcome: Result<(), PmemError>) {
        if let Err(error) = outcome {
            self.trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }
}

/// What the three arrays hold at first.
const START: [f64; 3] = [1.0, 2.0, 0.0];

/// Elements do not depend on each other, and every processor rounds alike: all are the same, exactly.
#[expect(clippy::float_cmp, reason = "the same operations in the same order")]
fn verify(arrays: [&mut [f64]; 3], first: usize, rounds: usize) -> Result<(), PmemError> {
    let expected = (0..rounds).fold(START, |values, _| Kernel::ALL.iter().fold(values, |values, k| k.step(values)));
    for ((array, expected), name) in arrays.into_iter().zip(expected).zip(['a', 'b', 'c']) {
        if let Some(index) = array.iter().position(|value| *value != expected) {
            return Err(PmemError::Wrong { array: name, index: first + index, found: array[index], expected });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once() {
        for (elements, threads) in [(1000, 3), (5, 4), (0, 2), (16, 16), (1_000_001, 7)] {
            let parts = parts(elements, threads);
            assert_eq!(parts.len(), threads);
            assert_eq!(parts.iter().map(|part| part.count).sum::<usize>(), elements);
            assert!(parts.windows(2).all(|pair| pair[0].first + pair[0].count == pair[1].first));
        }
    }

    #[test]
    fn a_wrong_element_is_named() {
        let (mut a, mut b, mut c) = ([15.0; 3], [3.0; 3], [4.0; 3]);
        b[1] = 5.0;
        let error = verify([&mut a, &mut b, &mut c], 10, 1).unwrap_err().to_string();
        assert!(error.contains("b[11] is 5, not 3"), "{error}");
    }
}
