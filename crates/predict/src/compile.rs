//! What each object asks of memory in each phase, from the profile's accesses.

use std::collections::BTreeMap;

use tierloom_contention::Work;
use tierloom_model::units::{LINE_BYTES_F64, NS};
use tierloom_model::{Access, Machine, Object, Pattern, Phase, Profile};

use crate::doubt::Doubt;
use crate::error::PredictError;
use crate::run::Run;

/// The threads of one socket in one phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Team {
    /// Cache lines that one thread keeps in flight: prefetched, and by demand.
    pub(crate) stream_lines: f64,
    pub(crate) demand_lines: f64,
    /// Its part of the phase's threads, and so of its work.
    pub(crate) share: f64,
    /// Threads of all teams.
    pub(crate) threads: f64,
}

/// The works of a profile under one doubt. A *row* is a team in a phase: phase by phase, the teams in
/// the order of the run.
#[derive(Debug, Clone)]
pub(crate) struct Works {
    objects: usize,
    teams: usize,
    /// Row by row, one entry per object: its work when it is whole in one memory.
    all: Vec<Work>,
    /// Sum over the objects and teams, by phase.
    wholes: Vec<Work>,
    /// Seconds of computing, input and output by phase, on the run's threads.
    pub(crate) compute_s: Vec<f64>,
    /// The factors that went in.
    pub(crate) doubt: Doubt,
}

/// One phase's accesses, each with the position of its object.
pub(crate) type Touches<'a> = Vec<(usize, &'a Access)>;

/// Looks up the objects of all accesses, phase by phase.
pub(crate) fn touches<'a>(profile: &Profile, phases: &'a [Phase]) -> Result<Vec<Touches<'a>>, PredictError> {
    let objects: BTreeMap<&str, usize> =
        profile.objects.iter().enumerate().map(|(index, object)| (object.name.as_str(), index)).collect();
    let find = |phase: &Phase, access: &Access| {
        objects.get(access.object.as_str()).copied().ok_or_else(|| PredictError::UnknownObject {
            profile: profile.name.clone(),
            phase: phase.name.clone(),
            object: access.object.clone(),
        })
    };
    let mut touches = Vec::with_capacity(phases.len());
    for phase in phases {
        let found = phase.accesses.iter().map(|access| find(phase, access).map(|object| (object, access)));
        touches.push(found.collect::<Result<_, _>>()?);
    }
    Ok(touches)
}

