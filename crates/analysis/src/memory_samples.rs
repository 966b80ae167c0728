//! Memory samples (PEBS, IBS, SPE by `perf mem record`) as a profile.
//!
//! Each sample names a data address, where the data came from, and for loads how many cycles they
//! took. An object's share of all those cycles is its share of the waiting; counts are samples times
//! their period. What such samples cannot tell is assumed and said: sizes of accesses, patterns, and how
//! many misses overlap.

use std::collections::BTreeMap;

use tierloom_binary::Binaries;
use tierloom_model::{
    Access, AccessKind, FORMAT_VERSION, Kind, Object, Origin, Pattern, Phase, Profile, ProfileTag, Program, SampleRow,
    Sampling, Unattributed, Warning,
};
use tierloom_recording::Recording;

use crate::address_space::AddressSpaces;
use crate::address_space::objects::ObjectId;
use crate::confidence::share;
use crate::memory_sums::{Owner, RESTS, Sums};
use crate::profile::names::{Named, Names};
use crate::profile::warnings::FEW_SAMPLES;

/// Bytes of an access: samples do not tell; most loads of numeric code are words. Assumed.
const ACCESS_BYTES: f64 = 8.0;
const LINE_BYTES: f64 = 64.0;
/// Clock where the file does not state one: base clocks of servers of 2020 to 2025 are 2 to 3 GHz. Assumed.
const CLOCK_GHZ: f64 = 2.5;
const SOURCE: &str = "perf";

/// A sample that was looked up.
#[derive(Debug, Clone, Copy)]
struct LocatedSample {
    time_ns: u64,
    thread: u32,
    access: AccessKind,
    owner: Owner,
    offset: u64,
}

/// The profile of a recording of memory samples, and its samples.
pub(crate) fn analyse(recording: &Recording, binaries: &dyn Binaries) -> (Profile, Vec<SampleRow>) {
    let mut spaces = AddressSpaces::new(recording, binaries);
    let mut sums: BTreeMap<Owner, Sums> = BTreeMap::new();
    let mut seen = Vec::with_capacity(recording.accesses.len());
    for sample in &recording.accesses {
        spaces.advance(sample.time_ns);
        let (owner, offset) = Owner::of(sample, &mut spaces);
        if let Some(object) = owner.object() {
            spaces.objects.touch(object, sample.time_ns);
        }
        sums.entry(owner).or_default().add(sample);
        let access = if sample.store { AccessKind::Write } else { AccessKind::Read };
        seen.push(LocatedSample { time_ns: sample.time_ns, thread: sample.tid, access, owner, offset });
    }
    let builder = ProfileBuilder { recording, spaces: &spaces, sums: &sums };
    builder.profile(&seen)
}

/// Everything that is known, on its way into the noun.
struct ProfileBuilder<'a> {
    recording: &'a Recording,
    spaces: &'a AddressSpaces<'a>,
    sums: &'a BTreeMap<Owner, Sums>,
}

