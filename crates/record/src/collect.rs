//! Collects what the rings bring, and makes a recording of it.

use std::collections::BTreeMap;
use std::time::Duration;

use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::perf;
use tierloom_linux::root::Root;
use tierloom_linux::spawn::Ended;
use tierloom_wire as wire;

use crate::alive::Alive;
use crate::builds::Builds;
use crate::clocks::Clocks;
use crate::maps::Watch;
use crate::ptrace::Taken;
use crate::request::Progress;
use crate::residents::Residents;
use crate::stack_tops::keeps_stack;
use tierloom_model::Warning;
use tierloom_recording::{
    Allocation, AllocationEvent, Calibration, Change, Clock, Event, Exit, Fault, InCopy, Lookahead, MOST_STACKS,
    Mapping, Portion, Process, Processor, Recording, Resident, STACK_WORDS, Sample, StackTop, UnrecordedRun, Window,
    next,
};

/// Samples that are kept: 1.8 GB of memory, or three hours of one thread at the usual rate.
const MOST_SAMPLES: usize = 10_000_000;
/// Windows that are kept: three hours' worth.
const MOST_WINDOWS: usize = 1_000_000;
/// What was seen ahead and is kept: an hour's worth of one thread, 2 GB of memory.
const MOST_LOOKAHEADS: usize = 200_000;
/// Page faults that are kept: 100 MB of memory, or 260 GiB of small pages. Later ones are not first ones.
const MOST_FAULTS: usize = 4_000_000;

/// What was seen so far, in the order in which it came.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pid: u32,
    start_ns: u64,
    end_ns: u64,
    samples: Vec<Sample>,
    stack_tops: Vec<StackTop>,
    windows: Vec<Window>,
    lookaheads: Vec<Lookahead>,
    faults: Vec<Fault>,
    residents: Vec<Resident>,
    clocks: Vec<Clock>,
    mappings: Vec<Mapping>,
    processes: Vec<Process>,
    allocations: Vec<Allocation>,
    stacks: Vec<Vec<u64>>,
    /// Ids of the stacks, in the order in which they came.
    named: Vec<u32>,
    lost: u64,
    lost_allocations: u64,
    left_out: u64,
    throttled: bool,
    counters: Counters,
    watch: Watch,
    builds: Builds,
    alive: Alive,
    looks: Residents,
    times: Clocks,
    /// Mappings whose builds were noted.
    met: usize,
}

/// What is known of a run before it begins.
#[derive(Debug, Clone, Default)]
pub(super) struct Setting {
    pub(super) command: Vec<String>,
    pub(super) event: Event,
    /// Samples per second of CPU time.
    pub(super) hz: f64,
    pub(super) calibration: Calibration,
    /// CPU time that a sample takes from the program, ns.
    pub(super) sample_cost_ns: f64,
    /// Most CPU time between two samples of a thread, ns; 0 where they come at even times.
    pub(super) longest_interval_ns: f64,
    pub(super) processor: Processor,
    pub(super) unrecorded: Vec<UnrecordedRun>,
}

/// How far a run is.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunSoFar {
    pub(super) cpu_s: f64,
    pub(super) system_s: f64,
    pub(super) event: Event,
    pub(super) hz: f64,
}

/// How much of each kind was taken out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Marks {
    named: usize,
    builds: usize,
    samples: usize,
    stack_tops: usize,
    windows: usize,
    lookaheads: usize,
    faults: usize,
    residents: usize,
    clocks: usize,
    mappings: usize,
    processes: usize,
    allocations: usize,
}

impl Marks {
    /// Records between two marks.
    pub(super) fn records_since(&self, earlier: &Self) -> usize {
        let kinds = |marks: &Self| {
            let seen = marks.samples + marks.stack_tops + marks.windows + marks.lookaheads + marks.faults;
            let looked = marks.residents + marks.clocks;
            seen + looked + marks.allocations + marks.mappings + marks.processes + marks.named + marks.builds
        };
        kinds(self) - kinds(earlier)
    }
}

/// Last count of instructions of each thread, and the CPU it was read on: every CPU counts for itself.
#[derive(Debug, Default)]
struct Counters(BTreeMap<u32, (u32, u64)>);

