//! Bad curves are refused where they are read, with the key and the remedy; each of these faults
//! stands in public data.

use tierloom_contention::{ContentionError, PathLoad, fit_curve, fit_peak};
use tierloom_model::{Curve, Kind, Load, Machine, Origin};

/// Reads a machine whose only path has these points.
fn read(points: &str) -> Result<Machine, String> {
    let figure = |value: &str| format!("{{ value = {value}, kind = \"assumed\", source = \"s\" }}");
    let text = format!(
        r#"
version = 1
name = "m"
title = "one socket, one memory"
[sources]
s = "made up"
[[sockets]]
name = "s0"
cpu = "c"
cores = {cores}
llc_bytes = {bytes}
llc_per_core_bytes = {bytes}
stream_lines = {lines}
demand_lines = {lines}
[[memories]]
name = "ddr"
kind = "dram"
socket = "s0"
capacity_bytes = {bytes}
[[paths]]
from = "s0"
to = "ddr"
idle_ns = {idle}
[[paths.load.points]]
read_fraction = 1.0
points = {points}
origin = {{ kind = "assumed", source = "s" }}
"#,
        cores = figure("8"),
        bytes = figure("1000000"),
        lines = figure("10.0"),
        idle = figure("100.0"),
    );
    Machine::from_toml(&text, "m.toml").map_err(|error| error.to_string())
}

#[test]
fn a_good_curve_is_read_and_compiled() {
    let machine = read("[[0.0, 100.0], [50.0, 110.0], [60.0, 200.0]]").unwrap();
    let load = PathLoad::new(&machine.paths[0].load, 100.0).unwrap();
    assert!((load.latency_ns(60.0, 1.0) - 200.0).abs() < 1e-9);
}

#[test]
fn each_fault_is_refused_by_its_name() {
    let faults = [
        ("[[0.0], [50.0], [60.0]]", "points"),
        ("[[0.0, 100.0]]", "two points"),
        ("[[-1.5, 100.0], [50.0, 110.0]]", "-1.5"),
        ("[[0.0, 100.0], [50.0, 90.0]]", "falls"),
        ("[[50.0, 100.0], [40.0, 110.0]]", "does not grow"),
        ("[[1000.0, 100.0], [233000.0, 110.0]]", "MB/s"),
        ("[[0.0, 0.1], [50.0, 0.2]]", "µs"),
        ("[[0.0, nan], [50.0, 110.0]]", "NaN"),
    ];
    for (points, word) in faults {
        let error = read(points).unwrap_err();
        assert!(error.contains(word) && error.contains("m.toml") && error.contains("hint:"), "{points}: {error}");
    }
}

#[test]
fn loads_built_in_code_are_refused_too() {
    let origin = Origin { kind: Kind::Assumed, source: "s".to_owned(), how: String::new() };
    let curve = |points: &[[f64; 2]]| Curve { read_fraction: 1.0, points: points.to_vec(), origin: origin.clone() };
    let bad = [
        vec![],
        vec![curve(&[])],
        vec![curve(&[[1.0, 100.0]])],
        vec![curve(&[[1.0, 100.0], [2.0, 90.0]])],
        vec![curve(&[[1.0, 100.0], [f64::NAN, 120.0]])],
        vec![curve(&[[0.0, 100.0], [2.0, 120.0]]), curve(&[[0.0, 100.0], [2.0, 120.0]])],
    ];
    for curves in bad {
        let result = PathLoad::new(&Load::Points(curves.clone()), 100.0);
        assert!(matches!(result, Err(ContentionError::BadLoad { .. })), "{curves:?}");
    }
}

#[test]
fn a_curve_of_the_device_alone_is_refused() {
    let machine = read("[[0.0, 60.0], [50.0, 110.0]]").unwrap();
    let error = PathLoad::new(&machine.paths[0].load, 100.0).unwrap_err().to_string();
    assert!(error.contains("far below") && error.contains("device"), "{error}");
}

#[test]
fn fits_refuse_what_they_cannot_fit() {
    assert!(fit_curve(&[[0.0, 100.0], [10.0, 120.0]]).is_err());
    assert!(fit_curve(&[[0.0, 100.0], [-10.0, 120.0], [20.0, 130.0], [30.0, 140.0]]).is_err());
    assert!(fit_curve(&[[0.0, 100.0]; 5]).is_err());
    assert!(fit_peak(&[[100.0, 220.0], [66.0, 200.0]]).is_err(), "per cent are no fractions");
    assert!(fit_peak(&[[1.0, 220.0]]).is_err());
}
