//! What each object asks of memory in each phase, from the profile's accesses.

use std::collections::BTreeMap;

use tierloom_contention::LINE_BYTES;
use tierloom_model::{Access, Pattern, Phase, Profile, Socket};

use crate::demand::Work;
use crate::doubt::Doubt;
use crate::error::PredictError;

/// Seconds in a nanosecond.
const NS: f64 = 1e-9;

/// The works of a profile under one doubt.
#[derive(Debug, Clone)]
pub(crate) struct Works {
    objects: usize,
    /// Phase by phase, one entry per object: its work when it is whole in one memory.
    all: Vec<Work>,
    /// Sum over the objects, by phase.
    wholes: Vec<Work>,
    /// The factors that went in.
    pub(crate) doubt: Doubt,
}

/// One phase's accesses, each with the position of its object.
pub(crate) type Touches<'a> = Vec<(usize, &'a Access)>;

/// Looks up the objects of all accesses, phase by phase.
pub(crate) fn touches(profile: &Profile) -> Result<Vec<Touches<'_>>, PredictError> {
    let objects: BTreeMap<&str, usize> =
        profile.objects.iter().enumerate().map(|(index, object)| (object.name.as_str(), index)).collect();
    let find = |phase: &Phase, access: &Access| {
        objects.get(access.object.as_str()).copied().ok_or_else(|| PredictError::UnknownObject {
            profile: profile.name.clone(),
            phase: phase.name.clone(),
            object: access.object.clone(),
        })
    };
    let mut touches = Vec::with_capacity(profile.phases.len());
    for phase in &profile.phases {
        let found = phase.accesses.iter().map(|access| find(phase, access).map(|object| (object, access)));
        touches.push(found.collect::<Result<_, _>>()?);
    }
    Ok(touches)
}

impl Works {
    /// Sums the accesses of each object in each phase; `threads` has the run's threads by phase.
    pub(crate) fn new(
        profile: &Profile,
        touches: &[Touches<'_>],
        socket: &Socket,
        threads: &[f64],
        doubt: Doubt,
    ) -> Self {
        let objects = profile.objects.len();
        let mut works = Self { objects, all: Vec::new(), wholes: Vec::new(), doubt };
        for (touches, threads) in touches.iter().zip(threads) {
            let mut row = vec![Work::default(); objects];
            for (object, access) in touches {
                row[*object] += work(access, socket, *threads, doubt) * doubt.of_object(&profile.objects[*object]);
            }
            works.wholes.push(row.iter().fold(Work::default(), |sum, work| sum + *work));
            works.all.extend(row);
        }
        works
    }

    /// Works of a phase, by object.
    pub(crate) fn of_phase(&self, phase: usize) -> &[Work] {
        &self.all[phase * self.objects..(phase + 1) * self.objects]
    }

    /// Sum of a phase's works.
    pub(crate) fn whole(&self, phase: usize) -> Work {
        self.wholes[phase]
    }

    /// One object's work over all phases.
    pub(crate) fn of_object(&self, object: usize) -> Work {
        let phases = self.all.iter().skip(object).step_by(self.objects.max(1));
        phases.fold(Work::default(), |sum, work| sum + *work)
    }
}

fn work(access: &Access, socket: &Socket, threads: f64, doubt: Doubt) -> Work {
    let in_flight = (misses_in_flight(access, socket) * doubt.in_flight).max(1.0);
    Work {
        wait: access.dram_read_bytes / LINE_BYTES / (threads * in_flight) * NS,
        read: access.dram_read_bytes * doubt.traffic,
        write: access.dram_write_bytes * doubt.traffic,
    }
}

/// Misses that one thread keeps in flight: what the program offers, up to what a core can hold.
///
/// A chain's `mlp` is the number of independent chains that one thread follows.
fn misses_in_flight(access: &Access, socket: &Socket) -> f64 {
    let held = match access.pattern {
        Pattern::Stream | Pattern::Strided => socket.stream_lines.value,
        Pattern::Random | Pattern::Chain => socket.demand_lines.value,
    };
    access.mlp.min(held).max(1.0)
}

/// Threads that work in a phase when the program runs on `threads`: one where the profile saw one
/// of several, else the share of the threads that the profile saw.
pub(crate) fn threads_of(phase: &Phase, profile: &Profile, threads: u32) -> f64 {
    let most = profile.phases.iter().map(|phase| phase.threads).fold(profile.program.threads, u32::max).max(1);
    if phase.threads <= 1 && most > 1 {
        return 1.0;
    }
    (f64::from(threads) * f64::from(phase.threads) / f64::from(most)).max(1.0)
}
