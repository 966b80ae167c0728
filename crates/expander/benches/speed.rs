//! How fast the engine is: line accesses of whole runs, and requests of the DRAM part alone.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small positive numbers")]
#![allow(clippy::expect_used, reason = "a fixture that is wrong should stop the bench")]

#[path = "../tests/common/mod.rs"]
mod common;

use divan::Bencher;
use divan::counter::ItemsCount;
use tierloom_expander::{Config, Setup, SubChannel, simulate};

fn main() {
    divan::main();
}

fn run(bencher: Bencher<'_, '_>, workload: &str, config: Config, media: &str) {
    run_setup(bencher, workload, &Setup { config, media: media.to_owned(), ..Setup::default() });
}

fn run_setup(bencher: Bencher<'_, '_>, workload: &str, setup: &Setup) {
    let parameters = common::parameters();
    let once = || simulate(&parameters, workload, setup).expect("the setup is right");
    let accesses = once().accesses;
    bencher.counter(ItemsCount::new(accesses)).bench(once);
}

#[divan::bench(sample_count = 10)]
fn vadd_on_cxl_dram(bencher: Bencher<'_, '_>) {
    run(bencher, "vadd", Config::Cxl, "dram");
}

/// Hundreds of lines under way.
#[divan::bench(sample_count = 10)]
fn vadd_on_a_large_gpu(bencher: Bencher<'_, '_>) {
    run_setup(bencher, "vadd", &Setup { config: Config::Cxl, gpu: "h100".to_owned(), ..Setup::default() });
}

#[divan::bench(sample_count = 10)]
fn bfs_with_stores_over_dram(bencher: Bencher<'_, '_>) {
    run(bencher, "bfs", Config::CxlDs, "dram");
}

#[divan::bench(sample_count = 10)]
fn bfs_with_stores_over_znand(bencher: Bencher<'_, '_>) {
    run(bencher, "bfs", Config::CxlDs, "znand");
}

/// Random reads of one sub-channel at a share of its peak, in per cent.
#[divan::bench(args = [10, 50, 80], sample_count = 10)]
fn dram_reads(bencher: Bencher<'_, '_>, load: u32) {
    const REQUESTS: usize = 1_000_000;
    let dram = common::ddr5_4800();
    let mut random = common::Random::new(7);
    let mut time = 0.0;
    let mut request = || {
        time -= random.share().ln() * 8.0 / (f64::from(load) / 100.0);
        (time as u64, random.below(32) as usize, random.below(1 << 16) as u32)
    };
    let requests: Vec<(u64, usize, u32)> = (0..REQUESTS).map(|_| request()).collect();
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| {
        let mut channel = SubChannel::new(&dram);
        requests.iter().map(|&(now, bank, row)| channel.read(now, bank, row)).fold(0, u64::wrapping_add)
    });
}
