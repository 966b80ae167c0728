//! DRAM with its banks: the GPU's own memory, and the media of a DRAM endpoint.
//!
//! A memory is a row of sub-channels that share the lines by address. Each answers a read with the
//! time at which its last data leaves; writes are posted and drained together. The cost is O(1) a
//! request: nothing is simulated clock by clock, slots of the command and data buses are booked in
//! calendars instead.

mod calendar;
mod subchannel;

use tierloom_model::hash::scatter;
use tierloom_model::units::LINE_BYTES;

use crate::line::Line;
use crate::parameters::Dram;
use crate::time::{Ps, from_ns};

pub use subchannel::SubChannel;

/// All channels of one memory behind one controller.
#[derive(Debug)]
pub(crate) struct DramMemory {
    subchannels: Vec<SubChannel>,
    clock_ps: f64,
    clocks_per_ps: f64,
    controller: Ps,
    row_lines: u32,
    /// Lines that were read or written.
    pub(crate) lines: u64,
}

impl DramMemory {
    /// A memory of `channels` channels; `controller_ns` is what the controller adds to every read.
    pub(crate) fn new(dram: &Dram, channels: u32, controller_ns: f64) -> Self {
        let count = channels * dram.subchannels.value;
        Self {
            subchannels: (0..count).map(|_| SubChannel::new(dram)).collect(),
            clock_ps: 2e6 / dram.mt_s.value,
            clocks_per_ps: dram.mt_s.value / 2e6,
            controller: from_ns(controller_ns),
            row_lines: (dram.row_bytes.value / LINE_BYTES).max(1) as u32,
            lines: 0,
        }
    }

    /// When the data of a read that arrives at `now` leaves the memory.
    pub(crate) fn read(&mut self, now: Ps, line: Line) -> Ps {
        let (at, bank, row) = self.place(line);
        let clock = self.clock(now);
        let done = self.subchannels[at].read(clock, bank, row);
        self.finish(done)
    }

    /// Takes a posted write at `now`; says when the write queue has taken it.
    pub(crate) fn write(&mut self, now: Ps, line: Line) -> Ps {
        let (at, bank, row) = self.place(line);
        let clock = self.clock(now);
        let taken = self.subchannels[at].write(clock, bank, row);
        self.finish(taken)
    }

    /// The clock after `now`.
    fn clock(&self, now: Ps) -> u64 {
        (now as f64 * self.clocks_per_ps) as u64 + 1
    }

    fn finish(&mut self, clock: u64) -> Ps {
        self.lines += 1;
        (clock as f64 * self.clock_ps) as Ps + self.controller
    }

    /// Sub-channel, bank and row: neighbouring lines spread over sub-channels in runs of four (as
    /// mappings like MOP do), rows are scattered over banks.
    fn place(&self, line: Line) -> (usize, usize, u32) {
        let run = line / 4;
        let count = self.subchannels.len() as u32;
        let (at, inside) = (run % count, run / count);
        let row = inside / (self.row_lines / 4).max(1);
        let bank = (scatter(u64::from(row)) >> 40) as usize % self.subchannels[0].banks();
        (at as usize, bank, row)
    }
}
