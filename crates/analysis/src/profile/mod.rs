//! The last step: everything that was worked out goes into the noun.

pub(crate) mod frames;
pub(crate) mod functions;
pub(crate) mod hotness;
pub(crate) mod names;
mod threads;
mod unrecorded;
pub(crate) mod variables;
pub(crate) mod warnings;

use std::collections::BTreeMap;
use std::ops::Range;

use tierloom_model::units::round_to_u64;
use tierloom_model::{
    Access, AccessCount, AccessKind, CountedTraffic, FORMAT_VERSION, MissPoint, Object, Pattern, Phase, Profile,
    ProfileTag, Program, SampleRow, Sampling, Touched, UNKNOWN_OFFSET, Unattributed, Unplaced, Warning,
};

use crate::address_space::AddressSpaces;
use crate::address_space::objects::{DataObject, ObjectId};
use crate::attribution::{AttributedSample, Attribution, Observed, Rest};
use crate::confidence::share;
use crate::profile::hotness::hotness;
use crate::profile::names::{Named, Names};
use crate::profile::threads::threads;
use crate::time::clocks::{Clocks, Used};
use crate::time::openmp::{in_regions, spun};
use crate::time::shares::{CpuShares, added, of_user};
use crate::time::stalls::{Overlaps, Waited};
use crate::traffic::accesses::AllAccesses;
use crate::traffic::row::{Row, Traffic};
use crate::traffic::time_bound::Soonest;
use tierloom_binary::code::FunctionId;
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

/// Everything that was worked out, on its way into the noun.
pub(crate) struct ProfileBuilder<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) spaces: &'a AddressSpaces<'a>,
    pub(crate) observed: &'a Observed,
    /// Functions in which the run that was counted is not like this one.
    pub(crate) differing: &'a [FunctionId],
    pub(crate) tallies: &'a AllAccesses,
    pub(crate) intervals: &'a BTreeMap<ObjectId, AccessCount>,
    pub(crate) overlaps: &'a Overlaps,
    pub(crate) shares: CpuShares,
    pub(crate) clocks: Option<Clocks>,
    pub(crate) rows: &'a BTreeMap<Row, Traffic>,
    /// Which share of their touched lines other caches would let through, by object.
    pub(crate) curves: &'a BTreeMap<ObjectId, Vec<MissPoint>>,
    /// Share of the memory traffic for which there was no time.
    pub(crate) cut: f64,
    pub(crate) counted_traffic: Option<CountedTraffic>,
    /// Position of the first sample of each phase.
    pub(crate) beginnings: &'a [usize],
    pub(crate) by_phase: &'a [BTreeMap<Row, Traffic>],
    /// What lines of the run's memory take.
    pub(crate) soonest: Soonest,
}

