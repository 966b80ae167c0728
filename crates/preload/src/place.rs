//! A plan applied: the kernel is asked for a place when a range is handed out.
//!
//! The rules lie at the end of the shared file. A call stack is held against them once, when it is new; what it
//! matched is kept with its id. The policy covers the whole pages inside a range: the pages at its
//! edges may belong to others as well. The kernel's answer goes to the recorder either way, and where
//! the pages are, when the range is given back or the process ends.
//!
//! | file | step |
//! |---|---|
//! | `policy` | one rule's policy and options for one range |
//! | `spread` | weighted interleave of one object, by the means that fits it |
//! | `residency` | where an object's pages are |
//! | `objects` | which objects are placed |
//! | `unmeant` | blocks that no rule means |
//! | `kernel` | the calls |

mod kernel;
mod objects;
mod policy;
mod residency;
mod spread;
mod unmeant;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use tierloom_wire::{
    Block, Event, How, Law, MAX_FRAMES, MAX_RESIDENT_NODES, Options, Policy, Region, Rule, RuleFrame, RuleReader,
    Select, TOO_MANY_MAPPINGS, hash, stack_holds,
};

use crate::stack::Identity;
use crate::{modules, report, stack, thread};
use kernel::PAGE;
use objects::{Kind, OBJECTS, Object};
use policy::{Outcome, Range};

/// No rule.
pub(crate) const NO_RULE: u32 = u32::MAX;

/// Generation of the rules that hold for threads and static arrays; 0 = nothing was ever placed. It lies
/// on the page of the next library's functions, which every call reads.
#[unsafe(link_section = ".data")]
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// There is room for rules, so that some may come. It lies there, too.
#[unsafe(link_section = ".data")]
static MAY_COME: AtomicBool = AtomicBool::new(false);
/// First rule that goes by size alone or takes what no other does; a stack's rule wins only before it.
static SIZE_RULE: AtomicU32 = AtomicU32::new(NO_RULE);
/// Smallest block that a rule takes by its size alone, bytes.
static LEAST_BY_SIZE: AtomicU64 = AtomicU64::new(u64::MAX);
/// There are rules for mapped files.
static FILE_RULES: AtomicU32 = AtomicU32::new(0);
/// Mappings of the kernel's that a range with a policy of its own costs: itself, and what it parts.
const PARTS: u32 = 2;
/// Mappings that placed ranges have cost.
static STRIPES: AtomicU64 = AtomicU64::new(0);
/// Bytes that were brought in before they were touched.
static EAGER: AtomicU64 = AtomicU64::new(0);

/// What was handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handed {
    /// A block of the allocator.
    Block,
    /// Anonymous memory by `mmap`, `mremap` or `brk`, with the flags of `mmap`.
    Mapping(i32),
    /// Addresses by `mmap` that may not be used yet, with its flags: what they get later has their policy.
    Addresses(i32),
    /// A file by `mmap`: its descriptor.
    File(i32),
}

/// Applies what holds from the start: static arrays, and the policy of everything else.
pub(crate) fn start() {
    if report::region().is_none_or(|region| region.settings().rule_words == 0) {
        return;
    }
    unmeant::begin();
    OBJECTS.map();
    MAY_COME.store(true, Ordering::Relaxed);
    if let Some(region) = report::region().filter(|region| region.generation() > 0) {
        begin(region);
    }
}

/// Where this process keeps the blocks that no rule means; 0 = nowhere.
pub(crate) fn table_of_blocks() -> u64 {
    unmeant::place()
}

/// How many times rules came into force in this process's eyes.
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// New rules came into force: those of threads and static arrays are applied, by whoever sees it first.
#[cold]
fn begin(region: &Region) {
    let (generation, words) = region.rules();
    if GENERATION.swap(generation, Ordering::AcqRel) == generation {
        return;
    }
    stack::forget();
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
            Law::new(turns, PAGE).map(|law| (kernel::MPOL_WEIGHTED_INTERLEAVE, law.mask()))
        }
        Policy::FirstTouch if rule.options.hint_faults == Some(false) => Some((kernel::MPOL_LOCAL, 0)),
        policy => policy::mode(policy, rule.options.hint_faults == Some(true)),
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
    if GENERATION.load(Ordering::Acquire) == 0 { NO_RULE } else { rule_by_names(frames) }
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

/// Looks whether new rules came into force. Cheap enough for every range that is handed out.
#[inline]
pub(crate) fn look_for_rules() {
    if MAY_COME.load(Ordering::Relaxed)
        && let Some(region) = report::region()
        && region.generation() != GENERATION.load(Ordering::Relaxed)
    {
        thread::quietly(|| begin(region));
    }
}

/// Keeps a block that no rule means to ourselves; `false` where one does, or where all are to be told.
#[inline]
pub(crate) fn keep_to_ourselves(identity: Identity, address: u64, bytes: u64) -> bool {
    let is_meant = identity.rule != NO_RULE || bytes >= LEAST_BY_SIZE.load(Ordering::Relaxed);
    if is_meant || !MAY_COME.load(Ordering::Relaxed) {
        return false;
    }
    unmeant::keep(&Block { address, bytes, stack: identity.id, generation: low_bits(generation()) })
}

