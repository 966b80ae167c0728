//! A process whose threads are let into copies: its code, the copies, and the memory that they lie in.

use std::collections::VecDeque;

use tierloom_bursts::{
    Control, Copies, FAREWELL, Place, SAVED_R11, SAVED_RAX, SAVED_RCX, SAVED_RDX, TABLE_BYTES, Touched, WayIn, Write,
};
use tierloom_linux::LinuxError;
use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::maps::MappedRange;
use tierloom_linux::ptrace::injected::{Caller, Memory};
use tierloom_linux::ptrace::{Halt, Registers, Tracer, read_bytes, read_words};
use tierloom_linux::root::Root;
use tierloom_recording::{BlockCount, InCopy, REGISTERS, Touch, Which, register};

use super::permission;
use super::purpose::{PURPOSES, Purpose};
use super::room::Room;
use super::text::ProcessText;

/// A process and its copies.
#[derive(Debug)]
pub(super) struct Process {
    pid: u32,
    text: ProcessText,
    memory: Memory,
    room: Room,
    /// By purpose.
    copies: [Copies; 2],
    /// Where threads were seen, and code lacks copies.
    noted: VecDeque<u64>,
    /// An instruction that calls the kernel.
    instruction: u64,
    /// It has the memory that it can get.
    is_prepared: bool,
}

/// Where and when a thread left.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parted {
    /// Where it left the copies by itself.
    pub(super) left: Option<u64>,
    /// Time-stamp counter when it came and when it left; 0 where it did not.
    pub(super) stamps: (u64, u64),
    /// Addresses that it looked for in vain; 0 = none.
    pub(super) missed: Vec<u64>,
}

/// What lacks a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Where a thread happened to be.
    Place(u64),
    /// What code goes to.
    Targets(Vec<u64>),
}

/// The number of no system call (`orig_rax` of `ptrace(2)`).
pub(crate) const NO_CALL: u64 = u64::MAX;

/// A reading of all counters of a process.
pub(super) type Counters = Vec<Vec<u64>>;

impl Process {
    /// One that may be looked at; `None` where copies would do harm.
    pub(super) fn open(root: &Root, pid: u32, maps: &[MappedRange]) -> Option<Self> {
        if !permission::may_have_memory(root, pid, maps) {
            return None;
        }
        let room = Room::find(maps)?;
        Some(Self {
            pid,
            text: ProcessText::new(root, pid, maps)?,
            memory: Memory::open(root, pid).ok()?,
            copies: PURPOSES.map(|purpose| room.copies(purpose)),
            room,
            noted: VecDeque::new(),
            instruction: calling_instruction(pid, maps)?,
            is_prepared: false,
        })
    }

    /// The same process whose code is other code now, or whose memory is: it became another program.
    pub(super) fn renewed(self, root: &Root, maps: &[MappedRange]) -> Option<Self> {
        if !self.room.has_areas() || !self.room.is_intact(maps) {
            return Self::open(root, self.pid, maps);
        }
        let text = ProcessText::new(root, self.pid, maps)?;
        let table = vec![0; usize::try_from(TABLE_BYTES).ok()?];
        self.room.tables().try_for_each(|start| self.memory.write(start, &table)).ok()?;
        let copies = PURPOSES.map(|purpose| self.room.copies(purpose));
        Some(Self { text, copies, noted: VecDeque::new(), is_prepared: false, ..self })
    }

    /// Whether its code and its copies are what they were.
    pub(super) fn is_current(&self, maps: &[MappedRange]) -> bool {
        self.text.is_current(maps) && self.room.is_intact(maps)
    }

    /// Whether a process with these mappings has the same memory.
    pub(super) fn shares_memory_with(&self, maps: &[MappedRange]) -> bool {
        self.room.is_mapped_in(maps)
    }

    /// Whether code at an address may be copied.
    pub(super) fn has_code(&self, address: u64) -> bool {
        self.text.contains(address)
    }

    /// The code of the process.
    pub(super) fn text(&self) -> &ProcessText {
        &self.text
    }

