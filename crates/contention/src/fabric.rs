//! All paths of one socket, or of several whose threads work together, sharing memories and links.
//!
//! A *way* is a path from one of the sockets to a memory. Ways are numbered socket by socket, each in
//! the machine's order of memories, so with one socket a way is its memory.
//!
//! Latency of a way is its idle latency plus the *largest* rise among the stations that a line
//! passes: the path itself at its own traffic, the memory (by the curve of its home path, the one
//! with the least idle latency of any socket) at the traffic of all ways to it, and each link in its
//! busier direction. The largest and not the sum: near saturation one station dominates, and a
//! published curve of a remote path already holds the waits in the link and in the memory that it was
//! measured through; a sum would count them twice.
//!
//! A line that another socket writes may cost its memory more than one write
//! ([`Path::writes_at_home`](tierloom_model::Path)); the path and its links carry it once.
//!
//! Random reads take longer than reads in sequence where the path says so
//! ([`Path::random_idle_ns`](tierloom_model::Path)), by the same time at any load: it is spent in the memory's rows
//! and past the prefetchers, not in its queue.
//!
//! A memory may take only so many lines at once ([`Memory::lines_in_flight`](tierloom_model::Memory)). By Little's
//! law that many lines over their latency is then the most that it carries; [`Flow::held_back`] says how much time
//! traffic needs for it.
//!
//! A [`Flow`] is a fixed amount of traffic that can be asked how slow it makes each way when it
//! passes within a given time. What slow reads hold up in a core's own window is [`held_up_s`](crate::held_up_s).
//! Two things are not modelled: traffic of other programs, and the request queues of a mesh that slow memories fill
//! in front of fast ones (seen on real CXL machines: MIKU, arXiv 2503.17864).

use smallvec::SmallVec;
use tierloom_model::units::LINE_BYTES_F64;
use tierloom_model::{Machine, Memory, Path};

use crate::error::ContentionError;
use crate::path::{PathLoad, Slice};
use crate::work::{Traffic, Work};

/// A part of the machine that carries traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Station {
    /// A memory, or the path to it, by the machine's order.
    Memory(usize),
    /// A link, by the machine's order.
    Link(usize),
}

/// The ways of some sockets, compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct Fabric {
    memories: usize,
    ways: Vec<Option<Reach>>,
    links_gb_s: Vec<f64>,
    /// By memory, most lines under way to it; infinite where nothing is known to limit them.
    most_lines: Vec<f64>,
}

/// How a socket reaches one memory.
#[derive(Debug, Clone, PartialEq)]
struct Reach {
    own: PathLoad,
    random_extra_ns: f64,
    /// The home path's load where others share it: from another socket, or beside one.
    home: Option<PathLoad>,
    /// Lines that the memory writes for each line written.
    writes_at_home: f64,
    links: Vec<usize>,
    /// The memory hangs on a socket before this one: what it reads passes a link the way in which the
    /// other socket's writes do.
    backwards: bool,
}

/// A fixed amount of traffic on a [`Fabric`].
#[derive(Debug, Clone)]
pub struct Flow<'a> {
    ways: SmallVec<[WayFlow<'a>; 8]>,
    links: SmallVec<[LinkFlow; 4]>,
    most_lines: &'a [f64],
    least_s: f64,
    bottleneck: Option<Station>,
}

#[derive(Debug, Clone)]
struct WayFlow<'a> {
    idle_ns: f64,
    random_extra_ns: f64,
    gigabytes: f64,
    own: Option<Slice<'a>>,
    home: Option<HomeFlow<'a>>,
    links: &'a [usize],
}

/// What arrives at a memory over all ways, at the load of its home path.
#[derive(Debug, Clone, Copy)]
struct HomeFlow<'a> {
    gigabytes: f64,
    slice: Slice<'a>,
}

