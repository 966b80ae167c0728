//! A plan as the preload library needs it: which memory, which policy, in words.
//!
//! The recorder compiles a plan into rules and writes them into the shared file before the program
//! starts; every process of the program reads them. Names are compared by hash ([`hash`]), so that a
//! look at a new call stack needs no memory and no string comparison.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::law::Turn;

/// Longest stack that a rule can ask for, frames.
pub const MAX_RULE_FRAMES: usize = 64;
/// Nodes that a policy can name; bit of the node mask. Also the most turns of a round.
pub const MAX_NODES: usize = 64;
const FRAME_WORDS: usize = 3;
/// Length, selector (kind and four words), policy (kind and mask), number of turns, options, unit.
const HEAD_WORDS: usize = 11;
/// Longest rule: all turns, and all frames.
const MAX_RULE_WORDS: usize = HEAD_WORDS + MAX_NODES + MAX_RULE_FRAMES * FRAME_WORDS;

/// FNV-1a, 64 bits (Fowler, Noll, Vo): of file names, build ids and paths.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A return address that survives address-space randomisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleFrame {
    /// [`hash`] of the file name of the module: counts only where there is no build id, because one
    /// file goes by several names (`libx.so.6`, `libx.so.6.0.30`).
    pub module: u64,
    /// [`hash`] of the bytes of its build id; 0 = it has none, or any will do.
    pub build: u64,
    /// Offset in the module's virtual addresses.
    pub offset: u64,
}

/// Which memory of the running program a rule means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Select<'a> {
    /// Allocations whose stack holds these frames in a row, innermost first.
    Stack(&'a [RuleFrame]),
    /// A static array: a range of a module's virtual addresses.
    Static {
        /// [`hash`] of the file name of the module.
        module: u64,
        /// [`hash`] of its build id, as in [`RuleFrame::build`].
        build: u64,
        /// First virtual address.
        offset: u64,
        /// Bytes.
        bytes: u64,
    },
    /// Mappings of the file whose path has this [`hash`].
    File(u64),
    /// Allocations of at least this many bytes.
    SizeAtLeast(u64),
    /// Memory that no other rule means: the policy of the threads themselves.
    Everything,
    /// Nothing that the library can find: it keeps the place of a rule that cannot be applied.
    Nothing,
}

/// What the kernel is asked for: `mbind(2)` and what it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy<'a> {
    /// Nothing.
    FirstTouch,
    /// `MPOL_BIND` (2) to the nodes of this mask.
    Bind(u64),
    /// `MPOL_PREFERRED` (1) to the lowest node of this mask.
    Prefer(u64),
    /// `MPOL_PREFERRED_MANY` (5) of the nodes of this mask.
    PreferMany(u64),
    /// `MPOL_INTERLEAVE` (3) over the nodes of this mask.
    Interleave(u64),
    /// Units of the object by weight, as [`crate::Law`] deals them out.
    Weighted(&'a [Turn]),
    /// No place: all of it is the same memory, mapped over and over, of so many bytes. What it holds is lost.
    Alias(u64),
}

/// What is asked beside the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Pages stay where they are put: they are locked as they come, so no reclaim demotes them.
    pub hold: bool,
    /// Whether the kernel may take hint faults on the memory; `None` = as the policy has it.
    pub hint_faults: Option<bool>,
    /// The host has these weights: `MPOL_WEIGHTED_INTERLEAVE` (6) does the same.
    pub by_kernel: bool,
    /// Bytes of a weighted object's unit; 0 = the object's own pages, unless they make too many stripes.
    pub unit: u64,
}

impl Options {
    fn flags(self) -> u64 {
        let hint_faults = match self.hint_faults {
            None => 0,
            Some(false) => 2,
            Some(true) => 4,
        };
        u64::from(self.hold) | hint_faults | u64::from(self.by_kernel) << 3
    }

    fn from_words(flags: u64, unit: u64) -> Self {
        let hint_faults = if flags & 6 == 0 { None } else { Some(flags & 4 != 0) };
        Self { hold: flags & 1 != 0, hint_faults, by_kernel: flags & 8 != 0, unit }
    }
}

/// One rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule<'a> {
    /// Which memory.
    pub select: Select<'a>,
    /// Where it goes.
    pub policy: Policy<'a>,
    /// What else is asked.
    pub options: Options,
}

impl<'a> Rule<'a> {
    /// A rule that asks for a place and nothing else.
    pub fn new(select: Select<'a>, policy: Policy<'a>) -> Self {
        Self { select, policy, options: Options::default() }
    }
}

/// Whether a stack, innermost frame first, holds the frames of a rule in a row.
pub fn stack_holds(stack: &[RuleFrame], wanted: &[RuleFrame]) -> bool {
    !wanted.is_empty()
        && stack.windows(wanted.len()).any(|run| run.iter().zip(wanted).all(|(have, want)| have.is(want)))
}

