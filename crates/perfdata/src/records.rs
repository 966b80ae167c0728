//! The records of a file, one after the other: samples, mappings, processes, losses.

use crate::Flaw;
use crate::attributes::{Attribute, bit};
use crate::cursor::Fields;
use tierloom_recording::{Change, Mapping, Process, REGISTERS};

const MMAP: u32 = 1;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
/// Records from here on are `perf`'s own.
const FIRST_OWN: u32 = 64;
const AUXTRACE: u32 = 71;
const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;

const MISC_CPUMODE: u16 = 7;
const MISC_KERNEL: u16 = 1;
const MISC_COMM_EXEC: u16 = 1 << 13;
/// Of MMAP records: the range is not executable.
const MISC_MMAP_DATA: u16 = 1 << 13;
const PROT_EXEC: u32 = 4;
/// `PERF_SAMPLE_REGS_ABI_64`.
const ABI_64: u64 = 2;
const BRANCH_BYTES: u64 = 24;
/// Bit of `branch_sample_type`: a word more before the branches.
const BRANCH_INDEX: u64 = 1 << 17;

/// One sample, as far as we use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawSample {
    pub(super) time_ns: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) kernel: bool,
    /// Data address; 0 where there is none.
    pub(super) address: u64,
    pub(super) period: u64,
    /// Latency in cycles, as the hardware reports it; 0 where it does not.
    pub(super) weight: u64,
    /// `union perf_mem_data_src`; 0 where there is none.
    pub(super) source: u64,
    /// Of 64-bit user space, where they were taken.
    pub(super) registers: Option<[u64; REGISTERS]>,
    /// Position of its event in the file's attributes.
    pub(super) event: usize,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    Sample(RawSample),
    Mapping(Mapping),
    Process(Process),
    Lost(u64),
}

/// Reads all records; those of kinds that we do not use are passed over.
pub(super) fn records(attributes: &[Attribute], data: &[u8]) -> Result<Vec<Record>, Flaw> {
    let reader = Reader { attributes };
    let mut fields = Fields(data);
    let mut found = Vec::new();
    while !fields.0.is_empty() {
        let at = data.len() - fields.0.len();
        let cut = || Flaw::damaged(&format!("the record at byte {at} of its data"));
        let (kind, misc, size) = header(&mut fields).ok_or_else(cut)?;
        let body = u64::from(size).checked_sub(8).and_then(|length| fields.bytes(length)).ok_or_else(cut)?;
        match kind {
            COMPRESSED | COMPRESSED2 => {
                return Err(Flaw::new("its records are compressed", "record without -z"));
            }
            // Bytes of a trace follow the record, as many as its first word says.
            AUXTRACE => Fields(body).u64().and_then(|length| fields.skip(length)).ok_or_else(cut)?,
            FIRST_OWN.. => {}
            _ => found.extend(reader.record(kind, misc, body).ok_or_else(cut)?),
        }
    }
    Ok(found)
}

fn header(fields: &mut Fields<'_>) -> Option<(u32, u16, u16)> {
    Some((fields.u32()?, fields.u16()?, fields.u16()?))
}

struct Reader<'a> {
    attributes: &'a [Attribute],
}

impl Reader<'_> {
    /// The outer `None` is a damaged record, the inner one a record that says nothing to us.
    #[expect(clippy::option_option, reason = "two ways of absence, told apart by the caller")]
    fn record(&self, kind: u32, misc: u16, body: &[u8]) -> Option<Option<Record>> {
        let mut fields = Fields(body);
        let time_ns = self.time_behind(body);
        Some(match kind {
            SAMPLE => Some(Record::Sample(self.sample(misc, fields)?)),
            MMAP | MMAP2 => mapping(kind, misc, fields, time_ns?).map(Record::Mapping),
            COMM => exec(misc, fields, time_ns?).map(Record::Process),
            FORK | EXIT => process(kind, fields)?.map(Record::Process),
            LOST => {
                fields.skip(8)?;
                Some(Record::Lost(fields.u64()?))
            }
            LOST_SAMPLES => Some(Record::Lost(fields.u64()?)),
            _ => None,
        })
    }

    /// Time of a record that is no sample; 0 where the events do not put one there.
    fn time_behind(&self, body: &[u8]) -> Option<u64> {
        match self.attributes.iter().find_map(Attribute::time_from_end) {
            Some(from_end) => Fields(body.get(body.len().checked_sub(from_end)?..)?).u64(),
            None => Some(0),
        }
    }

    /// The event of a sample: by its id where samples carry one in front, else the only one there is.
    fn event(&self, body: Fields<'_>) -> usize {
        let fronted = self.attributes.iter().all(|attribute| attribute.has(bit::IDENTIFIER));
        let mut front = body;
        let id = if fronted { front.u64() } else { None };
        let named = id.and_then(|id| self.attributes.iter().position(|attribute| attribute.ids.contains(&id)));
        named.unwrap_or(0)
    }

    fn sample(&self, misc: u16, mut fields: Fields<'_>) -> Option<RawSample> {
        let event = self.event(fields);
        let layout = &self.attributes[event];
        let mut word = |wanted: u64| if layout.has(wanted) { fields.u64() } else { Some(0) };
        word(bit::IDENTIFIER)?;
        word(bit::IP)?;
        let thread = word(bit::TID)?;
        let (time_ns, address) = (word(bit::TIME)?, word(bit::ADDRESS)?);
        for unused in [bit::ID, bit::STREAM, bit::CPU] {
            word(unused)?;
        }
        let period = word(bit::PERIOD)?;
        pass_over_variable_parts(layout, &mut fields)?;
        let registers = if layout.has(bit::USER_REGISTERS) { registers(layout, &mut fields)? } else { None };
        if layout.has(bit::USER_STACK) {
            let size = fields.u64()?;
            fields.skip(size)?;
            if size > 0 {
                fields.skip(8)?;
            }
        }
        let mut word = |wanted: bool| if wanted { fields.u64() } else { Some(0) };
        let (plain, packed) = (layout.has(bit::WEIGHT), layout.has(bit::WEIGHT_STRUCT));
        let weight = word(plain || packed)?;
        let source = word(layout.has(bit::DATA_SOURCE))?;
        Some(RawSample {
            time_ns,
            pid: low(thread),
            tid: low(thread >> 32),
            kernel: misc & MISC_CPUMODE == MISC_KERNEL,
            address,
            period,
            // The first 32 bits of a packed weight are the latency (`union perf_sample_weight`).
            weight: if packed { u64::from(low(weight)) } else { weight },
            source,
            registers,
            event,
        })
    }
}

