//! Names, sizes and words of a machine and a profile, for the report.

use tierloom_contention::Station;
use tierloom_model::units::format_bytes;
use tierloom_model::{Machine, Profile, RunTime};

use crate::behind::{cache_of, is_known, ran_here};
use crate::beyond_core::{LastLevel, is_core_known};
use crate::doubt::Doubt;
use crate::open::is_anchored;
use crate::run::Run;

/// Share of all objects' bytes that are there at once from which on nobody would miss the rest (assumed).
const WORTH_SAYING: f64 = 0.95;

/// Names, sizes and words that only the report needs.
#[derive(Debug, Clone)]
pub(crate) struct Labels {
    pub(crate) memories: Vec<String>,
    links: Vec<String>,
    pub(crate) phases: Vec<String>,
    pub(crate) objects: Vec<String>,
    pub(crate) sizes: Vec<f64>,
    pub(crate) assumptions: Vec<String>,
    /// The run of the profile, where predictions are anchored to it.
    pub(crate) anchored_to: Option<RunTime>,
}

impl Labels {
    pub(crate) fn new(machine: &Machine, profile: &Profile, runs: &[Run]) -> Self {
        Self {
            memories: machine.memories.iter().map(|memory| memory.name.clone()).collect(),
            links: machine.links.iter().map(|link| link.name.clone()).collect(),
            phases: profile.phases.iter().map(|phase| phase.name.clone()).collect(),
            objects: profile.objects.iter().map(|object| object.name.clone()).collect(),
            sizes: profile.objects.iter().map(|object| object.size_bytes as f64).collect(),
            assumptions: assumptions(machine, profile, runs),
            anchored_to: is_anchored(profile).then(|| profile.run_time()),
        }
    }

    pub(crate) fn name(&self, station: Station) -> String {
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
        if is_anchored(profile) { Doubt::in_words_anchored(profile.run_time()) } else { Doubt::in_words() },
    ];
    if is_anchored(profile) && !ran_here(machine, profile) {
        words.push(
            "the program waits on this machine as it did in the run; the range holds what the model alone says, too, as how \
             far that is off there may be that machine's"
                .to_owned(),
        );
    }
    let all: u32 = runs.iter().map(|run| run.threads).sum();
    if profile.phases.iter().any(|phase| profile.is_serial_in(phase) && profile.threads_in(phase, f64::from(all)) > 1.0)
    {
        words.push(Doubt::sharing_in_words());
    }
    let cache = cache_of(machine, profile, runs.iter().map(|run| run.socket));
    if cache != profile.program.llc_bytes {
        words.push(about_cache(profile, cache));
    }
    let (all, at_once) = (profile.footprint_bytes(), profile.bytes_at_once());
    if all > 0 && at_once as f64 <= all as f64 * WORTH_SAYING {
        words.push(format!(
            "all objects are there at once, {}; by when they came and went at most {} are, so less memory may do",
            format_bytes(all),
            format_bytes(at_once)
        ));
    }
    words
}

/// How the memory traffic of a profile was worked out for another cache than that of its run.
fn about_cache(profile: &Profile, cache_bytes: u64) -> String {
    let (there, here) = (format_bytes(profile.program.llc_bytes), format_bytes(cache_bytes));
    if !is_known(profile) {
        return format!(
            "memory traffic is that of cores that reach a last-level cache of {there} each; here it is {here}"
        );
    }
    let nearer = if is_core_known(profile) {
        "what nearer caches answered is told by the time that was waited for the others".to_owned()
    } else if profile.sampling.is_some() {
        format!(
            "what nearer caches answered is told by the time that was waited for the others, at {} each, as nobody measured \
             the machine of the run and its last-level cache (`tierloom machine measure` there does)",
            LastLevel::assumed_in_words()
        )
    } else {
        "what nearer caches answered is not known, as waiting was not sampled".to_owned()
    };
    format!(
        "memory traffic is worked out for cores that reach a last-level cache of {here} each, from what the run touched \
         behind {there}; the range holds the lines that it fetched there, those that independent touches would fetch here, and \
         what is likely; {nearer}"
    )
}
