//! A placement's time, explained: by memory, by object, with its bound, range and assumptions.
//!
//! Everything adds up: tier bytes are the profile's bytes, object stalls are the run's stall, and
//! stall and compute are the time. Where a phase is bandwidth bound, the wait that the curves do
//! not hold is the bottleneck's queue; it is charged to what goes through the bottleneck, per line
//! waited for, or per byte where only write-backs go through (Little's law: latency is lines in
//! flight over throughput).

use std::ops::Range;

use tierloom_contention::{Fabric, Station, Work, held_up_s};
use tierloom_model::units::LINE_BYTES_F64;
use tierloom_model::{Bound, ObjectUse, PhasePrediction, Placement, Prediction, TierUse};

use crate::compile::Works;
use crate::doubt::Doubt;
use crate::phase::{Solved, solve};
use crate::predictor::Predictor;

/// Utilisation at which the latency of a wall is reported where nobody waits (assumed).
const SHORT_OF_FULL: f64 = 0.99;

/// One phase under a placement.
struct PhaseUse<'a> {
    cells: &'a [Work],
    compute_s: f64,
    solved: Solved<'a>,
    /// Ways of the team that is done last: what the phase waits for, it waits for.
    slowest: Range<usize>,
    /// By way: latency of reads in sequence with the queue, ns.
    latency_ns: Vec<f64>,
    /// What slow reads hold up of the slowest team's, ns for each that waits beside others.
    held_up_ns: f64,
    /// By way: seconds of queueing per byte, where no line is waited for.
    queue_s_per_byte: Vec<f64>,
}

impl Predictor {
    /// Everything that a reader wants to see of a placement.
    ///
    /// Where a memory in use cannot be reached, the times are infinite. A memory that the socket
    /// cannot reach has infinite latency; JSON writes both as `null`.
    pub fn predict(&self, placement: &Placement) -> Prediction {
        let demand = self.demand(placement.rows());
        let phases: Vec<PhaseUse<'_>> = demand
            .cells
            .chunks_exact(self.fabric.ways())
            .zip(&self.likely.compute_s)
            .map(|(cells, compute_s)| PhaseUse::new(self, cells, *compute_s))
            .collect();
        let time_s: f64 = phases.iter().map(|phase| phase.solved.time_s).sum();
        let compute_s: f64 = self.likely.compute_s.iter().sum();
        let run = |works: &Works| self.labels.anchored_to.map_or(1.0, |run| works.doubt.of_run(run));
        let end = |works: &Works| run(works) * self.time_under(works, &self.demand_under(works, placement.rows()));
        // Less traffic of one object may shift a mix to a read fraction where measured points are slower,
        // so an end can pass the middle; then it is the middle.
        let low_s = self.low.iter().map(end).fold(time_s, f64::min);
        let high_s = self.high.iter().map(end).fold(time_s, f64::max);
        Prediction {
            time_s,
            low_s,
            high_s,
            compute_s,
            stall_s: time_s - compute_s,
            bound: Limits::of_run(self, &phases).bound(self),
            phases: self
                .labels
                .phases
                .iter()
                .zip(&phases)
                .map(|(name, phase)| phase_prediction(self, name, phase))
                .collect(),
            tiers: (0..self.memories()).map(|memory| tier_use(self, placement, &phases, memory, time_s)).collect(),
            objects: (0..self.objects()).map(|o| object_use(self, placement, &phases, o, time_s)).collect(),
            assumptions: self.labels.assumptions.clone(),
        }
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
        let latency_ns: Vec<f64> = (0..cells.len()).map(|way| settled_ns(&solved, way)).collect();
        let memories = predictor.memories();
        let first = solved.slowest(cells, memories) * memories;
        let slowest = first..first + memories;
        let queue_s_per_byte = vec![0.0; cells.len()];
        let held_up_ns = held_up_ns(cells, slowest.clone(), &predictor.fabric, |way| latency_ns[way]);
        let mut phase = Self { cells, compute_s, solved, slowest, latency_ns, held_up_ns, queue_s_per_byte };
        phase.charge_queue(predictor);
        phase
    }

    /// Ways of the slowest team on which lines are waited for, with their works.
    fn waited_for(&self) -> impl Iterator<Item = (usize, &Work)> {
        self.slowest.clone().map(|way| (way, &self.cells[way])).filter(|(_, cell)| cell.wait > 0.0)
    }

    /// Seconds that some work waits on a way.
    fn wait_s(&self, fabric: &Fabric, way: usize, work: Work) -> f64 {
        work.wait * self.latency_ns[way] + work.random * fabric.random_extra_ns(way) + work.beside * self.held_up_ns
    }

    /// Waiting that the curves do not hold, s: the bottleneck's queue, or the solver's rounding.
    fn queueing_s(&self, fabric: &Fabric) -> f64 {
        let waits = self.waited_for().map(|(way, cell)| self.wait_s(fabric, way, *cell));
        self.solved.time_s - self.compute_s - waits.sum::<f64>()
    }