    /// Makes sure that there are areas near all of its code, by calls of a halted thread.
    ///
    /// # Errors
    /// Something else happened to the thread: this halt, to be answered.
    pub(super) fn prepare(
        &mut self,
        root: &Root,
        tracer: &Tracer,
        tid: u32,
        registers: &Registers,
    ) -> Result<(), Halt> {
        if self.is_prepared || !permission::may_call(root, tracer, self.pid, tid) {
            return Ok(());
        }
        let caller = Caller { tracer, tid, registers, instruction: self.instruction };
        self.room.make_low(&caller, &self.memory)?;
        for start in self.text.starts().filter(|start| *start != 0) {
            for purpose in PURPOSES {
                let copies = &mut self.copies[purpose as usize];
                if copies.lacks_area(start)
                    && let Some(area) =
                        self.room.make_area(root, self.pid, (purpose, start), (&caller, &self.memory))?
                {
                    copies.add_area(area);
                }
            }
        }
        self.is_prepared = true;
        Ok(())
    }

    /// Lets a thread in; `None` where there is no copy of where it is.
    pub(super) fn let_in(&mut self, purpose: Purpose, registers: &Registers) -> Option<Registers> {
        let way_in = self.of(purpose).way_in(registers.rip)?;
        self.enter(purpose, registers, &way_in)
    }

    /// Lets a thread in again that has just left: what it has counted stays.
    pub(super) fn let_back(&mut self, purpose: Purpose, registers: &Registers) -> Option<Registers> {
        let way_back = self.of(purpose).way_back(registers.rip)?;
        self.enter(purpose, registers, &way_back)
    }

    fn of(&self, purpose: Purpose) -> &Copies {
        &self.copies[purpose as usize]
    }

    fn enter(&mut self, purpose: Purpose, registers: &Registers, way_in: &WayIn) -> Option<Registers> {
        let writes = self.copies[purpose as usize].take_writes();
        self.write(&writes).and_then(|()| self.write(&way_in.writes)).ok()?;
        Some(Registers { rip: way_in.address, ..*registers })
    }

    /// Whether the instruction at an address has a copy.
    pub(super) fn has_copy(&self, purpose: Purpose, address: u64) -> bool {
        self.of(purpose).has(address)
    }

    /// Copies what is wanted, as far as it is not copied yet and can be; says how long that took, ns.
    pub(super) fn copy(&mut self, purpose: Purpose, wanted: &Wanted) -> u64 {
        let begun_ns = monotonic_ns();
        match wanted {
            Wanted::Place(address) => drop(self.copies[purpose as usize].copy(&self.text, *address)),
            Wanted::Targets(targets) => targets.iter().for_each(|target| self.copy_target(purpose, *target)),
        }
        monotonic_ns().saturating_sub(begun_ns)
    }

    /// Whether there is something that was wanted, and all of it has copies.
    pub(super) fn has_all(&self, purpose: Purpose, wanted: &Wanted) -> bool {
        match wanted {
            Wanted::Place(address) => self.has_copy(purpose, *address),
            Wanted::Targets(targets) => {
                !targets.is_empty() && targets.iter().all(|target| self.of(purpose).has_target(*target))
            }
        }
    }

    /// A thread was seen there.
    pub(super) fn note(&mut self, address: u64) {
        if self.text.contains(address) && PURPOSES.iter().any(|purpose| !self.has_copy(*purpose, address)) {
            self.noted.push_back(address);
        }
    }

    /// Copies code where threads were seen, for so long.
    pub(super) fn copy_noted(&mut self, until_ns: u64) {
        while monotonic_ns() < until_ns {
            let Some(address) = self.noted.pop_front() else { return };
            for purpose in PURPOSES {
                self.copy(purpose, &Wanted::Place(address));
            }
        }
    }

    /// Copies what copied code calls, for so long; says how long that took, ns.
    pub(super) fn copy_called(&mut self, until_ns: u64) -> u64 {
        let begun_ns = monotonic_ns();
        while monotonic_ns() < until_ns && self.copies.iter().any(Copies::has_called) {
            self.copies.iter_mut().for_each(|copies| copies.copy_called(&self.text));
        }
        monotonic_ns().saturating_sub(begun_ns)
    }

