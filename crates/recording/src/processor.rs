//! The processor that a program ran on, as far as the analysis needs it.

/// Where nothing says how large the last-level cache is: one core complex of Zen 3 to 5. Assumed.
const ASSUMED_LLC_BYTES: u64 = 32 << 20;
/// Instructions that the widest cores dispatch in a cycle (AMD, Software Optimization Guide for the Zen 5 Microarchitecture,
/// 58455). A compare and its branch are one there, but no function consists of these.
const WIDEST: f64 = 8.0;
/// The fastest clock of such a core is below this (Ryzen 9 9950X: 5.7 GHz); the Core i9-14900KS runs at 6.2 GHz, six wide.
const FASTEST_GHZ: f64 = 6.0;

/// The memory next to a socket, as somebody measured it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearMemory {
    /// Latency of a load at rest, ns.
    pub idle_ns: f64,
    /// Lines that one core keeps in flight by loads that do not depend on each other.
    pub demand_lines: f64,
    /// And where it reads one after the other.
    pub stream_lines: f64,
}

/// A processor.
#[derive(Debug, Clone, PartialEq)]
pub struct Processor {
    /// Model name.
    pub name: String,
    /// Last-level cache that the program's threads share, bytes.
    pub llc_bytes: u64,
    /// Which host it is in; empty where nobody told.
    pub host: String,
    /// Its highest clock, kHz; `None` where nobody told, as in most virtual machines.
    pub highest_khz: Option<u64>,
    /// What its memory does, where somebody measured it.
    pub memory: Option<NearMemory>,
}

impl NearMemory {
    /// `None` where a figure is none: the latency a nanosecond at least, a line in flight at least.
    pub fn new(idle_ns: f64, demand_lines: f64, stream_lines: f64) -> Option<Self> {
        let is_good = [idle_ns, demand_lines, stream_lines].iter().all(|figure| figure.is_finite() && *figure >= 1.0);
        is_good.then_some(Self { idle_ns, demand_lines, stream_lines })
    }
}

impl Default for Processor {
    fn default() -> Self {
        Self::new(None, None)
    }
}

impl Processor {
    /// With what is known of it.
    pub fn new(name: Option<String>, llc_bytes: Option<u64>) -> Self {
        let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned());
        let llc_bytes = llc_bytes.unwrap_or(ASSUMED_LLC_BYTES);
        Self { name, llc_bytes, host: String::new(), highest_khz: None, memory: None }
    }

    /// No more instructions can it run in a nanosecond.
    pub fn most_instructions_per_ns(&self) -> f64 {
        WIDEST * self.highest_khz.map_or(FASTEST_GHZ, |khz| khz as f64 / 1e6)
    }

    /// Clock that the name states, GHz: `… @ 2.10GHz`.
    pub fn stated_ghz(&self) -> Option<f64> {
        let (_, clock) = self.name.rsplit_once('@')?;
        clock.trim().strip_suffix("GHz")?.trim().parse().ok().filter(|ghz| (0.1..20.0).contains(ghz))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_clock_leaves_room_for_fewer_instructions() {
        let at = |highest_khz| Processor { highest_khz, ..Processor::default() }.most_instructions_per_ns();
        assert!((at(Some(2_500_000)) - 20.0).abs() < 1e-9 && (at(None) - 48.0).abs() < 1e-9);
    }
}
