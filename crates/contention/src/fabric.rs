//! All paths of one socket, sharing memories and links.
//!
//! Latency of a path is its idle latency plus the *largest* rise among the stations that a line
//! passes: the path itself at its own traffic, the memory (by the curve of its home path, the one
//! with the least idle latency of any socket) at its total traffic, and each link in its busier
//! direction. The largest and not the sum: near saturation one station dominates, and a published
//! curve of a remote path already holds the waits in the link and in the memory that it was
//! measured through; a sum would count them twice.
//!
//! A [`Flow`] is a fixed amount of traffic that can be asked how slow it makes each path when it
//! passes within a given time. Two things are not modelled: traffic of other sockets, and the request
//! queues in a core or its mesh that slow memories fill in front of fast ones (seen on real CXL
//! machines: MIKU, arXiv 2503.17864).

use smallvec::SmallVec;
use tierloom_model::{Machine, Path};

use crate::LINE_BYTES;
use crate::error::ContentionError;
use crate::path::{PathLoad, Slice};

/// Bytes to and from one memory.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Traffic {
    /// Bytes read.
    pub read: f64,
    /// Bytes written.
    pub write: f64,
}

/// A part of the machine that carries traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Station {
    /// A memory, or the path to it, by the machine's order.
    Memory(usize),
    /// A link, by the machine's order.
    Link(usize),
}

/// The paths of one socket, compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct Fabric {
    paths: Vec<Option<Reach>>,
    links_gb_s: Vec<f64>,
}

/// How the socket reaches one memory.
#[derive(Debug, Clone, PartialEq)]
struct Reach {
    own: PathLoad,
    /// The home path's load where that is another path.
    home: Option<PathLoad>,
    links: Vec<usize>,
}

/// A fixed amount of traffic on a [`Fabric`].
#[derive(Debug, Clone)]
pub struct Flow<'a> {
    paths: SmallVec<[PathFlow<'a>; 8]>,
    links: SmallVec<[LinkFlow; 4]>,
    least_s: f64,
    bottleneck: Option<Station>,
}

#[derive(Debug, Clone)]
struct PathFlow<'a> {
    idle_ns: f64,
    gigabytes: f64,
    own: Option<Slice<'a>>,
    home: Option<Slice<'a>>,
    links: &'a [usize],
}

/// Gigabytes in the busier direction, and how many pass in a second.
#[derive(Debug, Clone, Copy)]
struct LinkFlow {
    gigabytes: f64,
    gb_s: f64,
}

impl Traffic {
    /// Bytes both ways.
    pub fn bytes(&self) -> f64 {
        self.read + self.write
    }

    /// Share of reads; 1 where nothing moves.
    pub fn read_fraction(&self) -> f64 {
        if self.bytes() > 0.0 { self.read / self.bytes() } else { 1.0 }
    }
}

impl Fabric {
    /// Compiles the paths that lead from a socket.
    ///
    /// # Errors
    /// [`ContentionError`] for a socket that is not there or a load that was built wrongly.
    pub fn new(machine: &Machine, socket: usize) -> Result<Self, ContentionError> {
        if socket >= machine.sockets.len() {
            return Err(ContentionError::NoSocket { socket, sockets: machine.sockets.len() });
        }
        let paths = (0..machine.memories.len())
            .map(|memory| machine.path(socket, memory).map(|path| Reach::new(machine, path)).transpose())
            .collect::<Result<_, _>>()?;
        Ok(Self { paths, links_gb_s: machine.links.iter().map(|link| link.gb_s_each_way.value).collect() })
    }

    /// Memories of the machine, reached or not.
    pub fn memories(&self) -> usize {
        self.paths.len()
    }

    /// Whether a path leads to this memory.
    pub fn reaches(&self, memory: usize) -> bool {
        self.paths[memory].is_some()
    }

    /// Whether the path to this memory crosses this link.
    pub fn crosses(&self, memory: usize, link: usize) -> bool {
        self.paths[memory].as_ref().is_some_and(|reach| reach.links.contains(&link))
    }

    /// Latency of this memory at rest, ns; infinite where no path leads.
    pub fn idle_ns(&self, memory: usize) -> f64 {
        self.paths[memory].as_ref().map_or(f64::INFINITY, |reach| reach.own.idle_ns())
    }