    /// What a thread lacked: what it looked for, and what it left for. That may have a copy that others push out of the table
    /// in which copies look addresses up.
    pub(super) fn lacked(parted: &Parted) -> Wanted {
        let looked_for = parted.missed.iter().copied().filter(|address| *address != 0);
        Wanted::Targets(looked_for.chain(parted.left).collect())
    }

    fn copy_target(&mut self, purpose: Purpose, target: u64) {
        let copies = &mut self.copies[purpose as usize];
        if self.text.contains(target) && copies.copy_target(&self.text, target) {
            copies.publish_missed(target);
        }
    }

    /// Whether the instruction at an address calls the kernel.
    pub(super) fn is_call(&self, address: u64) -> bool {
        let mut bytes = [0; SYSCALL.len()];
        self.text.contains(address) && read_bytes(self.pid, address, &mut bytes) == bytes.len() && bytes == SYSCALL
    }

    /// Whether a thread that is about to make a call tells us that it leaves.
    pub(super) fn says_farewell(&self, registers: &Registers) -> bool {
        self.holding(registers.rip).is_some() && registers.orig_rax == u64::from(FAREWELL)
    }

    /// The copies that an address is one of.
    fn holding(&self, address: u64) -> Option<&Copies> {
        self.copies.iter().find(|copies| copies.contains(address))
    }

    /// Time-stamp counter when the thread came in last; `None` before.
    pub(super) fn came_in(&self, purpose: Purpose) -> Option<u64> {
        let start = |area: u64| read_words(self.pid, area + 8 * Control::Start as u64, 1).map(|words| words[0]);
        self.of(purpose).controls().into_iter().filter_map(start).find(|stamp| *stamp != 0)
    }

    /// Where and when a thread that was let in has left.
    pub(super) fn parted(&self, purpose: Purpose, registers: &Registers) -> Option<Parted> {
        let controls = self.of(purpose).controls().into_iter().map(|start| read_words(self.pid, start, CONTROLS));
        let controls = controls.collect::<Option<Vec<_>>>()?;
        let word = |control: Control| controls.iter().map(|words| words[control as usize]).find(|word| *word != 0);
        let missed = controls.iter().map(|words| words[Control::Missed as usize]).collect();
        let is_out = self.holding(registers.rip).is_none() || self.says_farewell(registers);
        let stamps = (word(Control::Start).unwrap_or(0), word(Control::End).unwrap_or(0));
        Some(Parted { left: word(Control::Left).filter(|_| is_out), stamps, missed })
    }

    /// Registers of the program where the thread is in a copy; `None` where it or its memory is gone.
    pub(super) fn in_program(&self, registers: &Registers) -> Option<Registers> {
        let Some(copies) = self.holding(registers.rip) else { return Some(*registers) };
        let (origin, area) = copies.origin(registers.rip)?;
        let saved = |control| read_words(self.pid, area.control(control), 1).map(|words| words[0]);
        let mut program = *registers;
        if origin.saved & SAVED_RAX != 0 {
            program.rax = saved(Control::Rax)?;
        }
        if origin.saved & SAVED_RCX != 0 {
            program.rcx = saved(Control::Rcx)?;
        }
        if origin.saved & SAVED_RDX != 0 {
            program.rdx = saved(Control::Rdx)?;
        }
        if origin.saved & SAVED_R11 != 0 {
            program.r11 = saved(Control::R11)?;
            // The call that said so is none of the program's.
            program.orig_rax = NO_CALL;
        }
        program.rsp = program.rsp.wrapping_add(origin.popped);
        program.rip = match origin.place {
            Place::At(address) => address,
            Place::Noted => saved(Control::Original)?,
        };
        Some(program)
    }

