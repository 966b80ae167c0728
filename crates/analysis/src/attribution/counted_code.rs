//! Code whose instructions were counted in another run of the same build: executions by block.
//!
//! A string instruction is counted once a round and once more when it ends, so its block's other instructions tell how
//! often it was executed, and the rest is its rounds.
//!
//! What the linker puts between a call and a library (a stub of the procedure linkage table, which reads the library's
//! address) is code of no file for callgrind: a stub runs as often as counted code calls it.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_binary::cfg::{BlockId, Function};
use tierloom_binary::code::{Code, CodePlace, FunctionId};
use tierloom_binary::elf::Binary;
use tierloom_binary::instruction::{Flow, Instruction};
use tierloom_recording::{Fetched, InstructionCounts, SimulatedCaches};

/// Executions by virtual address of a file of code.
pub(crate) type ByAddress = BTreeMap<u64, u64>;

/// What was counted.
#[derive(Debug, Default)]
pub(crate) struct CountedCode {
    /// By function that ran: executions of its blocks; none of those that are not there.
    pub(crate) functions: BTreeMap<FunctionId, BTreeMap<BlockId, f64>>,
    /// Rounds of string instructions, by position.
    pub(crate) rounds: BTreeMap<(FunctionId, usize), f64>,
    /// Lines that instructions fetched, by position.
    pub(crate) fetched: BTreeMap<(FunctionId, usize), Fetched>,
    /// The caches that were simulated for it.
    pub(crate) caches: Option<SimulatedCaches>,
    /// All lines from memory, those of code that nobody knows too.
    pub(crate) from_memory: f64,
    /// Files of code of which anything was counted.
    modules: BTreeSet<usize>,
}

impl CountedCode {
    /// Nothing yet of these counts.
    pub(crate) fn of(counts: &InstructionCounts) -> Self {
        let lines = counts.fetched.values().flat_map(BTreeMap::values).map(Fetched::from_memory);
        Self { caches: counts.caches, from_memory: lines.map(|lines| lines as f64).sum(), ..Self::default() }
    }

    /// Whether a file of code was looked at before; from now on it was.
    pub(crate) fn enter(&mut self, module: usize) -> bool {
        self.modules.insert(module)
    }

    /// Whether a function ran that lies in code which was counted, and none of its instructions was.
    pub(crate) fn lacks(&self, module: usize, function: FunctionId) -> bool {
        self.modules.contains(&module) && !self.functions.contains_key(&function)
    }

    /// Whether anything was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Takes in what was counted of a file of code; which functions that is.
    pub(crate) fn take(
        &mut self,
        module: usize,
        counts: &InstructionCounts,
        code: &mut Code,
        modules: &[Binary],
    ) -> Vec<FunctionId> {
        let path = &modules[module].path;
        let Some(executions) = counts.files.get(path) else { return Vec::new() };
        let by_function = by_function(module, executions, code, modules).0;
        for (address, fetched) in counts.fetched.get(path).into_iter().flatten() {
            if let Some((id, at)) = code.find(modules, CodePlace { module: Some(module), address: *address }) {
                self.fetched.entry((id, at)).or_default().add(*fetched);
            }
        }
        for (id, counted) in &by_function {
            let function = &code.functions[*id].function;
            for block in function.blocks.indices() {
                self.take_block(*id, function, block, counted);
            }
        }
        let mut taken: Vec<FunctionId> = by_function.into_keys().collect();
        let mut called = BTreeMap::new();
        for id in &taken {
            add_calls(&code.functions[*id].function, &self.functions[id], &mut called);
        }
        for (address, calls) in called {
            let found = code.find(modules, CodePlace { module: Some(module), address });
            let Some((id, 0)) = found.filter(|(id, _)| calls > 0.0 && !self.functions.contains_key(id)) else {
                continue;
            };
            let entry = code.functions[id].function.block_of(0);
            self.functions.insert(id, BTreeMap::from([(entry, calls)]));
            taken.push(id);
        }
        taken
    }

    fn take_block(&mut self, id: FunctionId, function: &Function, block: BlockId, counted: &ByPosition) {
        let executions = executions_of(function, block, counted);
        self.functions.entry(id).or_default().insert(block, executions);
        let own = function.blocks[block].first..function.blocks[block].end;
        for at in own.filter(|at| repeats(&function.instructions[*at])) {
            let all = counted.get(&at).copied().unwrap_or(0.0);
            let rounds = if all > executions { all - executions } else { all };
            self.rounds.insert((id, at), rounds);
        }
    }
}

