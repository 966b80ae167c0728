//! A machine: sockets that compute, memories that hold data, and the paths between them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::{Flaw, Flaws, Result, at_least, positive};
use crate::figure::Figure;
use crate::file;
use crate::load::Load;

/// What memory there is and what it costs to reach it. File: `NAME.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// What this file is; absent in files that say their version only.
    #[serde(default)]
    pub kind: file::MachineTag,
    /// Format version.
    pub version: u32,
    /// Short name, as on the command line.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Which host was measured ([`crate::Program::host`] of what runs there); absent for machines on paper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Longer remarks: what was left out, what to be careful with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What the `source` keys stand for.
    pub sources: BTreeMap<String, String>,
    /// Where threads run. The first one is where a program runs unless told otherwise.
    pub sockets: Vec<Socket>,
    /// Where data lives, in the order of the kernel's node numbers.
    pub memories: Vec<Memory>,
    /// Interconnects that several paths share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// From each socket to each memory that it can reach.
    pub paths: Vec<Path>,
}

/// A group of cores with a last-level cache: an initiator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Socket {
    /// Name that paths refer to.
    pub name: String,
    /// Processor model.
    pub cpu: String,
    /// Physical cores.
    pub cores: Figure<u32>,
    /// Last-level cache of the whole socket, bytes.
    pub llc_bytes: Figure<u64>,
    /// Last-level cache that one core reaches (a core complex on AMD), bytes.
    pub llc_per_core_bytes: Figure<u64>,
    /// Cache of one core before the last level, bytes; absent where there is none, or nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_cache_bytes: Option<Figure<u64>>,
    /// Latency of the last-level cache, ns; absent where nobody measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llc_ns: Option<Figure<f64>>,
    /// Cache lines that one core keeps in flight when the hardware prefetches for it.
    pub stream_lines: Figure<f64>,
    /// Cache lines that one core keeps in flight for demand misses (line-fill buffers).
    pub demand_lines: Figure<f64>,
}

/// What a memory is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryKind {
    /// DIMMs on the processor's own channels.
    Dram,
    /// Low-power DRAM on the processor's own channels, soldered beside it.
    Lpddr,
    /// Memory behind a CXL link.
    Cxl,
    /// Stacked memory in the processor's package.
    Hbm,
    /// Persistent memory DIMMs.
    Pmem,
    /// A block device used as memory.
    Ssd,
}

impl std::fmt::Display for MemoryKind {
    /// As machine files spell it.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            MemoryKind::Dram => "dram",
            MemoryKind::Lpddr => "lpddr",
            MemoryKind::Cxl => "cxl",
            MemoryKind::Hbm => "hbm",
            MemoryKind::Pmem => "pmem",
            MemoryKind::Ssd => "ssd",
        })
    }
}

/// A memory node: a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Name that paths and plans refer to.
    pub name: String,
    /// What it is made of.
    pub kind: MemoryKind,
    /// Socket that it hangs on.
    pub socket: String,
    /// Bytes.
    pub capacity_bytes: Figure<u64>,
    /// Most cache lines that are under way to it at once, from all sockets: requests that its device or its
    /// controller takes. Lines beyond wait before they are sent. Absent where only the cores limit them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_in_flight: Option<Figure<f64>>,
    /// Price, US dollars per GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_per_gib: Option<Figure<f64>>,
}

/// An interconnect that several paths share: between sockets, or up to a switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Name that paths refer to.
    pub name: String,
    /// Payload bandwidth of one direction, GB/s; reads use one direction, writes the other.
    pub gb_s_each_way: Figure<f64>,
}

/// From a socket to a memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Socket.
    pub from: String,
    /// Memory.
    pub to: String,
    /// Latency of a dependent read when nothing else runs, ns; where `random_idle_ns` stands beside it, of
    /// reads in sequence.
    pub idle_ns: Figure<f64>,
    /// The same of random reads, where the two were told apart: no less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_idle_ns: Option<Figure<f64>>,
    /// Links that the path crosses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// Lines that the memory writes for each line written over this path; 1 unless said. It is 2 from
    /// another socket where the memory keeps a directory of the lines that other sockets hold: writing
    /// a line back clears its entry, and the next read from there sets it, which writes the line again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes_at_home: Option<Figure<f64>>,
    /// How latency grows with this path's traffic.
    pub load: Load,
}

impl Machine {
    /// Reads and checks a machine; `file` is only named in errors.
    ///
    /// # Errors
    /// [`crate::ModelError`] with the file, the key, and what to do.
    pub fn from_toml(text: &str, file: &str) -> Result<Self> {
        let machine: Self = file::from_toml(text, file, "machine")?;
        machine.check().in_file(file)?;
        Ok(machine)
    }

