//! Which counters tell how often every block ran: as few as can be, and where they cost least.
//!
//! What enters a block leaves it, so of the ways between blocks only those beside a spanning tree need be counted, and
//! all others follow (Knuth and Stevenson, BIT 1973). The tree is made of what is likely to run most, so that counters
//! lie where little happens, and what is rare is counted itself instead of being the difference of two large numbers
//! (Ball and Larus, TOPLAS 1994). Everything that is not copied here is one more block, the outside: a call goes
//! there, and what comes back comes from there, whether it is the same or not.
//!
//! Whoever goes round for ever must come by a counter that ends it ([`Kind::Down`]): jumps back, ways in, laps of
//! repeated loops and ways out of them are counted by such ones, whatever the tree would like.

use std::collections::{BTreeMap, BTreeSet};

use crate::area::Kind;
use crate::blocks::{Block, End};
use crate::loops::Loops;

/// A way between two blocks, by the block that it begins or ends at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// To the block, from outside.
    In(u64),
    /// To the block, from a function that returns.
    Back(u64),
    /// To the head of a repeated loop, from the round before.
    Round(u64),
    /// From the block, by its jump.
    Taken(u64),
    /// From the block, where it goes on, or goes at all.
    Next(u64),
}

/// Where ways begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Outside,
    Block(u64),
    /// The end of a round of a loop, by its head.
    Rounds(u64),
}

/// A counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counter {
    /// Its address.
    pub(crate) word: u64,
    /// Whether it ends at zero.
    pub(crate) kind: Kind,
}

/// What is counted, and where.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    ways: BTreeMap<Way, (Node, Node)>,
    /// Counters of a way, one for each copy of a repeated loop that it leaves, or one in all.
    counters: BTreeMap<Way, Vec<Counter>>,
    /// By head of a repeated loop: counts its laps.
    laps: BTreeMap<u64, Counter>,
    /// Ways whose counter lies in a block, which runs as often as they are taken.
    in_blocks: BTreeMap<Way, u64>,
    /// By block: those counters.
    of_block: BTreeMap<u64, Vec<Counter>>,
}

impl Counting {
    /// Of these blocks; `word` hands out counters.
    pub(crate) fn of(
        blocks: &BTreeMap<u64, Block>,
        loops: &Loops,
        entry: u64,
        word: &mut dyn FnMut(Kind) -> u64,
    ) -> Self {
        let mut counting = Self::ends(blocks, loops, entry, word);
        for way in counting.chords(loops) {
            counting.counters.insert(way, vec![Counter { word: word(Kind::Up), kind: Kind::Up }]);
        }
        counting.lay();
        counting
    }

    /// Only what ends a stay that would be for ever.
    pub(crate) fn of_ends(
        blocks: &BTreeMap<u64, Block>,
        loops: &Loops,
        entry: u64,
        word: &mut dyn FnMut(Kind) -> u64,
    ) -> Self {
        let mut counting = Self::ends(blocks, loops, entry, word);
        counting.lay();
        counting
    }

    fn ends(blocks: &BTreeMap<u64, Block>, loops: &Loops, entry: u64, word: &mut dyn FnMut(Kind) -> u64) -> Self {
        let mut counting = Self { ways: ways(blocks, loops, entry), ..Self::default() };
        let mut counter = |kind| Counter { word: word(kind), kind };
        for repeated in &loops.repeated {
            counting.laps.insert(repeated.head(), counter(Kind::Down));
        }
        let forced = |way: Way, (from, to): (Node, Node)| match (way, from, to) {
            (Way::In(_), ..) => Some(1),
            (Way::Taken(start) | Way::Next(start), _, to) => match (loops.around(start), to) {
                (Some(_), Node::Rounds(_)) => None,
                (Some(around), to) if !is_within(loops, around, to) => Some(loops.repeated[around].rounds),
                (None, Node::Block(to)) if to < blocks[&start].end_address() => Some(1),
                _ => None,
            },
            _ => None,
        };
        for (way, ends) in &counting.ways {
            if let Some(copies) = forced(*way, *ends) {
                counting.counters.insert(*way, (0..copies).map(|_| counter(Kind::Down)).collect());
            }
        }
        counting
    }

