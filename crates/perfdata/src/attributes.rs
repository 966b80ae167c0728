//! The events of a file: what each was opened with, and which of them a record is of.

use std::collections::BTreeMap;

use linux_perf_event_reader::{
    PerfEventType, RawData, RecordType, SampleFormat, SamplingPolicy, SoftwareCounterType, get_record_id,
};
use tierloom_linux::perf::{Fields, Format, GENERAL_REGISTERS};

/// Bit of `read_format`: how many of an event's samples were lost.
const FORMAT_LOST: u64 = 1 << 4;

/// One event of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attribute {
    pub(super) format: Format,
}

impl Attribute {
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

    /// Whether its samples name data addresses with their latency or source: not those of a clock,
    /// whose addresses `perf record -d` asks for in vain.
    pub(super) fn samples_memory(&self) -> bool {
        let said = SampleFormat::WEIGHT | SampleFormat::WEIGHT_STRUCT | SampleFormat::DATA_SRC;
        let software = matches!(self.format.attributes().type_, PerfEventType::Software(_));
        self.fields().contains(SampleFormat::ADDR) && self.fields().intersects(said) && !software
    }

    /// Whether every sample says which thread it is of, when, and what its registers held.
    pub(super) fn has_registers_of_threads(&self) -> bool {
        let wanted = SampleFormat::REGS_USER | SampleFormat::TID | SampleFormat::TIME;
        let registers = self.format.attributes().sample_regs_user;
        self.fields().contains(wanted) && registers & GENERAL_REGISTERS == GENERAL_REGISTERS
    }

    /// Whether its lost samples are counted by themselves, whatever became of their records.
    pub(super) fn counts_lost_samples(&self) -> bool {
        self.format.read_format() & FORMAT_LOST != 0
    }
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
        let format = Format::of(attribute)?;
        let mut ids = Fields(ids);
        self.by_id.extend(std::iter::from_fn(|| ids.u64()).map(|id| (id, self.all.len())));
        self.all.push(Attribute { format });
        self.alike = self.all.iter().all(|event| event.format.ids() == format.ids());
        Some(())
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

    pub(super) fn any(&self, holds: impl FnMut(&Attribute) -> bool) -> bool {
        self.all.iter().any(holds)
    }

    pub(super) fn all(&self, holds: impl FnMut(&Attribute) -> bool) -> bool {
        self.all.iter().all(holds)
    }

    /// CPU time between samples, ns, where all of them are clocks.
    pub(super) fn clock_period_ns(&self) -> Option<f64> {
        let periods = self.all.iter().map(Attribute::clock_period_ns).collect::<Option<Vec<f64>>>()?;
        periods.first().copied()
    }
}
