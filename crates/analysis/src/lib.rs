//! From a recording to a profile, without files and without a clock: the whole flow on one page.
//!
//! | step | room |
//! |---|---|
//! | what lay where at the time of each sample | `address_space` |
//! | which instruction of a sample waited, for which address of which object | `attribution` |
//! | how often each block of code ran | `frequency` |
//! | which object was accessed how often, in which pattern, with how much of it from memory | `traffic` |
//! | who was waited for, and when | `time` |
//! | names, hotness, warnings: the profile | `profile` |
//!
//! What was counted in another run takes the place of the estimate of `frequency`; all behind it goes on as it does.
//!
//! No step looks back. Recordings of hardware memory samples take a shorter way, `memory_samples`.

mod address_space;
mod attribution;
mod code_files;
mod confidence;
mod frequency;
mod memory_samples;
mod memory_sums;
mod parallel;
mod profile;
mod same_code;
mod time;
mod traffic;

use tierloom_binary::Binaries;
use tierloom_model::{Profile, SampleRow};
use tierloom_recording::{Event, InstructionCounts, Processor, Recording};

pub use code_files::samples_by_file;
pub use same_code::of_other_builds;

use address_space::AddressSpaces;
use attribution::observe;
use frequency::counted_runs::differing;
use frequency::counter_deltas::count;
use frequency::counter_deltas::spacing::Spacing;
use frequency::counts;
use frequency::renewal::trips;
use frequency::strata::CpuTime;
use profile::ProfileBuilder;
use time::clocks::Clocks;
use time::phases::beginnings;
use time::shares::{CpuShares, library_s};
use time::stalls::Overlaps;
use traffic::intervals::Estimate;
use traffic::time_bound::Soonest;
use traffic::{Ran, traffic};

/// Works a recording out into a profile and its samples as rows.
///
/// What cannot be worked out is `[unrecovered]` and warned of.
pub fn analyse(recording: &Recording, binaries: &dyn Binaries) -> (Profile, Vec<SampleRow>) {
    analyse_counted(recording, &InstructionCounts::default(), binaries)
}

/// The same with executions that were counted in a run of the same builds, as far as there are any; [`of_other_builds`] holds
/// them against the code. Hardware memory samples tell accesses without executions.
pub fn analyse_counted(
    recording: &Recording,
    counted: &InstructionCounts,
    binaries: &dyn Binaries,
) -> (Profile, Vec<SampleRow>) {
    if recording.event == Event::MemoryAccess {
        return memory_samples::analyse(recording, binaries);
    }
    let mut spaces = AddressSpaces::new(recording, binaries);
    let observed = observe(recording, counted, &mut spaces);
    let trips = trips(&observed);
    let clocks = count(&observed, &trips, Spacing::of(recording));
    let registers = counts(&observed, &clocks, &trips, recording.period_ns);
    let cpu_s = recording.cpu_s - library_s(recording, &observed.seen, observed.in_library.len());
    let in_windows_s = (cpu_s - observed.in_faults_s).max(f64::MIN_POSITIVE);
    let system = (recording.system_s - observed.in_faults_s) / in_windows_s;
    let time = CpuTime { ns: in_windows_s * 1e9, system };
    let sample_ns = cpu_s * 1e9 / observed.seen.len().max(1) as f64;
    let differing = differing(&observed, sample_ns, &recording.processor);
    let estimate = Estimate { observed: &observed, registers: &registers, time, differing: &differing };
    let (counts, tallies) = estimate.whole();
    let intervals = estimate.intervals(&counts, &tallies);
    let beginnings = beginnings(&observed.seen);
    let Processor { llc_bytes, memory, .. } = recording.processor;
    let soonest = Soonest::from(memory);
    let ran = Ran { beginnings: &beginnings, llc_bytes, sample_ns, soonest, intervals: &intervals };
    let traffic = traffic(&observed, &tallies.known, &counts, &spaces.objects.entries, &trips, ran);
    let overlaps = Overlaps::find(&observed, &counts, &tallies.known, &traffic);
    let builder = ProfileBuilder {
        recording,
        spaces: &spaces,
        observed: &observed,
        differing: &differing,
        tallies: &tallies,
        intervals: &intervals,
        overlaps: &overlaps,
        shares: CpuShares::of(recording, cpu_s, &observed.seen),
        clocks: Clocks::of(recording),
        rows: &traffic.rows,
        curves: &traffic.curves,
        cut: traffic.cut,
        counted_traffic: traffic.counted,
        beginnings: &beginnings,
        by_phase: &traffic.by_phase,
        soonest,
    };
    builder.profile()
}
