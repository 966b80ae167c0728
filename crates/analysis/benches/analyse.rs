//! How long an analysis takes: the largest of the recordings that are kept in `tests/recordings`.
//!
//! All that it needs is in the repository: what was recorded, and beside it the program that ran.
#![allow(clippy::expect_used, reason = "a recording that is not there should stop the bench")]

use std::fs;
use std::path::{Path, PathBuf};

use divan::Bencher;
use divan::counter::ItemsCount;
use tierloom_analysis::analyse;
use tierloom_binary::Binaries;
use tierloom_binary::debug_info::DebugInfo;
use tierloom_binary::elf::Binary;
use tierloom_recording::Recording;

fn main() {
    divan::main();
}

/// The whole way from what was recorded to the profile. An item is a sample.
#[divan::bench(sample_count = 20)]
fn largest_recording(bencher: Bencher<'_, '_>) {
    let folder = largest();
    let recording =
        Recording::from_bytes(&fs::read(folder.join("recording")).expect("it is there")).expect("it can be read");
    let program = Program::of(&recording, &folder);
    bencher.counter(ItemsCount::new(recording.samples.len())).bench_local(|| analyse(&recording, &program));
}

/// From the file to the recording in memory.
#[divan::bench(sample_count = 20)]
fn largest_loaded(bencher: Bencher<'_, '_>) {
    let path = largest().join("recording");
    bencher.bench_local(|| Recording::from_bytes(&fs::read(&path).expect("it is there")));
}

/// The folder of the recording with the most bytes.
fn largest() -> PathBuf {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/kept");
    let folders = fs::read_dir(kept).expect("the recordings are in the repository").flatten();
    let bytes = |folder: &PathBuf| fs::metadata(folder.join("recording")).map_or(0, |file| file.len());
    folders.map(|entry| entry.path()).max_by_key(bytes).expect("there are recordings")
}

/// The program that ran, from beside its recording; no library.
struct Program {
    /// Where it ran.
    path: String,
    /// Where it is.
    file: PathBuf,
}

impl Program {
    fn of(recording: &Recording, folder: &Path) -> Self {
        let path = recording.command.first().expect("something ran").clone();
        let name = Path::new(&path).file_name().expect("it is a file");
        Self { file: folder.join(name), path }
    }
}

impl Binaries for Program {
    fn open(&self, path: &str, _build_id: Option<&str>) -> Binary {
        if path == self.path { Binary::read(&self.file.to_string_lossy()) } else { Binary::default() }
    }

    fn debug_info(&self, module: &Binary) -> DebugInfo {
        DebugInfo::read(Path::new(&module.path), &[])
    }
}
