//! Rules that say which object goes where: a placement that a person can read and edit.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::{Flaw, Flaws, Result, at_least};
use crate::file;
use crate::plan_memory::{self, PlanMemory};
use crate::site::Frame;

/// Which object goes where. File: `NAME.plan.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What this file is; absent in files that say their version only.
    #[serde(default)]
    pub kind: file::PlanTag,
    /// Format version.
    pub version: u32,
    /// Machine that the plan was made for.
    pub machine: String,
    /// Profile that the plan was made from.
    pub profile: String,
    /// Policy that made it.
    pub policy: String,
    /// Names of the machine's memories. Which node of another machine each is follows from `memories`.
    pub nodes: Vec<String>,
    /// What these memories are, in the order of `nodes`; empty in older files and where a person left
    /// it out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memories: Vec<PlanMemory>,
    /// What the plan should bring.
    pub predicted: Predicted,
    /// Where memory goes that no rule selects.
    pub default: Action,
    /// First rule that selects an object wins.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Stretches of the run with places of their own, in time order; empty where one place is best
    /// for the whole run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PlanPhase>,
}

/// A stretch of the run in which some objects live elsewhere. Memory is moved when it begins, if that
/// pays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanPhase {
    /// Name for people.
    pub name: String,
    /// When it begins, seconds from the start of the run.
    pub start_s: f64,
    /// Time that the new places save from here to the next phase, without what moving costs, s.
    pub gain_s: f64,
    /// Objects of `rules` and where each lives from here on; the others stay.
    pub moves: Vec<PhaseMove>,
}

/// One object's new place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseMove {
    /// The object of a rule.
    pub object: String,
    /// Where it goes.
    pub place: Action,
}

/// What a plan should bring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Predicted {
    /// Run time, s.
    pub time_s: f64,
    /// Lower end of the range, s.
    pub low_s: f64,
    /// Upper end of the range, s.
    pub high_s: f64,
    /// Threads that the time holds for.
    pub threads: u32,
    /// Bytes in each memory, in the order of `nodes`.
    pub bytes: Vec<u64>,
}

/// One object and its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Name in the profile, for people.
    pub object: String,
    /// Size in the profile, for people.
    pub size_bytes: u64,
    /// Which memory of the running program is meant.
    pub select: Selector,
    /// Where it goes.
    pub place: Action,
    /// What else is asked of the kernel.
    #[serde(default, skip_serializing_if = "RuleOptions::is_empty")]
    pub options: RuleOptions,
}

/// What is asked of the kernel beside an object's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleOptions {
    /// Pages stay where they are put: the kernel must not demote them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hold: bool,
    /// Whether the kernel may take hint faults on the object, and so migrate its pages; by default as
    /// the policy has it: only first touch has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint_faults: Option<bool>,
    /// Bytes that weights deal out at a time, a power of two; by default the object's own pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_bytes: Option<u64>,
}

// Serde hands over a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !value
}

/// Which memory of the running program is meant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Selector {
    /// Allocations with this call stack, innermost first, as `module@build-id+0xoffset`.
    Stack(Vec<String>),
    /// A static array, as `module:symbol`.
    Symbol(String),
    /// A mapped file.
    File(String),
    /// Allocations of at least this many bytes.
    SizeAtLeast(u64),
    /// Nothing that can be found in a running program: the object was described on paper.
    Name(String),
}

/// Where memory goes: the kernel's memory policies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// First touch: nothing is asked of the kernel.
    FirstTouch,
    /// Only on these nodes.
    Bind(Vec<String>),
    /// On this node while it has room.
    Prefer(String),
    /// On the nearest of these nodes that has room, and elsewhere when none has.
    PreferMany(Vec<String>),
    /// Page by page over these nodes.
    Interleave(Vec<String>),
    /// Runs of pages over nodes, by weight (1 to 255).
    Weighted(BTreeMap<String, u32>),
}

impl Plan {
    /// Reads and checks a plan; `file` is only named in errors.
    ///
    /// # Errors
    /// [`crate::ModelError`] with the file, the key, and what to do.
    pub fn from_toml(text: &str, file: &str) -> Result<Self> {
        let plan: Self = file::from_toml(text, file, "plan")?;
        plan.check().in_file(file)?;
        Ok(plan)
    }

