//! How fast the kernel's records are read: a full ring of samples as the recorder asks for them.

use divan::Bencher;
use divan::counter::ItemsCount;
use tierloom_linux::perf::Format;

const SAMPLES: u64 = 100_000;
/// IP, thread, time, CPU, registers of user space.
const FIELDS: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 12;
const REGISTERS: u64 = 0xff_03ff;

fn main() {
    divan::main();
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// One of so many samples, with all that the recorder asks for.
fn sample(at: u64) -> Vec<u8> {
    let head = [9 | 2 << 32 | (8 + 8 * 23) << 48, 0x40_0000 + at, 7 | 8 << 32, at, 3, 2];
    words(&[&head[..], &[at; 18]].concat())
}

#[divan::bench]
fn a_ring_of_samples(bencher: Bencher<'_, '_>) {
    let attributes = [1 | 112 << 32, 0, 1_003_009, FIELDS, 0, 1 << 18, 0, 0, 0, 0, REGISTERS, 0, 0, 0];
    let Some(format) = Format::of(&words(&attributes)) else { return };
    let ring: Vec<u8> = (0..SAMPLES).flat_map(sample).collect();
    bencher.counter(ItemsCount::new(SAMPLES)).bench(|| {
        let mut count = 0_u64;
        format.records(divan::black_box(&ring), |record| {
            divan::black_box(&record);
            count += 1;
        });
        assert_eq!(count, SAMPLES);
    });
}
