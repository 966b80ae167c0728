//! The three kinds of chunks of a recording: its beginning, portions of what was seen, its end.
//!
//! Each can be read without those before it: differences start anew. The first number is the kind.

use tierloom_model::Warning;

use crate::file::reader::Reader;
use crate::file::writer::{Writer, event_code};
use crate::{Allocation, Calibration, Event, Fault, Mapping, MemoryAccess, Process, Processor, Recording, Sample};

const BEGINNING: u64 = 0;
const PORTION: u64 = 1;
const END: u64 = 2;
/// A program with more stacks than this does not exist; a damaged id must not take all memory.
pub const MOST_STACKS: usize = 1 << 24;

/// What is known before the program runs.
#[derive(Debug, Clone)]
pub struct Beginning<'a> {
    pub command: &'a [String],
    pub pid: u32,
    pub start_ns: u64,
    pub event: Event,
    pub calibration: Calibration,
    pub processor: &'a Processor,
}

/// What was seen since the last portion, in the order in which it came, and how far the run was then.
#[derive(Debug, Clone, Default)]
pub struct Portion<'a> {
    pub until_ns: u64,
    pub cpu_s: f64,
    pub system_s: f64,
    pub period_ns: f64,
    pub lost: u64,
    pub lost_allocations: u64,
    pub stacks: Vec<(u32, &'a [u64])>,
    /// Files of code that were not named yet, and their builds.
    pub binaries: Vec<(&'a str, &'a str)>,
    pub samples: &'a [Sample],
    pub accesses: &'a [MemoryAccess],
    pub faults: &'a [Fault],
    pub mappings: &'a [Mapping],
    pub processes: &'a [Process],
    pub allocations: &'a [Allocation],
}

impl Beginning<'_> {
    pub fn payload(&self) -> Vec<u8> {
        let mut out = Writer(Vec::new());
        out.number(BEGINNING);
        out.list(self.command, |out, word| out.text(word));
        out.numbers(&[u64::from(self.pid), self.start_ns, event_code(self.event)]);
        out.numbers(&[u64::from(self.calibration.offset), u64::from(self.calibration.samples)]);
        out.floats(&[self.calibration.purity]);
        out.text(&self.processor.name);
        out.number(self.processor.llc_bytes);
        out.0
    }
}

impl Portion<'_> {
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
pub struct Assembly {
    pub recording: Recording,
    pub is_complete: bool,
}

impl Assembly {
    /// From the first chunk; `None` where it is another.
    pub fn of(payload: &[u8]) -> Option<Self> {
        let mut reader = Reader { rest: payload, length: payload.len() };
        (reader.number()? == BEGINNING).then_some(())?;
        let command = reader.list(Reader::text)?;
        let (pid, start_ns, event) = (reader.small()?, reader.number()?, reader.event()?);
        let (offset, samples) = (reader.small()?, reader.small()?);
        let [purity] = reader.floats()?;
        let calibration = Calibration { offset, purity, samples };
        let processor = Processor { name: reader.text()?, llc_bytes: reader.number()? };
        let end_ns = start_ns;
        let begun = Recording { command, pid, start_ns, end_ns, event, calibration, processor, ..Recording::default() };
        reader.rest.is_empty().then_some(Self { recording: begun, is_complete: false })
    }

    /// Takes another chunk; `None` where it makes no sense, and then nothing of it was taken.
    pub fn take(&mut self, payload: &[u8]) -> Option<()> {
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
        let (allocations, faults) = (reader.allocations()?, reader.faults()?);
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
        all.accesses.extend(accesses);
        all.mappings.extend(mappings);
        all.processes.extend(processes);
        all.allocations.extend(allocations);
        all.faults.extend(faults);
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
