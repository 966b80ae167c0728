//! From a recording to a profile: the whole flow on one page.
//!
//! `world` replays mappings and allocations; `observe` blames each sample and follows registers around
//! it; `pairs` reads loop counters off consecutive samples; `counts` solves for every block; `tally`
//! and `traffic` add up who touched what, `ceiling` holds it to the time there was, `phases` says when; this
//! file puts it into the noun.

pub(crate) mod hotness;
pub(crate) mod names;
pub(crate) mod warnings;

use std::collections::BTreeMap;

use tierloom_binary::Binaries;
use tierloom_model::{
    Access, AccessKind, FORMAT_VERSION, Object, Phase, Profile, Program, SampleRow, Sampling, Unattributed, units,
};

use crate::address_space::World;
use crate::address_space::objects::{Entry, ObjectId};
use crate::attribution::{Observed, Rest, Seen, Verdict, observe};
use crate::frequency::counter_deltas::count;
use crate::frequency::renewal::trips;
use crate::frequency::{Counts, counts};
use crate::memory_samples;
use crate::profile::hotness::hotness;
use crate::profile::names::Names;
use crate::profile::warnings::Warning;
use crate::time::confidence::share;
use crate::time::phases::{beginnings, split};
use crate::time::stalls::{Overlaps, Waited};
use crate::traffic::accesses::{Tallies, tally};
use crate::traffic::{Row, Traffic, traffic};
use tierloom_recording::{Event, Exit, Recording};

/// Latency of memory against that of the last-level cache: about 100 ns against 15 to 25 ns on
/// servers of 2020 to 2025. Splits the waiting for an object between the two. Assumed.
const MEMORY_TO_CACHE: f64 = 5.0;
/// Names of what belongs to no object, in the order of [`Rest`].
const RESTS: [(Rest, &str); 5] = [
    (Rest::Compute, "[compute]"),
    (Rest::Stack, "[stack]"),
    (Rest::Kernel, "[kernel]"),
    (Rest::Unrecovered, "[unrecovered]"),
    (Rest::Other, "[other]"),
];

/// Works a recording out into a profile and its samples as rows.
///
/// What cannot be worked out is `[unrecovered]` and warned of.
pub fn analyse(recording: &Recording, binaries: &dyn Binaries) -> (Profile, Vec<SampleRow>) {
    if recording.event == Event::MemoryAccess {
        return memory_samples::analyse(recording, binaries);
    }
    let mut world = World::new(recording, binaries);
    let observed = observe(recording, &mut world);
    let trips = trips(&observed);
    let clocks = count(&observed, &trips, recording.period_ns);
    let counts = counts(&observed, &clocks, &trips, recording.period_ns);
    let tallies = tally(&observed, &counts);
    let sample_ns = recording.cpu_s * 1e9 / observed.seen.len().max(1) as f64;
    let cache = recording.processor.llc_bytes;
    let traffic = traffic(&observed, &tallies.known, &counts, &world.objects.entries, &trips, cache, sample_ns);
    let overlaps = Overlaps::find(&observed, &counts, &tallies.known, &traffic);
    let beginnings = beginnings(&observed.seen);
    let by_phase = split(&observed, &counts, &tallies.known, &traffic, &beginnings);
    let draft = Draft {
        recording,
        world: &world,
        observed: &observed,
        counts: &counts,
        tallies: &tallies,
        overlaps: &overlaps,
        rows: &traffic.rows,
        cut: traffic.cut,
        beginnings: &beginnings,
        by_phase: &by_phase,
    };
    draft.profile()
}

/// Everything that was worked out, on its way into the noun.
struct Draft<'a> {
    recording: &'a Recording,
    world: &'a World<'a>,
    observed: &'a Observed,
    counts: &'a Counts,
    tallies: &'a Tallies,
    overlaps: &'a Overlaps,
    rows: &'a BTreeMap<Row, Traffic>,
    /// Share of the memory traffic for which there was no time.
    cut: f64,
    /// Position of the first sample of each phase.
    beginnings: &'a [usize],
    by_phase: &'a [BTreeMap<Row, Traffic>],
}

