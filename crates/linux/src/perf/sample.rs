//! A sample, field by field: the order is that of `PERF_RECORD_SAMPLE` in `include/uapi/linux/perf_event.h`.
//!
//! `linux-perf-event-reader` 0.10 reads samples too, but loses what we need: it takes a counter for a group of
//! counters and the other way round, and passes over the ABI of the registers, the weight and the data source.

use linux_perf_event_reader::SampleFormat;
use linux_perf_event_reader::constants::PERF_SAMPLE_REGS_ABI_64;

use super::fields::Fields;
use super::record::{REGISTERS, Sample};

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
    /// The sample; `None` where it ends too early.
    pub(super) fn read(&self, kernel: bool, body: &[u8]) -> Option<Sample> {
        let mut fields = Fields(body);
        let mut word = |wanted| if self.fields.contains(wanted) { fields.u64() } else { Some(0) };
        word(SampleFormat::IDENTIFIER)?;
        word(SampleFormat::IP)?;
        let thread = word(SampleFormat::TID)?;
        let (time_ns, address) = (word(SampleFormat::TIME)?, word(SampleFormat::ADDR)?);
        word(SampleFormat::ID)?;
        word(SampleFormat::STREAM_ID)?;
        let (cpu, period) = (word(SampleFormat::CPU)?, word(SampleFormat::PERIOD)?);
        let instructions = self.counters(&mut fields)?;
        self.pass_over_variable_parts(&mut fields)?;
        let registers = self.registers(&mut fields)?;
        self.pass_over_stack(&mut fields)?;
        let (weight, source) = self.weight_and_source(&mut fields)?;
        let (pid, tid, cpu) = (low(thread), low(thread >> 32), low(cpu));
        Some(Sample { pid, tid, time_ns, cpu, address, period, instructions, weight, source, registers, kernel })
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

    /// The outer `None` is a damaged sample, the inner one a sample without registers of 64-bit code.
    #[expect(clippy::option_option, reason = "two ways of absence, told apart by the caller")]
    fn registers(&self, fields: &mut Fields<'_>) -> Option<Option<[u64; REGISTERS]>> {
        if !self.fields.contains(SampleFormat::REGS_USER) {
            return Some(None);
        }
        let abi = fields.u64()?;
        if abi == 0 {
            return Some(None);
        }
        let taken = fields.bytes(8 * u64::from(self.registers.count_ones()))?;
        let values = taken.as_chunks::<8>().0.iter().map(|value| u64::from_le_bytes(*value));
        let mut found = [0; REGISTERS];
        if self.registers == GENERAL_REGISTERS {
            found.iter_mut().zip(values).for_each(|(register, value)| *register = value);
        } else {
            put_by_bit(self.registers, values, &mut found);
        }
        Some((abi == PERF_SAMPLE_REGS_ABI_64).then_some(found))
    }

    fn pass_over_stack(&self, fields: &mut Fields<'_>) -> Option<()> {
        if self.fields.contains(SampleFormat::STACK_USER) {
            let size = fields.u64()?;
            fields.skip(size)?;
            fields.skip_words(u64::from(size > 0))?;
        }
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

/// What is taken of other registers than ours is dropped.
fn put_by_bit(mut mask: u64, values: impl Iterator<Item = u64>, found: &mut [u64; REGISTERS]) {
    for value in values {
        let bit = mask.trailing_zeros();
        mask &= mask - 1;
        if GENERAL_REGISTERS & 1 << bit != 0 {
            found[(GENERAL_REGISTERS & ((1 << bit) - 1)).count_ones() as usize] = value;
        }
    }
}

/// The lower half of a word.
#[allow(clippy::cast_possible_truncation, reason = "the upper half is another field")]
fn low(word: u64) -> u32 {
    word as u32
}
