//! What a reader must know before believing the numbers of a run: the kind, its figures, and a sentence with
//! the cause and what to do.
//!
//! Whoever sees the reason makes the warning, and it is carried as it is, into a recording, a profile and
//! `--json`, where each has its `kind`, its figures and its sentence, `text`. Only a face prints it.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One reason for doubt. Shares are 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Error, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant and its fields are told by its sentence")]
pub enum Warning {
    // Which allocations were not seen.
    #[error("no preload library was given: {UNSEEN}")]
    NoLibrary,
    #[error("{program} is statically linked and takes no preload library: {UNSEEN}")]
    StaticProgram { program: String },
    #[error(
        "{program} runs with its owner's rights, so the kernel lets nobody watch it: it ran, but neither samples nor \
         allocations were seen; record what it starts, or a copy without the set-id bit"
    )]
    SetIdProgram { program: String },
    #[error("the preload library did not come up in {program}: {UNSEEN}")]
    LibraryNotLoaded { program: String },
    #[error(
        "{times} time(s) a process restricted its own system calls (seccomp) and was left alone from then on: what it \
         allocated later is not known; record it without its sandbox, where it has an option for that"
    )]
    Sandboxed { times: u64 },
    #[error(
        "the kernel gave up on the processor's time-stamp counter while the program ran, by which allocations were \
         timed: which object a sample belongs to may be wrong; record again"
    )]
    ClockLost,
    #[error(
        "{lost} allocation events were lost: some memory is named [small objects]; allocate in larger pieces or raise \
         the object threshold"
    )]
    LostAllocations { lost: u64 },
    #[error(
        "perf.data has no allocations: large ones appear as `[anon:N SIZE]` by their mapping, small ones together; \
         `tierloom profile -- CMD` tells them apart, and a plan can place only those"
    )]
    NoAllocations,
    #[error("mappings of data were not recorded, so heap data is nobody's: record with -d")]
    NoDataMappings,

    // How the samples were taken.
    #[error(
        "perf_event_open is refused here, so samples were taken by ptrace: {hz} per second of CPU time, and page faults \
         are not seen; lower kernel.perf_event_paranoid, or let the container's seccomp profile allow perf_event_open"
    )]
    SampledByPtrace { hz: u32 },
    #[error(
        "page faults are not seen ({why}), so no object tells when it got its pages: raise kernel.perf_event_mlock_kb, or \
         the limit of open files"
    )]
    PageFaultsNotSeen { why: String },
    #[error("{hz} samples per second were taken, not {asked}: more by ptrace would slow the program")]
    SlowedByPtrace { hz: u32, asked: u32 },
    #[error("the kernel allows {hz} samples per second, not {asked}; raise kernel.perf_event_max_sample_rate for more")]
    SlowedByKernel { hz: u32, asked: u32 },
    #[error("the kernel held samples back for a while; lower the rate")]
    Throttled,
    #[error(
        "{times} times a thread that ran could not be sampled: a debugger or tracer had it, or its process has other \
         rights than ours"
    )]
    ThreadsNotSampled { times: u64 },
    #[error("only the first {kept} samples were kept, {left_out} later ones were not: take fewer per second")]
    SamplesLeftOut { kept: usize, left_out: u64 },
    #[error("{lost} samples were lost beside {samples} kept: busy stretches are under-counted; sample slower")]
    LostSamples { lost: u64, samples: usize },
    #[error(
        "only {samples} sample{}: shares are rough; let the program run longer, or sample faster than {hz:.0}/s",
        if *.samples == 1 { "" } else { "s" }
    )]
    FewSamples { samples: usize, hz: f64 },
    #[error(
        "the skid of this machine was not measured: stall shares take it to be one instruction; record with calibration"
    )]
    SkidUnknown,
    #[error(
        "only {} of the calibration samples fell right behind the waiting instruction: waiting is told by basic block \
         where all of a block touches one object, and [unrecovered] elsewhere; counts are not affected; record on \
         another machine to tell more",
        percent(*.purity)
    )]
    Skid { purity: f64 },

    // What runs without the profiler say.
    #[error(
        "the run that was profiled took {} {} than the median of {runs} without the profiler, beside what the profiler and \
         others are known to have taken: all its times are taken to be as much off; profile it again if they matter",
        percent(longer.abs()),
        if *longer > 0.0 { "longer" } else { "shorter" }
    )]
    AnotherTime { longer: f64, runs: usize },
    #[error(
        "{runs} of {of} runs without the profiler ended otherwise than the one with it, and do not count: give a program \
         that can run several times in a row"
    )]
    RunsEndedOtherwise { runs: usize, of: usize },

    // What became of the recording.
    #[error(
        "the profiler was stopped before it was done: this is what it recorded until then ({wall_s:.1} s, {samples} \
         samples); how the program ended is not known; record it again for all of it"
    )]
    Stopped { wall_s: f64, samples: usize },
    #[error(
        "the recording that is kept ends early: its disk was full, or it came to 4 GiB; this profile is of all of the \
         run; to keep all of it make room, or take fewer samples"
    )]
    KeptInPart,
    #[error(
        "the recording is damaged at byte {byte}: this is what it holds before that ({wall_s:.1} s, {samples} samples); \
         record the program again for all of it"
    )]
    Damaged { byte: usize, wall_s: f64, samples: usize },

    #[error(
        "{} was built anew while it ran: samples of the earlier builds are read as if they were of the last; record \
         when nothing builds it",
        .files.join(", ")
    )]
    Rebuilt { files: Vec<String> },

    #[error(
        "files of code are not here as they ran, so samples of their code are [unrecovered] and their variables one \
         object: {}; put those that ran in their places, or give a folder that has them: --binaries FOLDER",
        lacking(.rebuilt, .missing)
    )]
    CodeLacking { rebuilt: Vec<String>, missing: Vec<String> },

    // What the code does not tell.
    #[error(
        "{} of the samples fell into code of no file (generated at run time): it is [unrecovered]; profile an \
         ahead-of-time build if there is one",
        percent(*.share)
    )]
    GeneratedCode { share: f64 },
    #[error(
        "{} of the samples could not be attributed: compile with optimisation, which keeps addresses in registers",
        percent(*.share)
    )]
    Unrecovered { share: f64 },
    #[error(
        "{} of the accesses are to objects whose counts may be off by more than half ({}): no register counts in their \
         code, or too little was seen of it; `profile --count` counts them, in a second run that takes 20 to 50 times as long",
        percent(*.share),
        .objects.join(", ")
    )]
    CountsRough { objects: Vec<String>, share: f64 },
    #[error(
        "the run that was counted is not like the one that was sampled: {} had no time here for so many executions, or far \
         too much, or did not run there; counts of these are those of the other run, and where nothing was counted \
         estimates; give both the same input, let threads wait instead of spinning, and let libraries that choose code by \
         the processor do without AVX-512",
        some(.functions)
    )]
    RunsDiffer { functions: Vec<String> },
    #[error("executions were not counted, so they are estimated: {why}")]
    NotCounted { why: String },
    #[error("`{counted}` was counted, and another command sampled: counts are those of its input")]
    OtherCommandCounted { counted: String },
    #[error(
        "{processes} process(es) were forked without starting another program, and what their parent did before that is \
         counted once more for each: count with `profile --count`, or valgrind with `--dump-before=fork`"
    )]
    ForksCounted { processes: usize },
    #[error(
        "{} of the accesses touch objects that no sample shows: they are missing; let the program run longer",
        percent(*.share)
    )]
    ObjectsUnseen { share: f64 },
    #[error(
        "{} of the memory traffic that the counts ask for was left out: there was no time for it, so lines were found \
         in the cache again; what is left is the most that fits; `profile --count traffic` counts the lines",
        percent(*.share)
    )]
    NoTime { share: f64 },

    #[error(
        "{file} was built without debug information: its objects are named without source lines; compile it with -g"
    )]
    NoDebugInformation { file: String },
    #[error(
        "parts of {file} were built without debug information: some of its objects are named without source lines; \
         compile all of it with -g"
    )]
    SomeDebugInformation { file: String },
    #[error(
        "the debug file of {file}{} is not here: its objects are named without source lines; on Debian, \
         `find-dbgsym-packages {file}` names the -dbgsym package of the debian-debug archive, elsewhere try \
         `debuginfod-find debuginfo {file}`",
        .debug_file.as_ref().map(|name| format!(" ({name})")).unwrap_or_default()
    )]
    DebugFileMissing { file: String, debug_file: Option<String> },

    // What memory samples of perf.data do not tell.
    #[error(
        "memory samples tell neither patterns nor overlap nor sizes: accesses count as {access_bytes} bytes at random, \
         at most as overlapped as Little's law demands; `tierloom profile -- CMD` measures these"
    )]
    PatternsAssumed { access_bytes: f64 },
    #[error("latencies are in cycles, taken at the {ghz} GHz that the processor's name states")]
    ClockStated { ghz: f64 },
    #[error("latencies are in cycles, and the file states no clock: {ghz} GHz assumed")]
    ClockAssumed { ghz: f64 },
    #[error("no sample carries a latency, so shares are those of samples, not of waiting")]
    NoLatencies,
    #[error(
        "{} of the memory samples are of kernel addresses and belong to no object: [kernel]; to sample user space alone: \
         `perf mem record --all-user -- CMD`",
        percent(*.share)
    )]
    KernelAddresses { share: f64 },
    #[error(
        "{event} samples only loads of {cycles} cycles or more (ldlat): faster ones are not counted, so reads are too low \
         and shares are those of slow loads; to take more: `perf mem record --ldlat 3 -- CMD`"
    )]
    LatencyThreshold { event: String, cycles: u64 },
    #[error(
        "the period of {event} counts cycles, not accesses: reads and writes are too high where an instruction takes more \
         than a cycle; to count operations: `perf record -d -W -e ibs_op/cnt_ctl=1/ -- CMD`"
    )]
    PeriodInCycles { event: String },
    #[error(
        "samples of {event} carry no period: each stands for the {operations} operations that the event was opened with"
    )]
    PeriodOfOperations { event: String, operations: u64 },
    #[error(
        "samples of {event} do not say how many accesses they stand for: each counts once; to tell: \
         `perf mem record -c 10000 -- CMD`"
    )]
    PeriodUnknown { event: String },
    #[error("the file does not say how large the last-level cache was: {} assumed", crate::units::format_bytes(*.bytes))]
    CacheAssumed { bytes: u64 },
    #[error(
        "its samples are of cycles, read as CPU time at {ghz} GHz ({}): where the clock was another, so are the times",
        if *.stated { "the processor's name states it" } else { "assumed, the file states no clock" }
    )]
    CyclesAsTime { ghz: f64, stated: bool },
    #[error(
        "its samples are of cycles, read as CPU time at {ghz:.2} GHz: one of its threads had so many cycles a second, more \
         than the {expected_ghz} GHz that were to be expected"
    )]
    CyclesFaster { ghz: f64, expected_ghz: f64 },
    #[error("this is {chosen} alone; the file has samples of {}, too", .others.join(", "))]
    OtherPrograms { chosen: String, others: Vec<String> },
    #[error(
        "the file names no build of {}: what is here under that name was read, whether it ran or not",
        some(.files)
    )]
    BuildsUnknown { files: Vec<String> },

    // What became of a plan.
    #[error("the preload library did not come up in the program: nothing was placed")]
    NothingPlaced,
    #[error(
        "this machine has one memory node (node {node}), the plan uses {planned_nodes}: it was rehearsed, and changes \
         nothing here; to try placement without such a machine, use `tierloom lab`"
    )]
    OneNode { node: u32, planned_nodes: usize },
    #[error("{left_out} of {rules} rules cannot be applied on this machine")]
    RulesLeftOut { left_out: usize, rules: usize },
    #[error(
        "the program never asked for the memory of: {}; was it built anew since its profile?",
        .objects.join(", ")
    )]
    NeverAskedFor { objects: Vec<String> },
    #[error("{lost} reports were lost, so the counts are too low")]
    LostReports { lost: u64 },
    #[error(
        "held objects are locked as their pages come: reclaim neither demotes nor swaps them, so other memory has to \
         give way; the limit is RLIMIT_MEMLOCK"
    )]
    ObjectsLocked,
    #[error(
        "with hint faults on, the kernel may migrate pages away from where the plan put them when numa_balancing is on"
    )]
    MayMigrate,
    #[error(
        "interleaved objects with hint faults are populated when they are allocated: the kernel has no interleave policy \
         that takes hint faults"
    )]
    PopulatedAtOnce,
    #[error(
        "without hint faults, first-touch objects stay where they were touched even when numa_balancing is on (MPOL_LOCAL)"
    )]
    StayWhereTouched,
    #[error("run {pid} was killed before it put the host's interleave weights back: they are as they were now")]
    WeightsPutBack { pid: u32 },
    #[error(
        "run {pid} was killed before it put the host's interleave weights back: `sudo tierloom doctor --restore-weights` \
         does ({refusal})"
    )]
    WeightsLeft { pid: u32, refusal: String },

    /// What another version of Tierloom told.
    #[error("{text}")]
    Told { text: String },
}

