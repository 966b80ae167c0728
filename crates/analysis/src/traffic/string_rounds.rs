//! How often string instructions access memory: as often as they are repeated, which may be a billion times an execution.
//!
//! Windows count executions. How often each is repeated its counter tells: where operands were written down just before
//! a window, and, of those that take longer than the time from one sample to the next, by how far it falls between
//! the two.

use std::collections::{BTreeMap, BTreeSet};

use crate::attribution::windows::CountedWindow;
use crate::attribution::{AttributedSample, Observed, OperandId};
use tierloom_binary::code::FunctionId;
use tierloom_binary::instruction::Operand;

/// Function, and position of the instruction.
type At = (FunctionId, usize);

/// What is known of string instructions.
#[derive(Debug, Default)]
pub(crate) struct StringRounds {
    /// Mean rounds of an execution, of those that windows counted.
    each: BTreeMap<At, f64>,
    /// Rounds in the whole run, of those that are longer than the time between samples.
    total: BTreeMap<At, f64>,
    /// Rounds in the whole run, of those that were counted.
    counted: BTreeMap<At, f64>,
}

impl StringRounds {
    /// By these windows, and by all samples.
    pub(crate) fn of(observed: &Observed, windows: &[&CountedWindow]) -> Self {
        Self { each: each(observed, windows), total: total(observed), counted: observed.counted.rounds.clone() }
    }

    /// Accesses of an operand that is executed so often.
    pub(crate) fn accesses(&self, operand: OperandId, executions: f64) -> f64 {
        /// Executions that take a little less time than passes between samples look like one that goes on slowly; windows
        /// are not so far off. Assumed.
        const SLOW: f64 = 0.5;
        let at = (operand.function, operand.instruction);
        if let Some(counted) = self.counted.get(&at) {
            return *counted;
        }
        let by_windows = executions * self.each.get(&at).copied().unwrap_or(1.0);
        self.total.get(&at).copied().filter(|total| *total > SLOW * by_windows).unwrap_or(by_windows)
    }
}

/// Mean rounds; of those that no window counted, samples tell how many rounds there are, not how many executions.
fn each(observed: &Observed, windows: &[&CountedWindow]) -> BTreeMap<At, f64> {
    let counted: BTreeSet<_> = windows.iter().flat_map(|window| window.executions.keys().copied()).collect();
    let mut sums: BTreeMap<At, (f64, f64)> = BTreeMap::new();
    for window in windows {
        for (operand, rounds) in &window.touches.rounds {
            let at = (operand.function, operand.instruction);
            let block = observed.code.functions[at.0].function.block_of(at.1);
            if operand.operand > 0 || !counted.contains(&(at.0, block)) {
                continue;
            }
            // The one in which the window began is half over in the mean.
            let half = window.entered.filter(|entered| *entered == at).and(rounds.first()).copied().unwrap_or(0);
            let sum = sums.entry(at).or_default();
            sum.0 += (rounds.iter().sum::<u64>() + half) as f64;
            sum.1 += rounds.len() as f64;
        }
    }
    sums.into_iter().map(|(at, (rounds, executions))| (at, (rounds / executions).max(1.0))).collect()
}

/// Rounds in the whole run: those from one sample in an execution to the next, for each sample there.
fn total(observed: &Observed) -> BTreeMap<At, f64> {
    let mut all: BTreeMap<At, Paces> = BTreeMap::new();
    let mut last: BTreeMap<usize, Option<Moment>> = BTreeMap::new();
    for seen in &observed.seen {
        let now = Moment::of(observed, seen);
        let before = last.insert(seen.thread, now).flatten();
        if let Some(now) = now {
            all.entry(now.at).or_default().add(now, before);
        }
    }
    all.into_iter().filter_map(|(at, paces)| Some((at, paces.total()?))).collect()
}

/// How fast a string instruction goes on.
#[derive(Debug, Default)]
struct Paces {
    samples: f64,
    /// Pairs of samples in one execution, and the rounds between them.
    pairs: f64,
    rounds: f64,
    /// Pairs of which the second is in a later execution of the same.
    later: f64,
}

