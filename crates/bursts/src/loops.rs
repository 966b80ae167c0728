//! Loops, and which of them are repeated in copies.
//!
//! A loop of few instructions whose every round passes one block, its head, stands several times behind each other in
//! a copy, so that its rounds are told by laps and by where it is left, and a round costs nothing more. Loops
//! are found as strongly connected components (Tarjan, SIAM J. Comput. 1972); where one has loops inside, its head is
//! taken out, and what still goes round is looked at again (Steensgaard 1993).

use std::collections::{BTreeMap, BTreeSet};

use crate::blocks::Block;

/// Instructions between two looks at a counter in a loop that is repeated. Assumed: at four a cycle one round in sixteen
/// cycles takes a store more.
const REPEATED_INSTRUCTIONS: usize = 64;
const MOST_ROUNDS: usize = 16;
/// Code grows with the rounds, and with what is counted where they are left. Assumed.
const MOST_BLOCKS: usize = 16;

/// Loops of blocks that hang together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Loops {
    /// Those that are repeated.
    pub(crate) repeated: Vec<Repeated>,
    /// How many loops are around a block, where there are any.
    pub(crate) depths: BTreeMap<u64, u32>,
    /// By block: the repeated loop that it is in.
    around: BTreeMap<u64, usize>,
}

/// A loop that is repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repeated {
    /// Starts of its blocks, in the order in which they lie; the first is its head.
    pub(crate) blocks: Vec<u64>,
    /// How often it stands there.
    pub(crate) rounds: usize,
}

impl Loops {
    /// Of these blocks.
    pub(crate) fn of(blocks: &BTreeMap<u64, Block>, entry: u64) -> Self {
        let mut loops = Self::default();
        let before = predecessors(blocks);
        let mut waiting: Vec<BTreeSet<u64>> = vec![blocks.keys().copied().collect()];
        while let Some(inside) = waiting.pop() {
            for component in components(blocks, &inside) {
                for start in &component {
                    *loops.depths.entry(*start).or_default() += 1;
                }
                let heads = heads(blocks, &before, &component, entry);
                match repeated(blocks, &before, &component, &heads) {
                    Some(repeated) => {
                        let position = loops.repeated.len();
                        loops.around.extend(repeated.blocks.iter().map(|start| (*start, position)));
                        loops.repeated.push(repeated);
                    }
                    None if component.len() > 1 => {
                        let head = heads.first().or(component.first()).copied();
                        waiting.push(component.into_iter().filter(|start| Some(*start) != head).collect());
                    }
                    None => {}
                }
            }
        }
        loops
    }

    /// The same loops, none of them repeated.
    pub(crate) fn once(self) -> Self {
        Self { depths: self.depths, ..Self::default() }
    }

    /// Position of the repeated loop that a block is in.
    pub(crate) fn around(&self, start: u64) -> Option<usize> {
        self.around.get(&start).copied()
    }
}

impl Repeated {
    /// The block that every round passes.
    pub(crate) fn head(&self) -> u64 {
        self.blocks[0]
    }
}

/// By block: where it is come to from; for where a call comes back to, which is come to from the function that was
/// called, that is outside.
type Predecessors = BTreeMap<u64, Vec<Option<u64>>>;

fn predecessors(blocks: &BTreeMap<u64, Block>) -> Predecessors {
    let mut before = Predecessors::new();
    for (start, block) in blocks {
        for next in block.end.successors() {
            before.entry(next).or_default().push(Some(*start));
        }
        if let Some(back) = block.end.back() {
            before.entry(back).or_default().push(None);
        }
    }
    before
}

/// Blocks that are entered from outside.
fn heads(blocks: &BTreeMap<u64, Block>, before: &Predecessors, component: &BTreeSet<u64>, entry: u64) -> Vec<u64> {
    let is_outside =
        |from: &Option<u64>| from.is_none_or(|from| blocks.contains_key(&from) && !component.contains(&from));
    let is_head = |start: &u64| *start == entry || before.get(start).is_some_and(|from| from.iter().any(is_outside));
    component.iter().copied().filter(is_head).collect()
}

