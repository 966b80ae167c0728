//! What a simulation is asked: policy, placement, part of the machine; checked against both.

use serde::{Deserialize, Serialize};
use tierloom_model::{Machine, Plan, Socket};

use crate::engine::costs::Costs;
use crate::engine::host::Setup;
use crate::engine::layout::Layout;
use crate::error::{Result, TieringError};
use crate::kernel::nodes::{Nodes, TierRule};
use crate::kernel::reclaim::LruKind;
use crate::kernel::vma::VmaPolicy;
use crate::placement::named;
use crate::policy::{self, Brought, Policy};
use crate::workload::Workload;

/// Name of our own placement, which stands where the name of a policy does.
pub const OURS: &str = "tierloom";

/// How a run is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evaluator {
    /// Whatever the size of the run allows, exact first.
    #[default]
    Auto,
    /// Page by page.
    Exact,
    /// Expected states of like pages.
    Cohort,
}

/// A policy, a placement, and the part of the machine that may be used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Name of the policy; `tierloom` is ours.
    pub policy: String,
    /// The policy itself, where the caller brings it along; `policy` is its name then.
    #[serde(skip)]
    pub brought: Option<Brought>,
    /// Knobs of the policy by name.
    #[serde(default)]
    pub knobs: Vec<(String, f64)>,
    /// Name of the placement.
    #[serde(default)]
    pub placement: Option<String>,
    /// Text of a plan file instead of a placement.
    #[serde(default)]
    pub plan: Option<String>,
    /// Memories that may be used; all that the socket reaches by default.
    #[serde(default)]
    pub nodes: Option<Vec<String>>,
    /// Socket of the threads; the machine's first by default.
    #[serde(default)]
    pub socket: Option<String>,
    /// Bytes of the nearest memory that may be used.
    #[serde(default)]
    pub fast_bytes: Option<u64>,
    /// Evaluator.
    #[serde(default)]
    pub evaluator: Evaluator,
    /// How the kernel sorts nodes into tiers; as the policy's own kernel does by default.
    #[serde(default)]
    pub tiers: Option<TierRule>,
    /// How kswapd keeps its lists.
    #[serde(default)]
    pub lru: LruKind,
    /// Costs of events; documented defaults without.
    #[serde(default)]
    pub costs: Option<Costs>,
    /// Seed of the visits; only the exact evaluator draws any.
    #[serde(default)]
    pub seed: u64,
}

/// A checked request.
pub(crate) struct Setting<'a> {
    pub(crate) socket: &'a Socket,
    pub(crate) nodes: Nodes,
    pub(crate) costs: Costs,
}

impl Setting<'_> {
    /// A run on these nodes, whose length nobody has guessed yet.
    pub(crate) fn setup<'a>(
        &'a self,
        layout: Layout,
        policy: &'a mut dyn Policy,
        lru: LruKind,
        threads: u32,
    ) -> Setup<'a> {
        Setup { nodes: &self.nodes, layout, policy, costs: self.costs.clone(), lru, threads, expected_s: 1.0 }
    }
}

impl Request {
    /// A request for a policy with everything else by default.
    pub fn of(policy: &str) -> Self {
        Self { policy: policy.to_owned(), ..Self::default() }
    }

    pub(crate) fn setting<'a>(&self, machine: &'a Machine) -> Result<Setting<'a>> {
        let socket = match &self.socket {
            None => 0,
            Some(name) => machine.socket_index(name).ok_or_else(|| {
                let known: Vec<&str> = machine.sockets.iter().map(|socket| socket.name.as_str()).collect();
                let problem = format!("machine `{}` has no socket `{name}`", machine.name);
                TieringError::request("socket", problem, format!("use one of: {}", known.join(", ")))
            })?,
        };
        let memories = match &self.nodes {
            None => (0..machine.memories.len()).collect(),
            Some(names) => names.iter().map(|name| memory(machine, name)).collect::<Result<Vec<usize>>>()?,
        };
        let tiers = self.tiers.map_or_else(|| self.policy().map(|policy| policy.tiers()), Ok)?;
        let nodes = Nodes::new(machine, socket, &memories, self.fast_bytes, tiers)?;
        if nodes.len() > 7 {
            let problem = format!("{} memories are more than the simulator tells apart", nodes.len());
            return Err(TieringError::request("nodes", problem, "name at most seven"));
        }
        Ok(Setting { socket: &machine.sockets[socket], nodes, costs: self.costs.clone().unwrap_or_default() })
    }

    /// The policy with its knobs, told where it is.
    pub(crate) fn policy_on(&self, nodes: &Nodes) -> Result<Box<dyn Policy>> {
        let mut policy = self.policy()?;
        policy.meet(nodes);
        Ok(policy)
    }

    fn policy(&self) -> Result<Box<dyn Policy>> {
        let mut policy = match &self.brought {
            Some(brought) => brought.make(),
            None => policy::by_name(if self.policy == OURS { "none" } else { &self.policy })?,
        };
        for (name, value) in &self.knobs {
            if !value.is_finite() || *value < 0.0 || !policy.set(name, *value) {
                let known: Vec<String> = policy.knobs().into_iter().map(|knob| knob.name).collect();
                let known =
                    if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
                return Err(TieringError::request(
                    "knob",
                    format!("`{}` has no knob `{name}` that takes {value}", self.policy),
                    known,
                ));
            }
        }
        Ok(policy)
    }

    pub(crate) fn policies(&self, workload: &Workload, setting: &Setting<'_>) -> Result<(String, Vec<VmaPolicy>)> {
        if let Some(text) = &self.plan {
            let plan = Plan::from_toml(text, "plan")
                .map_err(|error| TieringError::request("plan", error.to_string(), "give a plan that tierloom wrote"))?;
            return Ok(("plan".to_owned(), named::from_plan(&plan, workload, &setting.nodes)?));
        }
        let name = self.placement.as_deref().unwrap_or("first-touch");
        Ok((name.to_owned(), named::by_name(name, workload, &setting.nodes, setting.socket)?))
    }
}

fn memory(machine: &Machine, name: &str) -> Result<usize> {
    machine.memory_index(name).ok_or_else(|| {
        let known: Vec<&str> = machine.memories.iter().map(|memory| memory.name.as_str()).collect();
        let problem = format!("machine `{}` has no memory `{name}`", machine.name);
        TieringError::request("nodes", problem, format!("use some of: {}", known.join(", ")))
    })
}
