//! One DDR5 sub-channel: banks with open rows, activate slots, data-bus slots, refresh, write drain.
//!
//! A request books the first activate slot and the first bus slot that its bank allows; refresh
//! windows and write drains hold everything that starts within them. Posted writes go while no read
//! is under way, and together when they have become many. Books are kept in command clocks. First-ready scheduling appears because a request to a free bank takes a slot that an
//! earlier one to a busy bank could not use. Held against Ramulator 2.1 and `DRAMsim3` in
//! `tests/dram.rs`.

use smallvec::SmallVec;

use crate::dram::calendar::Calendar;
use crate::parameters::Dram;

/// Reads that a controller's queue holds.
const BOOKED: usize = 32;
const CLOSED: u32 = u32::MAX;

/// Timing in command clocks.
#[derive(Debug)]
struct Timing {
    burst: u64,
    activate: u64,
    rcd: u64,
    cl: u64,
    cwl: u64,
    rp: u64,
    ras: u64,
    rtp: u64,
    wr: u64,
    wtr: u64,
    refi: u64,
    rfc: u64,
}

#[derive(Debug, Clone)]
struct Bank {
    row: u32,
    activated: u64,
    /// Earliest precharge that the last read or write allows.
    closes: u64,
    /// Number of the refresh that closed its row last.
    refreshed: u64,
}

/// A sub-channel; every call has a time that is not before the one of the call before.
#[derive(Debug)]
pub struct SubChannel {
    timing: Timing,
    banks: Vec<Bank>,
    activates: Calendar,
    bus: Calendar,
    /// Posted writes, oldest first.
    posted: Vec<(usize, u32)>,
    drain_at: usize,
    drain_to: usize,
    /// Commands of the latest reads.
    booked: [u64; BOOKED],
    next: usize,
    /// Reads that a drain overtook after they had been promised their data; as many that follow lose
    /// the clocks that those should have lost, so that the mean is right.
    overtaken: u32,
    toll: u64,
    /// Furthest command that is booked.
    furthest: u64,
    /// The refresh interval that was looked at last: its number and first clock.
    interval: (u64, u64),
    /// Reads are commanded no earlier: the bus is writing until then.
    reads_from: u64,
    /// No read waits for the bus from here on.
    idle_from: u64,
}

impl SubChannel {
    /// A sub-channel at rest.
    pub fn new(dram: &Dram) -> Self {
        let clocks = |ns: f64| (ns * dram.mt_s.value / 2e3).round() as u64;
        let timing = Timing {
            burst: dram.burst.value.into(),
            activate: dram.activate.value.into(),
            rcd: dram.rcd.value.into(),
            cl: dram.cl.value.into(),
            cwl: dram.cwl.value.into(),
            rp: dram.rp.value.into(),
            ras: dram.ras.value.into(),
            rtp: dram.rtp.value.into(),
            wr: dram.wr.value.into(),
            wtr: dram.wtr.value.into(),
            refi: clocks(dram.refi_ns.value),
            // All banks are precharged before they are refreshed.
            rfc: clocks(dram.rfc_ns.value) + u64::from(dram.rp.value),
        };
        let bank = Bank { row: CLOSED, activated: 0, closes: 0, refreshed: 0 };
        Self {
            timing,
            banks: vec![bank; dram.banks.value as usize],
            activates: Calendar::new(),
            bus: Calendar::new(),
            posted: Vec::with_capacity(dram.drain_at.value as usize),
            drain_at: dram.drain_at.value.max(1) as usize,
            drain_to: (dram.drain_to.value as usize).min(dram.drain_at.value.max(1) as usize - 1),
            booked: [0; BOOKED],
            next: 0,
            overtaken: 0,
            toll: 0,
            furthest: 0,
            interval: (0, 0),
            reads_from: 0,
            idle_from: 0,
        }
    }

    /// Banks that there are.
    pub fn banks(&self) -> usize {
        self.banks.len()
    }

    /// Clock at which the last data of a read has left.
    pub fn read(&mut self, now: u64, bank: usize, row: u32) -> u64 {
        self.advance(now);
        let command = self.column(now, self.reads_from, bank, row);
        self.booked[self.next] = command;
        self.next = (self.next + 1) % BOOKED;
        self.idle_from = self.idle_from.max(command + self.timing.burst);
        let closes = command + self.timing.rtp;
        self.banks[bank].closes = self.banks[bank].closes.max(closes);
        command + self.timing.cl + self.timing.burst + self.toll()
    }

    /// What a read loses for one that a drain has overtaken.
    fn toll(&mut self) -> u64 {
        if self.overtaken == 0 {
            return 0;
        }
        self.overtaken -= 1;
        self.toll
    }

    /// Posts a write; gives the clock at which the queue has taken it, which is at once unless the
    /// bus is still busy with the drain before.
    pub fn write(&mut self, now: u64, bank: usize, row: u32) -> u64 {
        self.advance(now);
        self.posted.push((bank, row));
        if self.posted.len() < self.drain_at {
            return now;
        }
        let start = now;
        self.drain(start, self.drain_at - self.drain_to);
        start
    }

