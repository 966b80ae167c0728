//! One measurement from beginning to end: every socket against every node.

use tierloom_linux::cpus;
use tierloom_linux::root::Root;
use tierloom_model::Machine;

use crate::arena::{Arena, footprints};
use crate::chase::{Chase, Order};
use crate::error::ProbeError;
use crate::figures::{self, Figure};
use crate::host::{Host, HostSocket};
use crate::kernels::{Instructions, Kernel};
use crate::latency;
use crate::machine;
use crate::mix::Mix;
use crate::quiet::Watch;
use crate::report::{Bandwidth, Latency, Loaded, Report, Scattered, Together};
use crate::request::{Pace, Request, Tell};
use crate::statistics::Percentiles;
use crate::team::{self, Job, Work};
use crate::traps::Migration;
use crate::warning::Warning;

/// What a measurement yields.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The machine as the other verbs read it.
    pub machine: Machine,
    /// Everything behind it.
    pub report: Report,
}

/// Measures this machine; `tell` hears how far it has come before each figure, and may end it.
///
/// # Errors
/// Nothing can be measured here: no CPU, no room, or a call that the kernel refuses; or `tell` ended it. What is merely
/// doubtful is in [`Report::warnings`].
pub fn measure(request: &Request, tell: &mut Tell<'_>) -> Result<Measurement, ProbeError> {
    let root = Root::default();
    let (mut host, migration) = (Host::read(&root), Migration::read(&root));
    let mut warnings = migration.traps(&host);
    warnings.extend(leave_out_forbidden_cpus(&mut host)?);
    let (mut arenas, about_memory) = Arena::of_every_node(&host, request.scale.most_bytes)?;
    warnings.extend(about_memory);
    warnings.extend(lack_of_parts(&host));

    let _held = Held::remember()?;
    let (watch, instructions) = (Watch::start(root), Instructions::widest());
    let mut report = Report::empty(request, host, migration, instructions);
    Session::new(&mut report, &arenas, tell).run(&mut arenas)?;
    report.seconds = watch.seconds();
    report.warnings = warnings;
    report.warnings.extend(watch.warnings());
    report.warnings.extend(report.doubts());
    Ok(Measurement { machine: machine::from_report(&report)?, report })
}

/// Keeps the CPUs that this process may use; a socket without any is left out.
pub(crate) fn leave_out_forbidden_cpus(host: &mut Host) -> Result<Vec<Warning>, ProbeError> {
    let allowed = cpus::allowed_cpus()?;
    for socket in &mut host.sockets {
        socket.cores.retain(|cpu| allowed.contains(cpu));
    }
    let (kept, left): (Vec<HostSocket>, Vec<HostSocket>) =
        std::mem::take(&mut host.sockets).into_iter().partition(|socket| !socket.cores.is_empty());
    host.sockets = kept;
    if host.sockets.is_empty() {
        return Err(ProbeError::NoCpus);
    }
    Ok(left.into_iter().map(|socket| Warning::SocketLeftOut { node: socket.node }).collect())
}

fn lack_of_parts(host: &Host) -> Vec<Warning> {
    let single = (host.nodes.len() == 1).then_some(Warning::SingleNode);
    let one_core = host.sockets.iter().any(|socket| socket.cores.len() == 1).then_some(Warning::OneCore);
    single.into_iter().chain(one_core).collect()
}

/// Gives the calling thread its CPUs back at the end.
struct Held(Vec<u32>);

impl Held {
    fn remember() -> Result<Self, ProbeError> {
        Ok(Self(cpus::allowed_cpus()?))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        cpus::run_on(&self.0).ok();
    }
}

/// What is being measured, and where the results go.
struct Session<'a> {
    report: &'a mut Report,
    pace: Pace<'a>,
    round: usize,
}

impl<'a> Session<'a> {
    fn new(report: &'a mut Report, arenas: &[Arena], tell: &'a mut Tell<'a>) -> Self {
        let mut rounds = 0;
        for socket in &report.host.sockets {
            let figures = arenas.iter().flat_map(|arena| figures_of(report, socket, arena));
            rounds += figures.map(Figure::rounds).sum::<usize>();
            rounds += pairs(arenas.len()).count() * figures::splits(socket.cores.len()).len();
        }
        let pace = Pace::new(&report.scale, rounds * report.scale.rounds.max(1), tell);
        Self { report, pace, round: 0 }
    }

