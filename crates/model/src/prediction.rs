//! What engines answer.

use serde::{Deserialize, Serialize};

use crate::plan::Action;

/// How long a program takes under a placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Prediction {
    /// Run time, s.
    pub time_s: f64,
    /// Lower end of the range, s.
    pub low_s: f64,
    /// Upper end of the range, s.
    pub high_s: f64,
    /// Part of the time without waiting for memory, s.
    pub compute_s: f64,
    /// Part of the time spent waiting for memory, s.
    pub stall_s: f64,
    /// What keeps it from being faster, over the whole run.
    pub bound: Bound,
    /// By phase, in the profile's order; their times add up to the run's. Absent in answers of before.
    #[serde(default)]
    pub phases: Vec<PhasePrediction>,
    /// By memory, in the machine's order.
    pub tiers: Vec<TierUse>,
    /// By object, in the profile's order.
    pub objects: Vec<ObjectUse>,
    /// What was taken for granted, for the reader.
    pub assumptions: Vec<String>,
}

/// What keeps a program, or a phase of it, from being faster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// Most time goes to computing.
    Compute,
    /// Most time goes to waiting for single accesses.
    Latency,
    /// Most time goes to the extra waiting that this memory's or link's load brings.
    Bandwidth(String),
}

/// What one phase comes to under a placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PhasePrediction {
    /// Phase.
    pub phase: String,
    /// Its time, s.
    pub time_s: f64,
    /// Part of that without waiting for memory, s.
    pub compute_s: f64,
    /// What keeps it from being faster.
    pub bound: Bound,
    /// Bytes read and written in its time, GB/s, by memory, in the machine's order.
    pub gb_s: Vec<f64>,
}

/// What one memory does under a placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TierUse {
    /// Memory.
    pub memory: String,
    /// Bytes placed there.
    pub placed_bytes: f64,
    /// Bytes read from it.
    pub read_bytes: f64,
    /// Bytes written to it.
    pub write_bytes: f64,
    /// Bytes read and written over the run time, GB/s.
    pub gb_s: f64,
    /// The same over the peak at that read fraction: the share of the run time that they take at least.
    pub utilisation: f64,
    /// Latency at rest, ns.
    pub idle_ns: f64,
    /// Latency under this load, in the time in which the memory is in use, ns.
    pub loaded_ns: f64,
}

/// What one object costs under a placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ObjectUse {
    /// Object.
    pub object: String,
    /// Time a thread waits for it, s.
    pub stall_s: f64,
    /// Its share of the run time.
    pub share: f64,
}

/// Every policy on one profile and machine, and what was chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Comparison {
    /// Machine.
    pub machine: String,
    /// Profile.
    pub profile: String,
    /// Socket where the threads run.
    pub socket: String,
    /// Threads.
    pub threads: u32,
    /// How predictions stand to the run that the profile was made from; absent where they are not anchored to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Anchor>,
    /// Fast memory is this one.
    pub fast_memory: String,
    /// Fast memory that could be used, bytes.
    pub budget_bytes: u64,
    /// Policies in the order they were tried.
    pub policies: Vec<PolicyResult>,
    /// Name of the policy that was chosen.
    pub chosen: String,
    /// Objects that no rule of a plan can select, by name: small ones, and pages of files. They are where the thread that
    /// touches them first is told to put memory, under every policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unselected: Vec<String>,
    /// Least time by amount of fast memory, growing in memory, falling in time.
    pub frontier: Vec<FrontierPoint>,
}

/// The run that predictions are anchored to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Anchor {
    /// Machine that it ran on.
    pub machine: String,
    /// Threads that it had.
    pub threads: u32,
    /// What it takes, s: the median of runs without the profiler, or the profiled one less what others and the profiler took.
    pub measured_s: f64,
    /// The least of 95 % of further runs, s; of the profiled one alone, if its threads wait for each other at every step.
    pub least_s: f64,
    /// The most of 95 % of further runs, s; of the profiled one alone, if its threads never meet.
    pub most_s: f64,
    /// Runs without the profiler that this is known from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unprofiled_runs: Option<usize>,
    /// What the model gives for it without knowing that, s.
    pub modelled_s: f64,
}

/// What one policy brings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PolicyResult {
    /// Name as on the command line.
    pub policy: String,
    /// What it does, in one line.
    pub about: String,
    /// Its result, or why it cannot be used here: `prediction` or `refused` in a file.
    #[serde(flatten, with = "outcome")]
    #[schemars(with = "outcome::Read")]
    pub outcome: Result<Prediction, String>,
    /// Bytes of fast memory that it takes.
    pub fast_bytes: f64,
    /// By object, fractions by memory; empty when it cannot be used.
    pub fractions: Vec<Vec<f64>>,
    /// By object, what to ask of the kernel; empty when it cannot be used.
    pub actions: Vec<Action>,
}

/// A result as the files have it: under a key that says which of the two it is.
mod outcome {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Prediction;

    #[derive(Serialize, schemars::JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Written<'a> {
        Prediction(&'a Prediction),
        Refused(&'a str),
    }

    #[derive(Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub(super) enum Read {
        Prediction(Prediction),
        Refused(String),
    }

    pub(super) fn serialize<S: Serializer>(outcome: &Result<Prediction, String>, to: S) -> Result<S::Ok, S::Error> {
        match outcome {
            Ok(prediction) => Written::Prediction(prediction).serialize(to),
            Err(why) => Written::Refused(why).serialize(to),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Result<Prediction, String>, D::Error> {
        Ok(match Read::deserialize(from)? {
            Read::Prediction(prediction) => Ok(prediction),
            Read::Refused(why) => Err(why),
        })
    }
}

/// One point of the trade between fast memory and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FrontierPoint {
    /// Fast memory used, bytes.
    pub fast_bytes: f64,
    /// Least run time with that much, s.
    pub time_s: f64,
    /// Run time over the least that was found with any amount of fast memory, which is the last point's.
    pub slowdown: f64,
    /// Share of each object that is in fast memory then, to four decimals, in the profile's order. Absent in answers of
    /// before.
    #[serde(default)]
    pub fast_shares: Vec<f64>,
}
