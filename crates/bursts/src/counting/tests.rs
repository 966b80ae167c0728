//! Whatever ways are taken, the counters tell how often every block ran.

use std::cell::Cell;

use proptest::prelude::*;

use super::*;
use crate::blocks::discover;
use crate::text::tests::Bytes;

/// Code that goes where it likes: a `nop` and one jump for each block, over and over.
fn code(jumps: &[(u8, u8)]) -> Vec<u8> {
    const BLOCK: usize = 4;
    let mut code = Vec::new();
    for (position, (kind, to)) in jumps.iter().enumerate() {
        let to = usize::from(*to) % jumps.len();
        let at = |position: usize| u8::try_from(position * BLOCK).unwrap();
        let by = at(to).wrapping_sub(at(position + 1));
        code.extend(match kind % 8 {
            0..4 => [0x90, 0x74, by.wrapping_add(1), 0x90],
            4 => [0x90, 0xeb, by.wrapping_add(1), 0x90],
            5 => [0x90, 0x90, 0x90, 0xc3],
            _ => [0x90, 0x90, 0x90, 0x90],
        });
    }
    code.push(0xc3);
    code
}

/// Follows the ways that a thread takes, as copies do.
struct Walk<'a> {
    blocks: &'a BTreeMap<u64, Block>,
    loops: &'a Loops,
    counting: &'a Counting,
    counted: BTreeMap<u64, i64>,
    ran: BTreeMap<u64, u64>,
}

impl Walk<'_> {
    fn count(&mut self, counter: Option<Counter>) {
        if let Some(counter) = counter {
            *self.counted.entry(counter.word).or_default() += 1;
        }
    }

    /// From an entry until the code is left, by these choices; returns whether it was.
    fn run(&mut self, entry: u64, choices: &mut dyn Iterator<Item = bool>) -> bool {
        self.count(self.counting.on(Way::In(entry), 0));
        let (mut at, mut copy) = (entry, 0);
        loop {
            *self.ran.entry(at).or_default() += 1;
            for counter in self.counting.within(at).to_vec() {
                self.count(Some(counter));
            }
            let Some(taken) = choices.next() else { return false };
            let (way, to) = match &self.blocks[&at].end {
                End::Branch { branch, .. } if taken => (Way::Taken(at), Some(branch.near_branch_target())),
                End::Branch { next, .. } => (Way::Next(at), Some(*next)),
                end => (Way::Next(at), end.successors().next()),
            };
            self.count(self.counting.on(way, copy));
            let Some(to) = to.filter(|to| self.blocks.contains_key(to)) else { return true };
            let around = self.loops.around(to).filter(|around| self.loops.around(at) == Some(*around));
            copy = match around.map(|around| &self.loops.repeated[around]) {
                Some(repeated) if repeated.head() == to && copy + 1 == repeated.rounds => {
                    self.count(Some(self.counting.laps(to)));
                    0
                }
                Some(repeated) if repeated.head() == to => copy + 1,
                Some(_) => copy,
                None => 0,
            };
            at = to;
        }
    }
}

proptest! {
    /// Whatever ways are taken, the counters tell how often each block ran.
    #[test]
    fn counters_tell_all_executions(
        jumps in prop::collection::vec((any::<u8>(), any::<u8>()), 1..24),
        choices in prop::collection::vec(any::<bool>(), 1..2000),
        entries in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let blocks = discover(&Bytes(0, &code(&jumps)), 0, true, &|_| false, &|_| true, 1000);
        let loops = Loops::of(&blocks, 0);
        let words = Cell::new(0);
        let counting = Counting::of(&blocks, &loops, 0, &mut |_| {
            words.set(words.get() + 8);
            words.get()
        });
        let mut walk = Walk {
            blocks: &blocks, loops: &loops, counting: &counting, counted: BTreeMap::new(), ran: BTreeMap::new(),
        };
        let ways_in: Vec<u64> = counting.entries().collect();
        let mut choices = choices.into_iter();
        let mut complete = BTreeMap::new();
        let mut counted = BTreeMap::new();
        for entry in &entries {
            if !walk.run(*entry.get(&ways_in), &mut choices) {
                break;
            }
            (complete, counted) = (walk.ran.clone(), walk.counted.clone());
        }
        let flow = counting.flow(&blocks, &loops);
        let told = flow.executions(&|word| counted.get(&word).copied().unwrap_or(0));
        let told: BTreeMap<u64, u64> = told.into_iter().map(|(start, _, count)| (start, count)).collect();
        prop_assert_eq!(told, complete);
    }

    /// Nobody goes round for ever without a counter that ends it.
    #[test]
    fn every_circle_has_a_counter_that_ends_it(
        jumps in prop::collection::vec((any::<u8>(), any::<u8>()), 1..24),
    ) {
        let blocks = discover(&Bytes(0, &code(&jumps)), 0, true, &|_| false, &|_| true, 1000);
        let loops = Loops::of(&blocks, 0);
        let words = Cell::new(0);
        let counting = Counting::of(&blocks, &loops, 0, &mut |_| {
            words.set(words.get() + 8);
            words.get()
        });
        let ends = |way: Way| counting.counters.get(&way).is_some_and(|counters| counters[0].kind == Kind::Down);
        let free: Vec<(Node, Node)> = counting
            .ways
            .iter()
            .filter(|(way, _)| !matches!(way, Way::Round(_)) && !ends(**way))
            .map(|(_, ends)| *ends)
            .filter(|(from, to)| *from != Node::Outside && *to != Node::Outside)
            .collect();
        // What nothing leads to goes, until nothing is left: then there is no circle.
        let mut left = free;
        loop {
            let targets: BTreeSet<Node> = left.iter().map(|(_, to)| *to).collect();
            let before = left.len();
            left.retain(|(from, _)| targets.contains(from));
            if left.len() == before {
                break;
            }
        }
        prop_assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_round_of_a_small_loop_costs_at_most_what_its_rarer_ways_do() {
    // 0: nop | 1: je 5 | 3: inc eax | 5: inc ecx; jne 1 | 9: ret
    let code = [0x90, 0x74, 2, 0xff, 0xc0, 0xff, 0xc1, 0x75, 0xf8, 0xc3];
    let blocks = discover(&Bytes(0, &code), 0, true, &|_| false, &|_| true, 1000);
    let loops = Loops::of(&blocks, 0);
    let counting = Counting::of(&blocks, &loops, 0, &mut |_| 0);
    let each_round = [Way::Taken(1), Way::Next(1), Way::Next(3), Way::Taken(5)];
    let counted = each_round.iter().filter(|way| counting.counters.contains_key(way)).count();
    assert_eq!(counted, 1);
}
