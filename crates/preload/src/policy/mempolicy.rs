//! One rule's policy and options, asked of the kernel for one range.
//!
//! | asked | how the kernel is asked |
//! |---|---|
//! | first touch | nothing; without hint faults `MPOL_LOCAL`, which is the same place |
//! | bind, prefer one or many, interleave | `mbind` for the range; pages that are there move |
//! | weighted | `weighted_interleave`; the host's own weighted interleave where the host has these weights |
//! | hint faults on | `MPOL_F_NUMA_BALANCING`, which only bind and prefer-many take: an interleaved object is populated and then bound to all its nodes |
//! | alias | no policy: `alias` maps the same memory over and over |
//! | hold | `mlock2(MLOCK_ONFAULT)`: reclaim, and so demotion, passes locked pages by |

use std::ffi::c_int;

use tierloom_wire::{How, Law, MAX_NODES, Options, PAGE_BYTES, Policy, TOO_LITTLE_MEMORY, Turn};

use super::residency::Meant;
use super::weighted_interleave::{self, Choice, Moved, Situation};
use super::{alias, kernel};

/// A range to be placed: whole pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// Size of its pages, where it was mapped with huge ones or would get them.
    pub(super) page_bytes: u64,
    /// Stripes that the process may still have.
    pub(super) stripes_left: u64,
    /// Bytes of it that may be brought in before they are touched; 0 for files, which that would write.
    pub(super) eager_bytes: u64,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) how: How,
    pub(super) errno: u32,
    /// Unit of the law by which pages are dealt out; 0 = any node of the policy will do.
    pub(super) unit: u64,
    pub(super) stripes: u32,
    /// Pages that were there.
    pub(super) moved: Moved,
    /// The answer to the lock, where one was asked for.
    pub(super) held: Option<u32>,
}

impl Outcome {
    fn of(how: How, errno: u32) -> Self {
        Self { how, errno, unit: 0, stripes: 0, moved: Moved::default(), held: None }
    }
}

/// Asks.
pub(super) fn apply(policy: Policy, options: Options, range: Range) -> Outcome {
    let mut outcome = match policy {
        Policy::FirstTouch if options.hint_faults == Some(false) => {
            Outcome::of(How::Policy, kernel::mbind(range.start, range.bytes, kernel::MPOL_LOCAL, 0, false))
        }
        Policy::FirstTouch => Outcome::of(How::Policy, 0),
        Policy::Weighted(turns) => weighted(turns, options, range),
        Policy::Interleave(mask) => interleave(mask, options, range),
        Policy::Bind(_) | Policy::Prefer(_) | Policy::PreferMany(_) => whole(policy, options, range),
        Policy::Alias(window_bytes) => aliased(window_bytes, range),
    };
    if options.hold {
        outcome.held = Some(kernel::lock_on_fault(range.start, range.bytes));
    }
    outcome
}

/// Mode and mask of a policy for a whole range; `None` for one that the kernel does not have.
pub(super) fn mode(policy: Policy, hint_faults: bool) -> Option<(c_int, u64)> {
    let migratable = if hint_faults { kernel::MPOL_F_NUMA_BALANCING } else { 0 };
    match policy {
        Policy::Bind(mask) => Some((libc::MPOL_BIND | migratable, mask)),
        Policy::Prefer(mask) if hint_faults => Some((kernel::MPOL_PREFERRED_MANY | migratable, mask)),
        Policy::Prefer(mask) => Some((libc::MPOL_PREFERRED, mask)),
        Policy::PreferMany(mask) => Some((kernel::MPOL_PREFERRED_MANY | migratable, mask)),
        Policy::Interleave(mask) if !hint_faults => Some((libc::MPOL_INTERLEAVE, mask)),
        _ => None,
    }
}

