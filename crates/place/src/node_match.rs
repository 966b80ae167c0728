//! Which node of this machine each memory of a plan is.
//!
//! Plan and host meet by what memories are: kind first; then whether they hang on the socket that the
//! program runs on; then, among several of one kind there, the order of latency, bandwidth or capacity.
//! Only a match that is the one possible goes on by itself. Everything else is refused with the options
//! to type: a guess would put the hottest data on the slowest memory without a word.
//!
//! A plan without a table of memories says only names. There a name that says a kind is held against
//! kinds, and position counts only where every node is of one kind, so that it cannot matter much.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;
use tierloom_model::units::format_bytes;
use tierloom_model::{HostMemory, MemoryKind, Plan, PlanMemory};

use crate::match_error::{MatchError, Open, host_text, proposed};

/// Figures of two memories tell them apart when they differ by this factor (assumed: firmware rounds, and
/// the kernel keeps a percent or two of a node for itself).
const APART: f64 = 1.1;
/// What names of memories say of their kind: words of data sheets and of the catalog.
const WORDS: [(&str, MemoryKind); 9] = [
    ("lpddr", MemoryKind::Lpddr),
    ("dram", MemoryKind::Dram),
    ("ddr", MemoryKind::Dram),
    ("cxl", MemoryKind::Cxl),
    ("hbm", MemoryKind::Hbm),
    ("pmem", MemoryKind::Pmem),
    ("optane", MemoryKind::Pmem),
    ("ssd", MemoryKind::Ssd),
    ("nvme", MemoryKind::Ssd),
];

/// One memory of a plan and its node here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeMatch {
    /// Name in the plan.
    pub memory: String,
    /// The kernel's number of the node.
    pub node: u32,
    /// What the node is made of.
    pub kind: MemoryKind,
    /// Why it is this node.
    pub because: Because,
}

/// What a match rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Because {
    /// Somebody said so.
    #[error("as given")]
    Given,
    /// No other node is of its kind.
    #[error("the only one of its kind")]
    Kind,
    /// The only one of its kind on the program's socket, or the only one elsewhere.
    #[error("by kind and socket")]
    Socket,
    /// The order of latencies.
    #[error("by latency")]
    Latency,
    /// The order of bandwidths.
    #[error("by bandwidth")]
    Bandwidth,
    /// The order of capacities.
    #[error("by capacity")]
    Capacity,
    /// The name's words.
    #[error("by its name")]
    Name,
    /// The plan says nothing, and all nodes are alike.
    #[error("by position")]
    Position,
}

/// Says which node each memory is that the plan uses; what is `given` by hand is taken as it is.
///
/// # Errors
/// [`MatchError`]: a given name or node does not exist, or a memory has no node or several.
pub fn match_nodes(
    plan: &Plan,
    host: &[HostMemory],
    given: &BTreeMap<String, u32>,
) -> Result<Vec<NodeMatch>, MatchError> {
    let mut found = by_hand(plan, host, given)?;
    let rest: BTreeSet<&str> = plan.used_memories().into_iter().filter(|name| !given.contains_key(*name)).collect();
    let mut open = Vec::new();
    match sides_of(plan, host, given, &rest) {
        None => found.extend(by_position(plan, host, &rest)),
        Some(sides) => {
            for side in sides {
                match side.pairs() {
                    Ok(pairs) => found.extend(pairs),
                    Err(left) => open.extend(left),
                }
            }
        }
    }
    open.extend(too_small(plan, host, given, &found));
    if !open.is_empty() {
        return Err(MatchError::Refused { open, host: host_text(host) });
    }
    found.sort_by_key(|found| plan.nodes.iter().position(|name| *name == found.memory));
    Ok(found)
}

/// The nodes to give by hand, so that each memory that the plan uses has one: none where all are matched without.
pub fn nodes_to_give(plan: &Plan, host: &[HostMemory]) -> BTreeMap<String, u32> {
    let Err(MatchError::Refused { open, .. }) = match_nodes(plan, host, &BTreeMap::new()) else {
        return BTreeMap::new();
    };
    let memories = open.iter().map(|open| open.memory.clone());
    memories.zip(proposed(&open)).filter_map(|(memory, node)| Some((memory, node?))).collect()
}

