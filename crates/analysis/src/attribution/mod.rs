//! One pass over the samples in time order: where each one was, what it waited on, and which
//! addresses its surroundings touched.
//!
//! Only here are addresses looked up, because only here the world is as it was at the sample. What
//! comes out knows objects, functions and blocks, and no addresses any more.

pub(crate) mod callers;
pub(crate) mod counted_code;
mod entered;
mod events;
pub(crate) mod lookaheads;
mod named_calls;
mod neighbours;
mod observed;
pub(crate) mod operand;
pub(crate) mod operand_addresses;
mod page_faults;
pub(crate) mod touches;
pub(crate) mod unsampled;
pub(crate) mod waiting_instruction;
pub(crate) mod windows;

use std::collections::{BTreeMap, BTreeSet};

use tierloom_model::AccessKind;

use crate::address_space::{AddressSpaces, Place};
use crate::attribution::callers::UnwindRows;
use crate::attribution::counted_code::CountedCode;
use crate::attribution::events::{Events, Next};
use crate::attribution::lookaheads::SeenAhead;
use crate::attribution::named_calls::named_calls;
use crate::attribution::neighbours::neighbours;
pub(crate) use crate::attribution::observed::{AttributedSample, Attribution, Callers, Observed, OperandAddress, Rest};
pub(crate) use crate::attribution::operand::{ByObject, OperandId};
use crate::attribution::operand_addresses::{BlockStates, How, Touch, block_touches, loop_touches};
use crate::attribution::page_faults::PageFaults;
use crate::attribution::unsampled::Unsampled;
use crate::attribution::waiting_instruction::{WaitingInstruction, blame};
use crate::attribution::windows::CountedWindow;
use tierloom_binary::call_graph::complete::Roots;
use tierloom_binary::call_graph::unique_callers::{Level, Levels};
use tierloom_binary::cfg::{Block, BlockId, Function, LoopId};
use tierloom_binary::code::{Code, FunctionId};
use tierloom_binary::dataflow::state::{Shown, State};
use tierloom_binary::dataflow::steady::Steady;
use tierloom_binary::instruction::{Flags, Operand, RegisterSet};
use tierloom_recording::{Change, InstructionCounts, Recording, Sample, StackTop, Window, is_ours, register};

/// Runs the pass.
pub(crate) fn observe(recording: &Recording, counts: &InstructionCounts, spaces: &mut AddressSpaces<'_>) -> Observed {
    let faults = PageFaults::of(recording);
    let in_faults_s = faults.all_s();
    let mut pass = Pass {
        spaces,
        faults,
        counts,
        threads: BTreeMap::new(),
        steady: BTreeMap::new(),
        unwind: UnwindRows::default(),
        latest: BTreeMap::new(),
        looked_at: BTreeSet::new(),
        shown: BTreeSet::new(),
        tells_instruction: recording.calibration.tells_instruction(),
        found: Observed {
            seen: Vec::with_capacity(recording.samples.len()),
            in_library: Vec::new(),
            stack_tops: Vec::with_capacity(recording.stack_tops.len()),
            operand_addresses: Vec::new(),
            unsampled: Unsampled::default(),
            fixed: BTreeMap::new(),
            windows: Vec::new(),
            ahead: Vec::new(),
            counted: CountedCode::of(counts),
            in_faults_s,
            threads: Vec::new(),
            code: Code::default(),
            levels: Levels::default(),
            calls: BTreeMap::new(),
            named_calls: BTreeMap::new(),
            roots: Roots::default(),
            in_teams: BTreeMap::new(),
            images: BTreeMap::new(),
            generated: 0,
        },
    };
    let mut events = Events::of(recording);
    for sample in &recording.samples {
        pass.catch_up(&mut events, sample.time_ns);
        pass.spaces.advance(sample.time_ns);
        pass.take(sample, StackTop::find(&recording.stack_tops, sample.time_ns, sample.tid));
    }
    pass.catch_up(&mut events, u64::MAX);
    pass.spaces.advance(u64::MAX);
    pass.spaces.objects.close(recording.end_ns);
    pass.found.named_calls = named_calls(&pass.found.seen, &pass.found.code, &pass.spaces.modules);
    pass.find_roots(recording);
    pass.count_others();
    pass.found
}