/// Where the pages of a range are meant to be, given the unit that its [`Outcome`] names.
pub(super) fn meant(policy: Policy<'_>, unit: u64) -> Option<Meant<'_>> {
    match policy {
        Policy::FirstTouch | Policy::Alias(_) => None,
        Policy::Bind(mask) | Policy::Prefer(mask) | Policy::PreferMany(mask) | Policy::Interleave(mask) => {
            Some(Meant::Any(mask))
        }
        Policy::Weighted(turns) => match Law::new(turns, unit) {
            Some(law) => Some(Meant::Law(law)),
            None => Law::new(turns, PAGE_BYTES).map(|law| Meant::Any(law.mask())),
        },
    }
}

fn aliased(window_bytes: u64, range: Range) -> Outcome {
    match alias::alias(window_bytes, range.start, range.bytes, range.stripes_left) {
        Ok(stripes) => Outcome { stripes: u32::try_from(stripes).unwrap_or(u32::MAX), ..Outcome::of(How::Alias, 0) },
        Err(errno) => Outcome::of(How::Alias, errno),
    }
}

fn whole(policy: Policy, options: Options, range: Range) -> Outcome {
    let Some((mode, mask)) = mode(policy, options.hint_faults == Some(true)) else {
        return Outcome::of(How::Policy, einval());
    };
    let there = weighted_interleave::any_present(range.start, range.bytes);
    Outcome::of(How::Policy, kernel::mbind(range.start, range.bytes, mode, mask, there))
}

/// Equal shares. The kernel leaves pages alone that are on any of the nodes, so those that are there
/// are dealt out one by one.
fn interleave(mask: u64, options: Options, range: Range) -> Outcome {
    let mut turns = [Turn::default(); MAX_NODES];
    for (node, turn) in (0..).zip(&mut turns) {
        *turn = Turn { node, units: u32::from(mask & 1 << node != 0) };
    }
    if options.hint_faults == Some(true) {
        return weighted(&turns, options, range);
    }
    let errno = kernel::mbind(range.start, range.bytes, libc::MPOL_INTERLEAVE, mask, false);
    let mut outcome = Outcome::of(How::Policy, errno);
    if let Some(law) = Law::new(&turns, range.page_bytes).filter(|_| errno == 0) {
        outcome.moved = move_present(law, range);
    }
    outcome
}

fn weighted(turns: &[Turn], options: Options, range: Range) -> Outcome {
    let Some(law) = Law::new(turns, PAGE_BYTES) else { return Outcome::of(How::Stripes, einval()) };
    let migratable = options.hint_faults == Some(true);
    if options.by_kernel && !migratable {
        let mode = kernel::MPOL_WEIGHTED_INTERLEAVE;
        let errno = kernel::mbind(range.start, range.bytes, mode, law.mask(), false);
        // Before Linux 6.9 the kernel does not know the mode: then it is done by hand.
        if errno != einval() {
            let moved = law.with_unit(range.page_bytes).map_or(Moved::default(), |law| move_present(law, range));
            return Outcome { moved, ..Outcome::of(How::Policy, errno) };
        }
    }
    if migratable && range.eager_bytes < range.bytes {
        return Outcome::of(How::Populate, TOO_LITTLE_MEMORY);
    }
    let situation = Situation {
        bytes: range.bytes,
        asked_unit: options.unit,
        page_bytes: range.page_bytes,
        no_policy: migratable,
        eager_bytes: range.eager_bytes,
        stripes_left: range.stripes_left,
    };
    deal_out(law, weighted_interleave::choose(&law, &situation), &situation, range)
}

fn deal_out(law: Law, choice: Choice, situation: &Situation, range: Range) -> Outcome {
    let Some(law) = law.with_unit(choice.unit) else { return Outcome::of(choice.how, einval()) };
    let there = weighted_interleave::any_present(range.start, range.bytes);
    let errno = match choice.how {
        How::Populate if situation.no_policy => {
            let after = libc::MPOL_BIND | kernel::MPOL_F_NUMA_BALANCING;
            weighted_interleave::populate(law, range.start, range.bytes, after)
        }
        How::Populate => weighted_interleave::populate(law, range.start, range.bytes, libc::MPOL_INTERLEAVE),
        _ => weighted_interleave::stripe(law, range.start, range.bytes),
    };
    // Memory that may not be written, or a kernel before 5.14: it gets a policy and may come later.
    if choice.how == How::Populate && errno != 0 && !situation.no_policy {
        return deal_out(law, weighted_interleave::coarse(&law, situation, choice.unit), situation, range);
    }
    let stripes = if choice.how == How::Stripes { law.stripe_count(range.bytes) } else { 0 };
    let move_them = errno == 0 && there;
    let moved =
        if move_them { weighted_interleave::move_present(law, range.start, range.bytes) } else { Moved::default() };
    let stripes = u32::try_from(stripes).unwrap_or(u32::MAX);
    Outcome { unit: choice.unit, stripes, moved, ..Outcome::of(choice.how, errno) }
}

fn move_present(law: Law, range: Range) -> Moved {
    if weighted_interleave::any_present(range.start, range.bytes) {
        weighted_interleave::move_present(law, range.start, range.bytes)
    } else {
        Moved::default()
    }
}

fn einval() -> u32 {
    libc::EINVAL.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(bytes: u64) -> Range {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let length = usize::try_from(bytes).unwrap();
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, kind, -1, 0) } as u64;
        Range { start, bytes, page_bytes: PAGE_BYTES, stripes_left: 1000, eager_bytes: 1 << 30 }
    }

    /// Whether this kernel has memory policies at all.
    fn has_numa() -> bool {
        kernel::thread_policy().is_ok()
    }

    const TURNS: [Turn; 2] = [Turn { node: 0, units: 2 }, Turn { node: 0, units: 1 }];

    #[test]
    fn every_policy_reaches_the_kernel() {
        let policies = [
            Policy::Bind(1),
            Policy::Prefer(1),
            Policy::PreferMany(1),
            Policy::Interleave(1),
            Policy::Weighted(&TURNS),
            Policy::FirstTouch,
        ];
        for policy in policies.into_iter().filter(|_| has_numa()) {
            for hint_faults in [None, Some(false), Some(true)] {
                let options = Options { hint_faults, ..Options::default() };
                let outcome = apply(policy, options, mapping(1 << 20));
                assert_eq!(outcome.errno, 0, "{policy:?} {hint_faults:?}");
            }
        }
    }

    #[test]
    fn a_large_object_is_populated_and_a_small_one_is_not() {
        if has_numa() {
            let large = apply(Policy::Weighted(&TURNS), Options::default(), mapping(16 << 20));
            assert_eq!((large.how, large.unit, large.stripes), (How::Populate, PAGE_BYTES, 0));
            let small = apply(Policy::Weighted(&TURNS), Options::default(), mapping(256 << 10));
            assert_eq!((small.how, small.unit), (How::Stripes, PAGE_BYTES));
            assert!(small.stripes > 0);
        }
    }

    #[test]
    fn memory_that_may_not_be_written_gets_a_policy() {
        let range = mapping(16 << 20);
        // SAFETY: the range is ours, and nobody reads it.
        unsafe { libc::mprotect(range.start as *mut _, usize::try_from(range.bytes).unwrap(), libc::PROT_NONE) };
        if has_numa() {
            let outcome = apply(Policy::Weighted(&TURNS), Options::default(), range);
            assert_eq!((outcome.how, outcome.errno), (How::Stripes, 0));
            assert!(outcome.unit > PAGE_BYTES);
        }
    }

    #[test]
    fn a_file_is_never_written_to_place_it() {
        if has_numa() {
            let file = |bytes| Range { eager_bytes: 0, ..mapping(bytes) };
            assert_eq!(apply(Policy::Weighted(&TURNS), Options::default(), file(16 << 20)).how, How::Stripes);
            let migratable = Options { hint_faults: Some(true), ..Options::default() };
            assert_eq!(apply(Policy::Weighted(&TURNS), migratable, file(1 << 20)).errno, TOO_LITTLE_MEMORY);
        }
    }

    #[test]
    fn a_held_range_is_locked() {
        let options = Options { hold: true, ..Options::default() };
        let outcome = apply(Policy::FirstTouch, options, mapping(64 << 10));
        let refused = [libc::EPERM, libc::ENOMEM].map(i32::unsigned_abs);
        assert!(outcome.held.is_some_and(|errno| errno == 0 || refused.contains(&errno)));
    }

    #[test]
    fn what_no_kernel_has_is_refused() {
        let refused = apply(Policy::Weighted(&[]), Options::default(), mapping(4096));
        assert_eq!(refused.errno, einval());
        assert_ne!(
            apply(Policy::Bind(1 << 63), Options::default(), mapping(4096)).errno,
            0,
            "nobody has 64 nodes here"
        );
    }
}
