//! Samples of a recorded program as a weighted access stream: where it was, when.
//!
//! A profile's counts say how often an object is visited, its samples say when and in which of its pages. A sample
//! stands for the visits of its object and phase over their samples: a sweep's go on from the sampled page, others fall
//! into the sample's share of the object around it. Stands between a profile and the exact evaluator.

use std::collections::BTreeMap;

use tierloom_model::units::{NS, PAGE_BYTES};
use tierloom_model::{Object, Phase, Profile, SampleRow, UNKNOWN_OFFSET};

use super::description::Workload;

/// A sample of where a stream was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Seen {
    /// Share of the phase that was done by then.
    pub(crate) done: f64,
    /// Page of the region.
    pub(crate) page: u64,
}

/// Steps by phase and region, in the order of time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples {
    steps: BTreeMap<(usize, usize), Vec<Seen>>,
    count: usize,
}

impl Samples {
    /// Those that fall into an object and a phase.
    pub(crate) fn new(profile: &Profile, workload: &Workload, samples: &[SampleRow]) -> Self {
        let indices = workload.region_indices();
        let region = |object: &Object| indices.get(object.name.as_str()).copied();
        let regions: Vec<Option<usize>> = profile.objects.iter().map(region).collect();
        let mut found = Self::default();
        for sample in samples {
            // Nobody knows in which page it was.
            if sample.offset == UNKNOWN_OFFSET {
                continue;
            }
            // Negative objects are samples that belong to none.
            let object = usize::try_from(sample.object).ok();
            let region = object.and_then(|object| regions.get(object).copied().flatten());
            let time_s = sample.time_ns as f64 * NS;
            let phase = profile.phases.iter().position(|phase| (phase.start_s..phase.end_s).contains(&time_s));
            let (Some(region), Some(phase)) = (region, phase) else { continue };
            let pages = workload.regions[region].size_bytes.div_ceil(PAGE_BYTES);
            // Offsets are in addresses, of which some may have no memory: what was touched from the start lies where it
            // does, and what is scattered stays so.
            let page = (sample.offset / PAGE_BYTES) % pages;
            let step = Seen { done: done(&profile.phases[phase], time_s), page };
            found.steps.entry((phase, region)).or_default().push(step);
            found.count += 1;
        }
        found.steps.values_mut().for_each(|steps| steps.sort_by(|a, b| a.done.total_cmp(&b.done)));
        found
    }

    /// Samples that are followed.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Of one phase and region; none where nothing was sampled.
    pub(crate) fn of(&self, phase: usize, region: usize) -> Option<&[Seen]> {
        self.steps.get(&(phase, region)).map(Vec::as_slice)
    }
}

/// How much of the phase was done, taking its work as even in time.
fn done(phase: &Phase, time_s: f64) -> f64 {
    (time_s - phase.start_s) / (phase.end_s - phase.start_s)
}
