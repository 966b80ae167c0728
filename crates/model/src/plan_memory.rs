//! What a plan's memories are, so that another machine's nodes can be held against them.

use serde::{Deserialize, Serialize};

use crate::error::{Flaw, positive};
use crate::machine::{self, MemoryKind};

/// One of a plan's memories, as seen from the socket that the plan was made for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanMemory {
    /// Name, as in the plan's `nodes`.
    pub name: String,
    /// What it is made of.
    pub kind: MemoryKind,
    /// Whether it hangs on that socket.
    pub near: bool,
    /// Bytes.
    pub capacity_bytes: u64,
    /// Latency of a dependent random read when nothing else runs, ns; none where no path leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<f64>,
    /// Lesser of read and write bandwidth, GB/s; none where no path leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gb_s: Option<f64>,
}

/// A table of memories is about all nodes of the plan, in their order, or about none.
pub(crate) fn check(memories: &[PlanMemory], nodes: &[String]) -> Result<(), Flaw> {
    let names = memories.iter().map(|memory| &memory.name);
    if !memories.is_empty() && !names.clone().eq(nodes) {
        let problem = format!("its names are {:?}, those of `nodes` are {nodes:?}", names.collect::<Vec<_>>());
        let hint = "give one [[memories]] table for each of `nodes`, in their order, or none at all";
        return Err(Flaw::new("memories", problem, hint));
    }
    for (index, memory) in memories.iter().enumerate() {
        let place = format!("memories[{index}]");
        machine::bytes("capacity_bytes", memory.capacity_bytes).map_err(|flaw| flaw.within(&place))?;
        let figures = [("idle_ns", memory.idle_ns), ("gb_s", memory.gb_s)];
        for (key, value) in figures.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            positive(key, value).map_err(|flaw| flaw.within(&place))?;
        }
    }
    Ok(())
}
