//! A placement's time, explained: by memory, by object, with its bound, range and assumptions.
//!
//! Everything adds up: tier bytes are the profile's bytes, object stalls are the run's stall, and
//! stall and compute are the time. Where a phase is bandwidth bound, the wait that the curves do
//! not hold is the bottleneck's queue; it is charged to what goes through the bottleneck, per line
//! waited for, or per byte where only write-backs go through (Little's law: latency is lines in
//! flight over throughput).

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
    /// By memory: latency with the queue, ns.
    latency_ns: Vec<f64>,
    /// By memory: seconds of queueing per byte, where no line is waited for.
    queue_s_per_byte: Vec<f64>,
}

impl Labels {
    pub(crate) fn new(machine: &Machine, profile: &Profile, run: Run) -> Self {
        Self {
            memories: machine.memories.iter().map(|memory| memory.name.clone()).collect(),
            links: machine.links.iter().map(|link| link.name.clone()).collect(),
            objects: profile.objects.iter().map(|object| object.name.clone()).collect(),
            sizes: profile.objects.iter().map(|object| object.size_bytes as f64).collect(),
            assumptions: assumptions(machine, profile, run),
        }
    }

    fn name(&self, station: Station) -> String {
        match station {
            Station::Memory(memory) => self.memories[memory].clone(),
            Station::Link(link) => self.links[link].clone(),
        }
    }
}

fn assumptions(machine: &Machine, profile: &Profile, run: Run) -> Vec<String> {
    let socket = &machine.sockets[run.socket];
    let mut words = vec![
        format!(
            "computing takes as long as on {}, shared evenly by {} threads on socket `{}`",
            profile.program.cpu, run.threads, socket.name
        ),
        "nothing else uses the memories and links".to_owned(),
        "an object's accesses fall evenly on its pages".to_owned(),
        "threads wait for lines that are read, not for lines that are written back".to_owned(),
        Doubt::in_words(),
    ];
    if profile.program.llc_bytes != socket.llc_bytes.value {
        words.push(format!(
            "memory traffic is that of a last-level cache of {}; this one has {}",
            tierloom_model::units::format_bytes(profile.program.llc_bytes),
            tierloom_model::units::format_bytes(socket.llc_bytes.value)
        ));
    }
    let (all, at_once) = (profile.footprint_bytes(), profile.bytes_at_once());
    if at_once as f64 <= all as f64 * WORTH_SAYING {
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
        .chunks_exact(predictor.memories())
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
fn settled_ns(solved: &Solved<'_>, memory: usize) -> f64 {
    let latency_ns = solved.flow.latency_ns(memory, solved.time_s);
    if latency_ns.is_finite() { latency_ns } else { solved.flow.latency_ns(memory, solved.time_s / SHORT_OF_FULL) }
}

impl<'a> PhaseUse<'a> {
    fn new(predictor: &'a Predictor, cells: &'a [Work], compute_s: f64) -> Self {
        let solved = solve(compute_s, cells, &predictor.fabric, Doubt::NONE.latency);
        let latency_ns = (0..cells.len()).map(|memory| settled_ns(&solved, memory)).collect();
        let mut phase = Self { cells, compute_s, solved, latency_ns, queue_s_per_byte: vec![0.0; cells.len()] };
        phase.charge_queue(predictor);
        phase
    }

    /// Waiting that the curves do not hold, s: the bottleneck's queue, or the solver's rounding.
    fn queueing_s(&self) -> f64 {
        let waits = self.cells.iter().zip(&self.latency_ns).filter(|(cell, _)| cell.wait > 0.0);
        self.solved.time_s - self.compute_s - waits.map(|(cell, latency_ns)| cell.wait * latency_ns).sum::<f64>()
    }

    /// Puts the queue on the memories behind the bottleneck.
    fn charge_queue(&mut self, predictor: &Predictor) {
        let queueing_s = self.queueing_s();
        let behind = |memory: &usize| match self.solved.flow.bottleneck() {
            Some(Station::Memory(full)) => *memory == full,
            Some(Station::Link(link)) => predictor.fabric.crosses(*memory, link),
            None => false,
        };
        let behind: Vec<usize> = (0..self.cells.len()).filter(behind).collect();
        let whole = behind.iter().fold(Work::default(), |sum, memory| sum + self.cells[*memory]);
        if !queueing_s.is_finite() {
            return;
        }
        for memory in behind {
            if whole.wait > 0.0 {
                self.latency_ns[memory] += queueing_s / whole.wait;
            } else if whole.traffic().bytes() > 0.0 {
                self.queue_s_per_byte[memory] = queueing_s / whole.traffic().bytes();
            }
        }
    }

    fn in_use(&self, memory: usize) -> bool {
        self.cells[memory].traffic().bytes() > 0.0
    }
}

/// The largest part of the longest phase: computing, waiting as at rest, or waiting because others
/// load the same stations.
fn bound(predictor: &Predictor, phases: &[PhaseUse<'_>]) -> Bound {
    let longest = phases.iter().reduce(|a, b| if b.solved.time_s > a.solved.time_s { b } else { a });
    let Some(phase) = longest else { return Bound::Compute };
    let waits = phase.cells.iter().enumerate().filter(|(_, cell)| cell.wait > 0.0);
    let at_rest_s: f64 = waits.map(|(memory, cell)| cell.wait * predictor.fabric.idle_ns(memory)).sum();
    let load_s = phase.solved.time_s - phase.compute_s - at_rest_s;
    match phase.solved.flow.bottleneck() {
        Some(station) if load_s > phase.compute_s.max(at_rest_s) => Bound::Bandwidth(predictor.labels.name(station)),
        _ if phase.compute_s >= at_rest_s => Bound::Compute,
        _ => Bound::Latency,
    }
}

fn tier_use(predictor: &Predictor, placement: &Placement, phases: &[PhaseUse<'_>], memory: usize) -> TierUse {
    let idle_ns = predictor.fabric.idle_ns(memory);
    let mut work = Work::default();
    let (mut busy_s, mut loaded, mut filled) = (0.0, 0.0, 0.0);
    for phase in phases.iter().filter(|phase| phase.in_use(memory)) {
        let (cell, time_s) = (phase.cells[memory], phase.solved.time_s);
        let peak_gb_s = predictor.fabric.peak_gb_s(memory, cell.traffic().read_fraction());
        work += cell;
        busy_s += time_s;
        loaded += phase.latency_ns[memory] * time_s;
        filled += cell.traffic().bytes() * 1e-9 / peak_gb_s;
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
        let work = predictor.likely.of_phase(index)[object];
        for (memory, fraction) in placement.row(object).iter().enumerate().filter(|(_, fraction)| **fraction > 0.0) {
            let by_line = if work.wait > 0.0 { work.wait * phase.latency_ns[memory] } else { 0.0 };
            stall_s += fraction * (by_line + work.traffic().bytes() * phase.queue_s_per_byte[memory]);
        }
    }
    ObjectUse { object: predictor.labels.objects[object].clone(), stall_s, share: ratio(stall_s, time_s, 0.0) }
}

/// `part / whole`, or what stands for it where nothing or forever passed.
fn ratio(part: f64, whole: f64, otherwise: f64) -> f64 {
    if whole > 0.0 && whole.is_finite() { part / whole } else { otherwise }
}