    /// Puts the queue on the ways behind the bottleneck, as long as the slowest team finds it.
    fn charge_queue(&mut self, predictor: &Predictor) {
        let queueing_s = self.queueing_s(&predictor.fabric);
        let behind = |way: &usize| match self.solved.bottleneck {
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

/// What slow reads hold up, ns for each of a team's reads that waits beside others, at these latencies by way.
fn held_up_ns(cells: &[Work], team: Range<usize>, fabric: &Fabric, latency_ns: impl Fn(usize) -> f64) -> f64 {
    let beside: f64 = cells[team.clone()].iter().map(|cell| cell.beside).sum();
    let random_ns = |way: usize| latency_ns(way) + fabric.random_extra_ns(way);
    ratio(held_up_s(team.map(|way| (cells[way], random_ns(way)))), beside, 0.0)
}

/// What time goes to, over some phases.
#[derive(Default)]
struct Limits {
    compute_s: f64,
    /// Waiting as at rest.
    at_rest_s: f64,
    /// Waiting because others load the same stations, by the station that is full, s.
    loads: Vec<(Station, f64)>,
}

impl Limits {
    fn of_run(predictor: &Predictor, phases: &[PhaseUse<'_>]) -> Self {
        phases.iter().fold(Self::default(), |sum, phase| sum.and(predictor, phase))
    }

    /// These and a phase's.
    fn and(mut self, predictor: &Predictor, phase: &PhaseUse<'_>) -> Self {
        let fabric = &predictor.fabric;
        let at_rest_ns =
            |(way, cell): (usize, &Work)| cell.wait * fabric.idle_ns(way) + cell.random * fabric.random_extra_ns(way);
        let held_up_ns = held_up_ns(phase.cells, phase.slowest.clone(), fabric, |way| fabric.idle_ns(way));
        let beside: f64 = phase.waited_for().map(|(_, cell)| cell.beside).sum();
        let at_rest_s = phase.waited_for().map(at_rest_ns).sum::<f64>() + beside * held_up_ns;
        self.compute_s += phase.compute_s;
        self.at_rest_s += at_rest_s;
        let Some(full) = phase.solved.bottleneck else { return self };
        let load_s = phase.solved.time_s - phase.compute_s - at_rest_s;
        match self.loads.iter_mut().find(|(station, _)| *station == full) {
            Some((_, sum_s)) => *sum_s += load_s,
            None => self.loads.push((full, load_s)),
        }
        self
    }

    /// The largest part.
    fn bound(&self, predictor: &Predictor) -> Bound {
        let most = self.loads.iter().copied().reduce(|a, b| if b.1 > a.1 { b } else { a });
        match most {
            Some((full, load_s)) if load_s > self.compute_s.max(self.at_rest_s) => {
                Bound::Bandwidth(predictor.labels.name(full))
            }
            _ if self.compute_s >= self.at_rest_s => Bound::Compute,
            _ => Bound::Latency,
        }
    }
}

fn phase_prediction(predictor: &Predictor, name: &str, phase: &PhaseUse<'_>) -> PhasePrediction {
    let time_s = phase.solved.time_s;
    let gb_s = |memory| ratio(phase.in_memory(memory).traffic().bytes() * 1e-9, time_s, 0.0);
    PhasePrediction {
        phase: name.to_owned(),
        time_s,
        compute_s: phase.compute_s,
        bound: Limits::default().and(predictor, phase).bound(predictor),
        gb_s: (0..predictor.memories()).map(gb_s).collect(),
    }
}

fn tier_use(
    predictor: &Predictor,
    placement: &Placement,
    phases: &[PhaseUse<'_>],
    memory: usize,
    run_s: f64,
) -> TierUse {
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
        // Lines that the memory does not take yet wait elsewhere.
        let taken_ns = predictor.fabric.most_lines(memory) * LINE_BYTES_F64 * time_s / (whole.bytes() * 1e-9);
        for way in phase.to_memory(memory) {
            let bytes = phase.cells[way].traffic();
            if bytes.bytes() > 0.0 {
                let random = ratio(phase.cells[way].random, phase.cells[way].wait, 0.0);
                let latency_ns = phase.latency_ns[way].min(taken_ns.max(settled_ns(&phase.solved, way)));
                let latency_ns = latency_ns + random * predictor.fabric.random_extra_ns(way);
                loaded += latency_ns * time_s * (bytes.bytes() / whole.traffic().bytes());
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
        gb_s: ratio(work.traffic().bytes() * 1e-9, run_s, 0.0),
        utilisation: ratio(filled, run_s, 0.0),
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
            let by_line = if work.wait > 0.0 { phase.wait_s(&predictor.fabric, way, work) } else { 0.0 };
            stall_s += fraction * (by_line + work.traffic().bytes() * phase.queue_s_per_byte[way]);
        }
    }
    ObjectUse { object: predictor.labels.objects[object].clone(), stall_s, share: ratio(stall_s, time_s, 0.0) }
}

/// `part / whole`, or what stands for it where nothing or forever passed.
fn ratio(part: f64, whole: f64, otherwise: f64) -> f64 {
    if whole > 0.0 && whole.is_finite() { part / whole } else { otherwise }
}
