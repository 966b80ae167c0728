//! What is wrong with a workload: read once, checked once, at the door.

use std::collections::BTreeSet;

use tierloom_model::{FORMAT_VERSION, another_kind};

use super::description::{Phase, Spread, Stream, Workload};
use super::filling;
use crate::error::{Flaw, Result};

/// Largest region: what 31 bits of page numbers hold.
const MOST_BYTES: u64 = 1 << 43;

impl Workload {
    /// Reads and checks a workload file; `file` is only named in errors.
    ///
    /// # Errors
    /// [`TieringError::BadWorkload`](crate::TieringError::BadWorkload) with the place and what to do.
    pub fn from_toml(text: &str, file: &str) -> Result<Self> {
        let syntax = |error: toml::de::Error| {
            Flaw::new(error.to_string().trim_end(), "mend the text at the place named above").of_workload(file)
        };
        let head: toml::Table = toml::from_str(text).map_err(syntax)?;
        let kind = head.get("kind").and_then(toml::Value::as_str);
        if let Some((problem, hint)) = another_kind(kind, "workload") {
            return Err(Flaw::new(format!("kind: {problem}"), hint).of_workload(file));
        }
        let workload: Self = toml::from_str(text).map_err(syntax)?;
        workload.check().map_err(|flaw| flaw.of_workload(file))?;
        Ok(workload)
    }

    /// What is wrong with it, if anything.
    pub(crate) fn check(&self) -> Result<(), Flaw> {
        if self.version != FORMAT_VERSION {
            let problem =
                format!("version: this is version {}, and this tierloom reads {FORMAT_VERSION}", self.version);
            return Err(Flaw::new(problem, "write the file again, or update tierloom"));
        }
        let names = self.check_regions()?;
        let total = self.regions.iter().fold(0u64, |sum, region| sum.saturating_add(region.size_bytes));
        if self.filled_by == 0 {
            return Err(Flaw::new("filled_by: no thread touches the memory", "give 1 thread or more"));
        }
        if self.regions.is_empty() || self.phases.is_empty() || total > MOST_BYTES {
            let problem =
                format!("{} regions of {total} bytes in all, {} phases", self.regions.len(), self.phases.len());
            return Err(Flaw::new(problem, "give at least one of each and no more than 2^43 bytes"));
        }
        filling::check(self)?;
        self.phases.iter().enumerate().try_for_each(|(index, phase)| {
            phase.check(&names).map_err(|flaw| flaw.within(&format!("phases[{index}].")))
        })
    }

    /// The regions' names, each used once.
    fn check_regions(&self) -> Result<BTreeSet<&str>, Flaw> {
        let mut names = BTreeSet::new();
        for (index, region) in self.regions.iter().enumerate() {
            if region.name.is_empty() || !names.insert(region.name.as_str()) {
                let problem = format!("regions[{index}].name: `{}` is empty or used twice", region.name);
                return Err(Flaw::new(problem, "give every region its own name"));
            }
            if region.size_bytes == 0 || region.size_bytes > MOST_BYTES {
                let problem = format!("regions[{index}].size_bytes: {} is not 1 to 2^43", region.size_bytes);
                return Err(Flaw::new(problem, "check the number and its unit"));
            }
        }
        Ok(names)
    }
}

impl Phase {
    fn check(&self, regions: &BTreeSet<&str>) -> Result<(), Flaw> {
        if self.threads == 0 || !at_least_zero(self.compute_s) {
            let problem = format!("threads {} and compute_s {} make no phase", self.threads, self.compute_s);
            return Err(Flaw::new(problem, "give 1 thread or more, and seconds of at least 0"));
        }
        for (index, stream) in self.streams.iter().enumerate() {
            if !regions.contains(stream.region.as_str()) {
                let problem = format!("streams[{index}].region: there is no region `{}`", stream.region);
                return Err(Flaw::new(problem, "use the name of one of `regions`"));
            }
            stream.check().map_err(|flaw| flaw.within(&format!("streams[{index}].")))?;
        }
        Ok(())
    }
}

impl Stream {
    fn check(&self) -> Result<(), Flaw> {
        let [from, to] = self.part;
        if !(0.0 <= from && from < to && to <= 1.0) {
            return Err(Flaw::new(format!("part: {from} to {to} is no part"), "write for example [0.0, 0.5]"));
        }
        for (key, value) in [
            ("visits", self.visits),
            ("read_bytes", self.read_bytes),
            ("write_bytes", self.write_bytes),
            ("wait_factor", self.wait_factor),
        ] {
            if !at_least_zero(value) {
                return Err(Flaw::new(format!("{key}: {value} is not a number of at least 0"), "check the number"));
            }
        }
        if !(self.mlp.is_finite() && self.mlp > 0.0) {
            return Err(Flaw::new(format!("mlp: {} is not a number above 0", self.mlp), "write 1 for a chain"));
        }
        self.spread.check()
    }
}

impl Spread {
    fn check(&self) -> Result<(), Flaw> {
        match self {
            Spread::Zipf(theta) | Spread::Scattered(theta) if !(0.0..=4.0).contains(theta) => {
                Err(Flaw::new(format!("spread: an exponent of {theta} is not 0 to 4"), "write for example 0.99"))
            }
            Spread::Bins(shares) => {
                let sum: f64 = shares.iter().sum();
                let ok =
                    (1..=64).contains(&shares.len()) && shares.iter().all(|s| *s >= 0.0) && (sum - 1.0).abs() < 1e-6;
                let problem = || format!("spread: {} shares with sum {sum}", shares.len());
                if ok { Ok(()) } else { Err(Flaw::new(problem(), "give 1 to 64 shares with sum 1")) }
            }
            _ => Ok(()),
        }
    }
}

fn at_least_zero(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}
