//! What an event's attribute says about the layout of its samples (`struct perf_event_attr`).

use crate::cursor::Fields;

const SOFTWARE: u32 = 1;
/// `cpu-clock` and `task-clock`.
const CLOCKS: [u64; 2] = [0, 1];
const FREQUENCY: u64 = 1 << 10;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const REGISTER_BITS: u32 = 24;

/// Bits of `sample_type` (`enum perf_event_sample_format`).
pub(super) mod bit {
    pub(crate) const IP: u64 = 1;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDRESS: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM: u64 = 1 << 9;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const BRANCHES: u64 = 1 << 11;
    pub(crate) const USER_REGISTERS: u64 = 1 << 12;
    pub(crate) const USER_STACK: u64 = 1 << 13;
    pub(crate) const WEIGHT: u64 = 1 << 14;
    pub(crate) const DATA_SOURCE: u64 = 1 << 15;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
    pub(crate) const WEIGHT_STRUCT: u64 = 1 << 24;
}

/// One event of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attribute {
    kind: u32,
    config: u64,
    /// Period, or samples per second where `frequency` is set.
    rate: u64,
    frequency: bool,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) branch_type: u64,
    /// Registers of user space in each sample, by bit of `perf_regs.h`.
    pub(super) registers: u64,
    sample_id_all: bool,
    /// Ids that samples of this event carry.
    pub(super) ids: Vec<u64>,
}

impl Attribute {
    /// Reads an attribute of any length from `PERF_ATTR_SIZE_VER0` (64 bytes) on; what is missing is zero.
    pub(super) fn read(raw: &[u8], ids: &[u8]) -> Option<Self> {
        let mut whole = [0_u8; 128];
        let known = raw.len().min(whole.len());
        whole[..known].copy_from_slice(&raw[..known]);
        if raw.len() < 64 {
            return None;
        }
        let mut fields = Fields(&whole);
        let (kind, _size) = (fields.u32()?, fields.u32()?);
        let (config, rate, sample_type) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (read_format, flags) = (fields.u64()?, fields.u64()?);
        fields.skip(24)?; // wake-up, breakpoint, config1, config2
        let (branch_type, registers) = (fields.u64()?, fields.u64()?);
        let mut ids = Fields(ids);
        Some(Self {
            kind,
            config,
            rate,
            frequency: flags & FREQUENCY != 0,
            sample_type,
            read_format,
            branch_type,
            registers,
            sample_id_all: flags & SAMPLE_ID_ALL != 0,
            ids: std::iter::from_fn(|| ids.u64()).collect(),
        })
    }

    pub(super) fn has(&self, bits: u64) -> bool {
        self.sample_type & bits == bits
    }

    /// CPU time between samples, ns, where a clock drives them. The kernel turns a frequency of a
    /// clock into a fixed period (`perf_swevent_init_hrtimer`).
    pub(super) fn clock_period_ns(&self) -> Option<f64> {
        let clock = self.kind == SOFTWARE && CLOCKS.contains(&self.config) && self.rate > 0;
        let rate = self.rate as f64;
        clock.then_some(if self.frequency { (1e9 / rate).floor() } else { rate })
    }

    /// Whether its samples name data addresses with their latency or source: not those of a clock,
    /// whose addresses `perf record -d` asks for in vain.
    pub(super) fn samples_memory(&self) -> bool {
        let said = self.sample_type & (bit::WEIGHT | bit::WEIGHT_STRUCT | bit::DATA_SOURCE) != 0;
        self.has(bit::ADDRESS) && said && self.kind != SOFTWARE
    }

    /// Registers that it takes, as a count; the kernel lists them by rising bit.
    pub(super) fn register_bits(&self) -> impl Iterator<Item = u32> {
        let mask = self.registers;
        (0..u64::BITS).filter(move |bit| mask & (1 << bit) != 0)
    }

    /// Whether every general register is there: all of `perf_regs.h` but the segments.
    pub(super) fn has_all_registers(&self) -> bool {
        let general = (0..REGISTER_BITS).filter(|bit| !(10..16).contains(bit)).fold(0, |mask, bit| mask | 1 << bit);
        self.has(bit::USER_REGISTERS) && self.registers & general == general
    }

    /// Offset from a record's end of the time that `sample_id_all` puts behind it; `None` without one.
    pub(super) fn time_from_end(&self) -> Option<usize> {
        let behind = [bit::TIME, bit::ID, bit::STREAM, bit::CPU, bit::IDENTIFIER];
        let words = behind.iter().filter(|bit| self.has(**bit)).count();
        (self.sample_id_all && self.has(bit::TIME)).then_some(8 * words)
    }
}