impl Warning {
    /// Kind, figures and sentence as one JSON object.
    pub fn to_json(&self) -> String {
        documents::written(self).to_string()
    }

    /// Reads what [`Warning::to_json`] wrote; what another version wrote is [`Warning::Told`].
    pub fn from_json(text: &str) -> Self {
        documents::read(serde_json::from_str(text).unwrap_or_else(|_| text.into()))
    }
}

const UNSEEN: &str = "its allocations were not seen, only static arrays and mapped files are objects";

/// Files that are not here, and why.
fn lacking(rebuilt: &[String], missing: &[String]) -> String {
    let rebuilt = rebuilt.iter().map(|path| format!("{path} (another build)"));
    some(&rebuilt.chain(missing.iter().map(|path| format!("{path} (missing)"))).collect::<Vec<_>>())
}

/// The first of these, and how many more there are.
fn some(names: &[String]) -> String {
    const NAMED: usize = 5;
    let more = names.len().saturating_sub(NAMED);
    let rest = (more > 0).then(|| format!("{more} more"));
    names.iter().take(NAMED).cloned().chain(rest).collect::<Vec<_>>().join(", ")
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Warnings as documents hold them: each with its sentence, so that it can be read without this program. One
/// that another version wrote, or an older one as its sentence alone, is [`Warning::Told`].
pub mod documents {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    use super::Warning;

    const TEXT: &str = "text";

    /// A warning in a file: its kind and its sentence; what else it holds hangs on the kind.
    #[derive(schemars::JsonSchema)]
    pub struct Notice {
        /// Which warning it is.
        pub kind: String,
        /// What it says.
        pub text: String,
    }

    /// Writes them.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(warnings: &[Warning], out: S) -> Result<S::Ok, S::Error> {
        warnings.iter().map(written).collect::<Vec<_>>().serialize(out)
    }

    /// Reads them.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Warning>, D::Error> {
        Ok(Vec::<Value>::deserialize(input)?.into_iter().map(read).collect())
    }

    pub(super) fn written(warning: &Warning) -> Value {
        let mut value = serde_json::to_value(warning).unwrap_or_default();
        if let Value::Object(members) = &mut value {
            members.insert(TEXT.to_owned(), warning.to_string().into());
        }
        value
    }

    pub(super) fn read(value: Value) -> Warning {
        let text = match &value {
            Value::String(text) => text.clone(),
            _ => value.get(TEXT).and_then(Value::as_str).map_or_else(|| value.to_string(), str::to_owned),
        };
        serde_json::from_value(value).unwrap_or(Warning::Told { text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Document(#[serde(with = "documents")] Vec<Warning>);

    #[test]
    fn a_warning_has_its_kind_its_figures_and_a_remedy() {
        let text = serde_json::to_string(&Document(vec![Warning::FewSamples { samples: 12, hz: 997.0 }])).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document[0]["kind"], "few_samples");
        assert_eq!(document[0]["samples"], 12);
        assert!(document[0]["text"].as_str().unwrap().ends_with("or sample faster than 997/s"));
        assert!(Warning::Skid { purity: 0.5 }.to_string().contains("only 50 % of"));
    }

    #[test]
    fn what_was_written_is_read_and_what_others_wrote_is_kept() {
        let all = Document(vec![
            Warning::NoTime { share: 0.25 },
            Warning::StaticProgram { program: "app".to_owned() },
            Warning::Told { text: "be careful".to_owned() },
        ]);
        assert_eq!(serde_json::from_str::<Document>(&serde_json::to_string(&all).unwrap()).unwrap(), all);
        let older = r#"["be careful", {"kind": "from_tomorrow", "moons": 2, "text": "the moon is full"}]"#;
        let told = |text: &str| Warning::Told { text: text.to_owned() };
        assert_eq!(serde_json::from_str::<Document>(older).unwrap().0, [told("be careful"), told("the moon is full")]);
    }
}
