//! Latency of dependent loads: at rest by footprint, and under load.

use std::time::{Duration, Instant};

use crate::chase::{Chase, Order};
use crate::request::Pace;
use crate::statistics::Percentiles;
use crate::team::{Load, spin_step_ns};

/// Loads that tell how many a window takes.
const TRIAL_LOADS: usize = 2_000;

/// How hard the load threads work at each point of a curve: share of the time that they are not
/// pausing, had the pauses no effect on the memory. The last is full speed.
pub(crate) const DUTIES: [f64; 11] = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// Latency at rest over the first `footprint` bytes of a region; `None` when that is no line.
pub(crate) fn at_rest(memory: &mut [u8], footprint: usize, order: Order, pace: &Pace<'_>) -> Option<Percentiles> {
    let most = footprint.min(memory.len());
    let mut chase = Chase::new(&mut memory[..most], order)?;
    let loads = loads_in(pace.window(), &mut chase);
    chase.run(loads.min(chase.lines()));
    Some(Percentiles::of((0..pace.windows()).map(|_| chase.run(loads)).collect()))
}

/// Loads that fill a window.
pub(crate) fn loads_in(window: Duration, chase: &mut Chase<'_>) -> usize {
    let each_ns = chase.run(TRIAL_LOADS);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count far below 2^53")]
    let loads = (window.as_secs_f64() * 1e9 / each_ns) as usize;
    loads.max(TRIAL_LOADS)
}

/// One point of a loaded-latency curve.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) pause_ns: f64,
    pub(crate) gb_s: Percentiles,
    pub(crate) ns: Percentiles,
}

/// Latency beside a team, from the least load to full speed.
///
/// `burst_bytes` is the traffic of one burst of one thread. A thread that takes `t` for a burst at
/// full speed and pauses for `t·(1/d - 1)` after it works with duty `d`.
pub(crate) fn under_load(
    load: &Load,
    threads: usize,
    burst_bytes: u64,
    chase: &mut Chase<'_>,
    pace: &Pace<'_>,
) -> Vec<Point> {
    load.set_pause(0);
    let (full, _) = beside(load, chase, pace);
    let burst_ns = burst_bytes as f64 * threads as f64 / full.p90;
    let step_ns = spin_step_ns();
    let point = |duty: f64| {
        let pause_ns = burst_ns * (1.0 / duty - 1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates far beyond any pause")]
        load.set_pause((pause_ns / step_ns).round() as u32);
        let (gb_s, ns) = beside(load, chase, pace);
        Point { pause_ns, gb_s, ns }
    };
    DUTIES.into_iter().map(point).collect()
}

/// Traffic of everybody and latency, over the same windows.
fn beside(load: &Load, chase: &mut Chase<'_>, pace: &Pace<'_>) -> (Percentiles, Percentiles) {
    let loads = loads_in(pace.window(), chase);
    let one = |_| {
        let (bytes, start) = (load.bytes(), Instant::now());
        let ns = chase.run(loads);
        let others = (load.bytes() - bytes) as f64 / start.elapsed().as_secs_f64() / 1e9;
        (others + own_gb_s(ns), ns)
    };
    let (gb_s, ns): (Vec<f64>, Vec<f64>) = (0..pace.windows()).map(one).unzip();
    (Percentiles::of(gb_s), Percentiles::of(ns))
}

/// Traffic of the chase itself: a line every `ns`.
pub(crate) fn own_gb_s(ns: f64) -> f64 {
    crate::mix::LINE_BYTES as f64 / ns
}
