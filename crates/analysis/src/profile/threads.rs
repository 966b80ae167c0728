//! How many threads of a program work at once.
//!
//! A thread that starts others and waits for them works before and after, and not beside them. It has no samples in that
//! time, and it is not for want of a processor: who is ready to run gets as much of one as the others do.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::attribution::AttributedSample;

/// Samples of each other thread in which one that is ready to run has some, too: 100 ms of 500 Hz, some time slices of a
/// kernel. Assumed.
const TURNS: usize = 50;
/// One in so many samples is a sliver: of a thread it makes no worker, of the run it is a moment in which threads take turns.
const SLIVER: usize = 100;

/// Most threads that work at once for more than a moment.
pub(super) fn threads(seen: &[AttributedSample]) -> u32 {
    at_once(&seen.iter().map(|seen| seen.thread).collect::<Vec<_>>())
}

/// Of the threads of samples, in order of time.
fn at_once(threads: &[usize]) -> u32 {
    let mut steps = vec![0i64; threads.len() + 1];
    for stretch in stretches(threads) {
        steps[*stretch.start()] += 1;
        steps[*stretch.end() + 1] -= 1;
    }
    let mut moments: BTreeMap<i64, usize> = BTreeMap::new();
    let mut level = 0;
    for step in &steps[..threads.len()] {
        level += step;
        *moments.entry(level).or_default() += 1;
    }
    let mut longer = 0;
    let lasting = moments.into_iter().rev().find(|(_, samples)| {
        longer += samples;
        longer > threads.len() / SLIVER
    });
    lasting.and_then(|(level, _)| u32::try_from(level).ok()).unwrap_or(1).max(1)
}

/// From one sample to the last before a pause, of each thread with more than a sliver of them.
fn stretches(threads: &[usize]) -> Vec<RangeInclusive<usize>> {
    let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, thread) in threads.iter().enumerate() {
        places.entry(*thread).or_default().push(place);
    }
    let busy = places.into_values().filter(|places| places.len() > threads.len() / SLIVER);
    busy.flat_map(|places| {
        let parts = places.chunk_by(|before, next| !is_pause(&threads[before + 1..*next]));
        parts.filter_map(|part| Some(*part.first()?..=*part.last()?)).collect::<Vec<_>>()
    })
    .collect()
}

/// Whether so many samples of others lie between two of a thread that it cannot have been ready to run.
fn is_pause(others: &[usize]) -> bool {
    others.len() > TURNS && others.len() > TURNS * others.iter().collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads that take turns, so many samples each.
    fn turns(threads: &[usize], each: usize) -> Vec<usize> {
        (0..each).flat_map(|_| threads.iter().copied()).collect()
    }

    #[test]
    fn threads_that_take_turns_work_at_once() {
        assert_eq!(at_once(&turns(&[0, 1, 2, 3], 500)), 4);
        assert_eq!(at_once(&turns(&[0], 500)), 1);
        assert_eq!(at_once(&[]), 1);
    }

    #[test]
    fn one_that_starts_others_and_waits_for_them_is_no_worker_beside_them() {
        let joined = [turns(&[0], 400), turns(&[0, 1, 2], 2), turns(&[1, 2], 800), turns(&[0], 1600)].concat();
        assert_eq!(at_once(&joined), 2);
    }

    #[test]
    fn more_threads_than_processors_wait_for_a_turn_and_work() {
        // Sixteen threads, ten samples a time slice.
        let slices: Vec<usize> = (0..16).cycle().take(16 * 40).flat_map(|thread| [thread; 10]).collect();
        assert_eq!(at_once(&slices), 16);
    }

    #[test]
    fn a_sliver_of_the_samples_makes_no_worker() {
        let mut seen = turns(&[0, 1], 1000);
        seen.extend([2; 5]);
        seen.extend(turns(&[0, 1], 1000));
        assert_eq!(at_once(&seen), 2);
    }
}
