//! Reads the numbers of a recording, and trusts none of them: see the head of `file`.

use crate::{
    Allocation, AllocationEvent, BlockCount, BranchCount, Change, Clock, DataSource, Event, Exit, Fault, InCopy,
    Lookahead, Mapping, MemoryAccess, Outcome, Process, REGISTERS, Resident, STACK_WORDS, Sample, Source, StackTop,
    Stretch, Touch, WarmUp, Which, Window,
};

/// Bytes that shrink from the front.
pub(super) struct Reader<'a> {
    /// What was not read yet.
    pub(super) rest: &'a [u8],
    /// Bytes of the whole file.
    pub(super) length: usize,
}

impl Reader<'_> {
    pub(super) fn exit(&mut self) -> Option<Exit> {
        let (kind, status) = (self.number()?, i32::try_from(unzigzag(self.number()?)).ok()?);
        match kind {
            0 => Some(Exit::Code(status)),
            1 => Some(Exit::Signal(status)),
            _ => None,
        }
    }

    pub(super) fn event(&mut self) -> Option<Event> {
        match self.number()? {
            0 => Some(Event::CpuClock),
            1 => Some(Event::Ptrace),
            2 => Some(Event::None),
            3 => Some(Event::MemoryAccess),
            _ => None,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(super) fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn step(&mut self, previous: &mut u64) -> Option<u64> {
        *previous = previous.wrapping_add(unzigzag(self.number()?).cast_unsigned());
        Some(*previous)
    }

    pub(super) fn floats<const N: usize>(&mut self) -> Option<[f64; N]> {
        let mut values = [0.0; N];
        for value in &mut values {
            let (bytes, rest) = self.rest.split_first_chunk()?;
            self.rest = rest;
            *value = Some(f64::from_le_bytes(*bytes)).filter(|value| value.is_finite() && *value >= 0.0)?;
        }
        Some(values)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(str::from_utf8(text).ok()?.to_owned())
    }

    /// A list: each item has at least one byte, so a count beyond the bytes left is damage.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::try_from(self.number()?).ok().filter(|count| *count <= self.rest.len())?;
        // Items are larger in memory than in the file; a damaged count may not take more than some
        // multiple of the file before the first item fails.
        let mut items = Vec::with_capacity(count.min(self.length / size_of::<T>().max(1)));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Some(items)
    }

    pub(super) fn samples(&mut self) -> Option<Vec<Sample>> {
        let (mut time, mut last) = (0, [0; REGISTERS]);
        self.list(|reader| {
            let time_ns = reader.step(&mut time)?;
            let (pid, tid) = (reader.small()?, reader.small()?);
            let (instructions, (kernel, copy)) = (reader.number()?, reader.standing()?);
            for register in &mut last {
                reader.step(register)?;
            }
            Some(Sample { time_ns, pid, tid, instructions, registers: last, kernel, copy })
        })
    }

    pub(super) fn stack_tops(&mut self) -> Option<Vec<StackTop>> {
        let (mut time, mut words) = (0, [0; STACK_WORDS]);
        self.list(|reader| {
            let (time_ns, tid) = (reader.step(&mut time)?, reader.small()?);
            for word in &mut words {
                reader.step(word)?;
            }
            Some(StackTop { time_ns, tid, words })
        })
    }

    /// Whether a sample is of the kernel, and whether of a copy.
    fn standing(&mut self) -> Option<(bool, InCopy)> {
        let number = self.number()?;
        let copy = match number / 2 {
            0 => InCopy::No,
            1 => InCopy::Own,
            2 => InCopy::Added,
            _ => return None,
        };
        Some((number % 2 == 1, copy))
    }

    pub(super) fn accesses(&mut self) -> Option<Vec<MemoryAccess>> {
        let (mut time, mut place) = (0, 0);
        self.list(|reader| {
            let time_ns = reader.step(&mut time)?;
            let (pid, tid, address) = (reader.small()?, reader.small()?, reader.step(&mut place)?);
            let (store, from) = (reader.flag()?, reader.number().filter(|from| *from < 8)?);
            let source = DataSource { memory: from & 1 != 0, remote: from & 2 != 0, shared: from & 4 != 0 };
            let (cycles, period) = (reader.number()?, reader.number()?);
            Some(MemoryAccess { time_ns, pid, tid, address, store, source, cycles, period })
        })
    }

    pub(super) fn faults(&mut self) -> Option<Vec<Fault>> {
        let (mut time, mut place) = (0, 0);
        self.list(|reader| {
            let time_ns = reader.step(&mut time)?;
            Some(Fault { time_ns, pid: reader.small()?, instruction: 0, address: reader.step(&mut place)? })
        })
    }

    /// Of page faults.
    pub(super) fn fault_instructions(&mut self) -> Option<Vec<u64>> {
        let mut place = 0;
        self.list(|reader| reader.step(&mut place))
    }

    pub(super) fn clocks(&mut self) -> Option<Vec<Clock>> {
        let (mut time, mut user, mut system, mut queued, mut held) = (0, 0, 0, 0, 0);
        self.list(|reader| {
            Some(Clock {
                time_ns: reader.step(&mut time)?,
                user_ns: reader.step(&mut user)?,
                system_ns: reader.step(&mut system)?,
                queued_ns: reader.step(&mut queued)?,
                held_ns: reader.step(&mut held)?,
            })
        })
    }

    pub(super) fn residents(&mut self) -> Option<Vec<Resident>> {
        let (mut time, mut place) = (0, 0);
        self.list(|reader| {
            let (time_ns, pid) = (reader.step(&mut time)?, reader.small()?);
            let stretches = reader.list(|reader| {
                let (start, bytes) = (reader.step(&mut place)?, reader.number()?);
                Some(Stretch { start, bytes, present_bytes: reader.number()? })
            })?;
            Some(Resident { time_ns, pid, stretches })
        })
    }

    fn outcome(&mut self) -> Option<Outcome> {
        match self.number()? {
            0 => Some(Outcome::Whole),
            1 => Some(Outcome::Cut),
            2 => Some(Outcome::NoCopy),
            3 => Some(Outcome::InCall),
            _ => None,
        }
    }

    pub(super) fn windows(&mut self) -> Option<Vec<Window>> {
        let (mut time, mut place, mut block) = (0, 0, 0);
        self.list(|reader| {
            let time_ns = reader.step(&mut time)?;
            let (pid, tid, address) = (reader.small()?, reader.small()?, reader.step(&mut place)?);
            let (stands_for_ns, duration_ns, outcome) = (reader.number()?, reader.number()?, reader.outcome()?);
            let counts = reader.list(|reader| reader.block_count(&mut block))?;
            Some(Window {
                time_ns,
                pid,
                tid,
                address,
                stands_for_ns,
                duration_ns,
                warm_up: WarmUp::Counted,
                outcome,
                counts,
                stack_pointer: 0,
                touches: Vec::new(),
            })
        })
    }

    /// Stack pointer and touches of each window.
    pub(super) fn touches(&mut self) -> Option<Vec<(u64, Vec<Touch>)>> {
        let (mut places, mut stack) = ((0, 0), 0);
        self.list(|reader| {
            let stack_pointer = reader.step(&mut stack)?;
            Some((stack_pointer, reader.list(|reader| reader.touch(&mut places))?))
        })
    }

    /// Of each window.
    pub(super) fn warm_ups(&mut self) -> Option<Vec<WarmUp>> {
        self.list(|reader| match reader.number()? {
            0 => Some(WarmUp::Counted),
            1 => Some(WarmUp::LeftOut),
            longer => Some(WarmUp::Longer(longer - 2)),
        })
    }

    fn block_count(&mut self, block: &mut u64) -> Option<BlockCount> {
        let (start, bytes) = (self.step(block)?, self.number()?);
        Some(BlockCount { start, bytes, executions: self.number()? })
    }

    fn touch(&mut self, places: &mut (u64, u64)) -> Option<Touch> {
        let (instruction, operand) = (self.step(&mut places.0)?, self.which()?);
        let executions = self.number()?;
        let addresses = self.list(|reader| reader.step(&mut places.1))?;
        Some(Touch { instruction, operand, executions, addresses })
    }

    pub(super) fn lookaheads(&mut self) -> Option<Vec<Lookahead>> {
        let (mut time, mut place, mut stack, mut block, mut branch, mut places) = (0, 0, 0, 0, 0, (0, 0));
        self.list(|reader| {
            let (time_ns, pid, tid) = (reader.step(&mut time)?, reader.small()?, reader.small()?);
            let (address, stack_pointer) = (reader.step(&mut place)?, reader.step(&mut stack)?);
            let instructions = reader.number()?;
            let counts = reader.list(|reader| reader.block_count(&mut block))?;
            let branches = reader.list(|reader| {
                let address = reader.step(&mut branch)?;
                Some(BranchCount { address, taken: reader.number()?, passed: reader.number()? })
            })?;
            let touches = reader.list(|reader| reader.touch(&mut places))?;
            Some(Lookahead { time_ns, pid, tid, address, stack_pointer, instructions, counts, branches, touches })
        })
    }

    fn which(&mut self) -> Option<Which> {
        match self.number()? {
            0 => Some(Which::Named),
            1 => Some(Which::Source),
            2 => Some(Which::Destination),
            3 => Some(Which::Rounds),
            _ => None,
        }
    }

    pub(super) fn mappings(&mut self) -> Option<Vec<Mapping>> {
        let (mut time, mut last) = (0, 0);
        self.list(|reader| {
            let (time_ns, start) = (reader.step(&mut time)?, reader.step(&mut last)?);
            let (pid, bytes, file_offset) = (reader.small()?, reader.number()?, reader.number()?);
            let (executable, path) = (reader.flag()?, reader.text()?);
            Some(Mapping { time_ns, pid, start, bytes, file_offset, executable, path })
        })
    }

    pub(super) fn processes(&mut self) -> Option<Vec<Process>> {
        let mut time = 0;
        self.list(|reader| {
            let (time_ns, pid) = (reader.step(&mut time)?, reader.small()?);
            let change = match reader.number()? {
                0 => Change::Fork { parent: reader.small()? },
                1 => Change::Exec { name: reader.text()? },
                2 => Change::Exit,
                _ => return None,
            };
            Some(Process { time_ns, pid, change })
        })
    }

    pub(super) fn allocations(&mut self) -> Option<Vec<Allocation>> {
        let (mut time, mut place) = (0, 0);
        self.list(|reader| {
            let (time_ns, pid, tid) = (reader.step(&mut time)?, reader.small()?, reader.small()?);
            let kind = reader.number()?;
            let address = reader.step(&mut place)?;
            let event = match kind {
                0..=2 | 5 => {
                    let source = match kind {
                        0 => Source::Heap,
                        1 => Source::Anonymous,
                        2 => Source::File,
                        _ => Source::Reserved,
                    };
                    let (bytes, stack) = (reader.number()?, reader.small()?);
                    AllocationEvent::Alloc { address, bytes, stack, source }
                }
                3 => AllocationEvent::Free { address },
                4 => AllocationEvent::Unmap { address, bytes: reader.number()? },
                6 | 7 => AllocationEvent::Protect { address, bytes: reader.number()?, accessible: kind == 7 },
                _ => return None,
            };
            Some(Allocation { time_ns, pid, tid, event })
        })
    }
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}