fn repeated(
    blocks: &BTreeMap<u64, Block>,
    before: &Predecessors,
    component: &BTreeSet<u64>,
    heads: &[u64],
) -> Option<Repeated> {
    let head = heads.first().or(component.first()).copied()?;
    if !is_passed_by_all(blocks, component, head) {
        return None;
    }
    let body = tight(blocks, before, component, head);
    let rounds = (REPEATED_INSTRUCTIONS / length(blocks, &body).max(1)).min(MOST_ROUNDS);
    if body.len() > MOST_BLOCKS || rounds < 2 {
        return None;
    }
    // Behind the head in the order of the program, so that what follows without a jump there does so here.
    let blocks = body.range(head..).chain(body.range(..head)).copied().collect();
    Some(Repeated { blocks, rounds })
}

fn length(blocks: &BTreeMap<u64, Block>, some: &BTreeSet<u64>) -> usize {
    some.iter().map(|start| blocks[start].len()).sum()
}

/// The shorter ways round: where a loop and the loop around it have one head, the inner one.
fn tight(blocks: &BTreeMap<u64, Block>, before: &Predecessors, component: &BTreeSet<u64>, head: u64) -> BTreeSet<u64> {
    /// Ways that are no longer than so many times the shortest belong together. Assumed.
    const ALIKE: usize = 2;
    let leads_to = |to: u64| {
        let from = before.get(&to).into_iter().flatten().flatten().copied();
        from.filter(|from| component.contains(from))
    };
    let around = |latch: u64| {
        let mut body = BTreeSet::from([head]);
        let mut waiting = vec![latch];
        while let Some(start) = waiting.pop() {
            if body.insert(start) {
                waiting.extend(leads_to(start));
            }
        }
        body
    };
    let bodies: Vec<BTreeSet<u64>> = leads_to(head).map(around).collect();
    let shortest = bodies.iter().map(|body| length(blocks, body)).min().unwrap_or(0);
    bodies.into_iter().filter(|body| length(blocks, body) <= ALIKE * shortest).flatten().collect()
}

/// Whether nothing goes round without this block.
fn is_passed_by_all(blocks: &BTreeMap<u64, Block>, component: &BTreeSet<u64>, head: u64) -> bool {
    components(blocks, &component.iter().copied().filter(|start| *start != head).collect()).is_empty()
}

/// Sets of blocks that reach each other; a block by itself is one if it reaches itself.
fn components(blocks: &BTreeMap<u64, Block>, inside: &BTreeSet<u64>) -> Vec<BTreeSet<u64>> {
    let mut search = Search {
        blocks,
        inside,
        order: BTreeMap::new(),
        lowest: BTreeMap::new(),
        stack: Vec::new(),
        on: BTreeSet::new(),
        found: Vec::new(),
    };
    for start in inside {
        if !search.order.contains_key(start) {
            search.from(*start);
        }
    }
    search.found
}

struct Search<'a> {
    blocks: &'a BTreeMap<u64, Block>,
    inside: &'a BTreeSet<u64>,
    order: BTreeMap<u64, usize>,
    lowest: BTreeMap<u64, usize>,
    stack: Vec<u64>,
    on: BTreeSet<u64>,
    found: Vec<BTreeSet<u64>>,
}

