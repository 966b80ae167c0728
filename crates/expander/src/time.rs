//! Simulated time: whole picoseconds, so that sums are exact and runs repeat bit for bit.

/// A point or a span of simulated time, ps.
pub(crate) type Ps = u64;

/// Nanoseconds as picoseconds, rounded.
pub(crate) fn from_ns(ns: f64) -> Ps {
    (ns * 1e3).round() as Ps
}

/// Picoseconds that one byte takes at a bandwidth of GB/s.
pub(crate) fn ps_per_byte(gb_s: f64) -> f64 {
    1e3 / gb_s
}

/// Picoseconds as seconds.
pub(crate) fn to_s(time: Ps) -> f64 {
    time as f64 * 1e-12
}

/// Picoseconds as nanoseconds.
pub(crate) fn to_ns(time: Ps) -> f64 {
    time as f64 * 1e-3
}