    /// Reads and checks a machine of a document with the same keys in JSON.
    ///
    /// # Errors
    /// As [`Machine::from_toml`].
    pub fn from_json(text: &str, file: &str) -> Result<Self> {
        let machine: Self = file::from_json(text, file, "machine")?;
        machine.check().in_file(file)?;
        Ok(machine)
    }

    /// Writes the machine as a file that [`Machine::from_toml`] reads back unchanged.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_else(|error| unreachable!("a machine is always TOML: {error}"))
    }

    /// Position of a socket by name.
    pub fn socket_index(&self, name: &str) -> Option<usize> {
        self.sockets.iter().position(|socket| socket.name == name)
    }

    /// Position of a memory by name: its node number.
    pub fn memory_index(&self, name: &str) -> Option<usize> {
        self.memories.iter().position(|memory| memory.name == name)
    }

    /// The path between a socket and a memory, if there is one.
    pub fn path(&self, socket: usize, memory: usize) -> Option<&Path> {
        let (from, to) = (&self.sockets.get(socket)?.name, &self.memories.get(memory)?.name);
        self.paths.iter().find(|path| &path.from == from && &path.to == to)
    }

    /// Memories that a socket reaches, nearest (least idle latency) first: the kernel's zonelist.
    pub fn memories_by_distance(&self, socket: usize) -> Vec<usize> {
        let distance = |memory: &usize| self.path(socket, *memory).map_or(f64::INFINITY, |path| path.idle_ns.value);
        let mut order: Vec<usize> = (0..self.memories.len()).filter(|m| distance(m).is_finite()).collect();
        order.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
        order
    }

    fn check(&self) -> Flaws {
        let mut flaws = Flaws::from(self.check_names());
        for (index, socket) in self.sockets.iter().enumerate() {
            flaws.part(&format!("sockets[{index}]"), socket.check());
        }
        for (index, memory) in self.memories.iter().enumerate() {
            let lines = memory.lines_in_flight.as_ref().map_or(1.0, |lines| lines.value);
            let looks = [
                self.known_socket(&memory.socket).map_err(|flaw| flaw.within("socket")),
                bytes("capacity_bytes", memory.capacity_bytes.value),
                at_least("lines_in_flight", lines, 1.0),
            ];
            flaws.part(&format!("memories[{index}]"), Flaws::of(looks));
        }
        for (index, link) in self.links.iter().enumerate() {
            flaws.part(&format!("links[{index}]"), positive("gb_s_each_way", link.gb_s_each_way.value));
        }
        for (index, path) in self.paths.iter().enumerate() {
            flaws.part(&format!("paths[{index}]"), self.check_path(path));
        }
        self.check_reach(&mut flaws);
        self.check_sources(&mut flaws);
        flaws
    }

    fn check_names(&self) -> Result<(), Flaw> {
        for (key, list) in [("sockets", self.sockets.is_empty()), ("memories", self.memories.is_empty())] {
            if list {
                return Err(Flaw::new(key, "there is none", format!("add a [[{key}]] table")));
            }
        }
        let names = self.sockets.iter().map(|s| &s.name).chain(self.memories.iter().map(|m| &m.name));
        let mut seen = BTreeSet::new();
        for name in names.chain(self.links.iter().map(|l| &l.name)) {
            if name.is_empty() || !seen.insert(name) {
                return Err(Flaw::new(
                    "name",
                    format!("`{name}` is empty or used twice"),
                    "give every part its own name",
                ));
            }
        }
        Ok(())
    }

    fn known_socket(&self, name: &str) -> Result<(), Flaw> {
        known(name, self.sockets.iter().map(|socket| socket.name.as_str()))
    }

    fn check_path(&self, path: &Path) -> Flaws {
        let random_ns = path.random_idle_ns.as_ref().map(|random| random.value);
        let mut flaws = Flaws::of([
            self.known_socket(&path.from).map_err(|flaw| flaw.within("from")),
            known(&path.to, self.memories.iter().map(|m| m.name.as_str())).map_err(|flaw| flaw.within("to")),
            positive("idle_ns", path.idle_ns.value),
            random_ns.map_or(Ok(()), |random_ns| at_least("random_idle_ns", random_ns, path.idle_ns.value.max(0.0))),
            at_least("writes_at_home", path.lines_written_at_home(), 1.0),
            path.load.check().map_err(|flaw| flaw.within("load")),
        ]);
        for link in &path.links {
            flaws.part("links", known(link, self.links.iter().map(|l| l.name.as_str())));
        }
        let mut twins = self.paths.iter().filter(|other| other.from == path.from && other.to == path.to);
        let is_first = twins.next().is_some_and(|first| std::ptr::eq(first, path));
        let others = twins.count();
        if is_first && others > 0 {
            let problem = format!("there are {} paths from {} to {}", others + 1, path.from, path.to);
            flaws.note(Err(Flaw::new("", problem, "keep one")));
        }
        flaws
    }

    fn check_reach(&self, flaws: &mut Flaws) {
        for memory in &self.memories {
            if !self.paths.iter().any(|path| path.to == memory.name) {
                let problem = format!("no path leads to memory `{}`", memory.name);
                flaws.note(Err(Flaw::new("paths", problem, "add a [[paths]] table with its idle latency and load")));
            }
        }
    }

    /// Every `source` key, with the place where it stands.
    fn sources_in_use(&self) -> Vec<(String, &str)> {
        let mut uses = Vec::new();
        for (index, socket) in self.sockets.iter().enumerate() {
            uses.extend(socket.sources().map(|source| (format!("sockets[{index}]"), source)));
        }
        for (index, memory) in self.memories.iter().enumerate() {
            let optional = memory.usd_per_gib.iter().chain(&memory.lines_in_flight);
            let all = optional.map(|figure| figure.source.as_str()).chain([memory.capacity_bytes.source.as_str()]);
            uses.extend(all.map(|source| (format!("memories[{index}]"), source)));
        }
        for (index, link) in self.links.iter().enumerate() {
            uses.push((format!("links[{index}]"), &link.gb_s_each_way.source));
        }
        for (index, path) in self.paths.iter().enumerate() {
            let load = path.load.origins().into_iter().map(|origin| origin.source.as_str());
            let optional = path.writes_at_home.iter().chain(&path.random_idle_ns);
            uses.extend(
                load.chain(optional.map(|figure| figure.source.as_str()))
                    .chain([path.idle_ns.source.as_str()])
                    .map(|source| (format!("paths[{index}]"), source)),
            );
        }
        uses
    }

    /// A source that is missing is told once, however many figures name it.
    fn check_sources(&self, flaws: &mut Flaws) {
        let mut told = BTreeSet::new();
        for (place, source) in self.sources_in_use() {
            if !self.sources.contains_key(source) && told.insert(source) {
                let problem = format!("source `{source}` is not in the sources table");
                flaws.note(Err(Flaw::new(place, problem, format!("add `{source} = \"…\"` under [sources]"))));
            }
        }
    }
}

