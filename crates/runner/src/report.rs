//! What became of a run under a plan, rule by rule: what the kernel answered, and where pages were.

use std::collections::BTreeMap;

use tierloom_wire::{Event, How, Pages, unpack_node_pages};

use crate::new_plan::AppliedRule;
use crate::rules::{Compiled, DEFAULT};
use tierloom_model::Warning;
use tierloom_recording::Exit;

/// What became of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceReport {
    /// How the program ended.
    pub exit: Exit,
    /// It was killed because its time was over.
    pub cut_off: bool,
    /// User + system CPU time, s.
    pub cpu_s: f64,
    /// Wall time, s.
    pub wall_s: f64,
    /// Nodes of this machine, ascending.
    pub nodes: Vec<u32>,
    /// One for each rule of the plan, in its order; the plan's default is the last.
    pub rules: Vec<RuleReport>,
    /// Phases that began, in time order.
    pub phases: Vec<PhaseReport>,
    /// Counters of `/proc/vmstat` about placement and migration that moved during the run, and by how
    /// much: the whole machine's.
    pub counters: BTreeMap<String, i64>,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
}

/// What became of one rule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleReport {
    /// The object's name in the plan, or `default`.
    pub object: String,
    /// Share of the pages that each node was asked for; empty where none was, or several would do.
    pub asked: BTreeMap<u32, f64>,
    /// Why the rule could not even be tried on this machine.
    pub left_out: Option<String>,
    /// Ranges for which the kernel took the policy.
    pub ranges: u64,
    /// Bytes of whole pages in them.
    pub bytes: u64,
    /// By which means, and for how many ranges.
    pub how: BTreeMap<How, u64>,
    /// Ranges for which it did not, by error number.
    pub refused: BTreeMap<i32, u64>,
    /// Bytes that were there already and were moved.
    pub moved_bytes: u64,
    /// Bytes that were there and could not be moved, by error number.
    pub stuck_bytes: BTreeMap<i32, u64>,
    /// Ranges whose pages were locked, and those for which that was refused, by error number.
    pub held: u64,
    /// See `held`.
    pub not_held: BTreeMap<i32, u64>,
    /// Where the pages were.
    pub residency: Residency,
}

/// Where the pages of a rule's objects were, each asked when it was given back, when the program
/// ended, or when it was last looked at.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Residency {
    /// Objects that were asked about, and their bytes.
    pub objects: u64,
    /// See `objects`.
    pub bytes: u64,
    /// Pages that were asked about: all of a small object, one of each of equally many parts of a
    /// large one.
    pub looked: u64,
    /// Never touched, or not there any more.
    pub absent: u64,
    /// On another node than the plan's.
    pub elsewhere: u64,
    /// Bytes by node: an object's, divided as its pages that were asked about are.
    pub by_node: BTreeMap<u32, u64>,
    /// Seconds before the end of the program at which objects were looked at that it never gave back
    /// nor told about; 0 = there were none.
    pub stale_s: f64,
}

/// Where the objects of a running program are.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Seconds since the start.
    pub at_s: f64,
    /// By object of the plan, in its order.
    pub rules: Vec<(String, Residency)>,
}

/// What became of a phase of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseReport {
    /// Its name in the plan.
    pub name: String,
    /// When it began, seconds from the start.
    pub start_s: f64,
    /// Time that the plan promises, s.
    pub gain_s: f64,
    /// What moving was expected to take, s.
    pub expected_s: f64,
    /// Why nothing was moved.
    pub skipped: Option<String>,
    /// Bytes moved, and how long that took, s.
    pub moved_bytes: u64,
    /// See `moved_bytes`.
    pub took_s: f64,
}

impl Residency {
    /// Adds what was seen of one object.
    pub(super) fn add(&mut self, pages: &Pages, nodes: impl Iterator<Item = (u32, u64)>) {
        self.objects += 1;
        self.bytes += pages.bytes;
        self.looked += pages.looked;
        self.absent += pages.absent;
        self.elsewhere += pages.elsewhere;
        for (node, count) in nodes {
            let share = u128::from(pages.bytes) * u128::from(count) / u128::from(pages.looked.max(1));
            *self.by_node.entry(node).or_default() += u64::try_from(share).unwrap_or(u64::MAX);
        }
    }
}

impl RuleReport {
    /// Empty reports of a plan's rules.
    pub(super) fn of(compiled: &Compiled) -> Vec<Self> {
        let report = |rule: &crate::rules::CompiledRule| Self {
            object: rule.object.clone(),
            asked: rule.place.shares(),
            left_out: rule.left_out.clone(),
            ..Self::default()
        };
        compiled.rules.iter().map(report).collect()
    }

    /// Whether the kernel took the policy for at least one range and refused none.
    pub fn held(&self) -> bool {
        self.left_out.is_none() && self.refused.is_empty() && (self.ranges > 0 || self.object == DEFAULT)
    }

    /// Whether the library in the program has placed nothing by this rule.
    pub(super) fn is_unplaced(&self) -> bool {
        self.how.keys().all(|how| !how.is_place())
    }

    /// Adds what was moved from outside.
    pub(super) fn take_moved(&mut self, told: &AppliedRule) {
        if told.present_bytes > 0 && self.ranges == 0 {
            self.ranges = told.objects;
            self.bytes = told.present_bytes;
            *self.how.entry(How::Move).or_default() += told.objects;
        }
        self.moved_bytes += told.moved_bytes;
        for (errno, bytes) in &told.stuck_bytes {
            *self.stuck_bytes.entry(*errno).or_default() += bytes;
        }
    }

