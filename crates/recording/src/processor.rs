//! The processor that a program ran on, as far as the analysis needs it.

/// Where nothing says how large the last-level cache is: one core complex of Zen 3 to 5. Assumed.
const ASSUMED_LLC_BYTES: u64 = 32 << 20;

/// A processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processor {
    /// Model name.
    pub name: String,
    /// Last-level cache that the program's threads share, bytes.
    pub llc_bytes: u64,
    /// Which host it is in; empty where nobody told.
    pub host: String,
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
        Self { name, llc_bytes: llc_bytes.unwrap_or(ASSUMED_LLC_BYTES), host: String::new() }
    }

    /// Clock that the name states, GHz: `… @ 2.10GHz`.
    pub fn stated_ghz(&self) -> Option<f64> {
        let (_, clock) = self.name.rsplit_once('@')?;
        clock.trim().strip_suffix("GHz")?.trim().parse().ok().filter(|ghz| (0.1..20.0).contains(ghz))
    }
}