fn by_hand(plan: &Plan, host: &[HostMemory], given: &BTreeMap<String, u32>) -> Result<Vec<NodeMatch>, MatchError> {
    let matched = |(name, node): (&String, &u32)| {
        if !plan.nodes.contains(name) {
            return Err(MatchError::UnknownMemory { name: name.clone(), known: plan.nodes.join(", ") });
        }
        let here = host.iter().find(|here| here.node == *node).ok_or_else(|| MatchError::NoSuchNode {
            name: name.clone(),
            node: *node,
            known: host_text(host),
        })?;
        Ok(matched(name, here, Because::Given))
    };
    given.iter().map(matched).collect()
}

fn matched(memory: &str, host: &HostMemory, because: Because) -> NodeMatch {
    NodeMatch { memory: memory.to_owned(), node: host.node, kind: host.kind, because }
}

/// A memory of the plan, as far as the plan tells.
#[derive(Debug, Clone, Copy)]
struct Planned<'a> {
    name: &'a str,
    kind: Option<MemoryKind>,
    table: Option<&'a PlanMemory>,
}

/// Memories of the plan that can only be nodes among these, and the other way round.
struct Side<'a> {
    /// Memories that are there, used or not.
    planned: Vec<Planned<'a>>,
    /// Those of them that need a node.
    wanted: Vec<Planned<'a>>,
    here: Vec<&'a HostMemory>,
    /// Both ends know whether they hang on the program's socket.
    told: bool,
    /// Kinds alone decided; nothing else had to.
    alone: bool,
    /// Nodes for a rehearsal where none is of the kind.
    anywhere: Vec<u32>,
}

/// Plan and host in parts that do not concern each other; `None`: the plan says too little, and position counts.
fn sides_of<'a>(
    plan: &'a Plan,
    host: &'a [HostMemory],
    given: &BTreeMap<String, u32>,
    rest: &BTreeSet<&str>,
) -> Option<Vec<Side<'a>>> {
    let planned: Vec<Planned<'a>> =
        plan.nodes.iter().enumerate().map(|(at, name)| planned(name, plan.memories.get(at))).collect();
    if plan.memories.is_empty() && position_counts(plan, host, &planned) {
        return None;
    }
    let anywhere = nearest(host);
    let kinds: BTreeSet<Option<MemoryKind>> = planned.iter().map(|memory| memory.kind).collect();
    let of_kind = |kind: Option<MemoryKind>| {
        let planned: Vec<_> = planned.iter().copied().filter(|memory| memory.kind == kind).collect();
        let here: Vec<_> = host.iter().filter(|here| kind.is_none_or(|kind| kind == here.kind)).collect();
        // What hangs where can be compared only where both ends know it.
        let told = planned.iter().all(|memory| memory.table.is_some()) && here.iter().all(|here| here.near.is_some());
        let alone = planned.len() <= 1 && here.len() <= 1;
        let parts = if told && !alone { vec![Some(true), Some(false)] } else { vec![None] };
        let part = move |near: Option<bool>| {
            let is_part = |own: Option<bool>| near.is_none() || own == near;
            let left = |memory: &Planned| !given.contains_key(memory.name);
            let planned: Vec<_> = planned
                .iter()
                .copied()
                .filter(|memory| left(memory) && is_part(memory.table.map(|table| table.near)))
                .collect();
            let wanted = planned.iter().copied().filter(|memory| rest.contains(memory.name)).collect();
            let here: Vec<_> = here.iter().copied().filter(|here| is_part(here.near)).collect();
            Side { wanted, here: untaken(plan, here, given, kind), planned, told, alone, anywhere: Vec::new() }
        };
        parts.into_iter().map(part).collect::<Vec<_>>()
    };
    let sides = kinds.into_iter().flat_map(of_kind).filter(|side| !side.wanted.is_empty());
    Some(sides.map(|side| Side { anywhere: anywhere.clone(), ..side }).collect())
}