    /// Puts counters into blocks where one runs exactly as often as a way is taken.
    fn lay(&mut self) {
        let mut degrees: BTreeMap<Node, (usize, usize)> = BTreeMap::new();
        for (from, to) in self.ways.values() {
            degrees.entry(*from).or_default().1 += 1;
            degrees.entry(*to).or_default().0 += 1;
        }
        for (way, counters) in self.counters.iter().filter(|(_, counters)| counters.len() == 1) {
            let place = match self.ways[way] {
                (_, Node::Block(to)) if degrees[&Node::Block(to)].0 == 1 => to,
                (Node::Block(from), _) if degrees[&Node::Block(from)].1 == 1 => from,
                _ => continue,
            };
            self.in_blocks.insert(*way, place);
            self.of_block.entry(place).or_default().push(counters[0]);
        }
    }

    /// Counter of the laps of a repeated loop.
    pub(crate) fn laps(&self, head: u64) -> Counter {
        self.laps[&head]
    }

    /// What is counted on a way itself, in a copy of a repeated loop.
    pub(crate) fn on(&self, way: Way, copy: usize) -> Option<Counter> {
        let counters = self.counters.get(&way).filter(|_| !self.in_blocks.contains_key(&way))?;
        counters.get(copy).or(counters.first()).copied()
    }

    /// Counters that lie in a block.
    pub(crate) fn within(&self, start: u64) -> &[Counter] {
        self.of_block.get(&start).map_or(&[], Vec::as_slice)
    }

    /// Blocks that others come to from outside.
    pub(crate) fn entries(&self) -> impl Iterator<Item = u64> {
        self.ways.keys().filter_map(|way| if let Way::In(start) = way { Some(*start) } else { None })
    }

    /// Ways that need a counter beside those that have one: all that are not in the tree.
    fn chords(&self, loops: &Loops) -> Vec<Way> {
        let mut open: Vec<Way> = self.ways.keys().copied().filter(|way| self.is_open(*way)).collect();
        open.sort_by_key(|way| std::cmp::Reverse(self.weight(*way, loops)));
        let mut forest = Forest::default();
        let is_chord = |way: &Way| {
            let (from, to) = self.ways[way];
            !forest.join(from, to)
        };
        open.into_iter().filter(is_chord).collect()
    }

    fn is_open(&self, way: Way) -> bool {
        !matches!(way, Way::Round(_)) && !self.counters.contains_key(&way)
    }

    /// What runs most is in the deepest loops; and counting costs less where no jump is made.
    fn weight(&self, way: Way, loops: &Loops) -> (u32, u32, bool) {
        let depth = |node: Node| match node {
            Node::Outside => 0,
            Node::Block(start) | Node::Rounds(start) => loops.depths.get(&start).copied().unwrap_or(0),
        };
        let (from, to) = self.ways[&way];
        let (from, to) = (depth(from), depth(to));
        (from.min(to), from.max(to), matches!(way, Way::Taken(_)))
    }

    /// How everything follows from the counters.
    pub(crate) fn flow(&self, blocks: &BTreeMap<u64, Block>, loops: &Loops) -> Flow {
        let nodes: BTreeSet<Node> = self.ways.values().flat_map(|(from, to)| [*from, *to]).collect();
        let nodes: Vec<Node> = nodes.into_iter().collect();
        let position = |node: Node| nodes.binary_search(&node).unwrap_or(0);
        let ways: Vec<Flowing> = self
            .ways
            .iter()
            .map(|(way, (from, to))| Flowing {
                from: position(*from),
                to: position(*to),
                counts: self.counts(*way, loops),
            })
            .collect();
        let order = order(nodes.len(), &ways);
        let blocks =
            blocks.values().map(|block| (position(Node::Block(block.start)), block.start, block.end_address()));
        Flow { blocks: blocks.collect(), ways, order }
    }

