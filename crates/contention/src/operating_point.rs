//! Where a closed loop settles: so many lines in flight, and no more traffic than asked for.
//!
//! Lines in flight wait one latency each, so they carry `B = 64 B · lines / L(B)` (Little's law).
//! `B · L(B)` only grows with `B`, so there is one such point; it is solved for directly. Rules that
//! instead feed the last window's bandwidth back into the next window's latency follow it only on
//! the flat part of a curve and swing around it beyond the knee (`tests/operating_point.rs`).

use tierloom_model::units::LINE_BYTES_F64;

use crate::path::PathLoad;
use crate::root::{Bracket, increasing_root};

/// Relative width at which the bandwidth is good enough.
const TOLERANCE: f64 = 1e-13;

/// Bandwidth and latency that go together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OperatingPoint {
    /// Traffic, GB/s.
    pub gb_s: f64,
    /// Latency of each line, ns; at the peak it holds the queue of the lines in flight as well.
    pub latency_ns: f64,
}

/// Operating point of a path at a read fraction, with at most `lines` cache lines in flight and a
/// demand of at most `demand_gb_s` (infinite for a closed loop).
///
/// ```
/// use tierloom_contention::{PathLoad, operating_point};
/// use tierloom_model::{Curve, Kind, Load, Origin};
///
/// # fn main() -> Result<(), tierloom_contention::ContentionError> {
/// let origin = Origin { kind: Kind::Assumed, source: "example".into(), how: "made up".into() };
/// let points = vec![[0.0, 100.0], [30.0, 120.0], [40.0, 400.0]];
/// let load = PathLoad::new(&Load::Points(vec![Curve { read_fraction: 1.0, points, origin }]), 100.0)?;
/// let few = operating_point(&load, 1.0, 8.0, f64::INFINITY);
/// assert!(few.gb_s < 8.0 * 64.0 / 100.0 && few.latency_ns < 105.0);
/// let many = operating_point(&load, 1.0, 1000.0, f64::INFINITY);
/// assert_eq!((many.gb_s, many.latency_ns), (40.0, 1600.0)); // the peak, and the queue before it
/// # Ok(())
/// # }
/// ```
pub fn operating_point(load: &PathLoad, read_fraction: f64, lines: f64, demand_gb_s: f64) -> OperatingPoint {
    let slice = load.at(read_fraction);
    let latency_ns = |gb_s: f64| load.idle_ns() + slice.excess_ns(gb_s);
    // Bytes per nanosecond are GB/s: this is the number of bytes in flight that are missing.
    let missing = |gb_s: f64| gb_s * latency_ns(gb_s) - LINE_BYTES_F64 * lines;
    let most = slice.peak_gb_s().min(demand_gb_s);
    if missing(most) <= 0.0 {
        return at_most(most, demand_gb_s, latency_ns(most), lines);
    }
    // Latency at rest is the least and latency at that bandwidth the most, so the lines carry no
    // more than `high` and no less than `low`.
    let (high, at_high) = off_the_wall(most.min(LINE_BYTES_F64 * lines / load.idle_ns()), missing);
    if at_high <= 0.0 {
        return point(high, lines);
    }
    let low = LINE_BYTES_F64 * lines / latency_ns(high);
    let bracket = Bracket { low, at_low: missing(low).min(0.0), high, at_high };
    point(increasing_root(bracket, TOLERANCE, missing), lines)
}

/// Enough lines for all the demand, or for the peak where they queue.
fn at_most(most: f64, demand_gb_s: f64, latency_ns: f64, lines: f64) -> OperatingPoint {
    if most < demand_gb_s { point(most, lines) } else { OperatingPoint { gb_s: most, latency_ns } }
}

/// All lines in flight at this bandwidth.
fn point(gb_s: f64, lines: f64) -> OperatingPoint {
    OperatingPoint { gb_s, latency_ns: LINE_BYTES_F64 * lines / gb_s }
}

/// The highest bandwidth at or just below `high` where a form with a wall is finite, and what is
/// missing there.
fn off_the_wall(high: f64, missing: impl Fn(f64) -> f64) -> (f64, f64) {
    let gaps = (0..).map(|step| if step == 0 { 0.0 } else { f64::EPSILON * 10f64.powi(step - 1) });
    let candidates = gaps.map(|gap| high * (1.0 - gap)).map(|gb_s| (gb_s, missing(gb_s)));
    candidates.take(16).find(|(_, bytes)| bytes.is_finite()).unwrap_or((0.0, 0.0))
}
