//! What a phase does with one object in one pattern.
//!
//! With the object's [`crate::Object::miss_curve`] the lines touched tell what another last-level cache than that of the run
//! would let through.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::error::{Flaw, at_least, fraction, positive};
use crate::figure::Origin;

/// How consecutive accesses of one kind follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Consecutive lines: the hardware prefetches them.
    Stream,
    /// A constant stride beyond a line.
    Strided,
    /// Unpredictable but independent addresses.
    Random,
    /// Each address comes from the data before it.
    Chain,
}

impl Pattern {
    /// Whether its next line is not told by the ones before: random latency is what it meets.
    pub fn is_random(self) -> bool {
        matches!(self, Pattern::Random | Pattern::Chain)
    }
}

/// Accesses of one pattern to one object during one phase, all threads together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Name of the object.
    pub object: String,
    /// How the accesses follow each other.
    pub pattern: Pattern,
    /// Elements loaded: a vector of four doubles counts four.
    pub reads: f64,
    /// Elements stored.
    pub writes: f64,
    /// Bytes loaded.
    pub read_bytes: f64,
    /// Bytes stored.
    pub write_bytes: f64,
    /// Bytes that came from memory into the last-level cache, fetches for stores included.
    pub dram_read_bytes: f64,
    /// Bytes written back to memory.
    pub dram_write_bytes: f64,
    /// Between which factors of them they lie, with 95 % probability; absent where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_within: Option<Within>,
    /// Misses that one thread keeps in flight, of those that it waits for; engines cap it by what the core can do.
    pub mlp: f64,
    /// What it touched, whatever cache that was found in; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touched: Option<Touched>,
    /// CPU time of all threads that was seen to wait for these lines from memory, s; absent where that was not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<f64>,
    /// That waiting over what lines, misses in flight and latency come to on the machine of the run; absent, and 1, where
    /// that machine was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_factor: Option<f64>,
    /// Where the numbers come from, when they were not measured in this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// Factors on a figure, between which the truth lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Within {
    /// 0 to 1.
    pub low: f64,
    /// 1 or more.
    pub high: f64,
}

/// Lines that an access pattern touched, whatever cache they were found in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Touched {
    /// Bytes of the lines touched, a line as often as the program comes back to it from somewhere else.
    pub bytes: f64,
    /// Part of `dram_read_bytes` that the kernel brought into the cache when it filled the pages: nobody waits for it.
    pub filled_bytes: f64,
    /// Misses that one thread would keep in flight if every touch missed.
    pub mlp: f64,
    /// What the caches before the last level let through, by the time that was seen to be waited; absent where the machine
    /// of the run was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond_core: Option<BeyondCore>,
    /// CPU time of all threads that was seen to wait for these lines from caches, s; the phase's `compute_s` holds it.
    pub cache_wait_s: f64,
}

/// Lines that there was time to wait for, over those of independent touches; more than 1 tells nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeyondCore {
    /// The likely part, 0 or more.
    pub likely: f64,
    /// The most.
    pub high: f64,
}

impl BeyondCore {
    fn check(&self) -> Result<(), Flaw> {
        at_least("likely", self.likely, 0.0)?;
        at_least("high", self.high, self.likely)
    }
}

impl Access {
    /// Bytes from memory that the kernel brought into the cache before the program touched them.
    pub fn filled_bytes(&self) -> f64 {
        self.touched.map_or(0.0, |touched| touched.filled_bytes.min(self.dram_read_bytes))
    }

    pub(crate) fn check(&self, objects: &BTreeSet<&str>) -> Result<(), Flaw> {
        if !objects.contains(self.object.as_str()) {
            let problem = format!("there is no object `{}`", self.object);
            return Err(Flaw::new("object", problem, "use the name of one of `objects`"));
        }
        at_least("reads", self.reads, 0.0)?;
        at_least("writes", self.writes, 0.0)?;
        at_least("read_bytes", self.read_bytes, 0.0)?;
        at_least("write_bytes", self.write_bytes, 0.0)?;
        at_least("dram_read_bytes", self.dram_read_bytes, 0.0)?;
        at_least("dram_write_bytes", self.dram_write_bytes, 0.0)?;
        at_least("wait_s", self.wait_s.unwrap_or(0.0), 0.0)?;
        at_least("wait_factor", self.wait_factor.unwrap_or(0.0), 0.0)?;
        if let Some(Within { low, high }) = self.traffic_within {
            fraction("traffic_within.low", low)?;
            at_least("traffic_within.high", high, 1.0)?;
        }
        positive("mlp", self.mlp)?;
        self.touched
            .map_or(Ok(()), |touched| touched.check(self.dram_read_bytes).map_err(|flaw| flaw.within("touched")))
    }
}

impl Touched {
    fn check(&self, dram_read_bytes: f64) -> Result<(), Flaw> {
        at_least("bytes", self.bytes, 0.0)?;
        at_least("filled_bytes", self.filled_bytes, 0.0)?;
        at_least("cache_wait_s", self.cache_wait_s, 0.0)?;
        self.beyond_core.map_or(Ok(()), |part| part.check().map_err(|flaw| flaw.within("beyond_core")))?;
        positive("mlp", self.mlp)?;
        // Sums of parts may differ from parts of sums in their last digits.
        if self.filled_bytes > dram_read_bytes * (1.0 + 1e-9) {
            let problem = format!("{} bytes are more than all that came from memory", self.filled_bytes);
            return Err(Flaw::new("filled_bytes", problem, "it is a part of `dram_read_bytes`"));
        }
        Ok(())
    }
}