impl Draft<'_> {
    fn profile(&self) -> (Profile, Vec<SampleRow>) {
        let stalls = self.overlaps.waiting(self.observed, &self.observed.seen);
        let mut order: Vec<ObjectId> =
            (0..self.world.objects.entries.len()).filter(|id| self.matters(*id, &stalls)).collect();
        order.sort_by(|left, right| {
            let waited = |id: &ObjectId| stalls.get(id).map_or(0.0, |waited| waited.shared);
            waited(right).total_cmp(&waited(left)).then(left.cmp(right))
        });
        let position: BTreeMap<ObjectId, usize> = order.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let mut names = Names::new(&self.world.modules, self.world.binaries, &self.world.objects.entries);
        let mut hotness = hotness(self.observed, &self.world.objects.entries);
        let objects: Vec<Object> = order
            .iter()
            .map(|id| Object {
                hotness: hotness.remove(id).unwrap_or_default(),
                ..self.object(*id, &mut names, &stalls)
            })
            .collect();
        let rows = self.sample_rows(&position);
        let phases = (0..self.beginnings.len()).map(|phase| self.phase(phase, &position, &objects)).collect();
        let profile = Profile {
            version: FORMAT_VERSION,
            name: self.name(),
            program: self.program(),
            sources: BTreeMap::new(),
            objects,
            phases,
            unattributed: self.unattributed(),
            sampling: self.sampling(),
        };
        (profile, rows)
    }

    /// Objects that were waited for, touched, or are large.
    fn matters(&self, id: ObjectId, stalls: &BTreeMap<ObjectId, Waited>) -> bool {
        let entry = &self.world.objects.entries[id];
        let touched = self.rows.keys().any(|(object, _)| *object == id) || stalls.contains_key(&id);
        touched || entry.most_bytes >= tierloom_binary::elf::STATIC_OBJECT_BYTES && self.is_own(entry)
    }

    /// Tables of libraries that nobody touches are not the program's data.
    fn is_own(&self, entry: &Entry) -> bool {
        match &entry.identity {
            crate::address_space::objects::Identity::Symbol { module, .. } => {
                let name = self.world.modules[*module].name();
                self.recording.command.first().is_some_and(|command| command.ends_with(name))
            }
            _ => true,
        }
    }

    fn seconds(&self, time_ns: u64) -> f64 {
        time_ns.saturating_sub(self.recording.start_ns) as f64 * 1e-9
    }

    fn object(&self, id: ObjectId, names: &mut Names<'_>, stalls: &BTreeMap<ObjectId, Waited>) -> Object {
        let entry = &self.world.objects.entries[id];
        let (site, name) = names.name(entry);
        let first_s = self.seconds(entry.first_ns);
        let last_ns = if entry.live_bytes > 0 { self.recording.end_ns } else { entry.released_ns };
        let waited = stalls.get(&id).copied().unwrap_or_default();
        Object {
            name,
            kind: entry.kind,
            site,
            size_bytes: entry.most_bytes,
            allocations: entry.allocations,
            first_s,
            last_s: self.seconds(last_ns).max(first_s),
            first_touch_s: entry.touched_ns.map_or(first_s, |time| self.seconds(time)).max(first_s),
            populated_s: entry.populated_ns().map(|time| self.seconds(time)),
            stall: Some(waited.share(self.observed.seen.len())),
            hotness: Vec::new(),
            origin: None,
        }
    }

    fn phase(&self, phase: usize, position: &BTreeMap<ObjectId, usize>, objects: &[Object]) -> Phase {
        let seen = self.samples_of(phase);
        let accesses = self.by_phase[phase].iter().filter_map(|((object, pattern), row)| {
            let name = &objects[*position.get(object)?].name;
            (row.reads + row.writes >= 0.5).then(|| access(name, *pattern, row))
        });
        Phase {
            name: if self.beginnings.len() == 1 { "whole".to_owned() } else { format!("phase {}", phase + 1) },
            start_s: self.begins_s(phase),
            end_s: self.begins_s(phase + 1).max(self.begins_s(phase)),
            threads: threads(seen),
            compute_s: (self.cpu_s(seen) - self.memory_wait_s(seen)).max(0.0),
            accesses: accesses.collect(),
        }
    }

    fn samples_of(&self, phase: usize) -> &[Seen] {
        let end = self.beginnings.get(phase + 1).copied().unwrap_or(self.observed.seen.len());
        &self.observed.seen[self.beginnings[phase]..end]
    }

    /// Seconds from the start of the run; the first phase begins with it, the last one ends with it.
    fn begins_s(&self, phase: usize) -> f64 {
        match self.beginnings.get(phase) {
            Some(0) => 0.0,
            Some(first) => self.seconds(self.observed.seen[*first].time_ns),
            None => self.recording.wall_s.max(0.0),
        }
    }

    /// CPU time that samples stand for.
    fn cpu_s(&self, seen: &[Seen]) -> f64 {
        match self.observed.seen.len() {
            0 => self.recording.cpu_s,
            all => self.recording.cpu_s * seen.len() as f64 / all as f64,
        }
    }

    /// CPU time spent waiting for memory beyond the last-level cache: the waiting for each object,
    /// split between cache and memory by where its lines came from.
    fn memory_wait_s(&self, seen: &[Seen]) -> f64 {
        let stalls = self.overlaps.waiting(self.observed, seen);
        let waited = stalls.into_iter().map(|(object, waited)| waited.shared * self.beyond_cache(object));
        waited.sum::<f64>() / seen.len().max(1) as f64 * self.cpu_s(seen)
    }

    fn beyond_cache(&self, object: ObjectId) -> f64 {
        let rows = self.rows.iter().filter(|((id, _), _)| *id == object).map(|(_, row)| row);
        let (missed, touched) = rows.fold((0.0, 0.0), |sum, row| {
            let lines = if row.miss > 0.0 { row.dram_read_bytes / row.miss } else { 0.0 };
            (sum.0 + row.dram_read_bytes, sum.1 + lines)
        });
        let miss: f64 = if touched > 0.0 { missed / touched } else { 0.0 };
        MEMORY_TO_CACHE * miss / (MEMORY_TO_CACHE * miss + 1.0 - miss)
    }

    fn name(&self) -> String {
        let command = self.recording.command.first().map_or("program", String::as_str);
        command.rsplit('/').next().unwrap_or(command).to_owned()
    }

    fn program(&self) -> Program {
        Program {
            command: self.recording.command.clone(),
            exit_code: self.recording.exit.map(Exit::code),
            signal: self.recording.exit.and_then(Exit::signal),
            wall_s: self.recording.wall_s,
            cpu_s: self.recording.cpu_s,
            threads: threads(&self.observed.seen),
            cpu: self.recording.processor.name.clone(),
            llc_bytes: self.recording.processor.llc_bytes,
        }
    }

    fn unattributed(&self) -> Vec<Unattributed> {
        let samples = self.observed.seen.len() as f64;
        let waited = |rest| self.observed.seen.iter().filter(|seen| seen.verdict == Verdict::Rest(rest)).count();
        let row = |(rest, name): (Rest, &str)| Unattributed {
            name: name.to_owned(),
            stall: share(waited(rest) as f64, samples),
        };
        RESTS.into_iter().map(row).collect()
    }

    fn sample_rows(&self, position: &BTreeMap<ObjectId, usize>) -> Vec<SampleRow> {
        let row = |seen: &Seen| {
            let (object, offset, access) = match seen.verdict {
                Verdict::Object { object, offset, access } => {
                    (position.get(&object).and_then(|at| i32::try_from(*at).ok()).unwrap_or(i32::MAX), offset, access)
                }
                Verdict::Rest(rest) => (-1 - rest as i32, 0, AccessKind::None),
            };
            let time_ns = seen.time_ns.saturating_sub(self.recording.start_ns);
            SampleRow { time_ns, offset, thread: self.observed.threads[seen.thread].1, object, access }
        };
        self.observed.seen.iter().map(row).collect()
    }

    fn sampling(&self) -> Option<Sampling> {
        let event = match self.recording.event {
            Event::CpuClock => "cpu-clock",
            Event::Ptrace => "ptrace",
            Event::MemoryAccess | Event::None => return None,
        };
        Some(Sampling {
            event: event.to_owned(),
            hz: 1e9 / self.recording.period_ns.max(1.0),
            samples: self.observed.seen.len() as u64,
            lost: self.recording.lost,
            skid_purity: self.recording.calibration.purity,
            warnings: self.warnings(),
        })
    }

    fn warnings(&self) -> Vec<String> {
        let doubts = crate::profile::warnings::Doubts {
            recording: self.recording,
            observed: self.observed,
            counts: self.counts,
            tallies: self.tallies,
            cut: self.cut,
        };
        let own = doubts.all().into_iter().map(|warning: Warning| warning.to_string());
        self.recording.warnings.iter().cloned().chain(own).collect()
    }
}