impl ProfileBuilder<'_> {
    pub(crate) fn profile(&self) -> (Profile, Vec<SampleRow>) {
        let stalls = self.overlaps.waiting(self.observed, &self.observed.seen);
        let mut order: Vec<ObjectId> =
            self.spaces.objects.entries.indices().filter(|id| self.matters(*id, &stalls)).collect();
        order.sort_by(|left, right| {
            let waited = |id: &ObjectId| stalls.get(id).map_or(0.0, |waited| waited.shared);
            waited(right).total_cmp(&waited(left)).then(left.cmp(right))
        });
        let position: BTreeMap<ObjectId, usize> = order.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let mut names = Names::new(&self.spaces.modules, self.spaces.binaries, &self.spaces.objects.entries);
        let mut hotness = hotness(self.observed, &self.spaces.objects.entries);
        let objects: Vec<Object> = order
            .iter()
            .map(|id| Object {
                hotness: hotness.remove(id).unwrap_or_default(),
                ..self.object(*id, &mut names, &stalls)
            })
            .collect();
        let rows = self.sample_rows(&position);
        let phases = (0..self.beginnings.len()).map(|phase| self.phase(phase, &position, &objects)).collect();
        let mut profile = Profile {
            kind: ProfileTag::Profile,
            version: FORMAT_VERSION,
            name: self.name(),
            program: self.program(),
            sources: BTreeMap::new(),
            sampling: self.sampling(&names, &objects),
            objects,
            phases,
            unattributed: self.unattributed(),
        };
        unrecorded::hold_against(&mut profile, self.recording);
        (profile, rows)
    }

    /// Objects that were waited for, touched, or are large.
    fn matters(&self, id: ObjectId, stalls: &BTreeMap<ObjectId, Waited>) -> bool {
        let entry = &self.spaces.objects.entries[id];
        let touched = self.rows.keys().any(|(object, _)| *object == id) || stalls.contains_key(&id);
        touched || entry.most_bytes >= tierloom_binary::elf::STATIC_OBJECT_BYTES && self.is_own(entry)
    }

    /// Tables of libraries that nobody touches are not the program's data.
    fn is_own(&self, entry: &DataObject) -> bool {
        match &entry.identity {
            crate::address_space::objects::Identity::Symbol { module, .. } => {
                let name = self.spaces.modules[*module].name();
                self.recording.command.first().is_some_and(|command| command.ends_with(name))
            }
            _ => true,
        }
    }

    fn seconds(&self, time_ns: u64) -> f64 {
        time_ns.saturating_sub(self.recording.start_ns) as f64 * 1e-9
    }

    fn object(&self, id: ObjectId, names: &mut Names<'_>, stalls: &BTreeMap<ObjectId, Waited>) -> Object {
        let entry = &self.spaces.objects.entries[id];
        let Named { site, line, name } = names.name(entry);
        let first_s = self.seconds(entry.first_ns);
        let last_ns = if entry.live_bytes > 0 { self.recording.end_ns } else { entry.released_ns };
        let waited = stalls.get(&id).copied().unwrap_or_default();
        Object {
            name,
            kind: entry.kind,
            site,
            line,
            size_bytes: entry.memory_bytes,
            address_bytes: (entry.most_bytes > entry.memory_bytes).then_some(entry.most_bytes),
            allocations: entry.allocations,
            first_s,
            last_s: self.seconds(last_ns).max(first_s),
            first_touch_s: entry.first_page_ns().map_or(first_s, |time| self.seconds(time)).max(first_s),
            populated_s: entry.populated_ns().map(|time| self.seconds(time)),
            data_source: None,
            stall: Some(self.shares.of_all(waited.share(self.shares.user_samples()))),
            accesses: self.intervals.get(&id).copied(),
            hotness: Vec::new(),
            miss_curve: self.curves.get(&id).cloned().unwrap_or_default(),
            origin: None,
        }
    }

    fn phase(&self, phase: usize, position: &BTreeMap<ObjectId, usize>, objects: &[Object]) -> Phase {
        let seen = self.samples_of(phase);
        let rows = &self.by_phase[phase];
        let used = self.used(phase);
        let waits = self.waits(seen, used.user_s, rows);
        // Whom its rows waited for is told by the lines that they had to fetch one after the other.
        let part = |whole_s: f64, row: &Row, weight: &dyn Fn(&Row) -> f64| {
            let of_object = rows.keys().filter(|other| other.0 == row.0).map(weight);
            if whole_s > 0.0 { whole_s * weight(row) / of_object.sum::<f64>().max(f64::MIN_POSITIVE) } else { 0.0 }
        };
        let accesses = rows.iter().filter_map(|(key, row)| {
            let (object, pattern) = key;
            let name = &objects[*position.get(object)?].name;
            let Waits { memory_s, cache_s } = waits.get(object).copied().unwrap_or_default();
            let of_row = Waits {
                memory_s: part(memory_s, key, &|key| self.soonest.wait_s(key.1, &rows[key])),
                cache_s: part(cache_s, key, &|key| rows[key].hits_one_after_the_other()),
            };
            (row.reads + row.writes >= 0.5).then(|| access(name, *pattern, row, of_row))
        });
        let accesses: Vec<Access> = accesses.collect();
        let (start_s, threads) = (self.begins_s(phase), threads(seen));
        let end_s = self.begins_s(phase + 1).max(start_s);
        let team = f64::from(threads);
        let spun_s = if threads > 1 { used.user_s * spun(self.observed, &self.spaces.modules, seen) } else { 0.0 };
        let worked_s = used.user_s + used.system_s - spun_s;
        let lasted_s = used.undisturbed_s(end_s - start_s);
        // What no access stands for stays with computing: no time is lost.
        let waited_s: f64 = accesses.iter().filter_map(|access| access.wait_s).sum();
        // At least so long nobody worked: the threads waited for something else than each other.
        let idle_s = (lasted_s - worked_s).max(0.0);
        Phase {
            name: if self.beginnings.len() == 1 { "whole".to_owned() } else { format!("phase {}", phase + 1) },
            start_s,
            end_s,
            threads,
            // Threads that spin while another one is held use CPU time that they would not use alone.
            compute_s: (worked_s.min(lasted_s * team) - waited_s).max(0.0),
            idle_s: Some(idle_s),
            meeting_s: Some(lasted_s - worked_s / team - idle_s).filter(|meeting_s| *meeting_s > 0.0),
            in_regions: (threads == 1).then(|| in_regions(self.observed, &self.spaces.modules, self.range_of(phase))),
            accesses,
        }
    }

    fn samples_of(&self, phase: usize) -> &[AttributedSample] {
        &self.observed.seen[self.range_of(phase)]
    }

    fn range_of(&self, phase: usize) -> Range<usize> {
        self.beginnings[phase]..self.beginnings.get(phase + 1).copied().unwrap_or(self.observed.seen.len())
    }

    /// Samples that found a thread in the recorder's library meanwhile.
    fn in_library(&self, phase: usize) -> usize {
        let before = |at: usize| match self.beginnings.get(at) {
            Some(0) => 0,
            Some(first) => {
                let from_ns = self.observed.seen[*first].time_ns;
                self.observed.in_library.partition_point(|time_ns| *time_ns < from_ns)
            }
            None => self.observed.in_library.len(),
        };
        before(phase + 1) - before(phase)
    }

    /// The part of user space's time, 0 to 1, that went into what the recorder put there.
    fn added(&self) -> f64 {
        added(&self.observed.seen, self.observed.in_library.len())
    }

    /// Seconds from the start of the run; the first phase begins with it, the last one ends with it.
    fn begins_s(&self, phase: usize) -> f64 {
        match self.beginnings.get(phase) {
            Some(0) => 0.0,
            Some(first) => self.seconds(self.observed.seen[*first].time_ns),
            None => self.recording.wall_s.max(0.0),
        }
    }

    /// CPU time of a phase: by the clocks, or where nobody looked at them by its samples. What a thread ran in copies that
    /// is not the program's is time in which it was held.
    fn used(&self, phase: usize) -> Used {
        let Recording { start_ns, cpu_s, .. } = *self.recording;
        let ns = |seconds: f64| start_ns + round_to_u64(seconds * 1e9);
        let (observed, seen) = (self.observed, self.samples_of(phase));
        let in_library = self.in_library(phase);
        let all = observed.seen.len() + observed.in_library.len();
        let part = if all > 0 { cpu_s * (seen.len() + in_library) as f64 / all as f64 } else { cpu_s };
        let user = self.shares.user();
        let by_samples = || Used { user_s: part * user, system_s: part * (1.0 - user), ..Used::default() };
        let to_ns = if phase + 1 < self.beginnings.len() { ns(self.begins_s(phase + 1)) } else { u64::MAX };
        let between = |clocks: &Clocks| clocks.between(ns(self.begins_s(phase)), to_ns);
        self.clocks.as_ref().map_or_else(by_samples, between).without(added(seen, in_library))
    }

    /// CPU time spent waiting, s, by object: split between cache and memory by where its lines came from, of these rows.
    fn waits(
        &self,
        seen: &[AttributedSample],
        user_s: f64,
        rows: &BTreeMap<Row, Traffic>,
    ) -> BTreeMap<ObjectId, Waits> {
        let stalls = self.overlaps.waiting(self.observed, seen).into_iter();
        let per_sample_s = user_s / of_user(seen).count().max(1) as f64;
        let split = |(object, waited): (ObjectId, Waited)| {
            let all_s = waited.shared * per_sample_s;
            // The lines that are taken to have come from memory were waited for as long as they take, as far as anybody waited.
            let of_object = rows.iter().filter(|((id, _), _)| *id == object);
            let needed_s: f64 = of_object.map(|((_, pattern), row)| self.soonest.wait_s(*pattern, row)).sum();
            let memory_s = (all_s * beyond_cache(rows, object)).max(needed_s.min(all_s));
            (object, Waits { memory_s, cache_s: all_s - memory_s })
        };
        stalls.map(split).collect()
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
            queued_s: self.clocks.as_ref().map(|clocks| clocks.whole().queued_s),
            held_s: self.clocks.as_ref().map(|clocks| clocks.whole().without(self.added()).held_s),
            sampled_s: self.clocks.as_ref().map(|clocks| clocks.whole().sampled_s).filter(|sampled_s| *sampled_s > 0.0),
            unprofiled_s: unrecorded::alike_s(self.recording),
            objects_bytes: self.spaces.objects.at_once_bytes(),
            system_s: (self.recording.system_s > 0.0).then_some(self.recording.system_s),
            threads: threads(&self.observed.seen),
            cpu: self.recording.processor.name.clone(),
            host: Some(self.recording.processor.host.clone()).filter(|host| !host.is_empty()),
            llc_bytes: self.recording.processor.llc_bytes,
            memory_ns: self.recording.processor.memory.map(|near| near.idle_ns),
        }
    }

    fn unattributed(&self) -> Vec<Unattributed> {
        let waited = |rest| self.observed.seen.iter().filter(|seen| seen.verdict == Attribution::Rest(rest)).count();
        let stall = |rest| match rest {
            Rest::Kernel => self.shares.of_kernel(),
            Rest::Unrecovered if let Some(unseen) = self.shares.unseen() => unseen,
            _ => self.shares.of_all(share(waited(rest) as f64, self.shares.user_samples())),
        };
        let row = |(rest, name): (Rest, &str)| Unattributed { name: name.to_owned(), stall: stall(rest) };
        RESTS.into_iter().map(row).collect()
    }

    fn sample_rows(&self, position: &BTreeMap<ObjectId, usize>) -> Vec<SampleRow> {
        let row = |seen: &AttributedSample| {
            let (object, offset, access) = match seen.verdict {
                Attribution::Object { object, offset, access } => (
                    position.get(&object).and_then(|at| i32::try_from(*at).ok()).unwrap_or(i32::MAX),
                    offset.unwrap_or(UNKNOWN_OFFSET),
                    access,
                ),
                Attribution::Rest(rest) => (-1 - rest as i32, 0, AccessKind::None),
            };
            let time_ns = seen.time_ns.saturating_sub(self.recording.start_ns);
            SampleRow { time_ns, offset, thread: self.observed.threads[seen.thread].1, object, access }
        };
        self.observed.seen.iter().map(row).collect()
    }

    fn sampling(&self, names: &Names<'_>, objects: &[Object]) -> Option<Sampling> {
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
            not_sampled: self.unplaced(self.tallies.not_sampled),
            thread_local: self.unplaced(self.tallies.thread_local),
            counted_traffic: self.counted_traffic,
            warnings: self.warnings(names, objects),
        })
    }

    /// Counted accesses of no object, with their share.
    fn unplaced(&self, accesses: Unplaced) -> Option<Unplaced> {
        let known: f64 = self.rows.values().map(|row| row.read_bytes + row.write_bytes).sum();
        let all = known + self.tallies.not_sampled.bytes + self.tallies.thread_local.bytes;
        (!self.observed.counted.is_empty()).then(|| Unplaced { share: accesses.bytes / all.max(1.0), ..accesses })
    }

    fn warnings(&self, names: &Names<'_>, objects: &[Object]) -> Vec<Warning> {
        let doubts = crate::profile::warnings::Doubts {
            recording: self.recording,
            observed: self.observed,
            differing: self.differing,
            tallies: self.tallies,
            intervals: objects.iter().filter_map(|object| Some((&*object.name, object.accesses?))).collect(),
            cut: self.cut,
            modules: &self.spaces.modules,
        };
        let lines = names.lineless().map(|(file, missing)| warnings::about_lines(file, missing));
        self.recording.warnings.iter().cloned().chain(doubts.all()).chain(lines).collect()
    }
}

