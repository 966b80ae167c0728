//! What a program does with its data.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::access_count::{AccessCount, CountedTraffic, Unplaced};
use crate::error::{Flaw, Flaws, Result, at_least, fraction, positive};
use crate::figure::Origin;
use crate::file;
use crate::miss_curve::{self, MissPoint};
use crate::run_time::RunTime;
use crate::share::Share;
use crate::site::{Site, is_on_disk};
use crate::undisturbed::{Taken, Undisturbed};
use crate::warning::{self, Warning};

/// Equal shares of an object's pages, hottest first, that [`Object::hotness`] tells apart.
pub const HOTNESS_BINS: usize = 16;

/// An object beyond five-level page tables (57 bits) cannot be.
const MOST_BYTES: u64 = 1 << 57;

/// A program's data objects and how they are touched. File: `NAME.profile/profile.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What this file is; absent in files that say their version only.
    #[serde(default)]
    pub kind: file::ProfileTag,
    /// Format version.
    pub version: u32,
    /// Short name.
    pub name: String,
    /// What ran, and where.
    pub program: Program,
    /// What the `source` keys stand for; empty when everything was measured in one run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// Data objects.
    pub objects: Vec<Object>,
    /// Stretches of the run, in time order.
    pub phases: Vec<Phase>,
    /// CPU time that belongs to no object; with the objects' it sums to 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unattributed: Vec<Unattributed>,
    /// How the samples were taken; absent in profiles that were derived on paper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
}

/// What ran, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Command line; a description when it never ran.
    pub command: Vec<String>,
    /// Exit code; 128 + signal when it was killed; absent when it never ran, or nobody saw its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Name of the signal that killed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Elapsed time, s.
    pub wall_s: f64,
    /// CPU time of all threads, s.
    pub cpu_s: f64,
    /// The part of it that the kernel worked for them, s; absent where nobody told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_s: Option<f64>,
    /// Time in which its threads had no CPU, because other programs did, s, all together; absent where nobody told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_s: Option<f64>,
    /// Time in which the profiler held its threads, or in which they ran its code or waited for it, s, all together; absent
    /// where nobody told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_s: Option<f64>,
    /// The part of `cpu_s` that taking samples took, s; absent where nobody measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled_s: Option<f64>,
    /// Elapsed times of runs without the profiler, on the same machine, s: phases take as long together as their median.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unprofiled_s: Vec<f64>,
    /// Most memory that all its objects had at once, bytes; absent where nobody followed their allocations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects_bytes: Option<u64>,
    /// Most threads that ran at once.
    pub threads: u32,
    /// Processor that the traffic holds for.
    pub cpu: String,
    /// Which host it ran on, so that a machine file that was measured there is known; absent where nobody told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Last-level cache that the traffic holds for: what one core reaches, bytes.
    pub llc_bytes: u64,
    /// Latency of the memory next to it, ns, which bounds the traffic by the time that was waited; absent where nobody had
    /// measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_ns: Option<f64>,
}

/// What an object is to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// malloc and its family, C++ new.
    Heap,
    /// .data, .bss, Fortran COMMON.
    Static,
    /// .rodata: data that the program cannot write, in pages of its file.
    Constant,
    /// Anonymous memory by mmap.
    Mmap,
    /// A file by mmap.
    File,
    /// The brk heap, an allocator's arenas or a module's small variables as a whole: objects too small
    /// to tell apart, which no rule of a plan can select.
    Arena,
}

