//! A workload: what the simulator is told about a program.
//!
//! Stands between a profile, a published description or a synthetic pattern on one side and the two
//! evaluators on the other. A workload is regions of memory (what the kernel calls VMAs), in the
//! order in which they are first touched, and phases that visit their pages at given rates. A *visit*
//! is what the page table sees: one access to a page, or one run of accesses that a stream makes
//! before it goes on to the next page. Bytes are those that miss the last-level cache.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tierloom_model::{FORMAT_VERSION, Pattern};

use crate::error::{Result, TieringError};
use crate::filling::{self, Fill};

/// What a program does with its memory. File: `NAME.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Format version.
    pub version: u32,
    /// Short name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Where the description comes from, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// Threads that the description holds for.
    pub threads: u32,
    /// Whether the thread that the process began with works as the others do (OpenMP) or waits for them.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub main_works: bool,
    /// Threads that touch its memory first, side by side.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub filled_by: u32,
    /// Memory, in the order of first touch.
    pub regions: Vec<Region>,
    /// How memory fills, where regions do so side by side or other memory is there meanwhile; one region after
    /// the other without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filling: Vec<Fill>,
    /// Stretches of the run, one after the other.
    pub phases: Vec<Phase>,
}

/// A mapping: what the kernel keeps one policy for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Unique within the workload.
    pub name: String,
    /// Bytes; rounded up to pages.
    pub size_bytes: u64,
    /// Whether kswapd leaves it alone (`mlock`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub locked: bool,
    /// Where the size comes from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

/// A stretch of the run with one behaviour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Name for people.
    pub name: String,
    /// Threads that share the work.
    pub threads: u32,
    /// CPU time of all threads without waiting for memory beyond the last-level cache, s.
    pub compute_s: f64,
    /// How the pages are visited.
    pub streams: Vec<Stream>,
}

/// Visits of one kind to one region during one phase, all threads together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Name of the region.
    pub region: String,
    /// Part of the region that is visited, from 0 to 1 of its pages.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub part: [f64; 2],
    /// Which pages are visited how often.
    pub spread: Spread,
    /// How consecutive accesses follow each other; decides what a core keeps in flight.
    pub pattern: Pattern,
    /// Page visits over the whole phase.
    pub visits: f64,
    /// Bytes read from memory over the whole phase.
    pub read_bytes: f64,
    /// Bytes written back over the whole phase.
    pub write_bytes: f64,
    /// Misses that one thread keeps in flight.
    pub mlp: f64,
    /// Whether threads meet each other's pages though they go in order, as where loops are scheduled dynamically.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared: bool,
    /// Where the numbers come from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

