//! The DRAM part alone, held against two cycle-level simulators: Ramulator 2.1 (c5b1c3a) and
//! `DRAMsim3` (2981759), one 32-bit sub-channel of DDR5-4800 (16 Gb x8, 1 rank, first-ready
//! scheduling, open rows, all-bank refresh, queues of 32 and 32, four-activate window of 32 clocks),
//! 64-byte accesses to random lines of 4 GiB, Poisson arrivals, 50 000 requests.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::print_stdout,
    reason = "small positive numbers"
)]

mod common;

use common::Random;
use tierloom_expander::SubChannel;

const CLOCK_NS: f64 = 1e3 / 2400.0;
const PEAK_GB_S: f64 = 19.2;
const REQUESTS: usize = 200_000;

/// Load of the peak, mean read latency (ns) in Ramulator 2.1 and in `DRAMsim3`.
const READS: [(f64, f64, f64); 14] = [
    (0.02, 51.5, 53.7),
    (0.10, 61.6, 64.3),
    (0.20, 67.6, 70.3),
    (0.30, 73.4, 76.1),
    (0.40, 78.8, 81.9),
    (0.50, 86.2, 90.1),
    (0.60, 97.7, 101.9),
    (0.65, 103.7, 108.6),
    (0.70, 111.7, 118.1),
    (0.75, 124.7, 132.3),
    (0.80, 144.0, 152.3),
    (0.85, 176.3, 189.4),
    (0.88, 214.1, 230.5),
    (0.91, 339.3, 426.3),
];
/// The same for two reads a write; beyond 0.70 both are saturated.
const TWO_TO_ONE: [(f64, f64, f64); 9] = [
    (0.02, 51.8, 54.0),
    (0.10, 63.2, 66.2),
    (0.20, 70.1, 75.7),
    (0.30, 76.7, 86.4),
    (0.40, 91.8, 105.6),
    (0.50, 116.7, 140.0),
    (0.60, 170.3, 187.6),
    (0.65, 209.3, 223.5),
    (0.70, 263.0, 289.6),
];
/// Saturation, GB/s.
const READS_AT_MOST: (f64, f64) = (17.503, 17.306);
const TWO_TO_ONE_AT_MOST: (f64, f64) = (14.272, 14.427);

/// Mean read latency (ns) at a load of the peak.
fn run(load: f64, writes: f64) -> f64 {
    let mut channel = SubChannel::new(&common::ddr5_4800());
    let mut random = Random::new(7);
    let (mut time, mut sum, mut reads) = (0.0, 0.0, 0_u32);
    for _ in 0..REQUESTS {
        time += -random.share().ln() * 8.0 / load;
        let now = time as u64;
        let (bank, row) = (random.below(32) as usize, random.below(1 << 16) as u32);
        if random.share() < writes {
            channel.write(now, bank, row);
        } else {
            sum += channel.read(now, bank, row) as f64 - time;
            reads += 1;
        }
    }
    sum / f64::from(reads) * CLOCK_NS
}

/// How far a value lies outside the gap between two, as a share of the nearer.
fn outside(value: f64, one: f64, other: f64) -> f64 {
    let (low, high) = (one.min(other), one.max(other));
    if value < low { value / low - 1.0 } else { (value / high - 1.0).max(0.0) }
}

fn report(points: &[(f64, f64, f64)], writes: f64) -> Vec<(f64, f64)> {
    let row = |&(load, ramulator, dramsim): &(f64, f64, f64)| {
        let ours = run(load, writes);
        let error = outside(ours, ramulator, dramsim);
        println!("load {load:.2}: {ours:6.1} ns, Ramulator {ramulator}, DRAMsim3 {dramsim}: {:+.1} %", error * 100.0);
        (load, error)
    };
    points.iter().map(row).collect()
}

#[test]
fn random_reads_are_within_five_percent_of_the_cycle_simulators() {
    for (load, error) in report(&READS, 0.0) {
        assert!(error.abs() <= 0.05, "at load {load}: {error:+.3}");
    }
}

#[test]
fn two_reads_a_write_are_within_five_percent_of_the_cycle_simulators() {
    for (load, error) in report(&TWO_TO_ONE, 1.0 / 3.0) {
        let share_of_saturation = load * PEAK_GB_S / TWO_TO_ONE_AT_MOST.0;
        let bound = if share_of_saturation < 0.9 { 0.05 } else { 0.06 };
        assert!(error.abs() <= bound, "at load {load}: {error:+.3}");
    }
}

/// Bandwidth (GB/s) with as many requests waiting as the queues of the simulators hold.
fn saturated(writes: f64) -> f64 {
    let mut channel = SubChannel::new(&common::ddr5_4800());
    let mut random = Random::new(7);
    let mut waiting = std::collections::BinaryHeap::new();
    let mut now = 0;
    for _ in 0..REQUESTS {
        let (bank, row) = (random.below(32) as usize, random.below(1 << 16) as u32);
        let write = random.share() < writes;
        let done = if write { channel.write(now, bank, row) } else { channel.read(now, bank, row) };
        waiting.push(std::cmp::Reverse(done));
        if waiting.len() == 64 {
            now = waiting.pop().map_or(now, |done| done.0.max(now));
        }
    }
    REQUESTS as f64 * 64.0 / (now as f64 * CLOCK_NS)
}

#[test]
fn saturation_is_within_two_percent() {
    for (writes, (ramulator, dramsim)) in [(0.0, READS_AT_MOST), (1.0 / 3.0, TWO_TO_ONE_AT_MOST)] {
        let ours = saturated(writes);
        println!("writes {writes:.2}: {ours:.2} GB/s, Ramulator {ramulator}, DRAMsim3 {dramsim}");
        assert!(ours <= PEAK_GB_S);
        assert!(outside(ours, ramulator, dramsim).abs() <= 0.02, "{ours}");
    }
}