/// A data object: everything allocated at one site, or one static array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Object {
    /// Unique within the profile.
    pub name: String,
    /// What it is to the program.
    pub kind: ObjectKind,
    /// How to find it again in another run.
    pub site: Site,
    /// Statement of the program that allocates it, `file:line`; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// Most memory that it had at once, bytes: pages that were touched, where somebody looked; else its addresses.
    pub size_bytes: u64,
    /// Most bytes of addresses that it had at once, where they are more than its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_bytes: Option<u64>,
    /// How many times it was allocated.
    pub allocations: u64,
    /// Seconds from the start of the run to the first allocation.
    pub first_s: f64,
    /// Seconds from the start of the run to the last release, or to the end.
    pub last_s: f64,
    /// Seconds from the start of the run to the first touch; only the order matters.
    pub first_touch_s: f64,
    /// Seconds from the start of the run to when all its pages had been touched, taken as even from the
    /// first touch on; at once where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub populated_s: Option<f64>,
    /// Share of the CPU time in which a thread waited for this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<Share>,
    /// Accesses in the whole run, with how far they may be off; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accesses: Option<AccessCount>,
    /// Where the processor found the data of its sampled accesses; absent where it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_source: Option<DataSource>,
    /// Share of the object's accesses in each sixteenth of its pages, hottest first; empty when
    /// not known, which engines take as uniform.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hotness: Vec<f64>,
    /// Share of its touched lines that comes from memory, by size of the last-level cache, smallest first; empty where that
    /// is not known, or is the same for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub miss_curve: Vec<MissPoint>,
    /// Where the size comes from, when it was not measured in this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// Where the data of an object's sampled accesses came from, as the processor tells it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataSource {
    /// Share of the accesses whose data came from another node, from its memory or its caches, 0 to 1.
    pub remote: f64,
    /// Share of the accesses whose data another core's cache gave: modified there, or of Arm any, 0 to 1.
    pub shared: f64,
    /// Cycles that a load took on average; absent where no load has a latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_cycles: Option<f64>,
    /// Cycles that a store took on average; absent where no store has a latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_cycles: Option<f64>,
}

impl DataSource {
    fn check(&self) -> Result<(), Flaw> {
        fraction("remote", self.remote)?;
        fraction("shared", self.shared)?;
        at_least("load_cycles", self.load_cycles.unwrap_or(0.0), 0.0)?;
        at_least("store_cycles", self.store_cycles.unwrap_or(0.0), 0.0)
    }
}

/// CPU time that belongs to no object: `[compute]`, `[stack]`, `[kernel]`, `[unrecovered]`, `[other]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unattributed {
    /// Name in brackets.
    pub name: String,
    /// Its share of all CPU time.
    pub stall: Share,
}

/// A stretch of the run with one behaviour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Name for people.
    pub name: String,
    /// Seconds from the start of the run.
    pub start_s: f64,
    /// Seconds from the start of the run.
    pub end_s: f64,
    /// Threads that share the work.
    pub threads: u32,
    /// CPU time of all threads without waiting for memory beyond the last-level cache or for each other, s.
    pub compute_s: f64,
    /// Time in which none of its threads did anything, s: they waited for input or output, and not for a CPU; absent where
    /// that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<f64>,
    /// Time that it took longer because its threads waited for each other, s: at barriers, or while one of them worked alone.
    /// One thread has none of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meeting_s: Option<f64>,
    /// Share of its CPU time, 0 to 1, that its one thread spent in parallel regions of OpenMP, which more threads would share
    /// out; absent of several threads, and where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_regions: Option<f64>,
    /// Accesses by object and pattern.
    pub accesses: Vec<Access>,
}

/// How the samples were taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// `cpu-clock` by `perf_event_open`, or `ptrace`.
    pub event: String,
    /// Samples per second of CPU time that were asked for.
    pub hz: f64,
    /// Samples taken.
    pub samples: u64,
    /// Samples lost.
    pub lost: u64,
    /// Share of calibration samples that landed exactly one instruction past the stalled one.
    pub skid_purity: f64,
    /// What was counted and whose object no sample shows; absent where nothing was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_sampled: Option<Unplaced>,
    /// What was counted and is of thread-local storage; absent where nothing was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_local: Option<Unplaced>,
    /// For which cache memory traffic was counted; absent where it was estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_traffic: Option<CountedTraffic>,
    /// What the reader should know before believing the numbers.
    #[serde(default, with = "warning::documents", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<warning::documents::Notice>")]
    pub warnings: Vec<Warning>,
}

impl Profile {
    /// Reads and checks a profile; `file` is only named in errors.
    ///
    /// # Errors
    /// [`crate::ModelError`] with the file, the key, and what to do.
    pub fn from_json(text: &str, file: &str) -> Result<Self> {
        let profile: Self = file::from_json(text, file, "profile")?;
        profile.check().in_file(file)?;
        Ok(profile)
    }

