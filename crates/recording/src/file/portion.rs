//! The three kinds of chunks of a recording: its beginning, portions of what was seen, its end.
//!
//! Each can be read without those before it: differences start anew. The first number is the kind.

use tierloom_model::Warning;

use crate::file::reader::Reader;
use crate::file::writer::{Writer, event_code};
use crate::{
    Allocation, Calibration, Clock, Event, Fault, Lookahead, Mapping, MemoryAccess, NearMemory, Process, Processor,
    Recording, Resident, Sample, StackTop, UnrecordedRun, Window,
};

const BEGINNING: u64 = 0;
const PORTION: u64 = 1;
const END: u64 = 2;
/// A program with more stacks than this does not exist; a damaged id must not take all memory.
pub const MOST_STACKS: usize = 1 << 24;

/// What is known before the program runs.
#[derive(Debug, Clone)]
pub struct Beginning<'a> {
    /// Program and arguments.
    pub command: &'a [String],
    /// Its process.
    pub pid: u32,
    /// When it was let go, ns.
    pub start_ns: u64,
    /// What drives the samples.
    pub event: Event,
    /// Skid of this machine.
    pub calibration: Calibration,
    /// What a sample costs, ns.
    pub sample_cost_ns: f64,
    /// Most CPU time between two samples of a thread, ns; 0 where they come at even times.
    pub longest_interval_ns: f64,
    /// What it runs on.
    pub processor: &'a Processor,
    /// Runs of it without the recorder, before this one.
    pub unrecorded: &'a [UnrecordedRun],
}

/// What was seen since the last portion, in the order in which it came, and how far the run was then.
#[derive(Debug, Clone, Default)]
pub struct Portion<'a> {
    /// When this was all that was seen, ns.
    pub until_ns: u64,
    /// CPU time until then, s.
    pub cpu_s: f64,
    /// The system part of it, s.
    pub system_s: f64,
    /// CPU time that one sample stands for, ns.
    pub period_ns: f64,
    /// Samples that could not be kept until then.
    pub lost: u64,
    /// Allocation events that could not be kept until then.
    pub lost_allocations: u64,
    /// Ids and frames of stacks that were not told yet.
    pub stacks: Vec<(u32, &'a [u64])>,
    /// Files of code that were not named yet, and their builds.
    pub binaries: Vec<(&'a str, &'a str)>,
    /// Samples.
    pub samples: &'a [Sample],
    /// What some of them found on the stack.
    pub stack_tops: &'a [StackTop],
    /// Accesses that the processor sampled.
    pub accesses: &'a [MemoryAccess],
    /// Page faults.
    pub faults: &'a [Fault],
    /// Which memory had pages.
    pub residents: &'a [Resident],
    /// How far clocks were.
    pub clocks: &'a [Clock],
    /// Mappings.
    pub mappings: &'a [Mapping],
    /// Stretches of time in which blocks were counted.
    pub windows: &'a [Window],
    /// What halted threads were about to do.
    pub lookaheads: &'a [Lookahead],
    /// What became of processes.
    pub processes: &'a [Process],
    /// What became of memory.
    pub allocations: &'a [Allocation],
}

impl Beginning<'_> {
    /// The bytes of its chunk.
    pub fn payload(&self) -> Vec<u8> {
        let mut out = Writer(Vec::new());
        out.number(BEGINNING);
        out.list(self.command, |out, word| out.text(word));
        out.numbers(&[u64::from(self.pid), self.start_ns, event_code(self.event)]);
        out.numbers(&[u64::from(self.calibration.offset), u64::from(self.calibration.samples)]);
        out.floats(&[self.calibration.purity]);
        out.text(&self.processor.name);
        out.number(self.processor.llc_bytes);
        out.text(&self.processor.host);
        out.number(self.processor.highest_khz.unwrap_or(0));
        out.floats(&[self.sample_cost_ns]);
        out.floats(&[self.longest_interval_ns]);
        let memory = self.processor.memory;
        let figures = memory.map(|memory| [memory.idle_ns, memory.demand_lines, memory.stream_lines]);
        out.list(figures.as_slice(), |out, figures| out.floats(figures));
        out.list(self.unrecorded, |out, run| {
            out.floats(&[run.wall_s]);
            out.number(u64::from(run.exit_code));
        });
        out.0
    }
}