impl Counters {
    /// Instructions since the thread's previous sample; 0 where it moved between CPUs or just began.
    fn since_last(&mut self, sample: &perf::Sample) -> u64 {
        let previous = self.0.insert(sample.tid, (sample.cpu, sample.instructions));
        match previous {
            Some((cpu, count)) if cpu == sample.cpu => sample.instructions.saturating_sub(count),
            _ => 0,
        }
    }
}

impl Gathered {
    /// Nothing yet. Where the kernel does not tell about mappings, they are watched in `/proc`, in processes that have
    /// shared memory of this name.
    pub(super) fn new(pid: u32, start_ns: u64, watched: Option<&str>) -> Self {
        let watch = Watch::new(watched, pid, start_ns);
        Self { pid, start_ns, watch, alive: Alive::new(pid), ..Self::default() }
    }

    /// Looks at the mappings of all known processes, if the kernel does not tell about them, at the files behind those that
    /// are new, at the pages that processes have, and at their
    /// clocks; we held threads for so long, or had them wait, ns.
    pub(super) fn look(&mut self, root: &Root, held_ns: u64) {
        self.watch.look(root);
        self.watch.hand_over(&mut self.mappings, &mut self.processes);
        for mapping in &self.mappings[self.met..] {
            self.builds.meet(mapping, root);
        }
        self.met = self.mappings.len();
        self.alive.meet(&self.processes);
        self.times.look(root, &self.alive, held_ns, &mut self.clocks);
        self.looks.look(root, &self.alive, &mut self.residents);
    }

    /// The program itself.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// When the program was let go.
    pub(super) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    pub(super) fn progress(&self) -> Progress {
        Progress {
            elapsed: Duration::from_nanos(monotonic_ns().saturating_sub(self.start_ns)),
            samples: self.samples.len(),
            allocations: self.allocations.len(),
        }
    }

    /// The program has ended.
    pub(super) fn end(&mut self, end_ns: u64, lost_events: u64) {
        self.end_ns = end_ns;
        self.lost_allocations += lost_events;
    }

    /// A sample that was taken from outside.
    pub(super) fn take_sample(&mut self, Taken { sample, stack }: Taken) {
        self.watch.meet(sample.pid);
        self.keep_stack(sample.time_ns, sample.tid, stack.as_ref());
        self.keep(sample);
    }

    /// A window that has ended.
    pub(super) fn take_window(&mut self, window: Window) {
        if self.windows.len() < MOST_WINDOWS {
            self.windows.push(window);
        }
    }

    /// What a halted thread was about to do.
    pub(super) fn take_lookahead(&mut self, lookahead: Lookahead) {
        if self.lookaheads.len() < MOST_LOOKAHEADS {
            self.lookaheads.push(lookahead);
        }
    }

    /// A record of the kernel; of a sample, whether it was taken in a copy.
    pub(super) fn take_perf(&mut self, record: perf::Record, copy: InCopy) {
        match record {
            perf::Record::Sample(sample) => {
                let instructions = self.counters.since_last(&sample);
                let perf::Sample { pid, tid, time_ns, kernel, .. } = sample;
                self.keep_stack(time_ns, tid, sample.stack.as_deref());
                match sample.registers {
                    Some(registers) => self.keep(Sample { time_ns, pid, tid, instructions, registers, kernel, copy }),
                    // Of 32-bit code, or of a process that is going.
                    None => self.lost += 1,
                }
            }
            perf::Record::Mmap { pid, time_ns, start, bytes, file_offset, executable, path, .. } => {
                self.mappings.push(Mapping { time_ns, pid, start, bytes, file_offset, executable, path });
            }
            perf::Record::Exec { pid, time_ns, name } => self.change(time_ns, pid, Change::Exec { name }),
            perf::Record::Fork { pid, parent, time_ns } => self.change(time_ns, pid, Change::Fork { parent }),
            perf::Record::Exit { pid, time_ns } => self.change(time_ns, pid, Change::Exit),
            perf::Record::LostRecords(lost) | perf::Record::LostSamples(lost) => self.lost += lost,
            perf::Record::Thread { .. } => {}
            perf::Record::Throttled => self.throttled = true,
        }
    }

