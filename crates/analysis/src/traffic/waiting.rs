//! Samples in which a function may have waited for memory.
//!
//! A sample blames the instruction that retired last. One whose operands a cache had at once takes no longer than others do, so
//! as many samples fall on it as on an instruction without memory, execution by execution: what falls on loads beyond that
//! waited for something.

use std::collections::BTreeMap;

use tierloom_binary::arch::STACK_POINTER;
use tierloom_binary::cfg::Function;
use tierloom_binary::code::FunctionId;
use tierloom_binary::instruction::Instruction;

use crate::attribution::{Attribution, Observed, Rest};
use crate::frequency::Counts;
use crate::frequency::blocks::BlockCounts;

/// Samples of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spent {
    /// All of them.
    pub(crate) all: f64,
    /// Those that fell on what may wait: on loads of objects, and where nobody knows on what.
    pub(crate) on_loads: f64,
    /// Those of them that loads would have that wait for nothing.
    pub(crate) at_once: f64,
}

impl Spent {
    /// By function.
    pub(crate) fn by_function(observed: &Observed, counts: &Counts) -> BTreeMap<FunctionId, Self> {
        let mut spent: BTreeMap<FunctionId, Self> = BTreeMap::new();
        let mut computing: BTreeMap<FunctionId, f64> = BTreeMap::new();
        for seen in &observed.seen {
            let Some((function, _)) = seen.at else { continue };
            let sum = spent.entry(function).or_default();
            sum.all += 1.0;
            match seen.verdict {
                Attribution::Rest(Rest::Compute) => *computing.entry(function).or_default() += 1.0,
                Attribution::Rest(Rest::Stack | Rest::Kernel) => {}
                _ => sum.on_loads += 1.0,
            }
        }
        for (id, computing) in computing {
            let (Some(sum), Some(blocks)) = (spent.get_mut(&id), counts.blocks.get(&id)) else { continue };
            let (loads, others) = executions(&observed.code.functions[id].function, blocks);
            sum.at_once = if others > 0.0 { (computing * loads / others).min(sum.on_loads) } else { 0.0 };
        }
        spent
    }

    /// Most samples that waited, by the upper end of a Poisson count's 95 % interval: its square root has a variance of 1/4, and
    /// of nothing seen three are possible.
    pub(crate) fn most_waiting(&self) -> f64 {
        (most(self.on_loads) - self.at_once).max(most(0.0))
    }

    /// Most samples of all.
    pub(crate) fn most(&self) -> f64 {
        most(self.all)
    }
}

impl std::iter::Sum for Spent {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            all: sum.all + one.all,
            on_loads: sum.on_loads + one.on_loads,
            at_once: sum.at_once + one.at_once,
        })
    }
}

fn most(seen: f64) -> f64 {
    seen.sqrt().mul_add(2.0, seen + 3.0)
}

/// Of instructions that load or store elsewhere than on the stack, and of those without memory.
fn executions(function: &Function, blocks: &BlockCounts) -> (f64, f64) {
    let on_stack = |instruction: &Instruction| {
        instruction.uses_stack || instruction.operands.iter().any(|one| one.base == Some(STACK_POINTER))
    };
    let (mut loads, mut others) = (0.0, 0.0);
    for block in function.blocks.indices() {
        for instruction in function.instructions_of(block).iter().filter(|one| !on_stack(one)) {
            *if instruction.operands.is_empty() { &mut others } else { &mut loads } += blocks.executions[block];
        }
    }
    (loads, others)
}