struct Pass<'a, 'r> {
    spaces: &'a mut AddressSpaces<'r>,
    faults: PageFaults<'a>,
    counts: &'a InstructionCounts,
    threads: BTreeMap<(u32, u32), usize>,
    /// By function and loop: registers whose value is good anywhere in the loop.
    steady: BTreeMap<(FunctionId, LoopId), RegisterSet>,
    unwind: UnwindRows,
    /// By thread and function: the last sample whose stack told who called.
    latest: BTreeMap<(usize, FunctionId), usize>,
    /// Blocks that were counted and whose operands were looked at.
    looked_at: BTreeSet<(FunctionId, BlockId)>,
    /// Operands that samples show.
    shown: BTreeSet<OperandId>,
    /// Whether samples fall right behind what waited.
    tells_instruction: bool,
    found: Observed,
}

impl Pass<'_, '_> {
    fn catch_up(&mut self, events: &mut Events<'_>, until_ns: u64) {
        while let Some((time_ns, next)) = events.next(until_ns) {
            self.spaces.advance(time_ns);
            match next {
                Next::Fault(fault) => {
                    let object = self.spaces.fault(fault);
                    if let Some(object) = object.filter(|_| self.counts_some()) {
                        self.found.unsampled.note_fault(self.spaces, &mut self.found.code, fault, object);
                    }
                }
                Next::Window(window) => self.look(window),
                Next::Lookahead(ahead) => {
                    let seen = SeenAhead::of(ahead, &mut self.found.code, self.spaces);
                    self.found.ahead.push(seen);
                }
                Next::Residents(residents) => self.spaces.look(residents),
            }
        }
    }

    fn look(&mut self, window: &Window) {
        let counted = CountedWindow::of(window, &self.faults, &mut self.found.code, self.spaces);
        for &(function, block) in counted.executions.keys() {
            self.fix(window.pid, function, block);
        }
        self.found.windows.push(counted);
    }

    /// Takes in what was counted of a file of code, which this process has loaded.
    fn count(&mut self, pid: u32, module: usize) {
        for id in self.count_module(module) {
            for block in self.found.code.functions[id].function.blocks.indices() {
                self.fix(pid, id, block);
            }
        }
    }

    /// And of those into which no sample fell.
    fn count_others(&mut self) {
        for module in 0..self.spaces.modules.len() {
            self.count_module(module);
        }
    }

    fn count_module(&mut self, module: usize) -> Vec<FunctionId> {
        let modules = &self.spaces.modules;
        if !self.counts.files.contains_key(&modules[module].path) || !self.found.counted.enter(module) {
            return Vec::new();
        }
        self.found.counted.take(module, self.counts, &mut self.found.code, modules)
    }

    /// Operands of a block whose address is in the code itself: no sample need show them.
    fn fix(&mut self, pid: u32, id: FunctionId, block: BlockId) {
        if !self.looked_at.insert((id, block)) {
            return;
        }
        let function = self.found.code.functions[id].function.clone();
        let module = self.found.code.functions[id].module;
        let Some(bias) = self.spaces.bias_of(pid, module) else { return };
        let Block { first, end, .. } = function.blocks[block];
        for instruction in first..end {
            for (operand, content) in function.instructions[instruction].operands.iter().enumerate() {
                if content.registers().is_empty() {
                    let place = self.spaces.locate(pid, bias.wrapping_add(content.displacement), 0);
                    self.found.fixed.insert(OperandId { function: id, instruction, operand }, place);
                }
            }
        }
    }

    fn take(&mut self, sample: &Sample, top: Option<&StackTop>) {
        let next = self.threads.len();
        let thread = *self.threads.entry((sample.pid, sample.tid)).or_insert(next);
        if thread == next {
            self.found.threads.push((sample.pid, sample.tid));
        }
        // What the kernel does for it is the kernel's, as it is for the program.
        if !sample.kernel && self.spaces.mapping_path(sample.pid, sample.ip()).is_some_and(is_ours) {
            self.found.in_library.push(sample.time_ns);
            return;
        }
        let place = self.spaces.code_at(sample.pid, sample.ip());
        let at = self.found.code.find(&self.spaces.modules, place).filter(|_| !sample.kernel);
        let state = State::of_sample(&sample.registers, self.spaces.bias_at(sample.pid, sample.ip()));
        let (verdict, waited) = self.verdict(sample, at, &state);
        let instructions = sample.instructions;
        let shown = Shown { state: &state, stack: top.map_or(&[], |top| &top.words) };
        let callers = at.map_or(Callers::Unknown, |at| self.callers(sample, thread, (at, shown)));
        let stack_top = top.map(|top| {
            self.found.stack_tops.push(top.words);
            self.found.stack_tops.len() - 1
        });
        self.found.seen.push(AttributedSample {
            time_ns: sample.time_ns,
            thread,
            instructions,
            copy: sample.copy,
            at,
            state,
            stack_top,
            callers,
            verdict,
            waited,
        });
        if let Some((function, instruction)) = at {
            self.count(sample.pid, self.found.code.functions[function].module);
            if !self.found.calls.contains_key(&function) {
                let calls = self.found.code.passed_by(&self.spaces.modules, function);
                self.found.calls.insert(function, calls);
            }
            self.sight(sample, function, instruction, shown);
        }
    }