    /// Writes the profile as a file that [`Profile::from_json`] reads back unchanged.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_else(|error| unreachable!("a profile is always JSON: {error}"))
    }

    /// Position of an object by name.
    pub fn object_index(&self, name: &str) -> Option<usize> {
        self.objects.iter().position(|object| object.name == name)
    }

    /// Memory of all objects, each at its largest, bytes.
    pub fn footprint_bytes(&self) -> u64 {
        self.objects.iter().map(|object| object.size_bytes).sum()
    }

    /// Threads of the phase that had most.
    pub fn most_threads(&self) -> u32 {
        self.phases.iter().map(|phase| phase.threads).fold(self.program.threads, u32::max).max(1)
    }

    /// Whether a phase has one thread however many the program is given: it had one of several when somebody looked, or
    /// the program never had more. A profile that was derived on paper is one thread's work, to be shared out.
    pub fn is_serial_in(&self, phase: &Phase) -> bool {
        phase.threads <= 1 && (self.most_threads() > 1 || self.sampling.is_some())
    }

    /// Threads that share out a phase's work when the program has so many, as if they did all of it together: a number that
    /// need not be whole, for where only a part is shared out the others wait (Amdahl).
    pub fn threads_in(&self, phase: &Phase, threads: f64) -> f64 {
        let threads = threads.max(1.0);
        if self.is_serial_in(phase) {
            // Of several threads that somebody saw this one worked alone; a program that had one may share out more.
            let shared = phase.in_regions.filter(|_| self.most_threads() == 1).unwrap_or(0.0);
            return 1.0 / (1.0 - shared + shared / threads);
        }
        (threads * f64::from(phase.threads) / f64::from(self.most_threads())).max(1.0)
    }

    /// What the run would have taken alone on its machine and without a profiler.
    pub fn undisturbed(&self) -> Undisturbed {
        let Program { wall_s, cpu_s, queued_s, held_s, sampled_s, .. } = &self.program;
        let [queued_s, held_s, sampled_s] = [queued_s, held_s, sampled_s].map(|taken_s| taken_s.unwrap_or(0.0));
        Undisturbed::of(*wall_s, *cpu_s, Taken { queued_s, held_s, sampled_s })
    }

    /// How long it takes on its machine: by runs without the profiler where there are some.
    pub fn run_time(&self) -> RunTime {
        RunTime::of_runs(&self.program.unprofiled_s).unwrap_or_else(|| RunTime::of_profiled(self.undisturbed()))
    }

    /// At most so many of them are there at once: objects between whose first allocation and last
    /// release no moment lies may use the same room, and those whose allocations come and go in turn. No more than
    /// [`Profile::footprint_bytes`].
    pub fn bytes_at_once(&self) -> u64 {
        let begins = self.objects.iter().map(|object| (object.first_s, false, object.size_bytes));
        let ends = self.objects.iter().map(|object| (object.last_s, true, object.size_bytes));
        let mut events: Vec<(f64, bool, u64)> = begins.chain(ends).collect();
        // One that ends as another begins is still there: both count.
        events.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let (mut alive, mut most) = (0, 0);
        for (_, ends, bytes) in events {
            alive = if ends { alive - bytes } else { alive + bytes };
            most = most.max(alive);
        }
        self.program.objects_bytes.map_or(most, |bytes| bytes.min(most))
    }

    fn check(&self) -> Flaws {
        let (mut flaws, mut names, mut missing) = (Flaws::default(), BTreeSet::new(), BTreeSet::new());
        for (index, object) in self.objects.iter().enumerate() {
            let place = format!("objects[{index}]");
            if object.name.is_empty() || !names.insert(object.name.as_str()) {
                let problem = format!("`{}` is empty or used twice", object.name);
                flaws.part(&place, Err(Flaw::new("name", problem, "give every object its own name")));
            }
            flaws.part(&place, object.check());
            flaws.part(&place, self.known_source(object.origin.as_ref(), &mut missing));
        }
        for (index, phase) in self.phases.iter().enumerate() {
            let place = format!("phases[{index}]");
            flaws.part(&place, phase.check(&names));
            for access in &phase.accesses {
                flaws.part(&place, self.known_source(access.origin.as_ref(), &mut missing));
            }
        }
        for (index, rest) in self.unattributed.iter().enumerate() {
            flaws.part(&format!("unattributed[{index}].stall"), rest.stall.check());
        }
        flaws.part("program", self.program.memory_ns.map_or(Ok(()), |latency| positive("memory_ns", latency)));
        let Program { wall_s, cpu_s, held_s, sampled_s, queued_s, system_s, .. } = &self.program;
        let times =
            [("wall_s", Some(*wall_s)), ("cpu_s", Some(*cpu_s)), ("held_s", *held_s), ("sampled_s", *sampled_s)];
        let times = times.into_iter().chain([("queued_s", *queued_s), ("system_s", *system_s)]);
        let unprofiled = self.program.unprofiled_s.iter().map(|time_s| ("unprofiled_s", Some(*time_s)));
        let times = times.chain(unprofiled);
        flaws.part("program", Flaws::of(times.map(|(key, time_s)| at_least(key, time_s.unwrap_or(0.0), 0.0))));
        flaws
    }

    /// A source that is missing is told once, however many figures name it.
    fn known_source<'a>(&self, origin: Option<&'a Origin>, missing: &mut BTreeSet<&'a str>) -> Result<(), Flaw> {
        match origin {
            Some(origin) if !self.sources.contains_key(&origin.source) && missing.insert(&origin.source) => {
                Err(Flaw::new(
                    "origin.source",
                    format!("source `{}` is not in the sources table", origin.source),
                    "add it under `sources`",
                ))
            }
            _ => Ok(()),
        }
    }
}

