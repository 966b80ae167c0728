//! Loaded-latency curves, sampled for tables and plots.

use pyo3::prelude::*;
use tierloom_contention::PathLoad;

use crate::errors;
use crate::nouns::Machine;

/// A fitted form is infinite at its very peak, so pictures stop just before it.
const LAST_LOAD: f64 = 0.99;

/// Peak (GB/s) of one path at a read fraction, and `(GB/s, ns)` at even steps up to 99 % of it.
#[pyfunction]
pub(crate) fn path_curve(
    machine: Py<Machine>,
    socket: &str,
    memory: &str,
    read_fraction: f64,
    steps: u32,
) -> PyResult<(f64, Vec<(f64, f64)>)> {
    let machine = &machine.get().0;
    let path = machine
        .paths
        .iter()
        .find(|path| path.from == socket && path.to == memory)
        .ok_or_else(|| errors::no_path(machine, socket, memory))?;
    if steps < 2 || !(0.0..=1.0).contains(&read_fraction) {
        let text = format!("read fraction {read_fraction} in {steps} steps\nhint: ask for 0 to 1 in 2 steps or more");
        return Err(errors::wrong_request(text));
    }
    let load = PathLoad::new(&path.load, path.idle_ns.value).map_err(|error| errors::from_contention(&error))?;
    let peak_gb_s = load.peak_gb_s(read_fraction);
    let points = (0..steps).map(|step| {
        let gb_s = peak_gb_s * LAST_LOAD * f64::from(step) / f64::from(steps - 1);
        (gb_s, load.latency_ns(gb_s, read_fraction))
    });
    Ok((peak_gb_s, points.collect()))
}
