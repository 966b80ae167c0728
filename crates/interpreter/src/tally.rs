//! What a stretch of instructions did: which way branches went, and where operands were.

use std::collections::HashMap;

use crate::by_address::{ByAddress, Hashed};
use crate::bytes::Bytes;
use crate::ended::Ended;
use crate::machine::Machine;
use crate::step::Step;

/// Addresses that are kept of an operand: evenly over its executions.
const MOST_ADDRESSES: usize = 16;
/// Instructions between two looks at whether to go on.
const BETWEEN_LOOKS: u64 = 128;

/// Which operand of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Which {
    /// The one that it names.
    Named,
    /// What a string instruction reads.
    Source,
    /// Where a string instruction writes, or what it compares with.
    Destination,
    /// None of them: how often a string instruction was repeated, in the place of addresses.
    Rounds,
}

/// A conditional jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Its address.
    pub address: u64,
    /// How often it jumped.
    pub taken: u64,
    /// How often it did not.
    pub passed: u64,
}

/// Instructions one after the other, up to a jump, a call or a return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Address of the first.
    pub start: u64,
    /// Address of the last.
    pub last: u64,
    /// How often.
    pub executions: u64,
}

/// An operand in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// Address of its instruction.
    pub instruction: u64,
    /// Which of its operands.
    pub operand: Which,
    /// How often the instruction was executed.
    pub executions: u64,
    /// Some of its addresses, evenly from first to last.
    pub addresses: Vec<u64>,
}

/// What a stretch of instructions did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// How many there were.
    pub instructions: u64,
    /// Why there are no more; `None` where no more were wanted.
    pub ended: Option<Ended>,
    /// Ascending by address.
    pub branches: Vec<Branch>,
    /// Ascending by address of the first instruction.
    pub runs: Vec<Run>,
    /// Ascending by address of the instruction.
    pub touched: Vec<Touched>,
}

impl Ahead {
    /// So many instructions from here, as long as `goes_on` wants more.
    pub fn of<B: Bytes>(machine: &mut Machine<B>, most: u64, mut goes_on: impl FnMut() -> bool) -> Self {
        let mut tally = Tally::default();
        let mut instructions = 0;
        let ended = loop {
            if instructions == most || instructions % BETWEEN_LOOKS == BETWEEN_LOOKS - 1 && !goes_on() {
                break None;
            }
            match machine.step() {
                Ok(step) => tally.take(&step),
                Err(ended) => break Some(ended),
            }
            instructions += 1;
        };
        tally.close();
        let Tally { runs, branches, operands, .. } = tally;
        let run = |((start, last), executions)| Run { start, last, executions };
        let branch = |(address, (taken, passed))| Branch { address, taken, passed };
        let mut ahead = Self {
            instructions,
            ended,
            branches: branches.into_iter().map(branch).collect(),
            runs: runs.into_iter().map(run).collect(),
            touched: operands
                .into_iter()
                .map(|((instruction, operand), some)| some.touched(instruction, operand))
                .collect(),
        };
        ahead.branches.sort_unstable_by_key(|branch| branch.address);
        ahead.runs.sort_unstable_by_key(|run| (run.start, run.last));
        ahead.touched.sort_unstable_by_key(|touched| (touched.instruction, touched.operand));
        ahead
    }
}

#[derive(Debug, Default)]
struct Tally {
    runs: HashMap<(u64, u64), u64, Hashed>,
    /// The run that is not over: its first and its last instruction.
    open: Option<(u64, u64)>,
    branches: ByAddress<(u64, u64)>,
    operands: HashMap<(u64, Which), Evenly, Hashed>,
}

impl Tally {
    fn take(&mut self, step: &Step) {
        let start = self.open.map_or(step.address, |(start, _)| start);
        self.open = Some((start, step.address));
        if step.jumps {
            self.close();
        }
        if let Some(taken) = step.branch {
            let known = self.branches.entry(step.address).or_default();
            *known = (known.0 + u64::from(taken), known.1 + u64::from(!taken));
        }
        self.touch(step);
    }

    /// Ends the run that is open.
    fn close(&mut self) {
        if let Some(run) = self.open.take() {
            *self.runs.entry(run).or_default() += 1;
        }
    }

    fn touch(&mut self, step: &Step) {
        let mut note = |which, address: Option<u64>| {
            if let Some(address) = address {
                self.operands.entry((step.address, which)).or_default().take(address);
            }
        };
        note(Which::Named, step.touched);
        if let Some(repeated) = step.repeated {
            note(Which::Source, repeated.source);
            note(Which::Destination, repeated.destination);
            note(Which::Rounds, Some(repeated.rounds));
        }
    }
}

/// Some of many numbers, evenly from first to last.
#[derive(Debug)]
struct Evenly {
    seen: u64,
    one_in: u64,
    kept: Vec<u64>,
}

impl Default for Evenly {
    fn default() -> Self {
        Self { seen: 0, one_in: 1, kept: Vec::new() }
    }
}

impl Evenly {
    fn take(&mut self, number: u64) {
        if self.seen.is_multiple_of(self.one_in) {
            if self.kept.len() == MOST_ADDRESSES {
                let mut position = 0;
                self.kept.retain(|_| {
                    position += 1;
                    position % 2 == 1
                });
                self.one_in *= 2;
            }
            if self.seen.is_multiple_of(self.one_in) {
                self.kept.push(number);
            }
        }
        self.seen += 1;
    }

    fn touched(self, instruction: u64, operand: Which) -> Touched {
        Touched { instruction, operand, executions: self.seen, addresses: self.kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registers::Registers;
    use proptest::prelude::*;

    /// The same bytes again and again, wherever one looks below an end.
    struct Everywhere(Vec<u8>);

    impl Bytes for Everywhere {
        fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
            for (byte, along) in into.iter_mut().zip(0..) {
                *byte = self.0[usize::try_from(address.wrapping_add(along) % self.0.len() as u64).unwrap()];
            }
            address < 1 << 63
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_code_is_survived(
            code in prop::collection::vec(any::<u8>(), 1..60),
            general: [u64; 16], flags: u64, ip in 0_u64..1 << 62, known: bool,
            vectors in prop::collection::vec(any::<[u64; 4]>(), 32),
        ) {
            let held = Registers::new(general, flags, ip, [0, 1 << 20]);
            let registers = std::array::from_fn(|number| known.then_some(vectors[number]));
            let mut machine = Machine::new(held.with_vectors(&registers, [Some(flags); 8]), Everywhere(code));
            let ahead = Ahead::of(&mut machine, 300, || true);
            prop_assert!(ahead.instructions == 300 || ahead.ended.is_some());
            let jumps: u64 = ahead.branches.iter().map(|branch| branch.taken + branch.passed).sum();
            let runs: u64 = ahead.runs.iter().map(|run| run.executions).sum();
            prop_assert!(jumps <= runs && runs <= ahead.instructions);
        }
    }

    #[test]
    fn some_of_many_lie_evenly_from_first_to_last() {
        let mut some = Evenly::default();
        (0..1000).for_each(|number| some.take(number));
        assert_eq!(some.seen, 1000);
        assert!(some.kept.len() > MOST_ADDRESSES / 2 && some.kept[0] == 0, "{:?}", some.kept);
        assert!(some.kept.windows(2).all(|pair| pair[1] - pair[0] == some.one_in));
        assert!(some.kept[some.kept.len() - 1] > 1000 - 2 * some.one_in);
    }
}