    /// Writes the plan as a file that [`Plan::from_toml`] reads back unchanged.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_else(|error| unreachable!("a plan is always TOML: {error}"))
    }

    fn check(&self) -> Flaws {
        let mut flaws = Flaws::of([
            at_least("predicted.time_s", self.predicted.time_s, 0.0),
            plan_memory::check(&self.memories, &self.nodes),
        ]);
        flaws.part("default", self.default.check(&self.nodes));
        for (index, rule) in self.rules.iter().enumerate() {
            let place = format!("rules[{index}]");
            flaws.part(&format!("{place}.select"), rule.select.check());
            flaws.part(&format!("{place}.place"), rule.place.check(&self.nodes));
            flaws.part(&format!("{place}.options"), rule.options.check());
        }
        self.check_phases(&mut flaws);
        flaws
    }

    /// Names of the memories that something is placed in, at the start or in a phase.
    pub fn used_memories(&self) -> BTreeSet<&str> {
        let rules = self.rules.iter().map(|rule| &rule.place);
        let moves = self.phases.iter().flat_map(|phase| &phase.moves).map(|moved| &moved.place);
        let places = [&self.default].into_iter().chain(rules).chain(moves);
        places.flat_map(Action::weights).map(|(name, _)| name).collect()
    }

    fn check_phases(&self, flaws: &mut Flaws) {
        let mut before = 0.0;
        for (index, phase) in self.phases.iter().enumerate() {
            let place = format!("phases[{index}]");
            let times = [at_least("start_s", phase.start_s, before), at_least("gain_s", phase.gain_s, 0.0)];
            flaws.part(&place, Flaws::of(times));
            before = phase.start_s.max(before);
            for (index, moved) in phase.moves.iter().enumerate() {
                let place = format!("{place}.moves[{index}]");
                if !self.rules.iter().any(|rule| rule.object == moved.object) {
                    let problem = format!("no rule is about `{}`", moved.object);
                    flaws.part(&place, Err(Flaw::new("object", problem, "name the object of one of `rules`")));
                }
                flaws.part(&format!("{place}.place"), moved.place.check(&self.nodes));
            }
        }
    }

    /// The plan as it is from the beginning of this phase on: the rules with the places of all phases
    /// up to it.
    #[must_use]
    pub fn at_phase(&self, phase: usize) -> Self {
        let mut plan = self.clone();
        for moved in self.phases.iter().take(phase + 1).flat_map(|phase| &phase.moves) {
            for rule in plan.rules.iter_mut().filter(|rule| rule.object == moved.object) {
                rule.place = moved.place.clone();
            }
        }
        plan.phases.clear();
        plan
    }
}

impl RuleOptions {
    /// Whether nothing is asked.
    // Serde hands over a reference.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn check(self) -> Result<(), Flaw> {
        match self.unit_bytes {
            Some(bytes) if !bytes.is_power_of_two() || !(4096..=1 << 30).contains(&bytes) => Err(Flaw::new(
                "unit_bytes",
                format!("{bytes} is not a power of two from 4096 to 1073741824"),
                "leave the key out for the object's own pages",
            )),
            _ => Ok(()),
        }
    }
}

impl Selector {
    fn check(&self) -> Result<(), Flaw> {
        let Selector::Stack(frames) = self else { return Ok(()) };
        if frames.is_empty() {
            return Err(Flaw::new("stack", "there is no frame", "give at least the innermost frame"));
        }
        for frame in frames {
            frame.parse::<Frame>().map_err(|problem| Flaw::new("stack", problem, "copy frames from the profile"))?;
        }
        Ok(())
    }
}

impl Action {
    /// Nodes that the action names, with their weights.
    pub fn weights(&self) -> Vec<(&str, u32)> {
        match self {
            Action::FirstTouch => Vec::new(),
            Action::Prefer(node) => vec![(node, 1)],
            Action::Bind(nodes) | Action::PreferMany(nodes) | Action::Interleave(nodes) => {
                nodes.iter().map(|node| (node.as_str(), 1)).collect()
            }
            Action::Weighted(weights) => weights.iter().map(|(node, weight)| (node.as_str(), *weight)).collect(),
        }
    }

    fn check(&self, nodes: &[String]) -> Result<(), Flaw> {
        let weights = self.weights();
        if weights.is_empty() && *self != Action::FirstTouch {
            return Err(Flaw::new("", "no node is named", "name at least one node"));
        }
        for (node, weight) in weights {
            if !nodes.iter().any(|known| known == node) {
                let hint = format!("use one of: {}", nodes.join(", "));
                return Err(Flaw::new("", format!("there is no node `{node}`"), hint));
            }
            if !(1..=255).contains(&weight) {
                return Err(Flaw::new("", format!("weight {weight} of `{node}` is not 1 to 255"), "scale the weights"));
            }
        }
        Ok(())
    }
}