impl Search<'_> {
    fn next(&self, start: u64) -> Vec<u64> {
        self.blocks[&start].end.successors().filter(|next| self.inside.contains(next)).collect()
    }

    /// Without recursion: a function may have thousands of blocks in a row.
    fn from(&mut self, root: u64) {
        let mut path = vec![(root, self.meet(root))];
        while let Some((start, rest)) = path.last_mut() {
            let start = *start;
            match rest.pop() {
                Some(next) if !self.order.contains_key(&next) => {
                    let rest = self.meet(next);
                    path.push((next, rest));
                }
                Some(next) if self.on.contains(&next) => self.lower(start, self.order[&next]),
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some((before, _)) = path.last() {
                        self.lower(*before, self.lowest[&start]);
                    }
                    self.close(start);
                }
            }
        }
    }

    fn meet(&mut self, start: u64) -> Vec<u64> {
        let number = self.order.len();
        self.order.insert(start, number);
        self.lowest.insert(start, number);
        self.stack.push(start);
        self.on.insert(start);
        self.next(start)
    }

    fn lower(&mut self, start: u64, number: usize) {
        let lowest = self.lowest.entry(start).or_insert(number);
        *lowest = (*lowest).min(number);
    }

    fn close(&mut self, start: u64) {
        if self.lowest[&start] != self.order[&start] {
            return;
        }
        let first = self.stack.iter().rposition(|other| *other == start).unwrap_or(0);
        let component: BTreeSet<u64> = self.stack.split_off(first).into_iter().collect();
        self.on.retain(|other| !component.contains(other));
        if component.len() > 1 || self.next(start).contains(&start) {
            self.found.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::discover;
    use crate::text::tests::Bytes;

    fn found(bytes: &[u8]) -> Loops {
        let blocks = discover(&Bytes(0, bytes), 0, true, &|_| false, &|_| true, 1000);
        Loops::of(&blocks, 0)
    }

    fn repeated(bytes: &[u8]) -> Vec<Vec<u64>> {
        found(bytes).repeated.into_iter().map(|repeated| repeated.blocks).collect()
    }

    #[test]
    fn a_block_that_goes_round_is_repeated_and_so_is_a_loop_that_is_left_in_its_middle() {
        // 0: nop | 1: inc eax; jne 1 | 5: ret
        assert_eq!(repeated(&[0x90, 0xff, 0xc0, 0x75, 0xfc, 0xc3]), [[1]]);
        // 0: nop | 1: inc eax; jg 9 | 5: inc ecx; jle 1 | 9: ret
        assert_eq!(repeated(&[0x90, 0xff, 0xc0, 0x7f, 4, 0xff, 0xc1, 0x7e, 0xf8, 0xc3]), [[1, 5]]);
    }

    #[test]
    fn a_loop_that_is_entered_at_its_condition_begins_there() {
        // 0: jmp 4 | 2: inc ecx | 4: inc eax; jne 2 | 8: ret
        assert_eq!(repeated(&[0xeb, 2, 0xff, 0xc1, 0xff, 0xc0, 0x75, 0xfa, 0xc3]), [[4, 2]]);
    }

    #[test]
    fn a_fork_within_a_round_is_repeated_too() {
        // 0: nop | 1: je 5 | 3: inc eax | 5: inc ecx; jne 1 | 9: ret
        let loops = found(&[0x90, 0x74, 2, 0xff, 0xc0, 0xff, 0xc1, 0x75, 0xf8, 0xc3]);
        assert_eq!(loops.repeated, [Repeated { blocks: vec![1, 3, 5], rounds: 16 }]);
    }

    #[test]
    fn of_two_loops_with_one_head_it_is_the_inner_one() {
        // 0: nop | 1: inc eax; jne 1 | 5: six times inc ecx; jne 1 | 13: ret
        let mut code = vec![0x90, 0xff, 0xc0, 0x75, 0xfc];
        code.extend([0xff, 0xc1].repeat(6));
        code.extend([0x75, 0xee, 0xc3]);
        assert_eq!(repeated(&code), [[1]]);
    }

    #[test]
    fn of_a_nest_it_is_the_inner_loop() {
        // 0: nop | 1: nop | 2: inc eax; jne 2 | 6: inc ecx; jne 1 | a: ret
        let loops = found(&[0x90, 0x90, 0xff, 0xc0, 0x75, 0xfc, 0xff, 0xc1, 0x75, 0xf7, 0xc3]);
        assert_eq!(loops.repeated, [Repeated { blocks: vec![2], rounds: 16 }]);
        assert_eq!(loops.depths, BTreeMap::from([(1, 1), (2, 2), (6, 1)]));
        assert_eq!((loops.around(2), loops.around(6)), (Some(0), None));
    }
}