impl Path {
    /// What a random read takes longer than one in sequence, ns, at any load.
    pub fn random_extra_ns(&self) -> f64 {
        self.random_idle_ns.as_ref().map_or(0.0, |random| random.value - self.idle_ns.value)
    }

    /// Lines that the memory writes for each line written over this path.
    pub fn lines_written_at_home(&self) -> f64 {
        self.writes_at_home.as_ref().map_or(1.0, |writes| writes.value)
    }
}

impl Socket {
    fn check(&self) -> Flaws {
        Flaws::of([
            at_least("cores", f64::from(self.cores.value), 1.0),
            at_least("stream_lines", self.stream_lines.value, 1.0),
            at_least("demand_lines", self.demand_lines.value, 1.0),
            bytes("llc_bytes", self.llc_bytes.value),
            bytes("llc_per_core_bytes", self.llc_per_core_bytes.value),
            self.core_cache_bytes.as_ref().map_or(Ok(()), |cache| bytes("core_cache_bytes", cache.value)),
            self.llc_ns.as_ref().map_or(Ok(()), |latency| positive("llc_ns", latency.value)),
        ])
    }

    fn sources(&self) -> impl Iterator<Item = &str> {
        [&self.cores.source, &self.llc_bytes.source, &self.llc_per_core_bytes.source]
            .into_iter()
            .chain([&self.stream_lines.source, &self.demand_lines.source])
            .chain(self.core_cache_bytes.as_ref().map(|cache| &cache.source))
            .chain(self.llc_ns.as_ref().map(|latency| &latency.source))
            .map(String::as_str)
    }
}

/// A number of bytes that there can be and that TOML can hold, whose whole numbers end at 2^63.
pub(crate) fn bytes(key: &str, value: u64) -> Result<(), Flaw> {
    if i64::try_from(value).is_ok() {
        return positive(key, value as f64);
    }
    Err(Flaw::new(key, format!("{value} bytes are more than there can be"), "write fewer than 2^63"))
}

fn known<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Flaw> {
    let names: Vec<&str> = names.collect();
    if names.contains(&name) {
        return Ok(());
    }
    Err(Flaw::new("", format!("there is no `{name}`"), format!("use one of: {}", names.join(", "))))
}