    /// A page fault that the kernel told.
    pub(super) fn take_fault(&mut self, fault: perf::Fault) {
        let perf::Fault { pid, time_ns, instruction, address } = fault;
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(Fault { time_ns, pid, instruction, address });
        }
    }

    /// A record of the preload library, and its time.
    pub(super) fn take_wire(&mut self, time_ns: u64, record: &wire::Record) {
        let wire::Record { pid, tid, event, .. } = *record;
        let event = match event {
            wire::Event::Stack { id, frames } => return self.name_stack(id, frames),
            wire::Event::Alloc { address, bytes, stack, source } => {
                AllocationEvent::Alloc { address, bytes, stack, source }
            }
            wire::Event::Free { address } => AllocationEvent::Free { address },
            wire::Event::Unmap { address, bytes } => AllocationEvent::Unmap { address, bytes },
            wire::Event::Protect { address, bytes, accessible } => {
                AllocationEvent::Protect { address, bytes, accessible }
            }
            wire::Event::Start | wire::Event::Fork { .. } | wire::Event::Module { .. } => {
                return self.watch.take_wire(time_ns, pid, &event);
            }
            wire::Event::Ready { .. } | wire::Event::Placed { .. } | wire::Event::Resident { .. } => return,
        };
        self.allocations.push(Allocation { time_ns, pid, tid, event });
    }

    fn keep(&mut self, sample: Sample) {
        if self.samples.len() < MOST_SAMPLES {
            self.samples.push(sample);
        } else {
            self.left_out += 1;
        }
    }

    fn keep_stack(&mut self, time_ns: u64, tid: u32, words: Option<&[u64; STACK_WORDS]>) {
        if let Some(words) = words.filter(|_| keeps_stack(self.stack_tops.len(), time_ns)) {
            self.stack_tops.push(StackTop { time_ns, tid, words: *words });
        }
    }

    fn change(&mut self, time_ns: u64, pid: u32, change: Change) {
        self.processes.push(Process { time_ns, pid, change });
    }

    fn name_stack(&mut self, id: u32, frames: &[u64]) {
        let position = usize::try_from(id).unwrap_or(MOST_STACKS);
        if position >= MOST_STACKS {
            return;
        }
        if self.stacks.len() <= position {
            self.stacks.resize(position + 1, Vec::new());
        }
        self.stacks[position] = frames.to_vec();
        self.named.push(id);
    }

    /// The recording: everything in the order of its time.
    pub(super) fn finish(self, setting: Setting, ended: &Ended) -> Recording {
        let Setting { command, event, hz, calibration, sample_cost_ns, longest_interval_ns, processor, unrecorded } =
            setting;
        let cpu_s = ended.user_s + ended.system_s;
        let mut recording = Recording {
            command,
            pid: self.pid,
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            exit: Some(Exit::of(ended.code, ended.signal)),
            cpu_s,
            system_s: ended.system_s,
            wall_s: self.end_ns.saturating_sub(self.start_ns) as f64 * 1e-9,
            period_ns: period_ns(event, cpu_s, self.samples.len(), hz),
            event,
            lost: self.lost + self.left_out,
            processor,
            unrecorded,
            binaries: self.builds.by_path(),
            warnings: self.warnings(),
            samples: self.samples,
            stack_tops: self.stack_tops,
            accesses: Vec::new(),
            windows: self.windows,
            lookaheads: self.lookaheads,
            faults: self.faults,
            residents: self.residents,
            clocks: self.clocks,
            mappings: self.mappings,
            processes: self.processes,
            allocations: self.allocations,
            stacks: self.stacks,
            lost_allocations: self.lost_allocations,
            calibration,
            sample_cost_ns,
            longest_interval_ns,
        };
        recording.put_in_order();
        recording
    }

    fn warnings(&self) -> Vec<Warning> {
        let (kept, left_out) = (MOST_SAMPLES, self.left_out);
        let throttled = self.throttled.then_some(Warning::Throttled);
        let cut = (left_out > 0).then_some(Warning::SamplesLeftOut { kept, left_out });
        throttled.into_iter().chain(cut).chain(self.builds.warning()).collect()
    }

    /// What came since these marks, as far as it fits into a portion, and marks behind it.
    pub(super) fn since(&self, marks: &Marks, run: RunSoFar) -> (Portion<'_>, Marks) {
        let RunSoFar { cpu_s, system_s, event, hz } = run;
        let fresh = next(&self.named, marks.named);
        let built = next(self.builds.named(), marks.builds);
        let portion = Portion {
            until_ns: monotonic_ns(),
            cpu_s,
            system_s,
            period_ns: period_ns(event, cpu_s, self.samples.len(), hz),
            lost: self.lost + self.left_out,
            lost_allocations: self.lost_allocations,
            stacks: fresh.iter().filter_map(|id| Some((*id, self.stacks.get(*id as usize)?.as_slice()))).collect(),
            binaries: built.iter().map(|(path, build)| (path.as_str(), build.as_str())).collect(),
            accesses: &[],
            samples: next(&self.samples, marks.samples),
            stack_tops: next(&self.stack_tops, marks.stack_tops),
            windows: next(&self.windows, marks.windows),
            lookaheads: next(&self.lookaheads, marks.lookaheads),
            faults: next(&self.faults, marks.faults),
            residents: next(&self.residents, marks.residents),
            clocks: next(&self.clocks, marks.clocks),
            mappings: next(&self.mappings, marks.mappings),
            processes: next(&self.processes, marks.processes),
            allocations: next(&self.allocations, marks.allocations),
        };
        let behind = Marks {
            named: marks.named + fresh.len(),
            builds: marks.builds + built.len(),
            samples: marks.samples + portion.samples.len(),
            stack_tops: marks.stack_tops + portion.stack_tops.len(),
            windows: marks.windows + portion.windows.len(),
            lookaheads: marks.lookaheads + portion.lookaheads.len(),
            faults: marks.faults + portion.faults.len(),
            residents: marks.residents + portion.residents.len(),
            clocks: marks.clocks + portion.clocks.len(),
            mappings: marks.mappings + portion.mappings.len(),
            processes: marks.processes + portion.processes.len(),
            allocations: marks.allocations + portion.allocations.len(),
        };
        (portion, behind)
    }

    /// How far everything is.
    pub(super) fn marks(&self) -> Marks {
        Marks {
            named: self.named.len(),
            builds: self.builds.named().len(),
            samples: self.samples.len(),
            stack_tops: self.stack_tops.len(),
            windows: self.windows.len(),
            lookaheads: self.lookaheads.len(),
            faults: self.faults.len(),
            residents: self.residents.len(),
            clocks: self.clocks.len(),
            mappings: self.mappings.len(),
            processes: self.processes.len(),
            allocations: self.allocations.len(),
        }
    }
}

