//! A placement's time, explained: by memory, by object, with its bound, range and assumptions.
//!
//! Everything adds up: tier bytes are the profile's bytes, object stalls are the run's stall, and
//! stall and compute are the time. Where a phase is bandwidth bound, the wait that the curves do
//! not hold is the bottleneck's queue; it is charged to what goes through the bottleneck, per line
//! waited for, or per byte where only write-backs go through (Little's law: latency is lines in
//! flight over throughput).

use std::ops::Range;

use tierloom_contention::Station;
use tierloom_model::{Bound, Machine, ObjectUse, Placement, Prediction, Profile, TierUse};

use crate::compile::Works;
use crate::demand::Work;
use crate::doubt::Doubt;
use crate::phase::{Solved, solve};
use crate::predictor::{Predictor, Run};

/// Share of all objects' bytes that are there at once from which on nobody would miss the rest (assumed).
const WORTH_SAYING: f64 = 0.95;
/// Utilisation at which the latency of a wall is reported where nobody waits (assumed).
const SHORT_OF_FULL: f64 = 0.99;

/// Names, sizes and words that only the report needs.
#[derive(Debug, Clone)]
pub(crate) struct Labels {
    memories: Vec<String>,
    links: Vec<String>,
    pub(crate) objects: Vec<String>,
    sizes: Vec<f64>,
    assumptions: Vec<String>,
}

/// One phase under a placement.
struct PhaseUse<'a> {
    cells: &'a [Work],
    compute_s: f64,
    solved: Solved<'a>,
    /// Ways of the team that is done last: what the phase waits for, it waits for.
    slowest: Range<usize>,
    /// By way: latency with the queue, ns.
    latency_ns: Vec<f64>,
    /// By way: seconds of queueing per byte, where no line is waited for.
    queue_s_per_byte: Vec<f64>,
}

impl Labels {
    pub(crate) fn new(machine: &Machine, profile: &Profile, runs: &[Run]) -> Self {
        Self {
            memories: machine.memories.iter().map(|memory| memory.name.clone()).collect(),
            links: machine.links.iter().map(|link| link.name.clone()).collect(),
            objects: profile.objects.iter().map(|object| object.name.clone()).collect(),
            sizes: profile.objects.iter().map(|object| object.size_bytes as f64).collect(),
            assumptions: assumptions(machine, profile, runs),
        }
    }

    fn name(&self, station: Station) -> String {
        match station {
            Station::Memory(memory) => self.memories[memory].clone(),
            Station::Link(link) => self.links[link].clone(),
        }
    }
}

fn assumptions(machine: &Machine, profile: &Profile, runs: &[Run]) -> Vec<String> {
    let plural = |threads| if threads == 1 { "" } else { "s" };
    let team = |run: &Run| {
        format!("{} thread{} on socket `{}`", run.threads, plural(run.threads), machine.sockets[run.socket].name)
    };
    let teams: Vec<String> = runs.iter().map(team).collect();
    let mut words = vec![
        format!("computing takes as long as on {}, shared evenly by {}", profile.program.cpu, teams.join(" and ")),
        "nothing else uses the memories and links".to_owned(),
        "an object's accesses fall evenly on its pages".to_owned(),
        "threads wait for lines that are read, not for lines that are written back".to_owned(),
        Doubt::in_words(),
    ];
    let caches = runs.iter().map(|run| machine.sockets[run.socket].llc_per_core_bytes.value);
    if let Some(cache) = caches.into_iter().find(|cache| *cache != profile.program.llc_bytes) {
        words.push(format!(
            "memory traffic is that of cores that reach a last-level cache of {} each; here it is {}",
            tierloom_model::units::format_bytes(profile.program.llc_bytes),
            tierloom_model::units::format_bytes(cache)
        ));
    }
    let (all, at_once) = (profile.footprint_bytes(), profile.bytes_at_once());
    if all > 0 && at_once as f64 <= all as f64 * WORTH_SAYING {
        words.push(format!(
            "all objects are there at once, {}; by when they came and went at most {} are, so less memory may do",
            tierloom_model::units::format_bytes(all),
            tierloom_model::units::format_bytes(at_once)
        ));
    }
    words
}

