//! A sample, field by field: the order is that of `PERF_RECORD_SAMPLE` in `include/uapi/linux/perf_event.h`.
//!
//! `linux-perf-event-reader` 0.10 reads samples too, but loses what we need: it takes a counter for a group of
//! counters and the other way round, and passes over the ABI of the registers, the weight and the data source.

use linux_perf_event_reader::SampleFormat;
use linux_perf_event_reader::constants::PERF_SAMPLE_REGS_ABI_64;

use super::fields::Fields;
use super::record::{REGISTERS, STACK_WORDS, Sample};

/// Bits of `read_format`.
mod read {
    pub(super) const TIMES: u64 = 0b11;
    pub(super) const ID: u64 = 1 << 2;
    pub(super) const GROUP: u64 = 1 << 3;
    pub(super) const LOST: u64 = 1 << 4;
}

/// Bits of `branch_sample_type`: a word before the branches, and one for each behind them.
const BRANCH_INDEX: u64 = 1 << 17;
const BRANCH_COUNTERS: u64 = 1 << 19;
const WORDS_OF_BRANCH: u64 = 3;

/// All of `perf_regs.h` but the six segment registers, which the kernel gives to nobody: ours, in our order.
pub const GENERAL_REGISTERS: u64 = 0xff_03ff;

/// What the samples of an event carry.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleLayout {
    pub(super) fields: SampleFormat,
    pub(super) read_format: u64,
    pub(super) branch_type: u64,
    /// Registers of user space, by bit of `perf_regs.h`.
    pub(super) registers: u64,
}

impl SampleLayout {
    /// The sample, into what is all 0; `None` where it ends too early. In place, because copies of it were half of the
    /// time that reading a ring took.
    pub(super) fn read(&self, body: &[u8], sample: &mut Sample) -> Option<()> {
        let mut fields = Fields(body);
        let mut word = |wanted| if self.fields.contains(wanted) { fields.u64() } else { Some(0) };
        word(SampleFormat::IDENTIFIER)?;
        sample.instruction = word(SampleFormat::IP)?;
        let thread = word(SampleFormat::TID)?;
        (sample.pid, sample.tid) = (low(thread), low(thread >> 32));
        sample.time_ns = word(SampleFormat::TIME)?;
        sample.address = word(SampleFormat::ADDR)?;
        word(SampleFormat::ID)?;
        word(SampleFormat::STREAM_ID)?;
        sample.cpu = low(word(SampleFormat::CPU)?);
        sample.period = word(SampleFormat::PERIOD)?;
        sample.instructions = self.counters(&mut fields)?;
        self.pass_over_variable_parts(&mut fields)?;
        self.registers(&mut fields, &mut sample.registers)?;
        self.stack(&mut fields, &mut sample.stack)?;
        (sample.weight, sample.source) = self.weight_and_source(&mut fields)?;
        Some(())
    }

    /// `struct read_format`; the second value of a group, 0 where there is none.
    fn counters(&self, fields: &mut Fields<'_>) -> Option<u64> {
        if !self.fields.contains(SampleFormat::READ) {
            return Some(0);
        }
        let times = u64::from((self.read_format & read::TIMES).count_ones());
        let words = 1 + u64::from((self.read_format & (read::ID | read::LOST)).count_ones());
        if self.read_format & read::GROUP == 0 {
            return fields.skip_words(times + words).map(|()| 0);
        }
        let members = fields.u64()?;
        fields.skip_words(times)?;
        let mut values = Fields(fields.bytes(members.checked_mul(8 * words)?)?);
        Some(values.skip_words(words).and_then(|()| values.u64()).unwrap_or(0))
    }

    /// Call chain, raw data, branches.
    fn pass_over_variable_parts(&self, fields: &mut Fields<'_>) -> Option<()> {
        if self.fields.contains(SampleFormat::CALLCHAIN) {
            let frames = fields.u64()?;
            fields.skip_words(frames)?;
        }
        if self.fields.contains(SampleFormat::RAW) {
            let size = fields.u32()?;
            fields.skip(u64::from(size))?;
        }
        if self.fields.contains(SampleFormat::BRANCH_STACK) {
            let branches = fields.u64()?;
            fields.skip_words(u64::from(self.branch_type & BRANCH_INDEX != 0))?;
            let words = WORDS_OF_BRANCH + u64::from(self.branch_type & BRANCH_COUNTERS != 0);
            fields.skip_words(branches.checked_mul(words)?)?;
        }
        Some(())
    }

    /// Those of 64-bit code.
    fn registers(&self, fields: &mut Fields<'_>, into: &mut Option<[u64; REGISTERS]>) -> Option<()> {
        let abi = if self.fields.contains(SampleFormat::REGS_USER) { fields.u64()? } else { 0 };
        if abi == 0 {
            return Some(());
        }
        let taken = fields.bytes(8 * u64::from(self.registers.count_ones()))?;
        if abi == PERF_SAMPLE_REGS_ABI_64 {
            put_by_bit(self.registers, taken, into.insert([0; REGISTERS]));
        }
        Some(())
    }

    /// What was copied of the stack, and how much of that could be.
    fn stack(&self, fields: &mut Fields<'_>, into: &mut Option<Box<[u64; STACK_WORDS]>>) -> Option<()> {
        let size = if self.fields.contains(SampleFormat::STACK_USER) { fields.u64()? } else { 0 };
        if size == 0 {
            return Some(());
        }
        let taken = fields.bytes(size)?;
        let copied = usize::try_from(fields.u64()?).ok()?;
        let words = taken.get(..copied)?.as_chunks::<8>().0.first_chunk::<STACK_WORDS>();
        *into = words.map(|words| Box::new(words.map(u64::from_le_bytes)));
        Some(())
    }

    /// The first 32 bits of a packed weight are the latency (`union perf_sample_weight`).
    fn weight_and_source(&self, fields: &mut Fields<'_>) -> Option<(u64, u64)> {
        let mut word = |wanted| if self.fields.intersects(wanted) { fields.u64() } else { Some(0) };
        let weight = word(SampleFormat::WEIGHT | SampleFormat::WEIGHT_STRUCT)?;
        let packed = self.fields.contains(SampleFormat::WEIGHT_STRUCT);
        let source = word(SampleFormat::DATA_SRC)?;
        Some((if packed { u64::from(low(weight)) } else { weight }, source))
    }
}

/// Registers in the order of their bits; those that are not ours are dropped.
fn put_by_bit(mut mask: u64, taken: &[u8], found: &mut [u64; REGISTERS]) {
    let mut values = taken.as_chunks::<8>().0.iter().map(|value| u64::from_le_bytes(*value));
    if mask == GENERAL_REGISTERS {
        found.iter_mut().zip(values).for_each(|(register, value)| *register = value);
        return;
    }
    while let (1.., Some(value)) = (mask, values.next()) {
        let bit = 1 << mask.trailing_zeros();
        if GENERAL_REGISTERS & bit != 0 {
            found[(GENERAL_REGISTERS & (bit - 1)).count_ones() as usize] = value;
        }
        mask &= mask - 1;
    }
}

/// The lower half of a word.
#[allow(clippy::cast_possible_truncation, reason = "the upper half is another field")]
fn low(word: u64) -> u32 {
    word as u32
}