fn planned<'a>(name: &'a str, table: Option<&'a PlanMemory>) -> Planned<'a> {
    Planned { name, kind: table.map_or_else(|| kind_in(name), |table| Some(table.kind)), table }
}

/// The kind that a name says; none where it says none, or several.
fn kind_in(name: &str) -> Option<MemoryKind> {
    let name = name.to_ascii_lowercase();
    let found: Vec<&(&str, MemoryKind)> = WORDS.iter().filter(|(word, _)| name.contains(word)).collect();
    // A word within another that was found says nothing of its own: the `ddr` of `lpddr`.
    let is_part = |word: &str| found.iter().any(|(longer, _)| longer.len() > word.len() && longer.contains(word));
    let said: BTreeSet<MemoryKind> = found.iter().filter(|(word, _)| !is_part(word)).map(|(_, kind)| *kind).collect();
    if said.len() == 1 { said.first().copied() } else { None }
}

fn position_counts(plan: &Plan, host: &[HostMemory], planned: &[Planned]) -> bool {
    let Some(kind) = host.first().map(|here| here.kind) else { return false };
    let alike = host.iter().all(|here| here.kind == kind);
    alike && host.len() == plan.nodes.len() && planned.iter().all(|memory| memory.kind.is_none_or(|own| own == kind))
}

fn by_position(plan: &Plan, host: &[HostMemory], rest: &BTreeSet<&str>) -> Vec<NodeMatch> {
    let pairs = plan.nodes.iter().zip(host);
    pairs
        .filter(|(name, _)| rest.contains(name.as_str()))
        .map(|(name, here)| matched(name, here, Because::Position))
        .collect()
}

/// Nodes that are not another memory of the same kind by hand; all where that leaves none, as in a rehearsal.
fn untaken<'a>(
    plan: &Plan,
    here: Vec<&'a HostMemory>,
    given: &BTreeMap<String, u32>,
    kind: Option<MemoryKind>,
) -> Vec<&'a HostMemory> {
    let kind_of = |name: &String| {
        let table = plan.memories.iter().find(|memory| memory.name == *name);
        planned(name, table).kind
    };
    let taken: BTreeSet<u32> = given.iter().filter(|(name, _)| kind_of(name) == kind).map(|(_, node)| *node).collect();
    let free: Vec<_> = here.iter().copied().filter(|here| !taken.contains(&here.node)).collect();
    if free.is_empty() { here } else { free }
}

/// Nodes of the program's socket, else all: where a rehearsal costs least.
fn nearest(host: &[HostMemory]) -> Vec<u32> {
    let near = host.iter().find(|here| here.kind == MemoryKind::Dram && here.near != Some(false));
    near.or(host.first()).map(|here| here.node).into_iter().collect()
}