impl ProfileBuilder<'_> {
    fn profile(&self, seen: &[LocatedSample]) -> (Profile, Vec<SampleRow>) {
        let cycles = |id: &ObjectId| self.sums[&Owner::Object(*id)].cycles;
        let mut order: Vec<ObjectId> = self.sums.keys().filter_map(|owner| owner.object()).collect();
        order.sort_by(|one, other| cycles(other).total_cmp(&cycles(one)).then(one.cmp(other)));
        let mut names = Names::new(&self.spaces.modules, self.spaces.binaries, &self.spaces.objects.entries);
        let objects: Vec<Object> = order.iter().map(|id| self.object(*id, &mut names)).collect();
        let position: BTreeMap<ObjectId, usize> = order.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let rests: Vec<Owner> = self.rests().map(|(owner, _)| owner).collect();
        let rows = seen.iter().map(|sample| self.row(sample, &position, &rests)).collect();
        let command = self.recording.command.first().map_or("program", String::as_str);
        let profile = Profile {
            kind: ProfileTag::Profile,
            version: FORMAT_VERSION,
            name: command.rsplit('/').next().unwrap_or(command).to_owned(),
            program: self.program(),
            sources: BTreeMap::from([(SOURCE.to_owned(), "memory samples of a perf.data file".to_owned())]),
            phases: vec![self.phase(&order, &objects)],
            objects,
            unattributed: self.rests().map(|(owner, name)| self.rest(owner, name)).collect(),
            sampling: Some(self.sampling(seen.len())),
        };
        (profile, rows)
    }

    fn program(&self) -> Program {
        Program {
            command: self.recording.command.clone(),
            exit_code: None,
            signal: None,
            wall_s: self.recording.wall_s,
            cpu_s: self.recording.cpu_s,
            system_s: None,
            queued_s: None,
            held_s: None,
            sampled_s: None,
            unprofiled_s: Vec::new(),
            objects_bytes: None,
            threads: self.threads(),
            cpu: self.recording.processor.name.clone(),
            host: None,
            llc_bytes: self.recording.processor.llc_bytes,
            memory_ns: None,
        }
    }

    fn threads(&self) -> u32 {
        let threads = if self.recording.wall_s > 0.0 { self.recording.cpu_s / self.recording.wall_s } else { 1.0 };
        u32::try_from(tierloom_model::units::round_to_u64(threads)).unwrap_or(1).max(1)
    }

    fn seconds(&self, time_ns: u64) -> f64 {
        time_ns.saturating_sub(self.recording.start_ns) as f64 * 1e-9
    }

    fn object(&self, id: ObjectId, names: &mut Names<'_>) -> Object {
        let entry = &self.spaces.objects.entries[id];
        let Named { site, line, name } = names.name(entry);
        let first_s = self.seconds(entry.first_ns);
        Object {
            name,
            kind: entry.kind,
            site,
            line,
            size_bytes: entry.most_bytes,
            address_bytes: None,
            allocations: entry.allocations,
            first_s,
            last_s: self.recording.wall_s.max(first_s),
            accesses: None,
            first_touch_s: entry.first_page_ns().map_or(first_s, |time| self.seconds(time)).max(first_s),
            populated_s: None,
            stall: Some(self.stall(&self.sums[&Owner::Object(id)])),
            data_source: Some(self.sums[&Owner::Object(id)].data_source()),
            hotness: Vec::new(),
            miss_curve: Vec::new(),
            origin: None,
        }
    }

    /// Share of all cycles that loads took; of all samples where the hardware reports no latency. The
    /// interval is that of as many samples with this share.
    fn stall(&self, sums: &Sums) -> tierloom_model::Share {
        let all: f64 = self.sums.values().map(|sums| sums.cycles).sum();
        let samples: usize = self.sums.values().map(|sums| sums.samples).sum();
        let part = if all > 0.0 { sums.cycles / all } else { sums.samples as f64 / samples.max(1) as f64 };
        share(part * samples as f64, samples as f64)
    }

    /// Owners that are no objects: the kernel and stacks where they were touched.
    fn rests(&self) -> impl Iterator<Item = (Owner, &'static str)> {
        RESTS.into_iter().filter(|(owner, _)| *owner == Owner::Other || self.sums.contains_key(owner))
    }

    fn rest(&self, owner: Owner, name: &str) -> Unattributed {
        let none = Sums::default();
        Unattributed { name: name.to_owned(), stall: self.stall(self.sums.get(&owner).unwrap_or(&none)) }
    }

    fn phase(&self, order: &[ObjectId], objects: &[Object]) -> Phase {
        let mlp = self.overlap();
        let stalled_s = self.waited_s() / mlp;
        let accesses =
            order.iter().zip(objects).map(|(id, object)| access(&object.name, &self.sums[&Owner::Object(*id)], mlp));
        Phase {
            name: "whole".to_owned(),
            start_s: 0.0,
            end_s: self.recording.wall_s,
            threads: self.threads(),
            compute_s: (self.recording.cpu_s - stalled_s).max(0.0),
            idle_s: None,
            meeting_s: None,
            in_regions: None,
            accesses: accesses.collect(),
        }
    }

    /// Time that all loads from memory took, one after the other, s.
    fn waited_s(&self) -> f64 {
        let cycles: f64 = self.sums.values().map(|sums| sums.memory_cycles).sum();
        cycles / (self.clock_ghz() * 1e9)
    }

    fn clock_ghz(&self) -> f64 {
        self.recording.processor.stated_ghz().unwrap_or(CLOCK_GHZ)
    }

    /// Loads from memory that were under way at once, at least: by Little's law their total time over
    /// the threads' time. Threads that also computed had more; samples do not tell.
    fn overlap(&self) -> f64 {
        if self.recording.cpu_s > 0.0 { (self.waited_s() / self.recording.cpu_s).max(1.0) } else { 1.0 }
    }

    fn row(&self, sample: &LocatedSample, position: &BTreeMap<ObjectId, usize>, rests: &[Owner]) -> SampleRow {
        let placed = sample.owner.object().and_then(|id| i32::try_from(*position.get(&id)?).ok());
        // What is nobody's counts down from -1, in the order of the profile's list of it.
        let rest = || rests.iter().zip(1..).find(|(owner, _)| **owner == sample.owner).map_or(-1, |(_, place)| -place);
        let object = placed.unwrap_or_else(rest);
        let time_ns = sample.time_ns.saturating_sub(self.recording.start_ns);
        SampleRow { time_ns, offset: sample.offset, thread: sample.thread, object, access: sample.access }
    }

    fn sampling(&self, samples: usize) -> Sampling {
        let hz = if self.recording.cpu_s > 0.0 { samples as f64 / self.recording.cpu_s } else { 0.0 };
        Sampling {
            not_sampled: None,
            thread_local: None,
            counted_traffic: None,
            event: "perf-mem".to_owned(),
            hz,
            samples: samples as u64,
            lost: self.recording.lost,
            skid_purity: 1.0,
            warnings: self.warnings(samples, hz),
        }
    }

    fn warnings(&self, samples: usize, hz: f64) -> Vec<Warning> {
        let clock = match self.recording.processor.stated_ghz() {
            Some(ghz) => Warning::ClockStated { ghz },
            None => Warning::ClockAssumed { ghz: CLOCK_GHZ },
        };
        let lost = self.recording.lost;
        let few = (samples < FEW_SAMPLES).then_some(Warning::FewSamples { samples, hz });
        let missing = (lost > 0).then_some(Warning::LostSamples { lost, samples });
        let untimed = self.sums.values().all(|sums| sums.cycles <= 0.0).then_some(Warning::NoLatencies);
        let mut warnings = self.recording.warnings.clone();
        warnings.extend([Warning::PatternsAssumed { access_bytes: ACCESS_BYTES }, clock]);
        warnings.extend([few, missing, untimed, self.in_kernel(samples)].into_iter().flatten());
        warnings
    }

    /// Samples of the kernel's own memory.
    fn in_kernel(&self, samples: usize) -> Option<Warning> {
        let sums = self.sums.get(&Owner::Kernel)?;
        Some(Warning::KernelAddresses { share: sums.samples as f64 / samples.max(1) as f64 })
    }
}

fn access(object: &str, sums: &Sums, mlp: f64) -> Access {
    let how = format!(
        "samples x period; {ACCESS_BYTES} bytes an access assumed; pattern not known; overlap at least, by Little's law"
    );
    Access {
        object: object.to_owned(),
        pattern: Pattern::Random,
        reads: sums.reads,
        writes: sums.writes,
        read_bytes: sums.reads * ACCESS_BYTES,
        write_bytes: sums.writes * ACCESS_BYTES,
        dram_read_bytes: (sums.missed_reads + sums.missed_writes) * LINE_BYTES,
        dram_write_bytes: sums.missed_writes * LINE_BYTES,
        mlp,
        touched: None,
        wait_s: None,
        wait_factor: None,
        traffic_within: None,
        origin: Some(Origin { kind: Kind::Assumed, source: SOURCE.to_owned(), how }),
    }
}
