//! Evaluations a second: what a placement search can afford.
//!
//! One evaluation takes rows of fractions to a time: [`Predictor::demand`] and
//! [`Predictor::time_s`], for 10 objects on 3 memories. `shifted` is the step of a local search, which
//! moves one share and asks again.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{access, machine, object, phase, profile};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use tierloom_model::{Pattern, Profile};
use tierloom_predict::{Predictor, Run};

const OBJECTS: usize = 10;
const MEMORIES: usize = 3;

fn main() {
    divan::main();
}

/// Every object is touched in every phase, by every pattern in turn.
fn ten_objects(phases: usize) -> Profile {
    let patterns = [Pattern::Stream, Pattern::Random, Pattern::Strided, Pattern::Chain];
    let touch = |index: usize| {
        let bytes = 1e9 * (1.0 + index as f64);
        access(&format!("o{index}"), patterns[index % 4], bytes, bytes / 4.0, 1.0 + index as f64)
    };
    let objects = (0..OBJECTS).map(|index| object(&format!("o{index}"), 1 << 30)).collect();
    profile(objects, (0..phases).map(|_| phase("p", 16, 1.0, (0..OBJECTS).map(touch).collect())).collect())
}

/// Placements that spread the objects over the memories in many ways.
fn placements() -> Vec<Vec<Vec<f64>>> {
    let row = |seed: usize| {
        let parts = [seed % 5, seed / 5 % 4, 1 + seed / 20 % 3].map(|part| part as f64);
        let sum: f64 = parts.iter().sum();
        parts.map(|part| part / sum).to_vec()
    };
    (0..64).map(|seed| (0..OBJECTS).map(|object| row(seed * 7 + object * 11)).collect()).collect()
}

#[allow(clippy::unwrap_used, reason = "the test machine is sound")]
fn predictor(phases: usize, threads: u32) -> Predictor {
    Predictor::new(&machine(), &ten_objects(phases), Run { socket: 0, threads }).unwrap()
}

#[divan::bench(args = [1, 4], consts = [4, 16, 64])]
fn evaluation<const THREADS: u32>(bencher: Bencher<'_, '_>, phases: usize) {
    let (predictor, placements) = (predictor(phases, THREADS), placements());
    bencher
        .counter(ItemsCount::new(placements.len()))
        .bench(|| placements.iter().map(|rows| predictor.time_s(&predictor.demand(black_box(rows)))).sum::<f64>());
}

#[divan::bench(args = [1, 4])]
fn shifted(bencher: Bencher<'_, '_>, phases: usize) {
    let predictor = predictor(phases, 16);
    let start = predictor.demand(vec![vec![0.4, 0.3, 0.3]; OBJECTS]);
    bencher.counter(ItemsCount::new(OBJECTS * MEMORIES)).bench(|| {
        let mut demand = black_box(&start).clone();
        let mut sum = 0.0;
        for step in 0..OBJECTS * MEMORIES {
            predictor.shift(&mut demand, step % OBJECTS, step % MEMORIES, (step + 1) % MEMORIES, 0.01);
            sum += predictor.time_s(&demand);
        }
        sum
    });
}