/// Solves and explains; see [`Predictor::predict`].
pub(crate) fn report(predictor: &Predictor, placement: &Placement) -> Prediction {
    let demand = predictor.demand(placement.rows());
    let phases: Vec<PhaseUse<'_>> = demand
        .cells
        .chunks_exact(predictor.fabric.ways())
        .zip(&predictor.compute_s)
        .map(|(cells, compute_s)| PhaseUse::new(predictor, cells, *compute_s))
        .collect();
    let time_s: f64 = phases.iter().map(|phase| phase.solved.time_s).sum();
    let compute_s: f64 = predictor.compute_s.iter().sum();
    // Less traffic of one object may shift a mix to a read fraction where measured points are slower,
    // so an end can pass the middle; then it is the middle.
    let end = |works: &Works| predictor.time_under(works.doubt, &predictor.demand_under(works, placement.rows()));
    Prediction {
        time_s,
        low_s: end(&predictor.low).min(time_s),
        high_s: end(&predictor.high).max(time_s),
        compute_s,
        stall_s: time_s - compute_s,
        bound: bound(predictor, &phases),
        tiers: (0..predictor.memories()).map(|memory| tier_use(predictor, placement, &phases, memory)).collect(),
        objects: (0..predictor.objects()).map(|o| object_use(predictor, placement, &phases, o, time_s)).collect(),
        assumptions: predictor.labels.assumptions.clone(),
    }
}

/// Latency at the phase's time, ns.
///
/// At a wall where only write-backs go through, no wait bounds it; there it is that of a station a
/// hundredth short of full.
fn settled_ns(solved: &Solved<'_>, way: usize) -> f64 {
    let latency_ns = solved.flow.latency_ns(way, solved.time_s);
    if latency_ns.is_finite() { latency_ns } else { solved.flow.latency_ns(way, solved.time_s / SHORT_OF_FULL) }
}

impl<'a> PhaseUse<'a> {
    fn new(predictor: &'a Predictor, cells: &'a [Work], compute_s: f64) -> Self {
        let solved = solve(compute_s, cells, &predictor.fabric, Doubt::NONE.latency);
        let latency_ns = (0..cells.len()).map(|way| settled_ns(&solved, way)).collect();
        let memories = predictor.memories();
        let first = solved.slowest(cells, memories) * memories;
        let slowest = first..first + memories;
        let queue_s_per_byte = vec![0.0; cells.len()];
        let mut phase = Self { cells, compute_s, solved, slowest, latency_ns, queue_s_per_byte };
        phase.charge_queue(predictor);
        phase
    }

    /// Ways of the slowest team on which lines are waited for, with their works.
    fn waited_for(&self) -> impl Iterator<Item = (usize, &Work)> {
        self.slowest.clone().map(|way| (way, &self.cells[way])).filter(|(_, cell)| cell.wait > 0.0)
    }

    /// Waiting that the curves do not hold, s: the bottleneck's queue, or the solver's rounding.
    fn queueing_s(&self) -> f64 {
        let waits = self.waited_for().map(|(way, cell)| cell.wait * self.latency_ns[way]);
        self.solved.time_s - self.compute_s - waits.sum::<f64>()
    }

    /// Puts the queue on the ways behind the bottleneck, as long as the slowest team finds it.
    fn charge_queue(&mut self, predictor: &Predictor) {
        let queueing_s = self.queueing_s();
        let behind = |way: &usize| match self.solved.flow.bottleneck() {
            Some(Station::Memory(full)) => predictor.fabric.memory_of(*way) == full,
            Some(Station::Link(link)) => predictor.fabric.crosses(*way, link),
            None => false,
        };
        let behind: Vec<usize> = (0..self.cells.len()).filter(behind).collect();
        let found = behind.iter().filter(|way| self.slowest.contains(way));
        let whole = found.fold(Work::default(), |sum, way| sum + self.cells[*way]);
        if !queueing_s.is_finite() {
            return;
        }
        for way in behind {
            if whole.wait > 0.0 {
                self.latency_ns[way] += queueing_s / whole.wait;
            } else if whole.traffic().bytes() > 0.0 {
                self.queue_s_per_byte[way] = queueing_s / whole.traffic().bytes();
            }
        }
    }

