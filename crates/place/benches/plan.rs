//! How long planning takes, from a handful of objects to ten thousand on four nodes.
#![allow(clippy::expect_used, reason = "a fixture that is wrong should stop the bench")]

#[path = "../tests/common/mod.rs"]
mod common;

use divan::Bencher;
use tierloom_place::{Context, Request, compare, policy};

fn main() {
    divan::main();
}

/// The whole comparison with its frontier: what `tierloom plan` waits for.
#[divan::bench(args = [4, 10, 100, 1000, 10_000], sample_count = 5)]
fn compare_all(bencher: Bencher<'_, '_>, objects: usize) {
    let (machine, profile) = (common::four_nodes(), common::many_objects(objects, 7));
    bencher.bench(|| compare(&machine, &profile, &Request::default()));
}

/// One search by policy `tierloom`, all other policies as starts included.
#[divan::bench(args = [4, 10, 100, 1000], sample_count = 5)]
fn tierloom_alone(bencher: Bencher<'_, '_>, objects: usize) {
    let (machine, profile) = (common::four_nodes(), common::many_objects(objects, 7));
    let predictor = common::predictor(&machine, &profile);
    let nodes = machine.memories_by_distance(0);
    let context = Context::new(&machine, &profile, &predictor, 0, nodes, 0, None).expect("the fixture fits");
    let ours = policy::by_name("tierloom", &context).expect("it is a policy");
    bencher.bench_local(|| ours.actions(&context));
}

/// One evaluation of a placement: what the search is made of.
#[divan::bench(args = [4, 10, 100, 1000])]
fn evaluation(bencher: Bencher<'_, '_>, objects: usize) {
    let (machine, profile) = (common::four_nodes(), common::many_objects(objects, 7));
    let predictor = common::predictor(&machine, &profile);
    let mut demand = predictor.demand(vec![vec![0.4, 0.3, 0.2, 0.1]; objects]);
    bencher.bench_local(|| {
        predictor.shift(&mut demand, 0, 0, 1, 0.01);
        predictor.shift(&mut demand, 0, 1, 0, 0.01);
        predictor.time_s(&demand)
    });
}
