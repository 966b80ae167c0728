//! What a stretch of instructions did: which way branches went, and where operands were.

use foldhash::HashMap;
use tierloom_interpreter::{Bytes, Ended, Machine, Step};
use tierloom_recording::{BlockCount, BranchCount, Touch, Which};

/// Addresses that are kept of an operand: evenly over its executions.
const MOST_ADDRESSES: usize = 16;
/// Instructions between two looks at whether to go on.
const BETWEEN_LOOKS: u64 = 128;

/// What a stretch of instructions did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ahead {
    /// How many there were.
    pub(super) instructions: u64,
    /// Why there are no more; `None` where no more were wanted.
    pub(super) ended: Option<Ended>,
    /// Ascending by address.
    pub(super) branches: Vec<BranchCount>,
    /// Runs of instructions up to a jump, a call or a return, ascending by address of the first.
    pub(super) counts: Vec<BlockCount>,
    /// Ascending by address of the instruction.
    pub(super) touches: Vec<Touch>,
}

impl Ahead {
    /// So many instructions from here, as long as `goes_on` wants more.
    pub(super) fn of<B: Bytes>(machine: &mut Machine<B>, most: u64, mut goes_on: impl FnMut() -> bool) -> Self {
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
        let count = |((start, last), executions)| BlockCount { start, bytes: last - start + 1, executions };
        let branch = |(address, (taken, passed))| BranchCount { address, taken, passed };
        let touch = |((instruction, operand), some): (_, Evenly)| some.touch(instruction, operand);
        let mut ahead = Self {
            instructions,
            ended,
            branches: branches.into_iter().map(branch).collect(),
            counts: runs.into_iter().map(count).collect(),
            touches: operands.into_iter().map(touch).collect(),
        };
        ahead.branches.sort_unstable_by_key(|branch| branch.address);
        ahead.counts.sort_unstable_by_key(|count| (count.start, count.bytes));
        ahead.touches.sort_unstable_by_key(|touch| (touch.instruction, touch.operand));
        ahead
    }
}

#[derive(Debug, Default)]
struct Tally {
    runs: HashMap<(u64, u64), u64>,
    /// The run that is not over: its first and its last instruction.
    open: Option<(u64, u64)>,
    branches: HashMap<u64, (u64, u64)>,
    operands: HashMap<(u64, Which), Evenly>,
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

    fn touch(self, instruction: u64, operand: Which) -> Touch {
        Touch { instruction, operand, executions: self.seen, addresses: self.kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tierloom_interpreter::Registers;

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
            let runs: u64 = ahead.counts.iter().map(|count| count.executions).sum();
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