/// Adds how often a function goes to each address that its calls and jumps name.
fn add_calls(function: &Function, executions: &BTreeMap<BlockId, f64>, called: &mut BTreeMap<u64, f64>) {
    for (at, instruction) in function.instructions.iter().enumerate() {
        if let Flow::Call(target) | Flow::Jump(target) = instruction.flow {
            let often = executions.get(&function.block_of(at)).copied().unwrap_or(0.0);
            *called.entry(target).or_default() += often;
        }
    }
}

/// Executions by position of the instruction.
pub(crate) type ByPosition = BTreeMap<usize, f64>;

/// Executions of all instructions, and addresses at which a known function has none.
pub(crate) fn by_function(
    module: usize,
    executions: &ByAddress,
    code: &mut Code,
    modules: &[Binary],
) -> (BTreeMap<FunctionId, ByPosition>, usize) {
    let (mut found, mut lost) = (BTreeMap::<FunctionId, ByPosition>::new(), 0);
    for (&address, &count) in executions {
        match code.find(modules, CodePlace { module: Some(module), address }) {
            Some((id, at)) => drop(found.entry(id).or_default().insert(at, count as f64)),
            None => lost += usize::from(modules[module].function_at(address).is_some()),
        }
    }
    (found, lost)
}

/// Whoever enters a block runs all of it, or is thrown out on the way. Where nothing of it is told by itself, all of it tells.
fn executions_of(function: &Function, block: BlockId, counted: &ByPosition) -> f64 {
    let own = || function.blocks[block].first..function.blocks[block].end;
    let least = |all: &mut dyn Iterator<Item = usize>| all.filter_map(|at| counted.get(&at).copied()).reduce(f64::min);
    let plain = least(&mut own().filter(|at| tells_itself(&function.instructions[*at])));
    plain.or_else(|| least(&mut own())).unwrap_or(0.0)
}

/// Whether what was counted of an instruction is how often it was executed: of a string instruction it is its rounds, and
/// of a call or a jump callgrind adds what the linker put between it and a library (`--skip-plt=yes`, which it does by itself).
pub(crate) fn tells_itself(instruction: &Instruction) -> bool {
    let leaves = matches!(instruction.flow, Flow::Jump(_) | Flow::IndirectJump) || instruction.flow.is_call();
    !repeats(instruction) && !leaves
}

fn repeats(instruction: &Instruction) -> bool {
    instruction.operands.iter().any(|operand| operand.repeats.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0x1000 mov rcx,rdx | 0x1003 rep movsb | 0x1005 dec rsi | 0x1008 jne 0x1000 | 0x100a ret
    const COPY: &[u8] = &[0x48, 0x89, 0xd1, 0xf3, 0xa4, 0x48, 0xff, 0xce, 0x75, 0xf6, 0xc3];

    #[test]
    fn a_block_runs_as_often_as_its_plain_instructions_and_the_rest_are_rounds() {
        let function = Function::decode(COPY, 0x1000);
        let counted = ByPosition::from([(0, 10.0), (1, 1010.0), (2, 10.0), (3, 10.0), (4, 1.0)]);
        let mut code = CountedCode::default();
        let id = FunctionId::new(0);
        for block in function.blocks.indices() {
            code.take_block(id, &function, block, &counted);
        }
        let executions: Vec<f64> = code.functions[&id].values().copied().collect();
        assert_eq!(executions, [10.0, 1.0]);
        assert_eq!(code.rounds, BTreeMap::from([((id, 1), 1000.0)]));
    }

    /// 0x1000 call 0x1100 | 0x1005 dec rsi | 0x1008 jne 0x1005 | 0x100a call 0x1100 | 0x100f jmp 0x1200
    const CALLS: &[u8] = &[
        0xe8, 0xfb, 0x00, 0x00, 0x00, 0x48, 0xff, 0xce, 0x75, 0xfb, 0xe8, 0xf1, 0x00, 0x00, 0x00, 0xe9, 0xec, 0x01,
        0x00, 0x00,
    ];

    #[test]
    fn a_stub_runs_as_often_as_it_is_called() {
        let function = Function::decode(CALLS, 0x1000);
        let often = |block| if block == function.block_of(1) { 50.0 } else { 7.0 };
        let executions = function.blocks.indices().map(|block| (block, often(block))).collect();
        let mut called = BTreeMap::new();
        add_calls(&function, &executions, &mut called);
        assert_eq!(called, BTreeMap::from([(0x1100, 14.0), (0x1200, 7.0)]));
    }
}
