//! Every file of the catalog is accepted by the nouns, and hangs together.
//!
//! Whether it says again what its sources say is tested in Python, on the inputs of the ledger of claims
//! (`tests/published_claims`, `tests/test_catalog.py`): a published figure is written there alone.

#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_precision_loss)] // a test that panics has failed, as it should

use std::fs;
use std::path::{Path, PathBuf};

use tierloom_model::{Load, Machine, Peak, Profile};

fn catalog() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tierloom/catalog")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn entries(folder: &str) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(catalog().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{folder} is empty");
    paths
}

fn machine(name: &str) -> Machine {
    let path = catalog().join(format!("machines/{name}.toml"));
    Machine::from_toml(&read(&path), name).unwrap_or_else(|error| panic!("{error}"))
}

/// Peak of the path from the default socket at a read share, GB/s; the formulas of [`Peak`].
fn peak(machine: &Machine, memory: &str, reads: f64) -> f64 {
    let path = machine.path(0, machine.memory_index(memory).unwrap()).unwrap();
    match &path.load {
        Load::Form(form) => match form.peak {
            Peak::Half { read_gb_s, write_gb_s } => 1.0 / (reads / read_gb_s + (1.0 - reads) / write_gb_s),
            Peak::Full { read_gb_s, write_gb_s, combined_gb_s, sharpness } => {
                let terms = [reads / read_gb_s, (1.0 - reads) / write_gb_s, 1.0 / combined_gb_s];
                terms.map(|term| term.powf(sharpness)).iter().sum::<f64>().powf(-1.0 / sharpness)
            }
        },
        Load::Points(curves) => {
            let curve = curves.iter().find(|curve| (curve.read_fraction - reads).abs() < 1e-9).unwrap();
            curve.points.last().unwrap()[0]
        }
    }
}

fn assert_close(what: &str, ours: f64, published: f64, relative: f64) {
    assert!((ours / published - 1.0).abs() <= relative, "{what}: {ours} is not {published}");
}

#[test]
fn every_machine_is_accepted_and_named_like_its_file() {
    for path in entries("machines") {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert_eq!(machine(&name).name, name);
    }
}

#[test]
fn every_assumed_or_derived_figure_says_why_or_how() {
    for path in entries("machines") {
        for (number, line) in read(&path).lines().enumerate() {
            let needs = line.contains("kind = \"assumed\"") || line.contains("kind = \"derived\"");
            assert!(!needs || line.contains("how = \""), "{}:{}: no `how`", path.display(), number + 1);
        }
    }
}

#[test]
fn every_profile_is_accepted_and_named_like_its_folder() {
    for folder in entries("profiles") {
        let name = folder.file_stem().unwrap().to_str().unwrap().to_owned();
        let profile = Profile::from_json(&read(&folder.join("profile.json")), &name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(profile.name, name);
    }
}

/// The socket that holds the CXL memory comes first, as the studies run there.
#[test]
fn programs_run_by_the_cxl_card_unless_told_otherwise() {
    for name in ["liu-a", "liu-b", "liu-c", "bytedance-spr-a1000", "fridman-spr-fpga"] {
        let machine = machine(name);
        let card = &machine.memories[machine.memory_index("cxl").unwrap()];
        assert_eq!(card.socket, machine.sockets[0].name, "{name}");
        assert_eq!(
            machine.memories_by_distance(0),
            ["ldram", "rdram", "cxl"].map(|m| machine.memory_index(m).unwrap())
        );
    }
}

#[test]
fn the_micron_machine_says_what_its_maker_says() {
    let whole = machine("micron-bergamo-cz120");
    assert_close("CZ120 at 2:1", peak(&whole, "cxl", 2.0 / 3.0) / 4.0, 36.0, 0.005);
    assert_eq!(whole.memories[1].capacity_bytes.value, 4 * (256 << 30));
    for parts in [2_usize, 4] {
        let split = machine(&format!("micron-bergamo-cz120-nps{parts}"));
        let total: u64 = split.memories.iter().map(|memory| memory.capacity_bytes.value).sum();
        let cores: u32 = split.sockets.iter().map(|socket| socket.cores.value).sum();
        assert_eq!((split.sockets.len(), split.memories.len()), (parts, parts + 1), "all modules are one node");
        assert_eq!((total, cores), ((768 + 1024) << 30, 128));
        assert_close("all modules", peak(&split, "cxl", 2.0 / 3.0), peak(&whole, "cxl", 2.0 / 3.0), 1e-9);
        assert_close("its share", peak(&split, "dram0", 1.0), peak(&whole, "dram", 1.0) / parts as f64, 0.001);
    }
}

/// Of the logs, not of the text: the ledger holds the text's.
#[test]
fn the_logged_machine_keeps_the_peaks_of_its_logs() {
    let machine = machine("bytedance-spr-a1000");
    for (memory, reads, half) in [("ldram", 68.1, 59.8), ("rdram", 70.8, 38.1), ("cxl", 48.0, 54.7)] {
        assert_close(memory, peak(&machine, memory, 1.0), reads, 0.005);
        assert_close(memory, peak(&machine, memory, 0.5), half, 0.02);
    }
}