/// Which pages of a part are visited how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Spread {
    /// One after the other, again and again.
    Sweep,
    /// Each as often as any other, at random.
    Uniform,
    /// By rank `r` in proportion to `r^-theta`, ranks in the order of addresses.
    Zipf(f64),
    /// The same with ranks scattered over the addresses.
    Scattered(f64),
    /// Shares of equal parts of the pages, hottest first, scattered over the addresses.
    Bins(Vec<f64>),
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_yes(flag: &bool) -> bool {
    *flag
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

fn whole() -> [f64; 2] {
    [0.0, 1.0]
}

fn is_whole(part: &[f64; 2]) -> bool {
    part[0] <= 0.0 && part[1] >= 1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Largest region: what 31 bits of page numbers hold.
const MOST_BYTES: u64 = 1 << 43;

impl Workload {
    /// Reads and checks a workload file; `file` is only named in errors.
    ///
    /// # Errors
    /// [`TieringError::BadWorkload`] with the place and what to do.
    pub fn from_toml(text: &str, file: &str) -> Result<Self> {
        let bad = |problem: String, hint: &str| TieringError::BadWorkload {
            file: file.to_owned(),
            problem,
            hint: hint.to_owned(),
        };
        let workload: Self = toml::from_str(text)
            .map_err(|error| bad(error.to_string().trim_end().to_owned(), "mend the text at the place named above"))?;
        workload.check().map_err(|(problem, hint)| bad(problem, &hint))?;
        Ok(workload)
    }

    /// The name that a trace goes by.
    pub(crate) fn of_one_region() -> Self {
        let region = Region { name: "trace".to_owned(), size_bytes: 1, locked: false, source: String::new() };
        let (name, title) = ("trace".to_owned(), "an access trace".to_owned());
        let (regions, phases) = (vec![region], Vec::new());
        Self {
            version: FORMAT_VERSION,
            name,
            title,
            sources: BTreeMap::new(),
            threads: 1,
            main_works: true,
            filled_by: 1,
            filling: Vec::new(),
            regions,
            phases,
        }
    }

    /// Position of a region by name.
    pub fn region_index(&self, name: &str) -> Option<usize> {
        self.regions.iter().position(|region| region.name == name)
    }

    /// Bytes of all regions.
    pub fn footprint_bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.size_bytes).sum()
    }

    /// What is wrong with it and what to do, if anything.
    pub(crate) fn check(&self) -> Result<(), (String, String)> {
        if self.version != FORMAT_VERSION {
            let problem =
                format!("version: this is version {}, and this tierloom reads {FORMAT_VERSION}", self.version);
            return Err((problem, "write the file again, or update tierloom".to_owned()));
        }
        let mut names = BTreeSet::new();
        for (index, region) in self.regions.iter().enumerate() {
            if region.name.is_empty() || !names.insert(region.name.as_str()) {
                let problem = format!("regions[{index}].name: `{}` is empty or used twice", region.name);
                return Err((problem, "give every region its own name".to_owned()));
            }
            if region.size_bytes == 0 || region.size_bytes > MOST_BYTES {
                let problem = format!("regions[{index}].size_bytes: {} is not 1 to 2^43", region.size_bytes);
                return Err((problem, "check the number and its unit".to_owned()));
            }
        }
        let total = self.regions.iter().fold(0u64, |sum, region| sum.saturating_add(region.size_bytes));
        if self.filled_by == 0 {
            return Err(("filled_by: no thread touches the memory".to_owned(), "give 1 thread or more".to_owned()));
        }
        if self.regions.is_empty() || self.phases.is_empty() || total > MOST_BYTES {
            let problem =
                format!("{} regions of {total} bytes in all, {} phases", self.regions.len(), self.phases.len());
            return Err((problem, "give at least one of each and no more than 2^43 bytes".to_owned()));
        }
        filling::check(self)?;
        self.phases.iter().enumerate().try_for_each(|(index, phase)| {
            phase.check(&names).map_err(|(problem, hint)| (format!("phases[{index}].{problem}"), hint))
        })
    }
}

impl Phase {
    fn check(&self, regions: &BTreeSet<&str>) -> Result<(), (String, String)> {
        if self.threads == 0 || !at_least_zero(self.compute_s) {
            let problem = format!("threads {} and compute_s {} make no phase", self.threads, self.compute_s);
            return Err((problem, "give 1 thread or more, and seconds of at least 0".to_owned()));
        }
        for (index, stream) in self.streams.iter().enumerate() {
            if !regions.contains(stream.region.as_str()) {
                let problem = format!("streams[{index}].region: there is no region `{}`", stream.region);
                return Err((problem, "use the name of one of `regions`".to_owned()));
            }
            stream.check().map_err(|(problem, hint)| (format!("streams[{index}].{problem}"), hint))?;
        }
        Ok(())
    }
}

impl Stream {
    fn check(&self) -> Result<(), (String, String)> {
        let [from, to] = self.part;
        if !(0.0 <= from && from < to && to <= 1.0) {
            return Err((format!("part: {from} to {to} is no part"), "write for example [0.0, 0.5]".to_owned()));
        }
        for (key, value) in
            [("visits", self.visits), ("read_bytes", self.read_bytes), ("write_bytes", self.write_bytes)]
        {
            if !at_least_zero(value) {
                return Err((format!("{key}: {value} is not a number of at least 0"), "check the number".to_owned()));
            }
        }
        if !(self.mlp.is_finite() && self.mlp > 0.0) {
            return Err((format!("mlp: {} is not a number above 0", self.mlp), "write 1 for a chain".to_owned()));
        }
        self.spread.check()
    }
}

impl Spread {
    fn check(&self) -> Result<(), (String, String)> {
        match self {
            Spread::Zipf(theta) | Spread::Scattered(theta) if !(0.0..=4.0).contains(theta) => {
                Err((format!("spread: an exponent of {theta} is not 0 to 4"), "write for example 0.99".to_owned()))
            }
            Spread::Bins(shares) => {
                let sum: f64 = shares.iter().sum();
                let ok =
                    (1..=64).contains(&shares.len()) && shares.iter().all(|s| *s >= 0.0) && (sum - 1.0).abs() < 1e-6;
                let problem = || format!("spread: {} shares with sum {sum}", shares.len());
                if ok { Ok(()) } else { Err((problem(), "give 1 to 64 shares with sum 1".to_owned())) }
            }
            _ => Ok(()),
        }
    }
}

fn at_least_zero(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}