    fn run(&mut self, arenas: &mut [Arena]) -> Result<(), ProbeError> {
        let mut arithmetic_ns = Vec::new();
        for round in 0..self.report.scale.rounds.max(1) {
            self.round = round;
            self.once(arenas, &mut arithmetic_ns)?;
        }
        self.report.arithmetic_ns = Percentiles::of(arithmetic_ns);
        Ok(())
    }

    /// Everything from the first figure to the last.
    fn once(&mut self, arenas: &mut [Arena], arithmetic_ns: &mut Vec<f64>) -> Result<(), ProbeError> {
        for socket in self.report.host.sockets.clone() {
            // Latency is measured on this thread, so it stays on the socket's first core.
            cpus::run_on(&socket.cores[..1])?;
            for arena in &mut *arenas {
                for figure in figures_of(self.report, &socket, arena) {
                    arithmetic_ns.push(team::spin_step_ns());
                    self.figure(figure, &socket, arena)?;
                }
            }
            for (first, second) in pairs(arenas.len()) {
                let (before, after) = arenas.split_at_mut(second);
                self.together(&socket, [&mut before[first], &mut after[0]])?;
            }
        }
        Ok(())
    }

    fn figure(&mut self, figure: Figure, socket: &HostSocket, arena: &mut Arena) -> Result<(), ProbeError> {
        match figure {
            Figure::Latency { footprint, order } => self.latency(footprint, order, socket, arena)?,
            Figure::Scatter => self.scatter(socket, arena)?,
            Figure::Peak { mix, threads } => self.peak(mix, threads, socket, arena)?,
            Figure::Curve { mix } => self.curve(mix, socket, arena)?,
        }
        Ok(())
    }

    fn begin(&mut self, rounds: usize, what: &str, socket: &HostSocket, node: u32) -> Result<(), ProbeError> {
        self.pace.begin(rounds, format!("CPUs of node {} to memory of node {node}: {what}", socket.node))
    }

    fn latency(
        &mut self,
        footprint: usize,
        order: Order,
        socket: &HostSocket,
        arena: &mut Arena,
    ) -> Result<(), ProbeError> {
        self.begin(1, "latency", socket, arena.node)?;
        if let Some(ns) = latency::at_rest(arena.chase.as_mut_slice(), footprint, order, &self.pace) {
            let (socket, node, round) = (socket.node, arena.node, self.round);
            self.report.latencies.push(Latency { socket, node, round, footprint_bytes: footprint, order, ns });
        }
        Ok(())
    }

    fn scatter(&mut self, socket: &HostSocket, arena: &mut Arena) -> Result<(), ProbeError> {
        self.begin(1, "random loads", socket, arena.node)?;
        let job = Job { cpu: socket.cores[0], memory: arena.load.as_mut_slice(), work: Work::Scatter };
        let gb_s = self.full_speed(vec![job])?;
        self.report.scattered.push(Scattered { socket: socket.node, node: arena.node, round: self.round, gb_s });
        Ok(())
    }

    fn peak(&mut self, mix: Mix, threads: usize, socket: &HostSocket, arena: &mut Arena) -> Result<(), ProbeError> {
        self.begin(1, "bandwidth", socket, arena.node)?;
        let gb_s = self.full_speed(self.walkers(mix, &socket.cores[..threads], arena.load.as_mut_slice()))?;
        let (socket, node, round) = (socket.node, arena.node, self.round);
        self.report.bandwidths.push(Bandwidth { socket, node, round, mix, threads, gb_s });
        Ok(())
    }

    fn curve(&mut self, mix: Mix, socket: &HostSocket, arena: &mut Arena) -> Result<(), ProbeError> {
        self.begin(latency::DUTIES.len(), "latency under load", socket, arena.node)?;
        let loaders = &socket.cores[1..];
        let Some(mut chase) = Chase::new(arena.chase.as_mut_slice(), Order::Random) else { return Ok(()) };
        let burst_bytes = mix.traffic(team::BURST_BYTES).bytes();
        let jobs = self.walkers(mix, loaders, arena.load.as_mut_slice());
        let points = team::under_load(jobs, |load| {
            latency::under_load(load, loaders.len(), burst_bytes, &mut chase, &self.pace)
        })?;
        let (socket, node, round, threads) = (socket.node, arena.node, self.round, loaders.len());
        self.report.loaded.extend(points.into_iter().map(|point| {
            let latency::Point { pause_ns, gb_s, ns } = point;
            Loaded { socket, node, round, mix, threads, pause_ns, gb_s, ns }
        }));
        Ok(())
    }