    fn advance(&mut self, now: u64) {
        self.write_idly(now);
        self.bus.advance(now / self.timing.burst);
        self.activates.advance(now / self.timing.activate);
    }

    /// Writes what could be written between the last read and `now`.
    fn write_idly(&mut self, now: u64) {
        let opening = self.timing.rcd;
        let from = self.idle_from.max(self.reads_from);
        if self.posted.is_empty() || from + opening > now {
            return;
        }
        let fitting = 1 + (now - from - opening) / self.timing.burst;
        self.drain(from, fitting.min(self.posted.len() as u64) as usize);
    }

    /// Writes posted lines, distinct banks first, and turns the bus around.
    fn drain(&mut self, start: u64, wanted: usize) {
        let data = self.timing.cwl + self.timing.burst;
        let (mut last, mut written) = (start, 0);
        for (bank, row) in self.chosen(wanted) {
            let command = self.column(start, start, bank, row);
            self.banks[bank].closes = command + data + self.timing.wr;
            last = last.max(command);
            written += 1;
        }
        self.reads_from = last + data + self.timing.wtr;
        self.toll = written * self.timing.burst + data + self.timing.wtr;
        self.overtaken = self.booked.iter().filter(|&&command| command > start).count() as u32;
    }

    /// The writes of one drain: a bank's second write waits for the next, as a scheduler that looks
    /// for ready banks would let it.
    fn chosen(&mut self, wanted: usize) -> SmallVec<[(usize, u32); 32]> {
        let mut chosen: SmallVec<[(usize, u32); 32]> = SmallVec::new();
        let mut banks = 0_u64;
        self.posted.retain(|&(bank, row)| {
            let fresh = banks >> (bank % 64) & 1 == 0;
            let take = fresh && chosen.len() < wanted;
            if take {
                banks |= 1 << (bank % 64);
                chosen.push((bank, row));
            }
            !take
        });
        chosen
    }

    /// Books the column command of a request whose row may be opened from `start` on, no earlier
    /// than `earliest`.
    fn column(&mut self, start: u64, earliest: u64, bank: usize, row: u32) -> u64 {
        let mut start = self.after_refresh(start);
        loop {
            // The interval looked at last is that of `start`.
            if self.furthest >= self.interval.1 + self.timing.refi {
                start = self.behind_backlog(start, earliest);
            }
            let ready = self.open(start, bank, row).max(earliest);
            let command = self.bus.take(ready.div_ceil(self.timing.burst)) * self.timing.burst;
            let allowed = self.after_refresh(command);
            if allowed == command && self.refresh(command) == self.banks[bank].refreshed {
                self.furthest = self.furthest.max(command);
                return command;
            }
            // A refresh came between: the row is closed again.
            start = allowed;
        }
    }

    /// Behind a backlog the bus is free only later, perhaps after the next refresh: then that is when
    /// to open the row.
    fn behind_backlog(&mut self, start: u64, earliest: u64) -> u64 {
        let free = self.bus.first_free(start.max(earliest) / self.timing.burst) * self.timing.burst;
        if self.refresh(free) == self.refresh(start) {
            return start;
        }
        let begin = self.refresh(free) * self.timing.refi;
        self.after_refresh(begin)
    }

    /// Clock from which the row takes column commands, activating it where it is not open.
    fn open(&mut self, start: u64, bank: usize, row: u32) -> u64 {
        let refresh = self.refresh(start);
        let state = &mut self.banks[bank];
        if state.refreshed != refresh {
            *state = Bank { row: CLOSED, activated: 0, closes: 0, refreshed: refresh };
        }
        if state.row == row {
            return start.max(state.activated + self.timing.rcd);
        }
        let closed = if state.row == CLOSED {
            start
        } else {
            start.max(state.activated + self.timing.ras).max(state.closes) + self.timing.rp
        };
        let slot = self.activates.take(closed.div_ceil(self.timing.activate));
        let state = &mut self.banks[bank];
        state.activated = slot * self.timing.activate;
        state.row = row;
        state.activated + self.timing.rcd
    }

    /// Refreshes that have begun by `clock`.
    fn refresh(&mut self, clock: u64) -> u64 {
        let (number, begin) = self.interval;
        if clock >= begin && clock - begin < self.timing.refi {
            return number;
        }
        // The division is worth avoiding: clocks of one request mostly lie in one interval.
        let number = clock / self.timing.refi;
        self.interval = (number, number * self.timing.refi);
        number
    }

    /// `clock`, or the end of the refresh that runs then; the first is at one interval.
    fn after_refresh(&mut self, clock: u64) -> u64 {
        self.refresh(clock);
        let begin = self.interval.1;
        if begin > 0 { clock.max(begin + self.timing.rfc) } else { clock }
    }
}