impl RuleFrame {
    /// The build id names the file, and where there is none, the file name.
    pub fn is(&self, other: &Self) -> bool {
        self.offset == other.offset && is_same_file((self.module, self.build), (other.module, other.build))
    }
}

/// Whether two files, each by [`hash`] of its name and of its build id (0 = none), are the same.
pub fn is_same_file((name, build): (u64, u64), (other_name, other_build): (u64, u64)) -> bool {
    if build != 0 && other_build != 0 { build == other_build } else { name == other_name }
}

/// Writes rules as words.
#[derive(Debug)]
pub struct RuleWriter<F: FnMut(u64)> {
    put: F,
}

impl<F: FnMut(u64)> RuleWriter<F> {
    /// Words go to `put`, in order.
    pub fn new(put: F) -> Self {
        Self { put }
    }

    /// Writes one rule; `false` where it has too many frames or nodes.
    pub fn write(&mut self, rule: &Rule) -> bool {
        let (select, frames) = select_words(rule.select);
        let (mode, mask, turns) = policy_words(rule.policy);
        if frames.len() > MAX_RULE_FRAMES || turns.len() > MAX_NODES {
            return false;
        }
        let length = HEAD_WORDS + turns.len() + frames.len() * FRAME_WORDS;
        let [kind, a, b, c, d] = select;
        let (flags, unit) = (rule.options.flags(), rule.options.unit);
        let head = [length as u64, kind, a, b, c, d, mode, mask, turns.len() as u64, flags, unit];
        head.into_iter().chain(turns.iter().map(|turn| turn_word(*turn))).for_each(&mut self.put);
        frames.iter().flat_map(|frame| [frame.module, frame.build, frame.offset]).for_each(&mut self.put);
        true
    }
}

fn select_words(select: Select<'_>) -> ([u64; 5], &[RuleFrame]) {
    match select {
        Select::Stack(frames) => ([1, 0, 0, 0, 0], frames),
        Select::Static { module, build, offset, bytes } => ([2, module, build, offset, bytes], &[]),
        Select::SizeAtLeast(bytes) => ([3, bytes, 0, 0, 0], &[]),
        Select::Everything => ([4, 0, 0, 0, 0], &[]),
        Select::Nothing => ([5, 0, 0, 0, 0], &[]),
        Select::File(path) => ([6, path, 0, 0, 0], &[]),
    }
}

fn turn_word(turn: Turn) -> u64 {
    u64::from(turn.node) << 32 | u64::from(turn.units)
}

#[allow(clippy::cast_possible_truncation)]
fn turn_of(word: u64) -> Turn {
    Turn { node: (word >> 32) as u32, units: word as u32 }
}

fn policy_words(policy: Policy<'_>) -> (u64, u64, &[Turn]) {
    match policy {
        Policy::FirstTouch => (0, 0, &[]),
        Policy::Bind(mask) => (1, mask, &[]),
        Policy::Prefer(mask) => (2, mask, &[]),
        Policy::Interleave(mask) => (3, mask, &[]),
        Policy::Weighted(turns) => (4, 0, turns),
        Policy::PreferMany(mask) => (5, mask, &[]),
        Policy::Alias(bytes) => (6, bytes, &[]),
    }
}

/// Reads rules one after another, without memory of its own but one rule's.
#[derive(Debug)]
pub struct RuleReader<'a> {
    rest: &'a [AtomicU64],
    turns: [Turn; MAX_NODES],
    frames: [RuleFrame; MAX_RULE_FRAMES],
}

impl<'a> RuleReader<'a> {
    /// Reads from words that a [`RuleWriter`] filled.
    pub fn new(words: &'a [AtomicU64]) -> Self {
        Self { rest: words, turns: [Turn::default(); MAX_NODES], frames: [RuleFrame::default(); MAX_RULE_FRAMES] }
    }