    /// Counters of a way and what each counts for; `None` where it follows from others.
    fn counts(&self, way: Way, loops: &Loops) -> Option<Vec<(u64, i64)>> {
        let Way::Round(head) = way else {
            return Some(self.counters.get(&way)?.iter().map(|counter| (counter.word, 1)).collect());
        };
        // Who leaves from a copy has begun so many rounds there since the last lap.
        let repeated = loops.repeated.iter().find(|repeated| repeated.head() == head)?;
        let left = self.counters.iter().filter(|(_, counters)| counters.len() == repeated.rounds);
        let left = left.filter(|(way, _)| self.leaves(**way, &repeated.blocks));
        let rounds =
            left.flat_map(|(_, counters)| counters.iter().zip(0..)).map(|(counter, rounds)| (counter.word, rounds));
        Some(rounds.chain([(self.laps[&head].word, i64::try_from(repeated.rounds).ok()?)]).collect())
    }

    fn leaves(&self, way: Way, blocks: &[u64]) -> bool {
        matches!(self.ways[&way].0, Node::Block(from) if blocks.contains(&from))
    }
}

/// Whether a way's end is in a repeated loop.
fn is_within(loops: &Loops, around: usize, to: Node) -> bool {
    match to {
        Node::Outside => false,
        Node::Block(start) | Node::Rounds(start) => loops.around(start) == Some(around),
    }
}

/// All ways, and where they begin and end.
fn ways(blocks: &BTreeMap<u64, Block>, loops: &Loops, entry: u64) -> BTreeMap<Way, (Node, Node)> {
    let to_node = |from: u64, to: Option<u64>| match to.filter(|to| blocks.contains_key(to)) {
        Some(to) => match loops.around(to) {
            Some(around) if loops.repeated[around].head() == to && loops.around(from) == Some(around) => {
                Node::Rounds(to)
            }
            _ => Node::Block(to),
        },
        None => Node::Outside,
    };
    let mut ways = BTreeMap::new();
    for (&start, block) in blocks {
        let from = Node::Block(start);
        let next = match &block.end {
            End::Branch { branch, next } => {
                ways.insert(Way::Taken(start), (from, to_node(start, Some(branch.near_branch_target()))));
                Some(*next)
            }
            end => end.successors().next(),
        };
        ways.insert(Way::Next(start), (from, to_node(start, next)));
        if let Some(back) = block.end.back().filter(|back| blocks.contains_key(back)) {
            ways.insert(Way::Back(back), (Node::Outside, Node::Block(back)));
        }
    }
    for head in loops.repeated.iter().map(crate::loops::Repeated::head) {
        ways.insert(Way::Round(head), (Node::Rounds(head), Node::Block(head)));
    }
    let joins = joins(&ways, loops);
    let entries = joins.into_iter().chain(blocks.contains_key(&entry).then_some(entry));
    ways.extend(entries.map(|start| (Way::In(start), (Node::Outside, Node::Block(start)))));
    ways
}

/// Blocks that are come to from several others: where code is copied piece by piece, later pieces lead there, too. Who
/// comes to another block from elsewhere gets a copy of his own.
fn joins(ways: &BTreeMap<Way, (Node, Node)>, loops: &Loops) -> Vec<u64> {
    let mut coming: BTreeMap<Node, usize> = BTreeMap::new();
    for (_, to) in ways.values() {
        *coming.entry(*to).or_default() += 1;
    }
    let join = |(node, count): (Node, usize)| match node {
        Node::Block(start) if count > 1 && loops.around(start).is_none() => Some(start),
        _ => None,
    };
    coming.into_iter().filter_map(join).collect()
}