    fn note_answer(&mut self, how: How, bytes: u64, errno: u32) {
        let count = |by: &mut BTreeMap<i32, u64>, more: u64| *by.entry(errno.cast_signed()).or_default() += more;
        match (how, errno) {
            (How::Hold, 0) => self.held += 1,
            (How::Hold, _) => count(&mut self.not_held, 1),
            (How::Move, 0) => self.moved_bytes += bytes,
            (How::Move, _) => count(&mut self.stuck_bytes, bytes),
            // The policy of threads, which has no range of its own.
            (_, 0) if bytes == 0 => {}
            (_, 0) => {
                self.ranges += 1;
                self.bytes += bytes;
                *self.how.entry(how).or_default() += 1;
            }
            _ => count(&mut self.refused, 1),
        }
    }
}

/// Counts what the library says.
pub(super) fn note(rules: &mut [RuleReport], event: &Event) {
    let (Event::Placed { rule, .. } | Event::Resident { rule, .. }) = *event else { return };
    let Some(report) = usize::try_from(rule).ok().and_then(|rule| rules.get_mut(rule)) else { return };
    match event {
        Event::Placed { how, bytes, errno, .. } => report.note_answer(*how, *bytes, *errno),
        Event::Resident { pages, nodes, .. } => {
            report.residency.add(pages, nodes.iter().map(|word| unpack_node_pages(*word)));
        }
        _ => {}
    }
}

/// What the reader of a report must know.
pub(super) struct Doubts<'a> {
    pub(super) rules: &'a [RuleReport],
    pub(super) nodes: &'a [u32],
    /// Nodes that the plan was made for.
    pub(super) planned_nodes: usize,
    /// The library came up in the program.
    pub(super) attached: bool,
    pub(super) lost: u64,
}

impl Doubts<'_> {
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let (rules, left_out) = (self.rules.len(), self.rules.iter().filter(|rule| rule.left_out.is_some()).count());
        let nothing = (!self.attached).then_some(Warning::NothingPlaced);
        let some = (left_out > 0).then_some(Warning::RulesLeftOut { left_out, rules });
        let unseen = self.rules.iter().filter(|rule| rule.is_unseen()).map(|rule| rule.object.clone());
        let objects: Vec<String> = unseen.collect();
        let unasked = (self.attached && !objects.is_empty()).then_some(Warning::NeverAskedFor { objects });
        let lost = (self.lost > 0).then_some(Warning::LostReports { lost: self.lost });
        [nothing, self.one_node(), some, unasked, lost].into_iter().flatten().collect()
    }

    /// A machine with one node has no choice of place.
    fn one_node(&self) -> Option<Warning> {
        let [node] = *self.nodes else { return None };
        let planned_nodes = self.planned_nodes;
        (planned_nodes > 1).then_some(Warning::OneNode { node, planned_nodes })
    }
}

impl RuleReport {
    fn is_unseen(&self) -> bool {
        self.left_out.is_none()
            && self.ranges == 0
            && self.refused.is_empty()
            && self.object != DEFAULT
            && !self.asked.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use tierloom_wire::pack_node_pages;

    use super::*;

    fn report(object: &str) -> RuleReport {
        RuleReport { object: object.to_owned(), asked: BTreeMap::from([(0, 1.0)]), ..RuleReport::default() }
    }

    #[test]
    fn answers_of_the_kernel_are_counted() {
        let mut rules = [report("a"), report("b")];
        let placed = |rule, how, errno| Event::Placed { rule, address: 0, bytes: 4096, errno, how, shift: 0 };
        let answers = [
            (0, How::Policy, 0),
            (0, How::Populate, 0),
            (0, How::Move, 0),
            (0, How::Move, 16),
            (0, How::Hold, 0),
            (0, How::Hold, 12),
            (1, How::Stripes, 22),
            (9, How::Policy, 0),
        ];
        for (rule, how, errno) in answers {
            note(&mut rules, &placed(rule, how, errno));
        }
        let first = &rules[0];
        assert_eq!((first.ranges, first.bytes, first.moved_bytes, first.held), (2, 8192, 4096, 1));
        assert_eq!(first.how, BTreeMap::from([(How::Policy, 1), (How::Populate, 1)]));
        assert_eq!((&first.stuck_bytes, &first.not_held), (&BTreeMap::from([(16, 4096)]), &BTreeMap::from([(12, 1)])));
        assert_eq!(rules[1].refused, BTreeMap::from([(22, 1)]));
        assert!(rules[0].held() && !rules[1].held());
    }

    #[test]
    fn an_object_is_divided_as_its_pages_are() {
        let mut rules = [report("a")];
        let pages = Pages { bytes: 1 << 20, looked: 64, absent: 16, elsewhere: 16 };
        let nodes = [pack_node_pages(0, 32), pack_node_pages(2, 16)];
        note(&mut rules, &Event::Resident { rule: 0, address: 0, pages, nodes: &nodes });
        let residency = &rules[0].residency;
        assert_eq!(residency.by_node, BTreeMap::from([(0, 512 << 10), (2, 256 << 10)]));
        assert_eq!((residency.looked, residency.absent, residency.elsewhere), (64, 16, 16));
    }

    #[test]
    fn one_node_is_said_and_so_is_a_rule_that_is_left_out() {
        let rules = [RuleReport { left_out: Some("no symbol".to_owned()), ..report("a") }, report(DEFAULT)];
        let doubts = Doubts { rules: &rules, nodes: &[0], planned_nodes: 2, attached: true, lost: 0 };
        let one = Warning::OneNode { node: 0, planned_nodes: 2 };
        assert_eq!(doubts.warnings(), [one, Warning::RulesLeftOut { left_out: 1, rules: 2 }]);
    }
}