impl Side<'_> {
    fn pairs(&self) -> Result<Vec<NodeMatch>, Vec<Open>> {
        if self.wanted.iter().any(|memory| memory.kind.is_none()) {
            return Err(self.open("the plan does not say what it is"));
        }
        if self.here.is_empty() {
            return Err(self.open(self.absence()));
        }
        if self.wanted.len() > self.here.len() {
            return Err(self.open("the plan has more of this kind than this machine"));
        }
        if self.here.len() == 1 {
            let because = match (self.wanted[0].table, self.alone || !self.told) {
                (None, _) => Because::Name,
                (_, true) => Because::Kind,
                (_, false) => Because::Socket,
            };
            return Ok(vec![matched(self.wanted[0].name, self.here[0], because)]);
        }
        self.in_order().ok_or_else(|| self.open(self.doubt()))
    }

    /// Memories and nodes by the first figure whose order tells all of them apart on both sides.
    fn in_order(&self) -> Option<Vec<NodeMatch>> {
        let planned = [&self.planned, &self.wanted].into_iter().find(|some| some.len() == self.here.len())?;
        let tables: Vec<&PlanMemory> = planned.iter().filter_map(|memory| memory.table).collect();
        if !self.told || tables.len() < planned.len() {
            return None;
        }
        let here = |figure: fn(&HostMemory) -> Option<f64>| sorted(&self.here, figure);
        let plan = |figure: fn(&PlanMemory) -> Option<f64>| sorted(&tables, figure);
        let distance: fn(&HostMemory) -> Option<f64> = |here| here.distance.map(|distance| distance as f64);
        let orders = [
            (Because::Latency, plan(|table| table.idle_ns), here(|here| here.latency_ns).or_else(|| here(distance))),
            (Because::Bandwidth, plan(|table| table.gb_s), here(|here| here.gb_s)),
            (
                Because::Capacity,
                plan(|table| Some(table.capacity_bytes as f64)),
                here(|here| Some(here.capacity_bytes as f64)),
            ),
        ];
        let (because, plan, here) = orders.into_iter().find_map(|(why, plan, here)| Some((why, plan?, here?)))?;
        let wanted = |name: &str| self.wanted.iter().any(|memory| memory.name == name);
        let pairs = plan.into_iter().zip(here).filter(|(table, _)| wanted(&table.name));
        Some(pairs.map(|(table, here)| matched(&table.name, here, because)).collect())
    }

    fn absence(&self) -> &'static str {
        match self.planned.first().and_then(|memory| memory.table) {
            Some(table) if self.told && !self.alone && table.near => "no node of its kind is on the program's socket",
            Some(_) if self.told && !self.alone => "no node of its kind is on another socket",
            _ => "this machine has no node of its kind",
        }
    }

    fn doubt(&self) -> &'static str {
        if self.here.iter().any(|here| here.near.is_none()) {
            "the program may run on several sockets, so no node is nearer; pin it (numactl --cpunodebind=0 tierloom …)"
        } else {
            "several nodes of its kind are there, and nothing tells which one is meant"
        }
    }

    fn open(&self, problem: &str) -> Vec<Open> {
        let of_kind: Vec<u32> = self.here.iter().map(|here| here.node).collect();
        let nodes = if of_kind.is_empty() { &self.anywhere } else { &of_kind };
        let problem = |memory: &Planned| match memory.kind {
            Some(kind) => format!("{kind}; {problem}"),
            None => problem.to_owned(),
        };
        let open =
            |memory: &Planned| Open { memory: memory.name.to_owned(), problem: problem(memory), nodes: nodes.clone() };
        self.wanted.iter().map(open).collect()
    }
}

/// Things in the order of a figure; `None` where one is not known, or two are not apart.
fn sorted<'a, T>(things: &[&'a T], figure: impl Fn(&T) -> Option<f64>) -> Option<Vec<&'a T>> {
    let mut known: Vec<(f64, &T)> = things.iter().map(|thing| Some((figure(thing)?, *thing))).collect::<Option<_>>()?;
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    let apart = known.windows(2).all(|pair| pair[1].0 >= pair[0].0 * APART);
    apart.then(|| known.into_iter().map(|(_, thing)| thing).collect())
}

/// Memories in which the plan places more than their node holds, unless somebody gave that node.
fn too_small(plan: &Plan, host: &[HostMemory], given: &BTreeMap<String, u32>, found: &[NodeMatch]) -> Vec<Open> {
    let open = |found: &NodeMatch| {
        let at = plan.nodes.iter().position(|name| *name == found.memory)?;
        let (needed, here) = (*plan.predicted.bytes.get(at)?, host.iter().find(|here| here.node == found.node)?);
        let problem = format!(
            "the plan places {} in it, node {} has {}",
            format_bytes(needed),
            here.node,
            format_bytes(here.capacity_bytes)
        );
        let is_small = needed > here.capacity_bytes && !given.contains_key(&found.memory);
        is_small.then(|| Open { memory: found.memory.clone(), problem, nodes: vec![here.node] })
    };
    found.iter().filter_map(open).collect()
}