/// Sets of nodes that are connected.
#[derive(Default)]
struct Forest(BTreeMap<Node, Node>);

impl Forest {
    fn root(&mut self, node: Node) -> Node {
        let mut at = node;
        while let Some(above) = self.0.get(&at).copied() {
            at = above;
        }
        // Whoever asks again finds it at once.
        let mut below = node;
        while let Some(above) = self.0.get(&below).copied().filter(|above| *above != at) {
            self.0.insert(below, at);
            below = above;
        }
        at
    }

    /// Connects two; `false` where they were.
    fn join(&mut self, one: Node, other: Node) -> bool {
        let (one, other) = (self.root(one), self.root(other));
        if one != other {
            self.0.insert(one, other);
        }
        one != other
    }
}

/// How often the blocks of a piece of code ran, from its counters.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Node, start, and one past where the last instruction begins, of each block.
    blocks: Vec<(usize, u64, u64)>,
    ways: Vec<Flowing>,
    /// Node by node, each with the one way of the tree that leads on from it: when its turn comes all others are known.
    order: Vec<(usize, usize)>,
}

#[derive(Debug)]
struct Flowing {
    from: usize,
    to: usize,
    counts: Option<Vec<(u64, i64)>>,
}

impl Flow {
    /// Start, end and executions of each block that ran, given what each counter has counted.
    pub(crate) fn executions(&self, counted: &dyn Fn(u64) -> i64) -> Vec<(u64, u64, u64)> {
        let known = |way: &Flowing| {
            way.counts.as_ref().map(|counts| counts.iter().map(|(word, weight)| counted(*word) * weight).sum())
        };
        let mut values: Vec<Option<i64>> = self.ways.iter().map(known).collect();
        if values.iter().flatten().all(|value| *value == 0) {
            return Vec::new();
        }
        let nodes = self.ways.iter().map(|way| way.from.max(way.to) + 1).max().unwrap_or(0);
        // What came less what went.
        let mut balance = vec![0; nodes];
        let mut came = vec![0; nodes];
        let mut flow = |way: &Flowing, value: i64, balance: &mut Vec<i64>| {
            balance[way.to] += value;
            balance[way.from] -= value;
            came[way.to] += value;
        };
        for (way, value) in self.ways.iter().zip(&values) {
            flow(way, value.unwrap_or(0), &mut balance);
        }
        for (node, way) in &self.order {
            let flowing = &self.ways[*way];
            let value = if flowing.from == *node { balance[*node] } else { -balance[*node] };
            values[*way] = Some(value);
            flow(flowing, value, &mut balance);
        }
        // A round that was begun and not ended may lack its first blocks.
        let ran = |(node, start, end): &(usize, u64, u64)| {
            u64::try_from(came[*node]).ok().filter(|count| *count > 0).map(|count| (*start, *end, count))
        };
        self.blocks.iter().filter_map(ran).collect()
    }
}

/// Leaves of the tree first, the outside, which is node 0, last.
fn order(nodes: usize, ways: &[Flowing]) -> Vec<(usize, usize)> {
    let mut of_node: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (position, way) in ways.iter().enumerate().filter(|(_, way)| way.counts.is_none()) {
        of_node[way.from].push(position);
        of_node[way.to].push(position);
    }
    let mut seen = vec![false; nodes];
    let mut order = Vec::new();
    for root in 0..nodes {
        let mut waiting = vec![(root, None)];
        let first = order.len();
        while let Some((node, by)) = waiting.pop() {
            if std::mem::replace(&mut seen[node], true) {
                continue;
            }
            order.extend(by.map(|way| (node, way)));
            let further = of_node[node].iter().filter(|way| Some(**way) != by);
            waiting.extend(further.map(|way| (ways[*way].from + ways[*way].to - node, Some(*way))));
        }
        order[first..].reverse();
    }
    order
}

#[cfg(test)]
mod tests;