/// Most threads whose samples overlap in time; those with a sliver of the samples do not count.
fn threads(seen: &[Seen]) -> u32 {
    let mut spans: BTreeMap<usize, (u64, u64, usize)> = BTreeMap::new();
    for seen in seen {
        let span = spans.entry(seen.thread).or_insert((seen.time_ns, seen.time_ns, 0));
        span.1 = seen.time_ns;
        span.2 += 1;
    }
    let least = seen.len() / 100;
    let busy: Vec<(u64, u64, usize)> = spans.into_values().filter(|span| span.2 > least).collect();
    let at_once = |start: u64| busy.iter().filter(|span| span.0 <= start && start <= span.1).count();
    let most = busy.iter().map(|span| at_once(span.0)).max().unwrap_or(1);
    u32::try_from(most).unwrap_or(u32::MAX).max(1)
}

fn access(object: &str, pattern: tierloom_model::Pattern, row: &Traffic) -> Access {
    Access {
        object: object.to_owned(),
        pattern,
        reads: row.reads,
        writes: row.writes,
        read_bytes: row.read_bytes,
        write_bytes: row.write_bytes,
        dram_read_bytes: row.dram_read_bytes,
        dram_write_bytes: row.dram_write_bytes,
        mlp: row.mlp.max(1.0),
        origin: None,
    }
}