/// The part of an object's waiting, 0 to 1, that is for lines from memory, by how many of the lines that it touched came
/// from there.
fn beyond_cache(rows: &BTreeMap<Row, Traffic>, object: ObjectId) -> f64 {
    let rows = rows.iter().filter(|((id, _), _)| *id == object).map(|(_, row)| row);
    let (missed, touched) = rows.fold((0.0, 0.0), |sum, row| (sum.0 + row.dram_read_bytes, sum.1 + row.touched_bytes));
    let miss: f64 = if touched > 0.0 { (missed / touched).min(1.0) } else { 0.0 };
    MEMORY_TO_CACHE * miss / (MEMORY_TO_CACHE * miss + 1.0 - miss)
}

/// CPU time that was spent waiting for lines beyond the last-level cache, and for others, s.
#[derive(Debug, Clone, Copy, Default)]
struct Waits {
    memory_s: f64,
    cache_s: f64,
}

fn access(object: &str, pattern: Pattern, row: &Traffic, waits: Waits) -> Access {
    Access {
        object: object.to_owned(),
        pattern,
        reads: row.reads,
        writes: row.writes,
        read_bytes: row.read_bytes,
        write_bytes: row.write_bytes,
        dram_read_bytes: row.dram_read_bytes,
        dram_write_bytes: row.dram_write_bytes,
        traffic_within: row.within,
        mlp: row.mlp.max(1.0),
        touched: Some(Touched {
            bytes: row.touched_bytes,
            filled_bytes: row.filled_bytes(),
            mlp: row.uncached_mlp.max(1.0),
            beyond_core: None,
            cache_wait_s: waits.cache_s,
        }),
        wait_s: Some(waits.memory_s),
        wait_factor: None,
        origin: None,
    }
}