/// CPU time that one sample stands for. By `ptrace` a thread is sampled when it is seen to run, later than it is
/// due, so there it follows from what came.
fn period_ns(event: Event, cpu_s: f64, samples: usize, hz: f64) -> f64 {
    if event == Event::Ptrace && samples > 0 { cpu_s * 1e9 / samples as f64 } else { (1e9 / hz).floor() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(tid: u32, cpu: u32, instructions: u64) -> perf::Sample {
        perf::Sample { pid: 1, tid, cpu, instructions, registers: Some([0; 18]), ..perf::Sample::default() }
    }

    #[test]
    fn instructions_are_counted_per_thread_and_cpu() {
        let mut counters = Counters::default();
        let seen = [(7, 0, 100), (7, 0, 350), (8, 0, 40), (7, 1, 20), (7, 1, 30)];
        let since: Vec<u64> =
            seen.iter().map(|(tid, cpu, count)| counters.since_last(&sample(*tid, *cpu, *count))).collect();
        assert_eq!(since, [0, 250, 0, 0, 10]);
    }

    #[test]
    fn a_lost_stack_is_an_empty_one() {
        let mut gathered = Gathered::default();
        gathered.name_stack(1, &[5, 6]);
        for stack in [1, wire::NO_STACK] {
            let event = wire::Event::Alloc { address: 1, bytes: 2, stack, source: wire::Source::Heap };
            gathered.take_wire(0, &wire::Record { pid: 1, tid: 1, stamp: wire::Stamp(0), event });
        }
        let ended = Ended { code: Some(0), signal: None, user_s: 0.0, system_s: 0.0 };
        let recording = gathered.finish(Setting { hz: 1.0, ..Setting::default() }, &ended);
        let ids: Vec<&[u64]> = recording
            .allocations
            .iter()
            .filter_map(|allocation| match allocation.event {
                AllocationEvent::Alloc { stack, .. } => recording.stacks.get(stack as usize).map(Vec::as_slice),
                _ => None,
            })
            .collect();
        assert_eq!(ids, [&[5, 6][..], &[]]);
    }
}