impl Works {
    /// Sums the accesses of each object by row; `teams` has the run's teams by phase.
    pub(crate) fn new(
        profile: &Profile,
        phases: &[Phase],
        teams: &[Vec<Team>],
        doubt: Doubt,
    ) -> Result<Self, PredictError> {
        let objects = profile.objects.len();
        let count = teams.first().map_or(1, Vec::len);
        let touches = touches(profile, phases)?;
        let beside_memory_s = |((phase, touches), teams): ((&Phase, &Touches<'_>), &Vec<Team>)| {
            let threads = teams.first().map_or(1.0, |team| team.threads);
            phase.beside_memory_s(threads) - of_computing_s(phase, touches, &profile.objects, doubt) / threads
        };
        let compute_s = phases.iter().zip(&touches).zip(teams).map(beside_memory_s).collect();
        let mut works = Self { objects, teams: count, all: Vec::new(), wholes: Vec::new(), compute_s, doubt };
        for (touches, teams) in touches.iter().zip(teams) {
            let mut rows = vec![Work::default(); objects * count];
            for (row, team) in rows.chunks_exact_mut(objects.max(1)).zip(teams) {
                for (object, access) in touches {
                    row[*object] += work(access, team, doubt, &profile.objects[*object]);
                }
            }
            works.wholes.push(rows.iter().fold(Work::default(), |sum, work| sum + *work));
            works.all.extend(rows);
        }
        Ok(works)
    }

    /// Works of a row, by object.
    pub(crate) fn of_row(&self, row: usize) -> &[Work] {
        &self.all[row * self.objects..(row + 1) * self.objects]
    }

    /// Sum of a phase's works.
    pub(crate) fn whole_of_phase(&self, phase: usize) -> Work {
        self.wholes[phase]
    }

    /// Sum of the works of a row's phase.
    pub(crate) fn whole_of_row(&self, row: usize) -> Work {
        self.wholes[row / self.teams]
    }

    /// One object's work over all phases: waits of the team that waits most, traffic of all.
    pub(crate) fn of_object(&self, object: usize) -> Work {
        let phases = self.all.chunks_exact((self.objects * self.teams).max(1));
        let of_phase = |rows: &[Work]| {
            let teams = rows.iter().skip(object).step_by(self.objects.max(1));
            let wait = teams.clone().map(|work| work.wait).fold(0.0, f64::max);
            let random = teams.clone().map(|work| work.random).fold(0.0, f64::max);
            Work { wait, random, ..teams.fold(Work::default(), |sum, work| sum + *work) }
        };
        phases.map(of_phase).fold(Work::default(), |sum, work| sum + work)
    }
}

/// CPU time of a phase that was waiting and not computing if samples saw too little of it, s; less than none if they saw too
/// much. What both took together is known of a run that a prediction is anchored to.
fn of_computing_s(phase: &Phase, touches: &Touches<'_>, objects: &[Object], doubt: Doubt) -> f64 {
    let more_s = |(object, access): &(usize, &Access)| {
        let seen_s = access.wait_factor.and(access.wait_s).unwrap_or(0.0);
        seen_s * (doubt.of_share(&objects[*object]) - 1.0)
    };
    touches.iter().map(more_s).sum::<f64>().min(phase.compute_s)
}

pub(crate) fn work(access: &Access, team: &Team, doubt: Doubt, object: &Object) -> Work {
    if team.share <= 0.0 {
        return Work::default();
    }
    // Waiting that was seen is known, whatever it consists of.
    let (in_flight, factor) = access.wait_factor.map_or_else(
        || (doubt.in_flight, doubt.of_lines(access, object)),
        |factor| (1.0, factor * doubt.of_share(object)),
    );
    let waits = |in_a_row: f64| in_a_row * factor / team.threads * NS;
    let [by_demand, brought] = in_a_row(access, team, in_flight).map(waits);
    let beside = if doubt.holds_up() && waits_in_a_window(access, team) { by_demand } else { 0.0 };
    let traffic = doubt.traffic * doubt.of_lines(access, object) * team.share;
    Work {
        wait: by_demand + brought,
        random: if access.pattern.is_random() { by_demand } else { 0.0 },
        beside,
        alone: beside * (misses_in_flight(access, team) * in_flight).max(1.0),
        read: access.dram_read_bytes * traffic,
        write: access.dram_write_bytes * traffic,
    }
}

/// Lines that one thread waits for one after the other, when `doubt` times as many are in flight as thought: its own, and
/// those of pages that the kernel filled, which came in order.
fn in_a_row(access: &Access, team: &Team, doubt: f64) -> [f64; 2] {
    let filled = access.filled_bytes();
    let of_lines = |bytes: f64, at_once: f64| bytes / LINE_BYTES_F64 / (at_once * doubt).max(1.0);
    [of_lines(access.dram_read_bytes - filled, misses_in_flight(access, team)), of_lines(filled, team.stream_lines)]
}

/// Misses that one thread keeps in flight: what the program offers, up to what a core can hold.
///
/// A chain's `mlp` is the number of independent chains that one thread follows.
fn misses_in_flight(access: &Access, team: &Team) -> f64 {
    let held = match access.pattern {
        Pattern::Stream | Pattern::Strided => team.stream_lines,
        Pattern::Random | Pattern::Chain => team.demand_lines,
    };
    access.mlp.min(held).max(1.0)
}

/// Whether it is the core's window that limits a thread's misses. Where its miss registers do, they come free in any order.
fn waits_in_a_window(access: &Access, team: &Team) -> bool {
    access.pattern == Pattern::Random && access.mlp <= team.demand_lines
}

/// The teams of a phase: its threads spread over the sockets as the run's are, but for one thread
/// alone, which is the first team's.
pub(crate) fn teams_of(machine: &Machine, phase: &Phase, profile: &Profile, runs: &[Run], doubt: Doubt) -> Vec<Team> {
    let all: u32 = runs.iter().map(|run| run.threads).sum();
    // Doubt is about each further thread, so it comes before what of the phase the threads share out.
    let worth = if profile.is_serial_in(phase) { doubt.of_sharing(f64::from(all)) } else { f64::from(all) };
    let threads = profile.threads_in(phase, worth);
    let alone = |at: usize| if at == 0 { 1.0 } else { 0.0 };
    let spread = |run: &Run| f64::from(run.threads) / f64::from(all);
    let team = |(at, run): (usize, &Run)| Team {
        stream_lines: machine.sockets[run.socket].stream_lines.value,
        demand_lines: machine.sockets[run.socket].demand_lines.value,
        share: if threads > 1.0 { spread(run) } else { alone(at) },
        threads,
    };
    runs.iter().enumerate().map(team).collect()
}

/// The teams of all phases.
pub(crate) fn all_teams(machine: &Machine, profile: &Profile, runs: &[Run], doubt: Doubt) -> Vec<Vec<Team>> {
    profile.phases.iter().map(|phase| teams_of(machine, phase, profile, runs, doubt)).collect()
}