impl Object {
    /// Whether a rule of a plan can put it anywhere: the running program's allocations, variables and shared memory. The
    /// kernel's pages of a file have no policy of a mapping, whoever reads them, and small objects have no site. They are where
    /// the thread that touches them first is told to put memory.
    pub fn can_be_placed(&self) -> bool {
        match (self.kind, &self.site) {
            (ObjectKind::Arena | ObjectKind::Constant, _) => false,
            (ObjectKind::File, Site::File(path)) => !is_on_disk(path),
            _ => true,
        }
    }

    /// Most bytes of addresses that it had at once: what the program asked for.
    pub fn addresses(&self) -> u64 {
        self.address_bytes.unwrap_or(self.size_bytes)
    }

    fn check(&self) -> Result<(), Flaw> {
        for (key, bytes) in [("size_bytes", self.size_bytes), ("address_bytes", self.addresses())] {
            if bytes > MOST_BYTES {
                let problem = format!("{bytes} bytes are more than an address space");
                return Err(Flaw::new(key, problem, "check the number and its unit"));
            }
        }
        if self.addresses() < self.size_bytes {
            let problem = format!("{} bytes of addresses do not hold {}", self.addresses(), self.size_bytes);
            return Err(Flaw::new("address_bytes", problem, "leave the key out where they are the same"));
        }
        at_least("first_s", self.first_s, 0.0)?;
        at_least("last_s", self.last_s, self.first_s)?;
        at_least("first_touch_s", self.first_touch_s, 0.0)?;
        self.populated_s.map_or(Ok(()), |time| at_least("populated_s", time, self.first_touch_s))?;
        if let Some(stall) = &self.stall {
            stall.check().map_err(|flaw| flaw.within("stall"))?;
        }
        if let Some(source) = &self.data_source {
            source.check().map_err(|flaw| flaw.within("data_source"))?;
        }
        miss_curve::check(&self.miss_curve)?;
        if self.hotness.is_empty() {
            return Ok(());
        }
        let sum: f64 = self.hotness.iter().sum();
        let sorted = self.hotness.windows(2).all(|pair| pair[0] >= pair[1]);
        if self.hotness.len() != HOTNESS_BINS || (sum - 1.0).abs() > 1e-6 || !sorted {
            let problem = format!(
                "{} shares with sum {sum} are not {HOTNESS_BINS} falling shares with sum 1",
                self.hotness.len()
            );
            return Err(Flaw::new("hotness", problem, "leave the key out when the hotness is not known"));
        }
        Ok(())
    }
}

impl Phase {
    /// What it takes on so many threads without waiting for memory, s. How what they lose by waiting for each other grows
    /// with their number nobody has seen: it stays, and one thread has none.
    pub fn beside_memory_s(&self, threads: f64) -> f64 {
        let meeting_s = self.meeting_s.filter(|_| threads > 1.0).unwrap_or(0.0);
        self.compute_s / threads + self.idle_s.unwrap_or(0.0) + meeting_s
    }

    fn check(&self, objects: &BTreeSet<&str>) -> Result<(), Flaw> {
        at_least("start_s", self.start_s, 0.0)?;
        at_least("end_s", self.end_s, self.start_s)?;
        at_least("threads", f64::from(self.threads), 1.0)?;
        at_least("compute_s", self.compute_s, 0.0)?;
        at_least("idle_s", self.idle_s.unwrap_or(0.0), 0.0)?;
        at_least("meeting_s", self.meeting_s.unwrap_or(0.0), 0.0)?;
        fraction("in_regions", self.in_regions.unwrap_or(0.0))?;
        for (index, access) in self.accesses.iter().enumerate() {
            access.check(objects).map_err(|flaw| flaw.within(&format!("accesses[{index}]")))?;
        }
        Ok(())
    }
}
