//! Predictions that know the run that their profile was made from: what changes is predicted, the rest was measured.
//!
//! The model says how long threads wait for an object's lines from their number, the misses in flight and the loaded
//! latency. Where the machine of the run is measured, too, it can be held against what samples saw: the ratio, by phase and
//! access, holds whatever the model does not know (prefetching that comes too late, misses in flight that were classed
//! wrongly, lines that came from a cache), and is taken along to other placements, memories and machines. So on the
//! machine of the run, with its threads and its placement, the prediction is what was measured.

use tierloom_contention::{ContentionError, Fabric, Traffic, Work};
use tierloom_model::{Access, Anchor, Machine, Phase, Placement, Profile, RunTime, Within};

use crate::beyond_core::{LastLevel, set_beyond_core};
use crate::compile::{Team, teams_of, touches, work};
use crate::doubt::{Doubt, lines_within};
use crate::error::PredictError;
use crate::predictor::Predictor;
use crate::run::Run;

/// Samples that an access is taken to have waited as its phase did, beside those that were seen: few samples move it
/// little. Assumed.
const PRIOR_SAMPLES: f64 = 20.0;
/// Utilisation that a phase is taken to have had where the model gives its traffic no time at all (assumed).
const SHORT_OF_FULL: f64 = 0.99;

/// Holds a profile against the machine that it was recorded on: the same profile with factors on its waiting, and what the
/// run took. `None` where no waiting was sampled, or the run had more threads than a socket has cores.
///
/// # Errors
/// An access to an object that is not there, or a machine whose first socket reaches no memory.
pub fn anchored(profile: &Profile, ran_on: &Machine) -> Result<Option<(Profile, Anchor)>, PredictError> {
    let run = Run { socket: 0, threads: profile.program.threads.max(1) };
    let Some(sampling) = &profile.sampling else { return Ok(None) };
    let is_sampled = profile.phases.iter().flat_map(|phase| &phase.accesses).any(|access| access.wait_s.is_some());
    if !is_sampled || run.threads > ran_on.sockets.first().map_or(0, |socket| socket.cores.value) {
        return Ok(None);
    }
    let fabric = Fabric::new(ran_on, run.socket).map_err(|error| about_the_run(ran_on, &error))?;
    let reached = (0..fabric.memories()).filter(|way| fabric.reaches(*way));
    let Some(near) = reached.min_by(|a, b| fabric.idle_ns(*a).total_cmp(&fabric.idle_ns(*b))) else { return Ok(None) };
    let modelled = Predictor::new(ran_on, profile, run)?;
    let local = Placement::uniform(profile.objects.len(), ran_on.memories.len(), near);
    let modelled_s = modelled.time_s(&modelled.demand(local.rows()));
    let mut known = profile.clone();
    if let Some(last) = LastLevel::measured(&ran_on.sockets[run.socket]) {
        set_beyond_core(&mut known.phases, profile, last);
    }
    let place = Here { fabric: &fabric, near, samples_per_s: sampling.hz };
    for ((phase, of_run), touches) in
        known.phases.iter_mut().zip(&profile.phases).zip(touches(profile, &profile.phases)?)
    {
        let team = teams_of(ran_on, of_run, profile, &[run], Doubt::NONE)[0];
        let works = touches.iter().map(|(object, access)| work(access, &team, Doubt::NONE, &profile.objects[*object]));
        let lines = touches.iter().map(|(object, access)| lines_within(access, &profile.objects[*object]));
        place.anchor(phase, &team, &works.collect::<Vec<Work>>(), lines);
    }
    let (machine, threads) = (ran_on.name.clone(), run.threads);
    let RunTime { likely_s: measured_s, least_s, most_s, runs } = profile.run_time();
    let unprofiled_runs = (runs > 0).then_some(runs);
    Ok(Some((known, Anchor { machine, threads, measured_s, least_s, most_s, unprofiled_runs, modelled_s })))
}