/// Gigabytes in the busier direction, and how many pass in a second.
#[derive(Debug, Clone, Copy)]
struct LinkFlow {
    gigabytes: f64,
    gb_s: f64,
}

impl Fabric {
    /// Compiles the paths that lead from a socket.
    ///
    /// # Errors
    /// [`ContentionError`] for a socket that is not there or a load that was built wrongly.
    pub fn new(machine: &Machine, socket: usize) -> Result<Self, ContentionError> {
        Self::over(machine, &[socket])
    }

    /// Compiles the paths that lead from some sockets, one after the other.
    ///
    /// # Errors
    /// As [`Fabric::new`].
    pub fn over(machine: &Machine, sockets: &[usize]) -> Result<Self, ContentionError> {
        if let Some(socket) = sockets.iter().copied().find(|socket| *socket >= machine.sockets.len()) {
            return Err(ContentionError::NoSocket { socket, sockets: machine.sockets.len() });
        }
        let memories = machine.memories.len();
        let ways = sockets.iter().flat_map(|socket| (0..memories).map(|memory| machine.path(*socket, memory)));
        let shared = sockets.len() > 1;
        let ways = ways.map(|path| path.map(|path| Reach::new(machine, path, shared)).transpose());
        let links_gb_s = machine.links.iter().map(|link| link.gb_s_each_way.value).collect();
        let most = |memory: &Memory| memory.lines_in_flight.as_ref().map_or(f64::INFINITY, |lines| lines.value);
        let most_lines = machine.memories.iter().map(most).collect();
        Ok(Self { memories, ways: ways.collect::<Result<_, _>>()?, links_gb_s, most_lines })
    }

    /// Memories of the machine, reached or not.
    pub fn memories(&self) -> usize {
        self.memories
    }

    /// Ways: memories times sockets.
    pub fn ways(&self) -> usize {
        self.ways.len()
    }

    /// The memory at the end of a way.
    pub fn memory_of(&self, way: usize) -> usize {
        way % self.memories
    }

    /// Whether a path leads along this way.
    pub fn reaches(&self, way: usize) -> bool {
        self.ways[way].is_some()
    }

    /// Whether this way crosses this link.
    pub fn crosses(&self, way: usize, link: usize) -> bool {
        self.ways[way].as_ref().is_some_and(|reach| reach.links.contains(&link))
    }

    /// Latency of this way at rest, ns; infinite where no path leads.
    pub fn idle_ns(&self, way: usize) -> f64 {
        self.ways[way].as_ref().map_or(f64::INFINITY, |reach| reach.own.idle_ns())
    }

    /// What a random read takes longer along this way than one in sequence, ns.
    pub fn random_extra_ns(&self, way: usize) -> f64 {
        self.ways[way].as_ref().map_or(0.0, |reach| reach.random_extra_ns)
    }

    /// Most lines that are under way to a memory at once; infinite where nothing is known to limit them.
    pub fn most_lines(&self, memory: usize) -> f64 {
        self.most_lines[memory]
    }

    /// Highest bandwidth of this way alone, GB/s; 0 where no path leads.
    pub fn peak_gb_s(&self, way: usize, read_fraction: f64) -> f64 {
        let Some(reach) = &self.ways[way] else { return 0.0 };
        let own = reach.own.peak_gb_s(read_fraction);
        reach.home.as_ref().map_or(own, |home| own.min(reach.passed_gb_s(home, read_fraction)))
    }