    /// The next rule; `None` at the end, and where the words are none.
    pub fn read(&mut self) -> Option<Rule<'_>> {
        let word = |words: &[AtomicU64], at: usize| words.get(at).map(|word| word.load(Ordering::Relaxed));
        let length = usize::try_from(word(self.rest, 0)?)
            .ok()
            .filter(|length| (HEAD_WORDS..=MAX_RULE_WORDS).contains(length))?;
        let (rule, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        let turns = usize::try_from(word(rule, 8)?).ok().filter(|turns| *turns <= MAX_NODES)?;
        for (at, turn) in self.turns[..turns].iter_mut().enumerate() {
            *turn = turn_of(word(rule, HEAD_WORDS + at)?);
        }
        let frames = rule.get(HEAD_WORDS + turns..)?.chunks_exact(FRAME_WORDS);
        let count = frames.len();
        for (frame, words) in self.frames.get_mut(..count)?.iter_mut().zip(frames) {
            *frame = RuleFrame { module: word(words, 0)?, build: word(words, 1)?, offset: word(words, 2)? };
        }
        let select = match word(rule, 1)? {
            1 => Select::Stack(&self.frames[..count]),
            2 => Select::Static {
                module: word(rule, 2)?,
                build: word(rule, 3)?,
                offset: word(rule, 4)?,
                bytes: word(rule, 5)?,
            },
            3 => Select::SizeAtLeast(word(rule, 2)?),
            4 => Select::Everything,
            5 => Select::Nothing,
            6 => Select::File(word(rule, 2)?),
            _ => return None,
        };
        let mask = word(rule, 7)?;
        let policy = match word(rule, 6)? {
            0 => Policy::FirstTouch,
            1 => Policy::Bind(mask),
            2 => Policy::Prefer(mask),
            3 => Policy::Interleave(mask),
            4 => Policy::Weighted(&self.turns[..turns]),
            5 => Policy::PreferMany(mask),
            6 => Policy::Alias(mask),
            _ => return None,
        };
        Some(Rule { select, policy, options: Options::from_words(word(rule, 9)?, word(rule, 10)?) })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn written(rules: &[Rule]) -> Vec<AtomicU64> {
        let mut words = Vec::new();
        let mut writer = RuleWriter::new(|word| words.push(AtomicU64::new(word)));
        assert!(rules.iter().all(|rule| writer.write(rule)));
        words
    }

    #[test]
    fn rules_read_back_in_order() {
        let frames = [RuleFrame { module: 1, build: 2, offset: 3 }, RuleFrame { module: 4, build: 0, offset: 6 }];
        let turns = [Turn { node: 0, units: 3 }, Turn { node: 2, units: 255 }];
        let options = |hold, hint_faults, by_kernel| Options { hold, hint_faults, by_kernel, unit: 2 << 20 };
        let array = Select::Static { module: 7, build: 6, offset: 8, bytes: 9 };
        let rules = [
            Rule::new(Select::Stack(&frames), Policy::Interleave(0b101)),
            Rule { options: options(true, None, false), ..Rule::new(array, Policy::Weighted(&turns)) },
            Rule { options: options(false, Some(false), true), ..Rule::new(Select::File(5), Policy::PreferMany(6)) },
            Rule { options: options(true, Some(true), true), ..Rule::new(Select::SizeAtLeast(9), Policy::Prefer(2)) },
            Rule::new(Select::SizeAtLeast(0), Policy::FirstTouch),
            Rule::new(Select::SizeAtLeast(1), Policy::Alias(16 << 10)),
            Rule::new(Select::Everything, Policy::Bind(1)),
            Rule::new(Select::Nothing, Policy::FirstTouch),
        ];
        let words = written(&rules);
        let mut reader = RuleReader::new(&words);
        for rule in &rules {
            assert_eq!(reader.read().as_ref(), Some(rule));
        }
        assert_eq!(reader.read(), None);
    }

    #[test]
    fn a_rule_that_is_too_long_is_refused() {
        let frames = [RuleFrame::default(); MAX_RULE_FRAMES + 1];
        let rule = Rule::new(Select::Stack(&frames), Policy::FirstTouch);
        assert!(!RuleWriter::new(|_| ()).write(&rule));
    }

    #[test]
    fn the_build_names_the_file_if_there_is_one() {
        let have = RuleFrame { module: 1, build: 2, offset: 3 };
        assert!(have.is(&RuleFrame { build: 0, ..have }) && have.is(&RuleFrame { module: 9, ..have }));
        assert!(!have.is(&RuleFrame { build: 0, module: 9, ..have }));
        assert!(!have.is(&RuleFrame { build: 9, ..have }) && !have.is(&RuleFrame { offset: 4, ..have }));
    }

    #[test]
    fn a_stack_holds_frames_in_a_row() {
        let frame = |offset| RuleFrame { module: 1, build: 0, offset };
        let stack = [1, 2, 3].map(frame);
        assert!(stack_holds(&stack, &[2, 3].map(frame)));
        assert!(!stack_holds(&stack, &[1, 3].map(frame)) && !stack_holds(&stack, &[]));
        assert!(!stack_holds(&stack[..1], &[1, 2].map(frame)));
    }

    proptest! {
        #[test]
        fn any_words_are_survived(words in prop::collection::vec(0_u64..300, 0..400)) {
            let words: Vec<AtomicU64> = words.into_iter().map(AtomicU64::new).collect();
            let mut reader = RuleReader::new(&words);
            while reader.read().is_some() {}
        }
    }
}
