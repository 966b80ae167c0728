//! Every file of the catalog is accepted by the nouns, and says again what its sources say.
//!
//! The facts tested here are the published ones (ratios, differences, sums); the files hold what
//! was derived from them, so a slip in a derivation shows.

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

/// Idle latency from the default socket, ns.
fn idle(machine: &Machine, memory: &str) -> f64 {
    let path = machine.path(0, machine.memory_index(memory).unwrap()).unwrap();
    path.idle_ns.value
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

/// Highest peak over all read shares, GB/s.
fn best_mix(machine: &Machine, memory: &str) -> f64 {
    (0..=100).map(|percent| peak(machine, memory, f64::from(percent) / 100.0)).fold(0.0, f64::max)
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

#[test]
fn server_a_says_what_its_study_says() {
    let a = machine("liu-a");
    assert_close("CXL adds", idle(&a, "cxl") - idle(&a, "ldram"), 153.0, 0.005);
    assert_close("CXL/LDRAM", idle(&a, "cxl") / idle(&a, "ldram"), 2.8, 0.005);
    assert_close("RDRAM/LDRAM", idle(&a, "rdram") / idle(&a, "ldram"), 1.8, 0.005);
    assert_close("CXL peak of LDRAM", peak(&a, "cxl", 1.0) / peak(&a, "ldram", 1.0), 0.098, 0.005);
    assert_close("CXL peak of RDRAM", peak(&a, "cxl", 1.0) / peak(&a, "rdram", 1.0), 0.171, 0.005);
}

#[test]
fn server_b_says_what_its_study_says() {
    let b = machine("liu-b");
    assert_close("CXL adds", idle(&b, "cxl") - idle(&b, "ldram"), 211.0, 0.005);
    assert_close("CXL/LDRAM", idle(&b, "cxl") / idle(&b, "ldram"), 2.4, 0.005);
    assert_close("RDRAM/LDRAM", idle(&b, "rdram") / idle(&b, "ldram"), 1.7, 0.005);
    assert_close("CXL peak of LDRAM", peak(&b, "cxl", 1.0) / peak(&b, "ldram", 1.0), 0.281, 0.005);
    assert_close("CXL peak of RDRAM", peak(&b, "cxl", 1.0) / peak(&b, "rdram", 1.0), 0.464, 0.005);
}

#[test]
fn server_c_says_what_its_study_says() {
    let c = machine("liu-c");
    assert_close("CXL/LDRAM", idle(&c, "cxl") / idle(&c, "ldram"), 2.2, 0.005);
    assert_close("RDRAM/LDRAM", idle(&c, "rdram") / idle(&c, "ldram"), 1.5, 0.005);
    assert_close("CXL peak of what RDRAM reaches", best_mix(&c, "cxl") / 84.0, 0.803, 0.005);
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
    assert_close("gain of read bandwidth", peak(&whole, "cxl", 1.0) / peak(&whole, "dram", 1.0), 0.24, 0.03);
    assert_eq!(whole.memories[1].capacity_bytes.value, 4 * (256 << 30));
    for parts in [2_usize, 4] {
        let split = machine(&format!("micron-bergamo-cz120-nps{parts}"));
        let total: u64 = split.memories.iter().map(|memory| memory.capacity_bytes.value).sum();
        let cores: u32 = split.sockets.iter().map(|socket| socket.cores.value).sum();
        assert_eq!((split.sockets.len(), split.memories.len()), (parts, 2 * parts));
        assert_eq!((total, cores), ((768 + 1024) << 30, 128));
        assert_close("its share", peak(&split, "dram0", 1.0), peak(&whole, "dram", 1.0) / parts as f64, 0.001);
    }
}

#[test]
fn the_logged_machine_keeps_its_published_peaks_and_idle_latencies() {
    let machine = machine("bytedance-spr-a1000");
    for (memory, idle_ns, reads, half) in
        [("ldram", 97.0, 68.1, 59.8), ("rdram", 130.0, 70.8, 38.1), ("cxl", 251.0, 48.0, 54.7)]
    {
        assert_close(memory, idle(&machine, memory), idle_ns, 0.001);
        assert_close(memory, peak(&machine, memory, 1.0), reads, 0.005);
        assert_close(memory, peak(&machine, memory, 0.5), half, 0.02);
    }
}

/// STREAM counts three of the four lines that its Triad moves.
#[test]
fn the_fpga_machine_reaches_the_published_triads() {
    let machine = machine("fridman-spr-fpga");
    for (memory, triad) in [("ldram", 24.1), ("rdram", 18.0), ("cxl", 11.3)] {
        assert_close(memory, peak(&machine, memory, 0.75) * 0.75, triad, 0.005);
    }
}

#[test]
fn profiles_add_up_to_the_footprints_of_the_study() {
    let table = [
        ("bt-e", 166.4),
        ("sp-e", 174.4),
        ("lu-e", 135.5),
        ("mg-e", 211.0),
        ("ft-d", 80.0),
        ("cg-e", 101.9),
        ("xsbench-xl", 116.6),
    ];
    for (name, gib) in table {
        let path = catalog().join(format!("profiles/{name}.profile/profile.json"));
        let profile = Profile::from_json(&read(&path), name).unwrap();
        let ours = profile.footprint_bytes() as f64 / (1_u64 << 30) as f64;
        assert!((ours - gib).abs() < 0.06, "{name}: {ours} GiB is not {gib}");
    }
}
