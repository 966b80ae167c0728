//! Writes the numbers of a recording: see the head of `file`.

use crate::{
    Allocation, AllocationEvent, BlockCount, Change, Clock, DataSource, Event, Exit, Fault, InCopy, Lookahead, Mapping,
    MemoryAccess, Outcome, Process, REGISTERS, Resident, STACK_WORDS, Sample, Source, StackTop, Touch, WarmUp, Which,
    Window,
};

/// Bytes that grow at the end.
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
    }

    pub(super) fn numbers(&mut self, values: &[u64]) {
        for value in values {
            self.number(*value);
        }
    }

    pub(super) fn floats(&mut self, values: &[f64]) {
        self.0.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }

    /// The difference to `previous`, which becomes `value`.
    pub(super) fn step(&mut self, value: u64, previous: &mut u64) {
        self.number(zigzag(value.wrapping_sub(*previous).cast_signed()));
        *previous = value;
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.bytes());
    }

    pub(super) fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as u64);
        for value in items {
            item(self, value);
        }
    }

    pub(super) fn exit(&mut self, exit: Exit) {
        match exit {
            Exit::Code(code) => self.numbers(&[0, zigzag(i64::from(code))]),
            Exit::Signal(signal) => self.numbers(&[1, zigzag(i64::from(signal))]),
        }
    }

    pub(super) fn samples(&mut self, samples: &[Sample]) {
        let (mut time, mut registers) = (0, [0; REGISTERS]);
        self.list(samples, |out, sample| {
            out.step(sample.time_ns, &mut time);
            out.numbers(&[u64::from(sample.pid), u64::from(sample.tid), sample.instructions]);
            out.number(u64::from(sample.kernel) + 2 * copy_code(sample.copy));
            for (value, previous) in sample.registers.iter().zip(&mut registers) {
                out.step(*value, previous);
            }
        });
    }

    pub(super) fn stack_tops(&mut self, tops: &[StackTop]) {
        let (mut time, mut words) = (0, [0; STACK_WORDS]);
        self.list(tops, |out, top| {
            out.step(top.time_ns, &mut time);
            out.number(u64::from(top.tid));
            for (value, previous) in top.words.iter().zip(&mut words) {
                out.step(*value, previous);
            }
        });
    }

    pub(super) fn accesses(&mut self, accesses: &[MemoryAccess]) {
        let (mut time, mut place) = (0, 0);
        self.list(accesses, |out, access| {
            out.step(access.time_ns, &mut time);
            out.numbers(&[u64::from(access.pid), u64::from(access.tid)]);
            out.step(access.address, &mut place);
            let DataSource { memory, remote, shared } = access.source;
            let from = u64::from(memory) + 2 * u64::from(remote) + 4 * u64::from(shared);
            out.numbers(&[u64::from(access.store), from, access.cycles, access.period]);
        });
    }

    pub(super) fn faults(&mut self, faults: &[Fault]) {
        let (mut time, mut place) = (0, 0);
        self.list(faults, |out, fault| {
            out.step(fault.time_ns, &mut time);
            out.number(u64::from(fault.pid));
            out.step(fault.address, &mut place);
        });
    }

    pub(super) fn fault_instructions(&mut self, faults: &[Fault]) {
        let mut place = 0;
        self.list(faults, |out, fault| out.step(fault.instruction, &mut place));
    }

    pub(super) fn windows(&mut self, windows: &[Window]) {
        let (mut time, mut place, mut block) = (0, 0, 0);
        self.list(windows, |out, window| {
            out.step(window.time_ns, &mut time);
            out.numbers(&[u64::from(window.pid), u64::from(window.tid)]);
            out.step(window.address, &mut place);
            out.numbers(&[window.stands_for_ns, window.duration_ns, outcome_code(window.outcome)]);
            out.list(&window.counts, |out, count| out.block_count(count, &mut block));
        });
    }

    /// `block` is where the last one begins.
    fn block_count(&mut self, count: &BlockCount, block: &mut u64) {
        self.step(count.start, block);
        self.numbers(&[count.bytes, count.executions]);
    }

    /// Stack pointer and touches of each window.
    pub(super) fn touches(&mut self, windows: &[Window]) {
        let (mut places, mut stack) = ((0, 0), 0);
        self.list(windows, |out, window| {
            out.step(window.stack_pointer, &mut stack);
            out.list(&window.touches, |out, touch| out.touch(touch, &mut places));
        });
    }

    /// Of each window.
    pub(super) fn warm_ups(&mut self, windows: &[Window]) {
        self.list(windows, |out, window| {
            out.number(match window.warm_up {
                WarmUp::Counted => 0,
                WarmUp::LeftOut => 1,
                WarmUp::Longer(ns) => ns.saturating_add(2),
            });
        });
    }

    /// `places` are those of the last instruction and the last address.
    fn touch(&mut self, touch: &Touch, places: &mut (u64, u64)) {
        self.step(touch.instruction, &mut places.0);
        self.numbers(&[which_code(touch.operand), touch.executions]);
        self.list(&touch.addresses, |out, address| out.step(*address, &mut places.1));
    }

    pub(super) fn lookaheads(&mut self, lookaheads: &[Lookahead]) {
        let (mut time, mut place, mut stack, mut block, mut branch, mut places) = (0, 0, 0, 0, 0, (0, 0));
        self.list(lookaheads, |out, lookahead| {
            out.step(lookahead.time_ns, &mut time);
            out.numbers(&[u64::from(lookahead.pid), u64::from(lookahead.tid)]);
            out.step(lookahead.address, &mut place);
            out.step(lookahead.stack_pointer, &mut stack);
            out.number(lookahead.instructions);
            out.list(&lookahead.counts, |out, count| out.block_count(count, &mut block));
            out.list(&lookahead.branches, |out, count| {
                out.step(count.address, &mut branch);
                out.numbers(&[count.taken, count.passed]);
            });
            out.list(&lookahead.touches, |out, touch| out.touch(touch, &mut places));
        });
    }

    pub(super) fn clocks(&mut self, clocks: &[Clock]) {
        let (mut time, mut user, mut system, mut queued, mut held) = (0, 0, 0, 0, 0);
        self.list(clocks, |out, clock| {
            out.step(clock.time_ns, &mut time);
            out.step(clock.user_ns, &mut user);
            out.step(clock.system_ns, &mut system);
            out.step(clock.queued_ns, &mut queued);
            out.step(clock.held_ns, &mut held);
        });
    }

    pub(super) fn residents(&mut self, residents: &[Resident]) {
        let (mut time, mut place) = (0, 0);
        self.list(residents, |out, resident| {
            out.step(resident.time_ns, &mut time);
            out.number(u64::from(resident.pid));
            out.list(&resident.stretches, |out, stretch| {
                out.step(stretch.start, &mut place);
                out.numbers(&[stretch.bytes, stretch.present_bytes]);
            });
        });
    }

    pub(super) fn mappings(&mut self, mappings: &[Mapping]) {
        let (mut time, mut start) = (0, 0);
        self.list(mappings, |out, mapping| {
            out.step(mapping.time_ns, &mut time);
            out.step(mapping.start, &mut start);
            out.numbers(&[u64::from(mapping.pid), mapping.bytes, mapping.file_offset, u64::from(mapping.executable)]);
            out.text(&mapping.path);
        });
    }

    pub(super) fn processes(&mut self, processes: &[Process]) {
        let mut time = 0;
        self.list(processes, |out, process| {
            out.step(process.time_ns, &mut time);
            out.number(u64::from(process.pid));
            match &process.change {
                Change::Fork { parent } => out.numbers(&[0, u64::from(*parent)]),
                Change::Exec { name } => {
                    out.number(1);
                    out.text(name);
                }
                Change::Exit => out.number(2),
            }
        });
    }

    pub(super) fn allocations(&mut self, allocations: &[Allocation]) {
        let (mut time, mut place) = (0, 0);
        self.list(allocations, |out, allocation| {
            out.step(allocation.time_ns, &mut time);
            out.numbers(&[u64::from(allocation.pid), u64::from(allocation.tid)]);
            match allocation.event {
                AllocationEvent::Alloc { address, bytes, stack, source } => {
                    out.number(source_code(source));
                    out.step(address, &mut place);
                    out.numbers(&[bytes, u64::from(stack)]);
                }
                AllocationEvent::Free { address } => {
                    out.number(3);
                    out.step(address, &mut place);
                }
                AllocationEvent::Protect { address, bytes, accessible } => {
                    out.number(6 + u64::from(accessible));
                    out.step(address, &mut place);
                    out.number(bytes);
                }
                AllocationEvent::Unmap { address, bytes } => {
                    out.number(4);
                    out.step(address, &mut place);
                    out.number(bytes);
                }
            }
        });
    }
}

fn copy_code(copy: InCopy) -> u64 {
    match copy {
        InCopy::No => 0,
        InCopy::Own => 1,
        InCopy::Added => 2,
    }
}

fn which_code(which: Which) -> u64 {
    match which {
        Which::Named => 0,
        Which::Source => 1,
        Which::Destination => 2,
        Which::Rounds => 3,
    }
}

fn outcome_code(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Whole => 0,
        Outcome::Cut => 1,
        Outcome::NoCopy => 2,
        Outcome::InCall => 3,
    }
}

fn source_code(source: Source) -> u64 {
    match source {
        Source::Heap => 0,
        Source::Anonymous => 1,
        Source::File => 2,
        Source::Reserved => 5,
    }
}

/// A number for each kind of event.
pub(super) fn event_code(event: Event) -> u64 {
    match event {
        Event::CpuClock => 0,
        Event::Ptrace => 1,
        Event::None => 2,
        Event::MemoryAccess => 3,
    }
}

/// Small differences of either sign become small numbers.
pub(super) fn zigzag(value: i64) -> u64 {
    (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned()
}