/// A block that was kept to ourselves is about to be given back; `None` where it was not, or where somebody
/// knows of it: new rules came into force, so the table may have been read.
#[inline]
pub(crate) fn take_back(address: u64) -> Option<Block> {
    if !MAY_COME.load(Ordering::Relaxed) {
        return None;
    }
    let now = low_bits(report::region()?.generation());
    unmeant::take(address).filter(|block| block.generation == now)
}

/// It was not given back after all.
pub(crate) fn keep_again(block: &Block) {
    if !unmeant::keep(block) {
        report::count_lost();
    }
}

/// A generation, as far as the table keeps it.
#[allow(clippy::cast_possible_truncation)]
fn low_bits(generation: u64) -> u32 {
    generation as u32
}

/// Places a range that was just handed out to a stack of this rule.
#[inline]
pub(crate) fn place(stack_rule: u32, address: u64, bytes: u64, handed: Handed) {
    if GENERATION.load(Ordering::Relaxed) != 0 {
        thread::quietly(|| place_by_rules(stack_rule, address, bytes, handed));
    }
}

#[cold]
fn place_by_rules(stack_rule: u32, address: u64, bytes: u64, handed: Handed) {
    let by_size = SIZE_RULE.load(Ordering::Relaxed) != NO_RULE;
    let file = match handed {
        Handed::File(file) if FILE_RULES.load(Ordering::Relaxed) != 0 => path_of(file),
        _ => None,
    };
    let by_size = by_size && bytes >= LEAST_BY_SIZE.load(Ordering::Relaxed);
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
            return place_by(index, &rule, address, bytes, handed);
        }
        index += 1;
    }
}

fn place_by(index: u32, rule: &Rule, address: u64, bytes: u64, handed: Handed) {
    match handed {
        Handed::Block => apply(index, rule, address, bytes, Kind::Heap, None),
        Handed::Mapping(flags) | Handed::Addresses(flags) => {
            apply(index, rule, address, bytes, Kind::Mapping, page_of_mapping(flags));
        }
        Handed::File(_) => apply(index, rule, address, bytes, Kind::File, Some(PAGE)),
    }
}

/// Size of the huge pages that a mapping asks for (`MAP_HUGE_SHIFT`; two megabytes if it does not say).
fn page_of_mapping(flags: i32) -> Option<u64> {
    match (flags & libc::MAP_HUGETLB != 0, flags.cast_unsigned() >> 26) {
        (false, _) => None,
        (true, 0) => Some(2 << 20),
        (true, shift) => 1_u64.checked_shl(shift),
    }
}

/// [`hash`] of the path of an open file.
fn path_of(file: i32) -> Option<u64> {
    let mut name = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let digits = &mut name[14..25];
    let (mut rest, mut length) = (u32::try_from(file).ok()?, 0);
    while length == 0 || rest > 0 {
        digits.copy_within(0..length, 1);
        digits[0] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        (rest, length) = (rest / 10, length + 1);
    }
    let mut path = [0_u8; 1024];
    // SAFETY: the name ends with a zero byte, the buffer has as many bytes as are said.
    let length = unsafe { libc::readlink(name.as_ptr().cast(), path.as_mut_ptr().cast(), path.len()) };
    Some(hash(path.get(..usize::try_from(length).ok()?)?))
}

/// A range that may be placed is about to be given back: where its pages are is told, and what its
/// next owner must not inherit is undone.
#[inline]
pub(crate) fn release(address: u64) {
    if GENERATION.load(Ordering::Relaxed) != 0 {
        thread::quietly(|| release_placed(address));
    }
}

#[cold]
fn release_placed(address: u64) {
    let Some(object) = forget(address) else { return };
    tell_residency(&object, residency::AT_RELEASE);
    if object.kind == Kind::Heap {
        if object.held {
            kernel::unlock(object.start, object.bytes);
        }
        kernel::mbind(object.start, object.bytes, libc::MPOL_DEFAULT, 0, false);
    }
}

/// The process ends: where the pages of all placed objects are.
pub(crate) extern "C" fn finish() {
    if let Some(objects) = OBJECTS.get().filter(|_| GENERATION.load(Ordering::Relaxed) != 0) {
        objects.for_each(|object| tell_residency(object, residency::AT_EXIT));
    }
}

fn tell_residency(object: &Object, most: u64) {
    let Some(region) = report::region() else { return };
    if u64::from(object.plan) != region.plan() & u64::from(u32::MAX) {
        return;
    }
    let mut reader = RuleReader::new(region.rules().1);
    for _ in 0..object.rule {
        if reader.read().is_none() {
            return;
        }
    }
    let Some(meant) = reader.read().and_then(|rule| policy::meant(rule.policy, object.unit).map(|meant| (rule, meant)))
    else {
        return;
    };
    let found = residency::look(object.start, object.bytes, meant.1, most);
    let mut nodes = [0; MAX_RESIDENT_NODES];
    let count = found.pack(&mut nodes);
    let event =
        Event::Resident { rule: object.rule, address: object.start, pages: found.pages, nodes: &nodes[..count] };
    report::send(report::now(), event);
}