impl Portion<'_> {
    /// The bytes of its chunk.
    pub fn payload(&self) -> Vec<u8> {
        let mut out = Writer(Vec::new());
        out.numbers(&[PORTION, self.until_ns, self.lost, self.lost_allocations]);
        out.floats(&[self.cpu_s, self.system_s, self.period_ns]);
        out.list(&self.stacks, |out, (id, frames)| {
            out.number(u64::from(*id));
            out.list(frames, |out, frame| out.number(*frame));
        });
        out.list(&self.binaries, |out, (path, build_id)| {
            out.text(path);
            out.text(build_id);
        });
        out.samples(self.samples);
        out.accesses(self.accesses);
        out.mappings(self.mappings);
        out.processes(self.processes);
        out.allocations(self.allocations);
        out.faults(self.faults);
        out.windows(self.windows);
        out.touches(self.windows);
        out.residents(self.residents);
        out.clocks(self.clocks);
        out.stack_tops(self.stack_tops);
        out.fault_instructions(self.faults);
        out.lookaheads(self.lookaheads);
        out.warm_ups(self.windows);
        out.0
    }
}

/// What is known when all was seen.
pub fn ending(recording: &Recording) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.numbers(&[END, recording.end_ns, recording.lost, recording.lost_allocations]);
    out.list(recording.exit.as_slice(), |out, exit| out.exit(*exit));
    out.floats(&[recording.cpu_s, recording.system_s, recording.wall_s, recording.period_ns]);
    out.list(&recording.warnings, |out, warning| out.text(&warning.to_json()));
    out.0
}

/// A recording as its chunks are read.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub recording: Recording,
    pub is_complete: bool,
}

impl Assembly {
    /// From the first chunk; `None` where it is another.
    pub(crate) fn of(payload: &[u8]) -> Option<Self> {
        let mut reader = Reader { rest: payload, length: payload.len() };
        (reader.number()? == BEGINNING).then_some(())?;
        let command = reader.list(Reader::text)?;
        let (pid, start_ns, event) = (reader.small()?, reader.number()?, reader.event()?);
        let (offset, samples) = (reader.small()?, reader.small()?);
        let [purity] = reader.floats()?;
        let calibration = Calibration { offset, purity, samples };
        let (name, llc_bytes) = (reader.text()?, reader.number()?);
        // The beginning of version 6 ends here.
        let host = if reader.rest.is_empty() { String::new() } else { reader.text()? };
        // And that of version 7 here.
        let highest_khz = if reader.rest.is_empty() { None } else { Some(reader.number()?).filter(|khz| *khz > 0) };
        // And that of version 8 here.
        let [sample_cost_ns] = if reader.rest.is_empty() { [0.0] } else { reader.floats()? };
        // And that of version 10 here.
        let [longest_interval_ns] = if reader.rest.is_empty() { [0.0] } else { reader.floats()? };
        // And that of version 13 here.
        let memory = if reader.rest.is_empty() { None } else { reader.list(Reader::floats)?.first().copied() };
        let memory = memory.and_then(|[idle_ns, demand, stream]| NearMemory::new(idle_ns, demand, stream));
        // And that of version 14 here.
        let unrecorded = if reader.rest.is_empty() { Vec::new() } else { reader.list(unrecorded_run)? };
        let processor = Processor { name, llc_bytes, host, highest_khz, memory };
        let known = Recording { command, pid, start_ns, end_ns: start_ns, event, ..Recording::default() };
        let begun = Recording { longest_interval_ns, processor, unrecorded, calibration, sample_cost_ns, ..known };
        reader.rest.is_empty().then_some(Self { recording: begun, is_complete: false })
    }

    /// Takes another chunk; `None` where it makes no sense, and then nothing of it was taken.
    pub(crate) fn take(&mut self, payload: &[u8]) -> Option<()> {
        let mut reader = Reader { rest: payload, length: payload.len() };
        match reader.number()? {
            PORTION if !self.is_complete => self.portion(&mut reader),
            END if !self.is_complete => self.end(&mut reader),
            _ => None,
        }
    }