/// What is wrong with a machine that the user may not have named: `machine measure` kept it.
fn about_the_run(ran_on: &Machine, error: &ContentionError) -> PredictError {
    let text = error.to_string();
    let problem = text.split("\nhint: ").next().unwrap_or(&text).to_owned();
    PredictError::RanOn { machine: ran_on.name.clone(), problem }
}

/// Where the run was.
struct Here<'a> {
    fabric: &'a Fabric,
    /// The memory that its data was in: the nearest.
    near: usize,
    samples_per_s: f64,
}

impl Here<'_> {
    /// Puts factors on the waiting of a phase's accesses, whose works are what the model makes of them, and holds their lines
    /// to what there was time for.
    fn anchor(&self, phase: &mut Phase, team: &Team, works: &[Work], lines: impl Iterator<Item = Within>) {
        let waited_s: f64 = phase.accesses.iter().filter_map(|access| access.wait_s).sum::<f64>() / team.threads;
        let lasted_s = waited_s + phase.beside_memory_s(team.threads);
        let all = works.iter().fold(Work::default(), |sum, work| sum + *work);
        let time_for = self.time_for(all, lasted_s);
        let passed = time_for.min(1.0);
        let latency_ns = self.latency_ns(all, passed, lasted_s);
        let extra_ns = self.fabric.random_extra_ns(self.near);
        let waits_s = works.iter().map(|work| work.wait * latency_ns + work.random * extra_ns);
        let modelled_s: Vec<f64> = waits_s.collect();
        let factors = self.factors(&phase.accesses, team, waited_s, &modelled_s);
        for ((access, factor), lines) in phase.accesses.iter_mut().zip(factors).zip(lines) {
            access.wait_factor = Some(factor / passed);
            access.traffic_within = Some(Within { high: lines.high.clamp(1.0, time_for.max(1.0)), ..lines });
            access.dram_read_bytes *= passed;
            access.dram_write_bytes *= passed;
            if let Some(touched) = &mut access.touched {
                touched.filled_bytes *= passed;
            }
        }
    }

    /// The traffic that there was time for, over all that the profile has.
    fn time_for(&self, all: Work, lasted_s: f64) -> f64 {
        let least_s = self.fabric.flow(self.traffic(all, 1.0)).least_s();
        if least_s > 0.0 && lasted_s > 0.0 { lasted_s / least_s } else { f64::INFINITY }
    }

    fn latency_ns(&self, all: Work, passed: f64, lasted_s: f64) -> f64 {
        let flow = self.fabric.flow(self.traffic(all, passed));
        let latency_ns = flow.latency_ns(self.near, lasted_s);
        if latency_ns.is_finite() { latency_ns } else { flow.latency_ns(self.near, lasted_s / SHORT_OF_FULL) }
    }

    fn traffic(&self, all: Work, part: f64) -> impl Iterator<Item = Traffic> {
        let near = self.near;
        (0..self.fabric.ways())
            .map(move |way| if way == near { (all * part).traffic() } else { Work::default().traffic() })
    }

    /// By access, measured waiting over modelled; all together they wait as long as was seen.
    fn factors(&self, accesses: &[Access], team: &Team, waited_s: f64, modelled_s: &[f64]) -> Vec<f64> {
        let whole_s: f64 = modelled_s.iter().sum();
        if whole_s <= 0.0 {
            return vec![1.0; accesses.len()];
        }
        let common = waited_s / whole_s;
        let factor = |(access, modelled_s): (&Access, &f64)| {
            let seen = access.wait_s.unwrap_or(0.0) * self.samples_per_s;
            let expected = common * modelled_s * team.threads * self.samples_per_s;
            common * (seen + PRIOR_SAMPLES) / (expected + PRIOR_SAMPLES)
        };
        let factors: Vec<f64> = accesses.iter().zip(modelled_s).map(factor).collect();
        let sum_s: f64 = factors.iter().zip(modelled_s).map(|(factor, modelled_s)| factor * modelled_s).sum();
        factors.into_iter().map(|factor| if sum_s > 0.0 { factor * waited_s / sum_s } else { factor }).collect()
    }
}