    /// As [`super::Processes::put_in_program`].
    pub(super) fn put_in_program(&self, registers: &mut [u64; REGISTERS]) -> InCopy {
        let copy = self.copy_at(registers[register::IP]);
        let copies = self.holding(registers[register::IP]);
        let Some((origin, _)) = copies.and_then(|copies| copies.origin(registers[register::IP])) else { return copy };
        let Place::At(address) = origin.place else { return copy };
        registers[register::IP] = address;
        registers[register::SP] = registers[register::SP].wrapping_add(origin.popped);
        let aside = [
            (SAVED_RAX, register::AX),
            (SAVED_RCX, register::CX),
            (SAVED_RDX, register::DX),
            (SAVED_R11, register::R8 + 3),
        ];
        for (_, register) in aside.into_iter().filter(|(bit, _)| origin.saved & bit != 0) {
            registers[register] = 0;
        }
        copy
    }

    /// Whether an address is one of copies that count.
    fn copy_at(&self, address: u64) -> InCopy {
        let copies = self.of(Purpose::Count);
        match (copies.contains(address), copies.is_own(address)) {
            (false, _) => InCopy::No,
            (true, true) => InCopy::Own,
            (true, false) => InCopy::Added,
        }
    }

    /// What the counters hold when a thread is let in.
    pub(super) fn beginning(&self) -> Counters {
        self.of(Purpose::Count).beginning()
    }

    /// What they hold now.
    pub(super) fn counters(&self) -> Option<Counters> {
        let ranges = self.of(Purpose::Count).counters();
        let read = |range: std::ops::Range<u64>| {
            let words = usize::try_from((range.end - range.start) / 8).ok()?;
            if words == 0 { Some(Vec::new()) } else { read_words(self.pid, range.start, words) }
        };
        ranges.into_iter().map(read).collect()
    }

    /// What was run between two readings.
    pub(super) fn counts(&self, before: &Counters, after: &Counters) -> Vec<BlockCount> {
        let executions = self.of(Purpose::Count).executions(before, after).into_iter();
        executions
            .map(|(block, executions)| BlockCount { start: block.start, bytes: block.end - block.start, executions })
            .collect()
    }

    /// What was written down since a thread was let in for it.
    pub(super) fn touches(&self) -> Vec<Touch> {
        self.touched().unwrap_or_default().into_iter().map(touch).collect()
    }

    fn touched(&self) -> Option<Vec<Touched>> {
        let copies = self.of(Purpose::Log);
        let log = copies.log()?;
        let count = read_words(self.pid, log.count(), 1)?[0];
        let [addresses, numbers] = log.filled(count).map(|(start, bytes)| {
            let mut filled = vec![0; usize::try_from(bytes).unwrap_or(0)];
            self.memory.read(start, &mut filled).ok().map(|()| filled)
        });
        Some(copies.touched(count, &addresses?, &numbers?))
    }

    fn write(&self, writes: &[Write]) -> Result<(), LinuxError> {
        writes.iter().try_for_each(|write| self.memory.write(write.address, &write.bytes))
    }
}

fn touch(touched: Touched) -> Touch {
    let operand = match touched.operand.which {
        tierloom_bursts::Which::Named => Which::Named,
        tierloom_bursts::Which::Source => Which::Source,
        tierloom_bursts::Which::Destination => Which::Destination,
        tierloom_bursts::Which::Rounds => Which::Rounds,
    };
    let Touched { executions, addresses, .. } = touched;
    Touch { instruction: touched.operand.instruction, operand, executions, addresses }
}

/// The instruction that calls the kernel.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// All control words.
const CONTROLS: usize = tierloom_bursts::CONTROL_WORDS;

/// An instruction of the process that calls the kernel.
fn calling_instruction(pid: u32, maps: &[MappedRange]) -> Option<u64> {
    const MOST_BYTES: u64 = 4 << 20;
    let mut code: Vec<&MappedRange> =
        maps.iter().filter(|range| range.executable && range.path != "[vsyscall]").collect();
    // The kernel's own page is small and has one.
    code.sort_by_key(|range| range.path != "[vdso]");
    code.into_iter().find_map(|range| {
        let mut bytes = vec![0; usize::try_from(range.bytes.min(MOST_BYTES)).ok()?];
        let length = read_bytes(pid, range.start, &mut bytes);
        let position = bytes[..length].windows(2).position(|pair| pair == SYSCALL)?;
        Some(range.start + position as u64)
    })
}