    fn portion(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let (end_ns, lost, lost_allocations) = (reader.number()?, reader.number()?, reader.number()?);
        let [cpu_s, system_s, period_ns] = reader.floats()?;
        let stacks = reader.list(|reader| Some((reader.small()?, reader.list(Reader::number)?)))?;
        let binaries = reader.list(|reader| Some((reader.text()?, reader.text()?)))?;
        let (samples, accesses) = (reader.samples()?, reader.accesses()?);
        let (mappings, processes) = (reader.mappings()?, reader.processes()?);
        let (allocations, mut faults) = (reader.allocations()?, reader.faults()?);
        // A portion of version 4 ends here.
        let mut windows = if reader.rest.is_empty() { Vec::new() } else { reader.windows()? };
        // One of version 5 here.
        let touches = if reader.rest.is_empty() { Vec::new() } else { reader.touches()? };
        for (window, (stack_pointer, touches)) in windows.iter_mut().zip(touches) {
            (window.stack_pointer, window.touches) = (stack_pointer, touches);
        }
        // One of version 6 here.
        let (residents, clocks) =
            if reader.rest.is_empty() { Default::default() } else { (reader.residents()?, reader.clocks()?) };
        // One of version 9 here.
        let stack_tops = if reader.rest.is_empty() { Vec::new() } else { reader.stack_tops()? };
        // One of version 11 here.
        let instructions = if reader.rest.is_empty() { Vec::new() } else { reader.fault_instructions()? };
        for (fault, instruction) in faults.iter_mut().zip(instructions) {
            fault.instruction = instruction;
        }
        // One of version 12 here.
        let lookaheads = if reader.rest.is_empty() { Vec::new() } else { reader.lookaheads()? };
        // One of version 15 here.
        let warm_ups = if reader.rest.is_empty() { Vec::new() } else { reader.warm_ups()? };
        for (window, warm_up) in windows.iter_mut().zip(warm_ups) {
            window.warm_up = warm_up;
        }
        let is_known = |(id, _): &(u32, Vec<u64>)| usize::try_from(*id).is_ok_and(|id| id < MOST_STACKS);
        (reader.rest.is_empty() && stacks.iter().all(is_known)).then_some(())?;
        let all = &mut self.recording;
        for (id, frames) in stacks {
            let position = usize::try_from(id).ok()?;
            all.stacks.resize(all.stacks.len().max(position + 1), Vec::new());
            all.stacks[position] = frames;
        }
        all.binaries.extend(binaries);
        all.samples.extend(samples);
        all.stack_tops.extend(stack_tops);
        all.accesses.extend(accesses);
        all.mappings.extend(mappings);
        all.processes.extend(processes);
        all.allocations.extend(allocations);
        all.faults.extend(faults);
        all.windows.extend(windows);
        all.lookaheads.extend(lookaheads);
        all.residents.extend(residents);
        all.clocks.extend(clocks);
        (all.end_ns, all.lost, all.lost_allocations) = (end_ns, lost, lost_allocations);
        (all.cpu_s, all.system_s, all.period_ns) = (cpu_s, system_s, period_ns);
        all.wall_s = end_ns.saturating_sub(all.start_ns) as f64 * 1e-9;
        Some(())
    }

    fn end(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let (end_ns, lost, lost_allocations) = (reader.number()?, reader.number()?, reader.number()?);
        let exit = reader.list(Reader::exit)?.pop();
        let [cpu_s, system_s, wall_s, period_ns] = reader.floats()?;
        let warnings = reader.list(|reader| Some(Warning::from_json(&reader.text()?)))?;
        reader.rest.is_empty().then_some(())?;
        let begun = std::mem::take(&mut self.recording);
        self.recording =
            Recording { end_ns, exit, cpu_s, system_s, wall_s, period_ns, lost, lost_allocations, warnings, ..begun };
        self.is_complete = true;
        Some(())
    }
}

fn unrecorded_run(reader: &mut Reader<'_>) -> Option<UnrecordedRun> {
    let [wall_s] = reader.floats()?;
    Some(UnrecordedRun { wall_s, exit_code: u8::try_from(reader.number()?).ok()? })
}