impl Paces {
    fn add(&mut self, now: Moment, before: Option<Moment>) {
        self.samples += 1.0;
        match before.map(|before| now.since(before)) {
            Some(Since::Rounds(rounds)) => {
                self.pairs += 1.0;
                self.rounds += rounds as f64;
            }
            Some(Since::Later) => self.later += 1.0,
            Some(Since::Another) | None => {}
        }
    }

    /// None of those that are over before the next sample: the counter of the next one is as often higher as lower.
    fn total(&self) -> Option<f64> {
        /// Fewer pairs tell no pace. Assumed.
        const ENOUGH: f64 = 4.0;
        /// Pairs in one execution for each that is in two. Assumed.
        const LONG: f64 = 3.0;
        let tells = self.pairs >= ENOUGH && self.pairs >= LONG * self.later;
        tells.then(|| self.samples * self.rounds / self.pairs)
    }
}

/// A sample in a string instruction that goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Moment {
    at: At,
    /// Rounds that are left.
    left: u64,
    /// Where it accesses memory next.
    address: u64,
    bytes: u64,
}

impl Moment {
    fn of(observed: &Observed, seen: &AttributedSample) -> Option<Self> {
        let at = seen.at?;
        let operand: &Operand = observed.code.functions[at.0].function.instructions[at.1].operands.first()?;
        let left = seen.state.get(operand.repeats?)?;
        Some(Self { at, left, address: seen.state.address(operand)?, bytes: u64::from(operand.bytes) })
    }

    /// What happened since another moment: in each round of an execution its counter falls by one, and its address goes on.
    fn since(self, before: Self) -> Since {
        let moved = self.address.abs_diff(before.address);
        if self.at != before.at || moved != self.left.abs_diff(before.left).wrapping_mul(self.bytes) {
            return Since::Another;
        }
        match before.left.checked_sub(self.left) {
            Some(rounds) if rounds > 0 => Since::Rounds(rounds),
            _ => Since::Later,
        }
    }
}

/// What lies between two samples in string instructions.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Since {
    /// So much of one execution.
    Rounds(u64),
    /// The second is in a later execution over the same addresses.
    Later,
    /// It is in an execution over others.
    Another,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(left: u64, address: u64) -> Moment {
        Moment { at: (FunctionId::new(0), 3), left, address, bytes: 8 }
    }

    #[test]
    fn rounds_are_counted_within_one_execution() {
        let before = moment(1000, 0x8000);
        assert_eq!(moment(400, 0x8000 + 600 * 8).since(before), Since::Rounds(600));
        assert_eq!(moment(400, 0x8000 - 600 * 8).since(before), Since::Rounds(600), "downwards");
        assert_eq!(moment(1200, 0x8000 - 200 * 8).since(before), Since::Later);
        assert_eq!(moment(400, 0x9000).since(before), Since::Another);
        let elsewhere = Moment { at: (FunctionId::new(0), 4), ..moment(400, 0x8000 + 600 * 8) };
        assert_eq!(elsewhere.since(before), Since::Another);
    }

    /// Samples each 300 rounds of executions of `length` that follow each other at once.
    fn paces(length: u64) -> Paces {
        let mut paces = Paces::default();
        let mut before = None;
        for sample in 0..1000 {
            let done = sample * 300 % length;
            let now = moment(length - done, 0x8000 + done * 8);
            paces.add(now, before);
            before = Some(now);
        }
        paces
    }

    #[test]
    fn the_pace_of_long_executions_tells_all_rounds() {
        for length in [1500, 2900, 1_000_000] {
            let total = paces(length).total().unwrap();
            assert!((total - 300_000.0).abs() < 1.0, "{length}: {total}");
        }
        assert_eq!(paces(7).total(), None);
        assert_eq!(paces(401).total(), None);
    }

    #[test]
    fn what_only_looks_slow_is_told_by_windows() {
        let operand = OperandId { function: FunctionId::new(0), instruction: 3, operand: 0 };
        let at = (operand.function, operand.instruction);
        let (each, total) = (BTreeMap::from([(at, 299.0)]), BTreeMap::from([(at, 1000.0)]));
        let rounds = StringRounds { each, total, counted: BTreeMap::new() };
        assert!((rounds.accesses(operand, 1003.0) - 299.0 * 1003.0).abs() < 1e-6);
        assert!((rounds.accesses(operand, 3.0) - 1000.0).abs() < 1e-6);
    }
}