    /// Threads that all read, some from one node and the others from the other.
    fn together(&mut self, socket: &HostSocket, arenas: [&mut Arena; 2]) -> Result<(), ProbeError> {
        let [first, second] = arenas;
        for near in figures::splits(socket.cores.len()) {
            self.begin(1, "bandwidth of two nodes", socket, first.node)?;
            let (to_first, to_second) = socket.cores.split_at(near);
            let mut jobs = self.walkers(Mix::Reads, to_first, first.load.as_mut_slice());
            jobs.extend(self.walkers(Mix::Reads, to_second, second.load.as_mut_slice()));
            let gb_s = self.full_speed(jobs)?;
            let (nodes, threads) = ([first.node, second.node], [near, to_second.len()]);
            self.report.together.push(Together { socket: socket.node, nodes, round: self.round, threads, gb_s });
        }
        Ok(())
    }

    /// One job a core.
    fn walkers<'m>(&self, mix: Mix, cores: &[u32], memory: &'m mut [u8]) -> Vec<Job<'m>> {
        team::walkers(Kernel::new(mix, self.report.instructions), cores, memory)
    }

    /// Bandwidth of these jobs together; the first of them is this thread's.
    fn full_speed(&self, mut jobs: Vec<Job<'_>>) -> Result<Percentiles, ProbeError> {
        let (windows, window) = (self.pace.windows(), self.pace.window());
        let own = jobs.remove(0);
        Ok(Percentiles::of(team::under_load(jobs, |load| load.gb_s(own, windows, window))?))
    }
}

fn figures_of(report: &Report, socket: &HostSocket, arena: &Arena) -> Vec<Figure> {
    let footprints = footprints(arena.chase.bytes(), report.scale.footprint_step);
    figures::of_pair(&report.scale, &footprints, socket.cores.len(), report.instructions)
}

/// Every pair of `0..count`, the lesser first.
fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |second| (0..second).map(move |first| (first, second)))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use tierloom_model::{Load, MemoryKind};

    use super::*;
    use crate::arena::Sizes;
    use crate::host::HostNode;
    use crate::request::{Progress, Scale};

    /// This machine, told as one with two nodes: the second has no CPUs and lies where the first does.
    fn with_a_second_node() -> (Host, Vec<Arena>) {
        let mut host = Host::read(&Root::default());
        leave_out_forbidden_cpus(&mut host).unwrap();
        host.sockets.truncate(1);
        host.nodes.truncate(1);
        let second = host.nodes[0].node + 1;
        let sizes = Sizes { chase: 2 << 20, load: 2 << 20 };
        let mut arenas = vec![Arena::new(&host.nodes[0], sizes).unwrap(), Arena::new(&host.nodes[0], sizes).unwrap()];
        arenas[1].node = second;
        let because = "it stands in a test".to_owned();
        let node = HostNode {
            node: second,
            has_cpus: false,
            kind: MemoryKind::Cxl,
            kind_because: because,
            ..host.nodes[0].clone()
        };
        host.nodes.push(node);
        (host, arenas)
    }

    /// What judges the machine: `make live`.
    mod live {
        use super::*;

        #[test]
        #[ignore = "live"]
        fn two_nodes_make_two_memories_two_paths_and_their_combinations() {
            let (host, mut arenas) = with_a_second_node();
            let scale =
                Scale { rounds: 1, windows: 5, window_s: 0.001, total_s: 1.0, footprint_step: 128, ..Scale::QUICK };
            let request = Request { name: "two".to_owned(), date: "today".to_owned(), scale };
            let migration = Migration::read(&Root::default());
            let mut report = Report::empty(&request, host, migration, Instructions::widest());
            let mut told = 0;
            let mut tell = |_: &Progress| {
                told += 1;
                ControlFlow::Continue(())
            };
            Session::new(&mut report, &arenas, &mut tell).run(&mut arenas).unwrap();
            let machine = machine::from_report(&report).unwrap();

            assert_eq!((machine.memories.len(), machine.paths.len()), (2, 2));
            assert_eq!(machine.memories[1].kind, MemoryKind::Cxl);
            assert!(machine.notes.iter().any(|note| note.contains("it stands in a test")));
            let cores = report.host.sockets[0].cores.len();
            let splits: Vec<usize> = report.together.iter().map(|together| together.threads[0]).collect();
            assert_eq!(splits, figures::splits(cores));
            assert!(
                report.together.iter().all(|both| both.threads.iter().sum::<usize>() == cores && both.gb_s.p50 > 0.0)
            );
            for path in &machine.paths {
                let Load::Points(curves) = &path.load else { panic!("a measured load is points") };
                assert!(curves.iter().all(|curve| curve.points.len() >= 2));
            }
        }
    }
}