    /// Ways to a memory.
    fn to_memory(&self, memory: usize) -> impl Iterator<Item = usize> + use<> {
        (memory..self.cells.len()).step_by(self.slowest.len())
    }

    /// All teams' work in a memory.
    fn in_memory(&self, memory: usize) -> Work {
        self.to_memory(memory).fold(Work::default(), |sum, way| sum + self.cells[way])
    }
}

/// The largest part of the longest phase: computing, waiting as at rest, or waiting because others
/// load the same stations.
fn bound(predictor: &Predictor, phases: &[PhaseUse<'_>]) -> Bound {
    let longest = phases.iter().reduce(|a, b| if b.solved.time_s > a.solved.time_s { b } else { a });
    let Some(phase) = longest else { return Bound::Compute };
    let at_rest_s: f64 = phase.waited_for().map(|(way, cell)| cell.wait * predictor.fabric.idle_ns(way)).sum();
    let load_s = phase.solved.time_s - phase.compute_s - at_rest_s;
    match phase.solved.flow.bottleneck() {
        Some(station) if load_s > phase.compute_s.max(at_rest_s) => Bound::Bandwidth(predictor.labels.name(station)),
        _ if phase.compute_s >= at_rest_s => Bound::Compute,
        _ => Bound::Latency,
    }
}

fn tier_use(predictor: &Predictor, placement: &Placement, phases: &[PhaseUse<'_>], memory: usize) -> TierUse {
    let ways = (memory..predictor.fabric.ways()).step_by(predictor.memories());
    let idle_ns = ways.map(|way| predictor.fabric.idle_ns(way)).fold(f64::INFINITY, f64::min);
    let mut work = Work::default();
    let (mut busy_s, mut loaded, mut filled) = (0.0, 0.0, 0.0);
    for phase in phases {
        let (whole, time_s) = (phase.in_memory(memory), phase.solved.time_s);
        if whole.traffic().bytes() <= 0.0 {
            continue;
        }
        work += whole;
        busy_s += time_s;
        for way in phase.to_memory(memory) {
            let bytes = phase.cells[way].traffic();
            if bytes.bytes() > 0.0 {
                loaded += phase.latency_ns[way] * time_s * (bytes.bytes() / whole.traffic().bytes());
                filled += bytes.bytes() * 1e-9 / predictor.fabric.peak_gb_s(way, bytes.read_fraction());
            }
        }
    }
    let sizes = predictor.labels.sizes.iter().zip(placement.rows());
    TierUse {
        memory: predictor.labels.memories[memory].clone(),
        placed_bytes: sizes.map(|(bytes, row)| bytes * row[memory]).sum(),
        read_bytes: work.read,
        write_bytes: work.write,
        gb_s: ratio(work.traffic().bytes() * 1e-9, busy_s, 0.0),
        utilisation: ratio(filled, busy_s, 0.0),
        idle_ns,
        loaded_ns: ratio(loaded, busy_s, idle_ns),
    }
}

fn object_use(
    predictor: &Predictor,
    placement: &Placement,
    phases: &[PhaseUse<'_>],
    object: usize,
    time_s: f64,
) -> ObjectUse {
    let mut stall_s = 0.0;
    for (index, phase) in phases.iter().enumerate() {
        let teams = predictor.fabric.ways() / predictor.memories();
        let team = phase.slowest.start / predictor.memories();
        let work = predictor.likely.of_row(index * teams + team)[object];
        for (way, fraction) in phase.slowest.clone().zip(placement.row(object)).filter(|(_, fraction)| **fraction > 0.0)
        {
            let by_line = if work.wait > 0.0 { work.wait * phase.latency_ns[way] } else { 0.0 };
            stall_s += fraction * (by_line + work.traffic().bytes() * phase.queue_s_per_byte[way]);
        }
    }
    ObjectUse { object: predictor.labels.objects[object].clone(), stall_s, share: ratio(stall_s, time_s, 0.0) }
}

/// `part / whole`, or what stands for it where nothing or forever passed.
fn ratio(part: f64, whole: f64, otherwise: f64) -> f64 {
    if whole > 0.0 && whole.is_finite() { part / whole } else { otherwise }
}