    /// Takes the traffic of each way, in order.
    pub fn flow(&self, traffic: impl Iterator<Item = Traffic>) -> Flow<'_> {
        let traffic: SmallVec<[Traffic; 8]> = traffic.collect();
        let mut links: SmallVec<[Traffic; 4]> = SmallVec::from_elem(Traffic::default(), self.links_gb_s.len());
        let mut homes: SmallVec<[Traffic; 8]> = SmallVec::from_elem(Traffic::default(), self.memories);
        for (way, bytes) in traffic.iter().enumerate() {
            let Some(reach) = &self.ways[way] else { continue };
            homes[self.memory_of(way)].add(bytes.read, bytes.write * reach.writes_at_home);
            let (there, back) = if reach.backwards { (bytes.write, bytes.read) } else { (bytes.read, bytes.write) };
            for link in &reach.links {
                links[*link].add(there, back);
            }
        }
        let ways = self.ways.iter().zip(&traffic).enumerate();
        let ways = ways.map(|(way, (reach, bytes))| WayFlow::new(reach.as_ref(), *bytes, homes[self.memory_of(way)]));
        let links = links.iter().zip(&self.links_gb_s).map(|(bytes, gb_s)| LinkFlow::new(*bytes, *gb_s)).collect();
        Flow::new(ways.collect(), links, &self.most_lines)
    }
}

impl Reach {
    /// `shared`: other sockets' traffic may meet this path's at its memory.
    fn new(machine: &Machine, path: &Path, shared: bool) -> Result<Self, ContentionError> {
        let compile = |path: &Path| PathLoad::new(&path.load, path.idle_ns.value);
        let to_same = machine.paths.iter().filter(|other| other.to == path.to);
        let home = to_same.min_by(|a, b| a.idle_ns.value.total_cmp(&b.idle_ns.value));
        let home = home.filter(|home| shared || home.from != path.from).map(compile).transpose()?;
        let links = machine.links.iter().enumerate().filter(|(_, link)| path.links.contains(&link.name));
        let hangs_on = machine.memory_index(&path.to).map(|memory| machine.memories[memory].socket.as_str());
        Ok(Self {
            own: compile(path)?,
            random_extra_ns: path.random_extra_ns(),
            home,
            writes_at_home: path.lines_written_at_home(),
            links: links.map(|(index, _)| index).collect(),
            backwards: machine.socket_index(&path.from) > hangs_on.and_then(|socket| machine.socket_index(socket)),
        })
    }

    /// What the home lets through of this path's traffic, GB/s: less than its peak where it writes more.
    fn passed_gb_s(&self, home: &PathLoad, read_fraction: f64) -> f64 {
        let at_home = read_fraction + (1.0 - read_fraction) * self.writes_at_home;
        home.peak_gb_s(read_fraction / at_home) / at_home
    }
}

impl<'a> WayFlow<'a> {
    fn new(reach: Option<&'a Reach>, traffic: Traffic, at_home: Traffic) -> Self {
        let gigabytes = traffic.bytes() * 1e-9;
        match reach {
            None => Self { idle_ns: f64::INFINITY, random_extra_ns: 0.0, gigabytes, own: None, home: None, links: &[] },
            Some(reach) => Self {
                idle_ns: reach.own.idle_ns(),
                random_extra_ns: reach.random_extra_ns,
                gigabytes,
                own: Some(reach.own.at(traffic.read_fraction())),
                home: reach.home.as_ref().map(|home| HomeFlow::new(home, at_home)),
                links: &reach.links,
            },
        }
    }

    /// Least time that this way's traffic takes, s.
    fn least_s(&self) -> f64 {
        if self.gigabytes <= 0.0 {
            return 0.0;
        }
        let Some(own) = self.own else { return f64::INFINITY };
        let home_s = self.home.map_or(0.0, |home| home.gigabytes / home.slice.peak_gb_s());
        home_s.max(self.gigabytes / own.peak_gb_s())
    }
}

impl<'a> HomeFlow<'a> {
    fn new(home: &'a PathLoad, arriving: Traffic) -> Self {
        Self { gigabytes: arriving.bytes() * 1e-9, slice: home.at(arriving.read_fraction()) }
    }
}

impl LinkFlow {
    fn new(traffic: Traffic, gb_s: f64) -> Self {
        Self { gigabytes: traffic.read.max(traffic.write) * 1e-9, gb_s }
    }

