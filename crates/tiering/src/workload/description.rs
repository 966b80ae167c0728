//! A workload: what the simulator is told about a program.
//!
//! Stands between a profile, a published description or a synthetic pattern on one side and the two
//! evaluators on the other. A workload is regions of memory (what the kernel calls VMAs), in the
//! order in which they are first touched, and phases that visit their pages at given rates. A *visit*
//! is what the page table sees: one access to a page, or one run of accesses that a stream makes
//! before it goes on to the next page. Bytes are those that miss the last-level cache.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tierloom_model::{FORMAT_VERSION, Pattern};

/// The tag in the first key of a workload's file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadTag {
    /// `workload`.
    #[default]
    Workload,
}

/// What a program does with its memory. File: `NAME.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What this file is; absent in files that say their version only.
    #[serde(default)]
    pub kind: WorkloadTag,
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkloadPhase")]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// What a run waited, over what its lines, their misses in flight and the latency make of it.
    #[serde(default = "unchanged", skip_serializing_if = "is_unchanged")]
    pub wait_factor: f64,
    /// Whether threads meet each other's pages though they go in order, as where loops are scheduled dynamically.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared: bool,
    /// Where the numbers come from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

/// Which pages of a part are visited how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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

fn unchanged() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, clippy::float_cmp, reason = "serde asks for a reference; one is exact")]
fn is_unchanged(factor: &f64) -> bool {
    *factor == 1.0
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

/// One step of filling, in the order of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Fill {
    /// The next pages of a region are touched for the first time.
    Touch {
        /// Name of the region.
        region: String,
        /// Share of its pages.
        #[serde(default = "all_of_it", skip_serializing_if = "is_all_of_it")]
        share: f64,
    },
    /// Memory that is there only until it is freed; no phase knows it.
    Take(Region),
    /// All of what was taken under this name is given back.
    Free(String),
}

fn all_of_it() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_all_of_it(share: &f64) -> bool {
    *share >= 1.0
}

impl Workload {
    /// The name that a trace goes by.
    pub(crate) fn of_one_region() -> Self {
        let region = Region { name: "trace".to_owned(), size_bytes: 1, locked: false, source: String::new() };
        let (name, title) = ("trace".to_owned(), "an access trace".to_owned());
        let (regions, phases) = (vec![region], Vec::new());
        Self {
            kind: WorkloadTag::Workload,
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

    /// Positions of all regions by name.
    pub(crate) fn region_indices(&self) -> BTreeMap<&str, usize> {
        self.regions.iter().enumerate().map(|(index, region)| (region.name.as_str(), index)).collect()
    }

    /// By region, its streams in all phases, each with its phase.
    pub(crate) fn streams_by_region(&self) -> Vec<Vec<(&Phase, &Stream)>> {
        let (indices, mut streams) = (self.region_indices(), vec![Vec::new(); self.regions.len()]);
        for phase in &self.phases {
            for stream in &phase.streams {
                if let Some(region) = indices.get(stream.region.as_str()) {
                    streams[*region].push((phase, stream));
                }
            }
        }
        streams
    }

    /// Bytes of all regions.
    pub fn footprint_bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.size_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_beside_the_python_types_is_that_of_the_workload() {
        let kept = include_str!("../../../../python/tierloom/schema/workload.json");
        let again = "cargo run -p tierloom-tiering --example schema > python/tierloom/schema/workload.json";
        assert!(
            kept.trim_end() == tierloom_model::schemas_of::<Workload>(),
            "{again} && python tools/file_reference.py"
        );
    }
}