/// Takes an object out of the books.
fn forget(address: u64) -> Option<Object> {
    let object = OBJECTS.get()?.remove(address)?;
    STRIPES.fetch_sub(u64::from(object.stripes), Ordering::Relaxed);
    EAGER.fetch_sub(if object.populated { object.bytes } else { 0 }, Ordering::Relaxed);
    Some(object)
}

/// The whole pages inside a range.
fn whole_pages(address: u64, bytes: u64, page: u64) -> Option<(u64, u64)> {
    let start = address.checked_next_multiple_of(page)?;
    let end = address.checked_add(bytes)? / page * page;
    (end > start).then(|| (start, end - start))
}

fn apply(index: u32, rule: &Rule, address: u64, bytes: u64, kind: Kind, mapped_with: Option<u64>) {
    if rule.policy == Policy::FirstTouch && rule.options == Options::default() {
        return;
    }
    let Some(region) = report::region() else { return };
    let Some((start, bytes)) = whole_pages(address, bytes, mapped_with.unwrap_or(PAGE)) else { return };
    let facts = region.facts();
    let page_bytes = spread::page_bytes(&facts, start, bytes, mapped_with);
    let stripes_left = facts.stripes.saturating_sub(STRIPES.load(Ordering::Relaxed));
    // The program may not find itself out of mappings because of us.
    if stripes_left < u64::from(PARTS) {
        return answer(index, start, bytes, TOO_MANY_MAPPINGS, How::Policy);
    }
    let eager_left = facts.eager_bytes.saturating_sub(EAGER.load(Ordering::Relaxed)).min(kernel::free_bytes() / 2);
    let eager_bytes = if kind == Kind::File { 0 } else { eager_left };
    let range = Range { start, bytes, page_bytes, stripes_left, eager_bytes };
    let outcome = policy::apply(rule.policy, rule.options, range);
    tell(index, start, bytes, &outcome);
    if outcome.errno != 0 {
        return;
    }
    #[allow(clippy::cast_possible_truncation)]
    let plan = region.plan() as u32;
    let (unit, stripes) = (outcome.unit, outcome.stripes.max(PARTS));
    let held = outcome.held == Some(0);
    let populated = outcome.how == How::Populate;
    STRIPES.fetch_add(u64::from(stripes), Ordering::Relaxed);
    EAGER.fetch_add(if populated { bytes } else { 0 }, Ordering::Relaxed);
    forget(address);
    let object = Object { address, start, bytes, rule: index, plan, unit, stripes, kind, held, populated };
    if !OBJECTS.get().is_some_and(|objects| objects.insert(&object)) {
        report::count_lost();
    }
}

fn tell(rule: u32, start: u64, bytes: u64, outcome: &Outcome) {
    let shift = if outcome.unit == 0 { 0 } else { outcome.unit.trailing_zeros() };
    let event = Event::Placed { rule, address: start, bytes, errno: outcome.errno, how: outcome.how, shift };
    report::send(report::now(), event);
    if outcome.moved.went > 0 {
        answer(rule, start, outcome.moved.went * PAGE, 0, How::Move);
    }
    if outcome.moved.stuck > 0 {
        answer(rule, start, outcome.moved.stuck * PAGE, outcome.moved.errno.max(1), How::Move);
    }
    if let Some(errno) = outcome.held {
        answer(rule, start, bytes, errno, How::Hold);
    }
}

fn answer(rule: u32, address: u64, bytes: u64, errno: u32, how: How) {
    report::send(report::now(), Event::Placed { rule, address, bytes, errno, how, shift: 0 });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pages_are_placed() {
        assert_eq!(whole_pages(4096, 8192, PAGE), Some((4096, 8192)));
        assert_eq!(whole_pages(4097, 8192, PAGE), Some((8192, 4096)));
        assert_eq!(whole_pages(4097, 4096, PAGE), None);
        assert_eq!(whole_pages(u64::MAX, 4096, PAGE), None);
        assert_eq!(whole_pages(4096, 8 << 20, 2 << 20), Some((2 << 20, 6 << 20)));
    }

    #[test]
    fn huge_mappings_say_how_huge() {
        assert_eq!(page_of_mapping(libc::MAP_ANONYMOUS), None);
        assert_eq!(page_of_mapping(libc::MAP_HUGETLB), Some(2 << 20));
        assert_eq!(page_of_mapping(libc::MAP_HUGETLB | 30 << 26), Some(1 << 30));
    }

    #[test]
    fn a_file_has_a_path() {
        use std::os::fd::AsRawFd;
        let program = std::env::current_exe().unwrap();
        let file = std::fs::File::open(&program).unwrap();
        assert_eq!(path_of(file.as_raw_fd()), Some(hash(program.as_os_str().as_encoded_bytes())));
        assert_eq!(path_of(-1), None);
    }
}