    fn callers(&mut self, sample: &Sample, thread: usize, (at, shown): ((FunctionId, usize), Shown<'_>)) -> Callers {
        match self.unwind.callers(self.spaces, &mut self.found.code, sample, (at, shown)) {
            Some(callers) => {
                self.latest.insert((thread, at.0), self.found.seen.len());
                Callers::Shown(callers)
            }
            None => self.latest.get(&(thread, at.0)).map_or(Callers::Unknown, |other| Callers::Like(*other)),
        }
    }

    fn find_roots(&mut self, recording: &Recording) {
        let mut known: BTreeSet<FunctionId> = self.found.seen.iter().filter_map(|seen| Some(seen.at?.0)).collect();
        let sampled: Vec<FunctionId> = known.iter().copied().collect();
        self.found.roots = Roots::find(&mut self.found.code, &self.spaces.modules, &sampled);
        let shown = self.found.seen.iter().flat_map(AttributedSample::shown_callers);
        known.extend(shown.map(|caller| caller.function));
        let (code, modules) = (&mut self.found.code, &self.spaces.modules);
        self.found.in_teams = known.into_iter().map(|id| (id, code.in_teams(modules, id))).collect();
        let execs = recording.processes.iter().filter(|process| matches!(process.change, Change::Exec { .. }));
        let started: BTreeSet<u32> = execs.map(|process| process.pid).chain([recording.pid]).collect();
        for seen in &self.found.seen {
            let pid = self.found.threads[seen.thread].0;
            if let Some((function, _)) = seen.at.filter(|_| started.contains(&pid)) {
                let module = self.found.code.functions[function].module;
                self.found.images.entry(module).or_default().insert(pid);
            }
        }
    }

    /// What a sample waited on, and the instruction that did where it was an object's.
    fn verdict(
        &mut self,
        sample: &Sample,
        at: Option<(FunctionId, usize)>,
        state: &State,
    ) -> (Attribution, Option<usize>) {
        if sample.kernel {
            return (Attribution::Rest(Rest::Kernel), None);
        }
        let Some((id, instruction)) = at else { return (Attribution::Rest(self.without_code(sample)), None) };
        let function = self.found.code.functions[id].function.clone();
        let blamed = blame(&function, instruction, Flags(sample.registers[register::FLAGS]), state);
        let sharp = self.verdict_of(sample, &function, blamed);
        let waited = match (sharp, blamed) {
            (Attribution::Object { .. }, WaitingInstruction::Memory { instruction, .. }) => Some(instruction),
            _ => None,
        };
        let verdict =
            if self.tells_instruction { sharp } else { self.verdict_of_block(sample, &function, instruction, state) };
        (verdict, waited)
    }

    fn verdict_of(&mut self, sample: &Sample, function: &Function, blamed: WaitingInstruction) -> Attribution {
        match blamed {
            WaitingInstruction::Stack => Attribution::Rest(Rest::Stack),
            WaitingInstruction::Compute => Attribution::Rest(Rest::Compute),
            WaitingInstruction::Unrecovered => Attribution::Rest(Rest::Unrecovered),
            WaitingInstruction::Memory { instruction, address, is_exact } => {
                let stack_pointer = sample.registers[register::SP];
                match self.spaces.locate(sample.pid, address, stack_pointer) {
                    Place::Stack => Attribution::Rest(Rest::Stack),
                    Place::Nowhere => Attribution::Rest(Rest::Other),
                    Place::Object(object, offset) => {
                        self.spaces.objects.touch(object, sample.time_ns);
                        Attribution::Object {
                            object,
                            offset: Some(offset).filter(|_| is_exact),
                            access: access(&function.instructions[instruction].operands),
                        }
                    }
                }
            }
        }
    }

    /// Where the skid blurs instructions: what all of the block's operands touch, if that is one object.
    fn verdict_of_block(
        &mut self,
        sample: &Sample,
        function: &Function,
        instruction: usize,
        state: &State,
    ) -> Attribution {
        let states = BlockStates::new(function, instruction, state);
        let touches = block_touches(function, instruction, &states);
        let block = function.instructions_of(function.block_of(instruction)).iter();
        let operands: usize = block.map(|instruction| instruction.operands.len()).sum();
        let stack_pointer = sample.registers[register::SP];
        let places: Vec<(Place, usize)> = touches
            .iter()
            .map(|touch| (self.spaces.locate(sample.pid, touch.address, stack_pointer), touch.instruction))
            .collect();
        match places[..] {
            [] if operands == 0 => Attribution::Rest(Rest::Compute),
            [(Place::Object(object, offset), first), ..]
                if places.len() == operands
                    && places.iter().all(|(place, _)| matches!(place, Place::Object(other, _) if *other == object)) =>
            {
                self.spaces.objects.touch(object, sample.time_ns);
                Attribution::Object {
                    object,
                    offset: Some(offset),
                    access: access(&function.instructions[first].operands),
                }
            }
            _ => Attribution::Rest(Rest::Unrecovered),
        }
    }

    /// The virtual system calls (time of day and the like) are the kernel's; what runs outside any
    /// file was generated by the program itself.
    fn without_code(&mut self, sample: &Sample) -> Rest {
        match self.spaces.mapping_path(sample.pid, sample.ip()) {
            Some("[vdso]" | "[vsyscall]") => return Rest::Kernel,
            Some(path) if self.spaces.is_lacking(path) => {}
            _ => self.found.generated += 1,
        }
        Rest::Unrecovered
    }

    fn sight(&mut self, sample: &Sample, id: FunctionId, instruction: usize, shown: Shown<'_>) {
        let state = shown.state;
        let function = self.found.code.functions[id].function.clone();
        let states = BlockStates::new(&function, instruction, state);
        self.note(sample, id, block_touches(&function, instruction, &states));
        let block = function.block_of(instruction);
        let mut inside: Option<LoopId> = None;
        for around in function.loops_around(block) {
            let valid = self.known(id, around);
            let inner = inside.map(|inner| &function.loops[inner]);
            let covered = |other| other == block || inner.is_some_and(|inner| inner.contains(other));
            let mut valid = valid;
            if let Some(inner) = inner {
                valid = valid.without(inner.written);
            }
            let touches = loop_touches(&function, around, valid, state, covered);
            self.note(sample, id, touches);
            inside = Some(around);
        }
        let modules = &self.spaces.modules;
        let levels = self.found.levels.of(&mut self.found.code, modules, id);
        for level in levels.iter() {
            self.sight_level(sample, level, state);
        }
        if self.counts_some() {
            let unsampled = &mut self.found.unsampled;
            let around = neighbours(&function, instruction, &states, &shown.stack_words());
            unsampled.note_neighbours(self.spaces, sample, (id, around), &self.shown);
            let own = (id, &*function);
            unsampled.note_entry(self.spaces, sample, own, &[instruction], (state, RegisterSet::ALL));
            for level in levels.iter() {
                let caller = (level.function, &*self.found.code.functions[level.function].function);
                unsampled.note_entry(self.spaces, sample, caller, &level.sites, (state, level.valid));
            }
        }
    }

    /// Whether executions of any code were counted.
    fn counts_some(&self) -> bool {
        !self.counts.files.is_empty()
    }

    /// Operands of a caller's loop, by the registers that the callees left alone.
    fn sight_level(&mut self, sample: &Sample, level: &Level, state: &State) {
        let function = self.found.code.functions[level.function].function.clone();
        let Some(around) = level.inside else { return };
        let mut valid = self.known(level.function, around);
        valid = valid.common(level.valid);
        if !valid.is_empty() {
            let touches = loop_touches(&function, around, valid, state, |_| false);
            self.note(sample, level.function, touches);
        }
    }

    fn known(&mut self, id: FunctionId, around: LoopId) -> RegisterSet {
        let function = &self.found.code.functions[id].function;
        *self.steady.entry((id, around)).or_insert_with(|| Steady::of(function, around).known())
    }

    fn note(&mut self, sample: &Sample, function: FunctionId, touches: Vec<Touch>) {
        let seen = self.found.seen.len() - 1;
        let stack_pointer = sample.registers[register::SP];
        for Touch { instruction, operand, address, how } in touches {
            let place = self.spaces.locate(sample.pid, address, stack_pointer);
            if how == How::Near && !matches!(place, Place::Object(..)) {
                continue;
            }
            self.shown.insert(OperandId { function, instruction, operand });
            self.found.operand_addresses.push(OperandAddress { seen, function, instruction, operand, place, how });
        }
    }
}

fn access(operands: &[Operand]) -> AccessKind {
    match operands.first() {
        Some(operand) if operand.read && operand.write => AccessKind::ReadWrite,
        Some(operand) if operand.write => AccessKind::Write,
        Some(_) => AccessKind::Read,
        None => AccessKind::None,
    }
}
