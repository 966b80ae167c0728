//! The events of a file: what each was opened with, and which of them a record is of.

use std::collections::BTreeMap;

use linux_perf_event_reader::{
    PerfEventType, RawData, RecordType, SampleFormat, SamplingPolicy, SoftwareCounterType, get_record_id,
};
use tierloom_linux::perf::{Fields, Format, GENERAL_REGISTERS};

use crate::event_names::{EventNames, generic_name};

/// Bit of `read_format`: how many of an event's samples were lost.
const FORMAT_LOST: u64 = 1 << 4;
/// Of `struct perf_event_attr`: where its words are.
mod at {
    pub(super) const CONFIG: usize = 8;
    pub(super) const CONFIG1: usize = 56;
}
/// Registers that x86 does not have (`perf_regs.h`: R15 is bit 23) and aarch64 has.
const REGISTERS_OF_OTHERS: u64 = 0xff00_0000;

/// One event of a file.
#[derive(Debug, Clone)]
pub(super) struct Attribute {
    pub(super) format: Format,
    /// Kind of event: a dynamic one is of a unit that [`Attribute::unit`] names.
    kind: u32,
    config: u64,
    config1: u64,
    /// As `perf` lists it.
    pub(super) name: String,
    /// Of the processor that counts it, e.g. `ibs_op`; empty where the file does not say.
    unit: String,
    /// Position in the file's list.
    pub(super) place: usize,
}

impl Attribute {
    fn of(bytes: &[u8], place: usize) -> Option<Self> {
        let word = |at: usize| bytes.get(at..).and_then(|rest| Fields(rest).u64());
        let (kind, config) = (Fields(bytes).u32()?, word(at::CONFIG)?);
        let (name, unit) = (generic_name(kind, config), String::new());
        let (format, config1) = (Format::of(bytes)?, word(at::CONFIG1).unwrap_or(0));
        Some(Self { format, kind, config, config1, name, unit, place })
    }

    fn fields(&self) -> SampleFormat {
        self.format.attributes().sample_format
    }

    /// CPU time between samples, ns, where a clock drives them. The kernel turns a frequency of a
    /// clock into a fixed period (`perf_swevent_init_hrtimer`).
    pub(super) fn clock_period_ns(&self) -> Option<f64> {
        use SoftwareCounterType::{CpuClock, TaskClock};
        let attributes = self.format.attributes();
        match (attributes.type_, attributes.sampling_policy) {
            (PerfEventType::Software(CpuClock | TaskClock), SamplingPolicy::Period(period)) => {
                Some(period.get() as f64)
            }
            (PerfEventType::Software(CpuClock | TaskClock), SamplingPolicy::Frequency(hz)) if hz > 0 => {
                Some((1e9 / hz as f64).floor())
            }
            _ => None,
        }
    }

    /// Whether it counts cycles of the core: the upper half of a generic event's number is that of the kind of core.
    pub(super) fn counts_cycles(&self) -> bool {
        /// `UnHalted Core Cycles` of Intel's architectural events.
        const UNHALTED: u64 = 0x3c;
        const CYCLES: u64 = 0;
        match self.kind {
            0 => self.config & 0xffff_ffff == CYCLES,
            4 => self.config & 0xffff == UNHALTED,
            _ => false,
        }
    }

    /// Events between its samples, where that was fixed (`-c N`).
    pub(super) fn fixed_period(&self) -> Option<u64> {
        match self.format.attributes().sampling_policy {
            SamplingPolicy::Period(period) => Some(period.get()),
            _ => None,
        }
    }

    /// Whether its samples may name data addresses and where the data came from: not those of a clock, whose addresses
    /// `perf record -d` asks for in vain.
    pub(super) fn says_sources(&self) -> bool {
        let software = matches!(self.format.attributes().type_, PerfEventType::Software(_));
        self.fields().contains(SampleFormat::ADDR | SampleFormat::DATA_SRC) && !software
    }

    /// Whether each of its samples says how many events it stands for.
    fn says_periods(&self) -> bool {
        self.fields().contains(SampleFormat::PERIOD)
    }

    /// Whether every sample says which thread it is of, when, and what its registers held.
    pub(super) fn has_registers_of_threads(&self) -> bool {
        let wanted = SampleFormat::REGS_USER | SampleFormat::TID | SampleFormat::TIME;
        let registers = self.format.attributes().sample_regs_user;
        self.fields().contains(wanted) && registers & GENERAL_REGISTERS == GENERAL_REGISTERS
    }

    /// Whether its registers are those of another architecture than x86.
    pub(super) fn has_registers_of_others(&self) -> bool {
        let registers = self.format.attributes().sample_regs_user;
        self.fields().contains(SampleFormat::REGS_USER) && registers & REGISTERS_OF_OTHERS != 0
    }