/// The lower half of a word.
fn low(word: u64) -> u32 {
    u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0)
}

/// Counts read with a sample, call chain, raw data, branches.
fn pass_over_variable_parts(layout: &Attribute, fields: &mut Fields<'_>) -> Option<()> {
    if layout.has(bit::READ) {
        pass_over_read(layout.read_format, fields)?;
    }
    if layout.has(bit::CALLCHAIN) {
        let count = fields.u64()?;
        fields.skip(count.checked_mul(8)?)?;
    }
    if layout.has(bit::RAW) {
        let size = fields.u32()?;
        fields.skip(u64::from(size))?;
    }
    if layout.has(bit::BRANCHES) {
        let count = fields.u64()?;
        fields.skip(if layout.branch_type & BRANCH_INDEX != 0 { 8 } else { 0 })?;
        fields.skip(count.checked_mul(BRANCH_BYTES)?)?;
    }
    Some(())
}

/// `struct read_format`: values of a group or of the event alone, with what `read_format` asks for.
fn pass_over_read(format: u64, fields: &mut Fields<'_>) -> Option<()> {
    const GROUP: u64 = 1 << 3;
    let times = u64::from((format & 0b11).count_ones());
    let beside = u64::from((format & 0b1_0100).count_ones());
    if format & GROUP == 0 {
        return fields.skip(8 * (1 + times + beside));
    }
    let count = fields.u64()?;
    fields.skip((8 * (1 + beside)).checked_mul(count)?.checked_add(8 * times)?)
}

/// The outer `None` is a damaged sample, the inner one a sample without registers of 64-bit code.
#[expect(clippy::option_option, reason = "two ways of absence, told apart by the caller")]
fn registers(layout: &Attribute, fields: &mut Fields<'_>) -> Option<Option<[u64; REGISTERS]>> {
    let abi = fields.u64()?;
    if abi == 0 {
        return Some(None);
    }
    let mut found = [0; REGISTERS];
    for bit in layout.register_bits() {
        let value = fields.u64()?;
        // Flags end at 9, the six segment registers follow, then r8 to r15.
        let place = match bit {
            0..10 => bit,
            16..24 => bit - 6,
            _ => continue,
        };
        found[place as usize] = value;
    }
    Some((abi == ABI_64).then_some(found))
}

fn mapping(kind: u32, misc: u16, mut fields: Fields<'_>, time_ns: u64) -> Option<Mapping> {
    if misc & MISC_CPUMODE == MISC_KERNEL {
        return None;
    }
    let (pid, _tid) = (fields.u32()?, fields.u32()?);
    let (start, bytes, file_offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let executable = if kind == MMAP2 {
        // Device and inode, or a build id: 24 bytes either way.
        fields.skip(24)?;
        let (protection, _flags) = (fields.u32()?, fields.u32()?);
        protection & PROT_EXEC != 0
    } else {
        misc & MISC_MMAP_DATA == 0
    };
    start.checked_add(bytes)?;
    Some(Mapping { time_ns, pid, start, bytes, file_offset, executable, path: fields.text() })
}

fn exec(misc: u16, mut fields: Fields<'_>, time_ns: u64) -> Option<Process> {
    let (pid, _tid) = (fields.u32()?, fields.u32()?);
    let name = fields.text();
    (misc & MISC_COMM_EXEC != 0).then_some(Process { time_ns, pid, change: Change::Exec { name } })
}

/// Forks and ends of processes; those of threads say nothing to us.
#[expect(clippy::option_option, reason = "two ways of absence, told apart by the caller")]
fn process(kind: u32, mut fields: Fields<'_>) -> Option<Option<Process>> {
    let (pid, parent, tid, _) = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
    let time_ns = fields.u64()?;
    let change = match kind {
        FORK if pid != parent => Change::Fork { parent },
        EXIT if pid == tid => Change::Exit,
        _ => return Some(None),
    };
    Some(Some(Process { time_ns, pid, change }))
}
