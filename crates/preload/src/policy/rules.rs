//! The rules in force: taken up when they change, held against stacks, and found for a range.
//!
//! What the hooks ask at every call lies in a few statics, so that a program without a plan reads no rule.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use tierloom_wire::{
    How, Law, MAX_FRAMES, PAGE_BYTES, Policy, Region, Rule, RuleFrame, RuleReader, Select, stack_holds,
};

use super::apply::{answer, apply};
use super::handed::Handed;
use super::objects::Kind;
use super::{kernel, mempolicy};
use crate::generation::{self, RULES};
use crate::{modules, report, thread};

/// No rule.
pub(crate) const NO_RULE: u32 = u32::MAX;

/// There is room for rules, so that some may come. It lies on the page of the next library's functions, which every
/// call reads.
#[unsafe(link_section = ".data")]
static MAY_COME: AtomicBool = AtomicBool::new(false);
/// First rule that goes by size alone or takes what no other does; a stack's rule wins only before it.
static SIZE_RULE: AtomicU32 = AtomicU32::new(NO_RULE);
/// Smallest block that a rule takes by its size alone, bytes.
static LEAST_BY_SIZE: AtomicU64 = AtomicU64::new(u64::MAX);
/// There are rules for mapped files.
static FILE_RULES: AtomicU32 = AtomicU32::new(0);

/// Whether this is a run under a plan, perhaps one that is still to come.
#[inline]
pub(crate) fn may_come() -> bool {
    MAY_COME.load(Ordering::Relaxed)
}

/// Says that it is one.
pub(super) fn expect() {
    MAY_COME.store(true, Ordering::Relaxed);
}

/// Whether some rule takes a block of this size, whoever asked for it.
#[inline]
pub(super) fn take_by_size(bytes: u64) -> bool {
    bytes >= LEAST_BY_SIZE.load(Ordering::Relaxed)
}

/// Looks whether new rules came into force. Cheap enough for every range that is handed out.
#[inline]
pub(crate) fn look_for_rules() {
    if may_come()
        && let Some(region) = report::region()
        && region.generation() != RULES.load(Ordering::Relaxed)
    {
        thread::quietly(|| begin(region));
    }
}

/// New rules came into force: those of threads and static arrays are applied, by whoever sees it first.
#[cold]
pub(super) fn begin(region: &Region) {
    let (generation, words) = region.rules();
    if RULES.swap(generation, Ordering::AcqRel) == generation {
        return;
    }
    generation::forget_stacks();
    SIZE_RULE.store(NO_RULE, Ordering::Relaxed);
    LEAST_BY_SIZE.store(u64::MAX, Ordering::Relaxed);
    FILE_RULES.store(0, Ordering::Relaxed);
    let mut reader = RuleReader::new(words);
    let mut index = 0;
    while let Some(rule) = reader.read() {
        begin_rule(index, &rule);
        index += 1;
    }
}

fn begin_rule(index: u32, rule: &Rule) {
    match rule.select {
        Select::Static { module, build, offset, bytes } => {
            if let Some(base) = modules::base(module, build) {
                apply(index, rule, base + offset, bytes, Kind::Static, None);
            }
        }
        Select::Everything => everything(index, rule),
        Select::SizeAtLeast(least) => by_size(index, least),
        Select::File(_) => FILE_RULES.store(1, Ordering::Relaxed),
        Select::Stack(_) | Select::Nothing => {}
    }
}

/// A rule that takes whatever has this size.
fn by_size(index: u32, least: u64) {
    let _first = SIZE_RULE.compare_exchange(NO_RULE, index, Ordering::Relaxed, Ordering::Relaxed);
    LEAST_BY_SIZE.fetch_min(least, Ordering::Relaxed);
}

/// The plan's default: a policy of the thread, which threads and children inherit. Weights that are
/// not the host's no thread can have: then every range that is handed out gets them for itself.
fn everything(index: u32, rule: &Rule) {
    let by_host = match rule.policy {
        Policy::Weighted(turns) if rule.options.by_kernel => {
            Law::new(turns, PAGE_BYTES).map(|law| (kernel::MPOL_WEIGHTED_INTERLEAVE, law.mask()))
        }
        Policy::FirstTouch if rule.options.hint_faults == Some(false) => Some((kernel::MPOL_LOCAL, 0)),
        policy => mempolicy::mode(policy, rule.options.hint_faults == Some(true)),
    };
    let errno = match by_host {
        Some((mode, mask)) => kernel::set_thread_policy(mode, mask),
        None => 0,
    };
    if by_host.is_none() && rule.policy != Policy::FirstTouch {
        by_size(index, 0);
    }
    answer(index, 0, 0, errno, How::Policy);
}

/// The first rule whose frames this stack holds in a row; [`NO_RULE`] where there is none.
pub(crate) fn rule_of_stack(frames: &[u64]) -> u32 {
    if RULES.load(Ordering::Acquire) == 0 { NO_RULE } else { rule_by_names(frames) }
}

/// By itself, because it takes some KiB of stack, which a thread may not have where there is no plan.
#[cold]
#[inline(never)]
fn rule_by_names(frames: &[u64]) -> u32 {
    let Some(region) = report::region() else { return NO_RULE };
    let mut named = [RuleFrame::default(); MAX_FRAMES];
    let named = &mut named[..frames.len().min(MAX_FRAMES)];
    modules::name_frames(frames, named);
    let mut reader = RuleReader::new(region.rules().1);
    let mut index = 0;
    while let Some(rule) = reader.read() {
        if let Select::Stack(wanted) = rule.select
            && stack_holds(named, wanted)
        {
            return index;
        }
        index += 1;
    }
    NO_RULE
}

/// Places a range by the first rule that takes it.
#[cold]
pub(super) fn place(stack_rule: u32, address: u64, bytes: u64, handed: Handed) {
    let by_size = SIZE_RULE.load(Ordering::Relaxed) != NO_RULE && take_by_size(bytes);
    let file = if FILE_RULES.load(Ordering::Relaxed) == 0 { None } else { handed.file() };
    if stack_rule == NO_RULE && !by_size && file.is_none() {
        return;
    }
    let Some(region) = report::region() else { return };
    let mut reader = RuleReader::new(region.rules().1);
    let mut index = 0;
    while let Some(rule) = reader.read() {
        let selected = match rule.select {
            Select::Stack(_) => index == stack_rule,
            Select::SizeAtLeast(least) => bytes >= least,
            Select::File(path) => file == Some(path),
            Select::Everything => SIZE_RULE.load(Ordering::Relaxed) == index,
            Select::Static { .. } | Select::Nothing => false,
        };
        if selected {
            return apply(index, &rule, address, bytes, handed.kind(), handed.page_bytes());
        }
        index += 1;
    }
}