    /// Highest bandwidth of this memory alone, GB/s; 0 where no path leads.
    pub fn peak_gb_s(&self, memory: usize, read_fraction: f64) -> f64 {
        self.paths[memory].as_ref().map_or(0.0, |reach| {
            let own = reach.own.peak_gb_s(read_fraction);
            reach.home.as_ref().map_or(own, |home| own.min(home.peak_gb_s(read_fraction)))
        })
    }

    /// Takes the traffic of each memory, one entry a memory in the machine's order.
    pub fn flow(&self, traffic: impl Iterator<Item = Traffic>) -> Flow<'_> {
        let mut links: SmallVec<[Traffic; 4]> = SmallVec::from_elem(Traffic::default(), self.links_gb_s.len());
        let paths: SmallVec<[PathFlow<'_>; 8]> = self
            .paths
            .iter()
            .zip(traffic)
            .map(|(reach, bytes)| {
                for link in reach.iter().flat_map(|reach| &reach.links) {
                    links[*link].read += bytes.read;
                    links[*link].write += bytes.write;
                }
                PathFlow::new(reach.as_ref(), bytes)
            })
            .collect();
        let links = links.iter().zip(&self.links_gb_s).map(|(bytes, gb_s)| LinkFlow::new(*bytes, *gb_s)).collect();
        Flow::new(paths, links)
    }
}

impl Reach {
    fn new(machine: &Machine, path: &Path) -> Result<Self, ContentionError> {
        let compile = |path: &Path| PathLoad::new(&path.load, path.idle_ns.value);
        let to_same = machine.paths.iter().filter(|other| other.to == path.to);
        let home = to_same.min_by(|a, b| a.idle_ns.value.total_cmp(&b.idle_ns.value));
        let home = home.filter(|home| home.from != path.from).map(compile).transpose()?;
        let links = machine.links.iter().enumerate().filter(|(_, link)| path.links.contains(&link.name));
        Ok(Self { own: compile(path)?, home, links: links.map(|(index, _)| index).collect() })
    }
}

impl<'a> PathFlow<'a> {
    fn new(reach: Option<&'a Reach>, traffic: Traffic) -> Self {
        let (gigabytes, r) = (traffic.bytes() * 1e-9, traffic.read_fraction());
        match reach {
            None => Self { idle_ns: f64::INFINITY, gigabytes, own: None, home: None, links: &[] },
            Some(reach) => Self {
                idle_ns: reach.own.idle_ns(),
                gigabytes,
                own: Some(reach.own.at(r)),
                home: reach.home.as_ref().map(|home| home.at(r)),
                links: &reach.links,
            },
        }
    }

    /// Least time that this path's traffic takes, s.
    fn least_s(&self) -> f64 {
        if self.gigabytes <= 0.0 {
            return 0.0;
        }
        let Some(own) = self.own else { return f64::INFINITY };
        let peak = self.home.map_or(own.peak_gb_s(), |home| home.peak_gb_s().min(own.peak_gb_s()));
        self.gigabytes / peak
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
        if u >= 1.0 { f64::INFINITY } else { LINE_BYTES / self.gb_s * u / (1.0 - u) }
    }
}

impl<'a> Flow<'a> {
    fn new(paths: SmallVec<[PathFlow<'a>; 8]>, links: SmallVec<[LinkFlow; 4]>) -> Self {
        let by_memory = paths.iter().enumerate().map(|(index, path)| (Station::Memory(index), path.least_s()));
        let by_link = links.iter().enumerate().map(|(index, link)| (Station::Link(index), link.least_s()));
        let slower = |worst: (f64, Option<Station>), (station, least_s): (Station, f64)| {
            if least_s > worst.0 { (least_s, Some(station)) } else { worst }
        };
        let (least_s, bottleneck) = by_memory.chain(by_link).fold((0.0, None), slower);
        Self { paths, links, least_s, bottleneck }
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

    /// Latency of this memory when the traffic passes within `seconds`, ns.
    pub fn latency_ns(&self, memory: usize, seconds: f64) -> f64 {
        let path = &self.paths[memory];
        let Some(own) = path.own else { return f64::INFINITY };
        let gb_s = path.gigabytes / seconds;
        let memory_ns = path.home.map_or(0.0, |home| home.excess_ns(gb_s));
        let links_ns = path.links.iter().map(|link| self.links[*link].wait_ns(seconds));
        path.idle_ns + links_ns.fold(own.excess_ns(gb_s).max(memory_ns), f64::max)
    }
}
