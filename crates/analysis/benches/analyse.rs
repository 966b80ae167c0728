//! How long an analysis takes: the largest of the recordings that are kept in `tests/recordings`.
//!
//! All that it needs is in the repository: what was recorded, and beside it the program that ran.
#![allow(clippy::expect_used, reason = "a recording that is not there should stop the bench")]

use std::fs;
use std::path::{Path, PathBuf};

use divan::Bencher;
use divan::counter::ItemsCount;
use tierloom_analysis::analyse;
use tierloom_binary::search::Search;
use tierloom_recording::Recording;

fn main() {
    divan::main();
}

/// The whole way from what was recorded to the profile. An item is a sample.
#[divan::bench(sample_count = 20)]
fn largest_recording(bencher: Bencher<'_, '_>) {
    let folder = largest();
    let recording = Recording::from_bytes(&bytes_in(&folder)).expect("it is a recording");
    let program = Search::new(&recording.binaries, &[folder]);
    bencher.counter(ItemsCount::new(recording.samples.len())).bench_local(|| analyse(&recording, &program));
}

/// From the bytes of its file to the recording in memory.
#[divan::bench(sample_count = 20)]
fn largest_from_bytes(bencher: Bencher<'_, '_>) {
    let bytes = bytes_in(&largest());
    bencher.bench_local(|| Recording::from_bytes(&bytes));
}

fn bytes_in(folder: &Path) -> Vec<u8> {
    fs::read(folder.join("recording")).expect("it can be read")
}

/// The folder of the recording with the most bytes.
fn largest() -> PathBuf {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/kept");
    let folders = fs::read_dir(kept).expect("the recordings are in the repository").flatten();
    let bytes = |folder: &PathBuf| fs::metadata(folder.join("recording")).map_or(0, |file| file.len());
    folders.map(|entry| entry.path()).max_by_key(bytes).expect("there are recordings")
}