    /// Whether its lost samples are counted by themselves, whatever became of their records.
    pub(super) fn counts_lost_samples(&self) -> bool {
        self.format.read_format() & FORMAT_LOST != 0
    }

    /// Whether it is of this unit of the processor.
    fn is_of(&self, unit: &str) -> bool {
        self.unit.starts_with(unit) || self.name.starts_with(unit)
    }

    /// Fewest cycles of a load that it samples, where it has such a limit: in the name that was typed, or where Intel's
    /// events `MEM_TRANS_RETIRED.LOAD_LATENCY` and, of small cores, `MEM_UOPS_RETIRED.LOAD_LATENCY` keep it.
    pub(super) fn latency_threshold(&self) -> Option<u64> {
        const LOAD_LATENCY: [u64; 2] = [0x1cd, 0x5d0];
        let counts_loads = self.kind >= 4 && LOAD_LATENCY.contains(&(self.config & 0xffff));
        let typed = self.name.split_once("ldlat=").map(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next());
        let typed = typed.flatten().and_then(|digits| digits.parse().ok());
        let kept = counts_loads.then_some(self.config1 & 0xffff);
        kept.filter(|cycles| *cycles > 0).or(typed).filter(|cycles| *cycles > 0)
    }

    /// Whether it is AMD's sampling of operations, once in so many cycles and not in so many operations.
    pub(super) fn samples_by_cycles(&self) -> bool {
        const COUNT_OPERATIONS: u64 = 1 << 19;
        self.is_of("ibs_op") && self.config & COUNT_OPERATIONS == 0
    }

    /// Operations between samples, of Arm's sampling extension: what is made of its trace says 1.
    fn operations(&self) -> Option<u64> {
        self.fixed_period().filter(|_| self.is_of("arm_spe"))
    }
}

/// How many accesses a sample stands for, and what is known of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Period {
    /// So many, as the sample or its event says.
    Said(u64),
    /// So many, as the event says from which the sample was made.
    Operations(u64),
    /// Nobody says.
    Unknown,
}

/// The events of a file.
#[derive(Debug, Default)]
pub(super) struct Events {
    all: Vec<Attribute>,
    by_id: BTreeMap<u64, usize>,
    /// All of them put the ids of their records in the same places.
    alike: bool,
}

impl Events {
    /// Takes one more, by the bytes of its attribute and of the ids that its records carry.
    pub(super) fn add(&mut self, attribute: &[u8], ids: &[u8]) -> Option<()> {
        let event = Attribute::of(attribute, self.all.len())?;
        let places = *event.format.ids();
        let mut ids = Fields(ids);
        self.by_id.extend(std::iter::from_fn(|| ids.u64()).map(|id| (id, self.all.len())));
        self.all.push(event);
        self.alike = self.all.iter().all(|event| *event.format.ids() == places);
        Some(())
    }

    /// Calls them what the file calls them.
    pub(super) fn call(&mut self, names: &EventNames) {
        for (id, name) in &names.by_id {
            if let Some(event) = self.by_id.get(id).and_then(|place| self.all.get_mut(*place)) {
                event.name.clone_from(name);
            }
        }
        for event in &mut self.all {
            event.unit = names.units.get(&event.kind).cloned().unwrap_or_default();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The one that a record is of; where it does not say so, the first.
    pub(super) fn of(&self, kind: u32, body: &[u8]) -> Option<&Attribute> {
        let first = self.all.first()?;
        if self.all.len() == 1 || !self.alike {
            return Some(first);
        }
        let places = first.format.ids();
        let id = get_record_id::<byteorder::LittleEndian>(RecordType(kind), RawData::Single(body), places);
        id.and_then(|id| self.by_id.get(&id)).and_then(|at| self.all.get(*at)).or(Some(first))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Attribute> {
        self.all.iter()
    }

    /// What a sample of an event stands for, that says so much itself.
    pub(super) fn period(&self, event: &Attribute, said: u64) -> Period {
        let said = Some(said).filter(|said| *said > 0 && event.says_periods());
        let operations = self.all.iter().find_map(Attribute::operations);
        match (said, operations, event.fixed_period()) {
            (None | Some(1), Some(operations), _) => Period::Operations(operations),
            (Some(period), _, _) | (None, None, Some(period)) => Period::Said(period),
            (None, None, None) => Period::Unknown,
        }
    }

    /// Their names, but those of what only carries mappings.
    pub(super) fn names(&self) -> String {
        let telling = self.all.iter().filter(|event| !event.name.starts_with("dummy"));
        let mut names: Vec<&str> = telling.map(|event| event.name.as_str()).collect();
        names.dedup();
        names.join(", ")
    }
}