    fn least_s(&self) -> f64 {
        self.gigabytes / self.gb_s
    }

    /// Wait for the lines ahead, ns: M/M/1 with the time that a line occupies the link as service.
    fn wait_ns(&self, seconds: f64) -> f64 {
        let u = self.gigabytes / (self.gb_s * seconds);
        if u >= 1.0 { f64::INFINITY } else { LINE_BYTES_F64 / self.gb_s * u / (1.0 - u) }
    }
}

impl<'a> Flow<'a> {
    fn new(ways: SmallVec<[WayFlow<'a>; 8]>, links: SmallVec<[LinkFlow; 4]>, most_lines: &'a [f64]) -> Self {
        let memories = most_lines.len();
        let by_way = ways.iter().enumerate().map(|(way, flow)| (Station::Memory(way % memories), flow.least_s()));
        let by_link = links.iter().enumerate().map(|(index, link)| (Station::Link(index), link.least_s()));
        let slower = |worst: (f64, Option<Station>), (station, least_s): (Station, f64)| {
            if least_s > worst.0 { (least_s, Some(station)) } else { worst }
        };
        let (least_s, bottleneck) = by_way.chain(by_link).fold((0.0, None), slower);
        Self { ways, links, most_lines, least_s, bottleneck }
    }

    /// The roofline: least time in which the traffic can pass, s; infinite where a memory that is
    /// in use cannot be reached.
    pub fn least_s(&self) -> f64 {
        self.least_s
    }

    /// The station that sets [`Flow::least_s`]; none where nothing moves.
    pub fn bottleneck(&self) -> Option<Station> {
        self.bottleneck
    }

    /// The memory whose limit on lines under way needs the most time, and that time, s, at the latencies of traffic
    /// that passes within `seconds`; no memory and no time where nothing is limited.
    ///
    /// Falls as `seconds` grows, as waits do, so the time that is as long as it is given is the least in which no
    /// memory holds more lines than it takes.
    pub fn held_back(&self, seconds: f64) -> (Option<usize>, f64) {
        let memories = self.most_lines.len();
        let limited = self.most_lines.iter().enumerate().filter(|(_, lines)| lines.is_finite());
        let needed = limited.map(|(memory, lines)| {
            let ways = (memory..self.ways.len()).step_by(memories).filter(|way| self.ways[*way].gigabytes > 0.0);
            // Gigabytes times nanoseconds are bytes times seconds.
            let held: f64 = ways.map(|way| self.ways[way].gigabytes * self.latency_ns(way, seconds)).sum();
            (Some(memory), held / (lines * LINE_BYTES_F64))
        });
        needed.fold((None, 0.0), |most, one| if one.1 > most.1 { one } else { most })
    }

    /// How long some work waits on this way when the traffic passes within `seconds`, s.
    pub fn wait_s(&self, way: usize, work: Work, seconds: f64) -> f64 {
        work.wait * self.latency_ns(way, seconds) + work.random * self.ways[way].random_extra_ns
    }

    /// Latency of this way for random reads when the traffic passes within `seconds`, ns.
    pub fn random_ns(&self, way: usize, seconds: f64) -> f64 {
        self.latency_ns(way, seconds) + self.ways[way].random_extra_ns
    }

    /// Latency of this way for reads in sequence when the traffic passes within `seconds`, ns.
    pub fn latency_ns(&self, way: usize, seconds: f64) -> f64 {
        let way = &self.ways[way];
        let Some(own) = way.own else { return f64::INFINITY };
        let own_ns = own.excess_ns(way.gigabytes / seconds);
        let home_ns = way.home.map_or(0.0, |home| home.slice.excess_ns(home.gigabytes / seconds));
        let links_ns = way.links.iter().map(|link| self.links[*link].wait_ns(seconds));
        way.idle_ns + links_ns.fold(own_ns.max(home_ns), f64::max)
    }
}
