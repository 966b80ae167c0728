//! Weighted interleave of one object: by which means its pages get where the law wants them.
//!
//! The kernel has one vector of weights for the whole host, so an object with weights of its own is
//! cut into stripes. Three means, each with its price (measured on Linux 6.18):
//!
//! | means | price | what it is for |
//! |---|---|---|
//! | a policy per stripe (`mbind`) | a mapping of the kernel's and some µs each; nothing is touched | few stripes; huge ranges, in coarse units |
//! | `set_mempolicy` and `MADV_POPULATE_WRITE` per stripe | about what first touch costs; pages come at once | stripes by the thousand |
//! | `move_pages` | a copy | pages that are there already |
//!
//! After populating, the range gets plain interleave over the same nodes: the kernel then takes no
//! hint faults on it (`vma_policy_mof` of `kernel/sched/fair.c`) and so does not pull it apart, and a
//! page that goes and comes again stays on these nodes.

use tierloom_wire::{Facts, How, Law, PAGE_BYTES};

use super::kernel;

/// Up to so many stripes get a policy each: below a millisecond, and pages may still come late.
const FEW_STRIPES: u64 = 256;
/// Most stripes of one object in coarse units.
const MOST_STRIPES: u64 = 8192;
/// Largest object that is populated: one thread brings in its pages, which several might have
/// touched side by side; this takes it about a second.
const MOST_EAGER_BYTES: u64 = 4 << 30;
/// The largest huge page of x86-64.
const LARGEST_UNIT: u64 = 1 << 30;

/// A choice of means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) how: How,
    pub(super) unit: u64,
}

/// What the choice depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation {
    pub(super) bytes: u64,
    /// Unit that the plan asks for; 0 = none.
    pub(super) asked_unit: u64,
    /// Size of the pages that the kernel takes for the range.
    pub(super) page_bytes: u64,
    /// Pages must not carry a policy of their own, so that hint faults are taken.
    pub(super) no_policy: bool,
    /// Bytes that may be brought in before they are touched.
    pub(super) eager_bytes: u64,
    /// Stripes that the process may still have.
    pub(super) stripes_left: u64,
}

/// Chooses. The unit is that of the object's own pages wherever that can be had.
pub(super) fn choose(law: &Law, situation: &Situation) -> Choice {
    let unit = situation.asked_unit.max(situation.page_bytes);
    let stripes = |unit: u64| law.with_unit(unit).map_or(u64::MAX, |law| law.stripe_count(situation.bytes));
    let few = FEW_STRIPES.min(situation.stripes_left);
    if !situation.no_policy && stripes(unit) <= few {
        return Choice { how: How::Stripes, unit };
    }
    if situation.no_policy || situation.bytes <= MOST_EAGER_BYTES.min(situation.eager_bytes) {
        return Choice { how: How::Populate, unit };
    }
    coarse(law, situation, unit)
}

/// Stripes in the smallest unit that the number of mappings allows. No object takes more than a
/// quarter of what is left, so that those that come later have some too.
pub(super) fn coarse(law: &Law, situation: &Situation, unit: u64) -> Choice {
    let most = MOST_STRIPES.min(situation.stripes_left / 4);
    let count = |unit: u64| law.with_unit(unit).map_or(u64::MAX, |law| law.stripe_count(situation.bytes));
    let mut unit = unit;
    while count(unit) > most && unit < LARGEST_UNIT {
        unit *= 2;
    }
    Choice { how: How::Stripes, unit }
}

/// The size of pages that the kernel will take for a range: that which it was mapped with, if that is
/// known, or huge ones where the kernel takes them by itself.
pub(super) fn page_bytes(facts: &Facts, start: u64, bytes: u64, mapped_with: Option<u64>) -> u64 {
    let huge = facts.huge_bytes;
    let holds_one = huge > 0 && start.next_multiple_of(huge).saturating_add(huge) <= start.saturating_add(bytes);
    mapped_with.unwrap_or(if holds_one { huge } else { PAGE_BYTES })
}

/// A policy for every stripe: 0 or the first refusal.
pub(super) fn stripe(law: Law, start: u64, bytes: u64) -> u32 {
    let ask = |stripe: tierloom_wire::Stripe| {
        kernel::mbind(stripe.start, stripe.bytes, libc::MPOL_PREFERRED, 1 << stripe.node, false)
    };
    law.stripes(start, bytes).map(ask).find(|errno| *errno != 0).unwrap_or(0)
}

/// Brings all pages in, each where it belongs, node by node; then `after` is the range's policy.
pub(super) fn populate(law: Law, start: u64, bytes: u64, after: i32) -> u32 {
    let before = match kernel::thread_policy() {
        Ok(policy) => policy,
        Err(errno) => return errno,
    };
    let errno = populate_by_node(law, start, bytes);
    kernel::restore_thread_policy(&before);
    if errno == 0 { kernel::mbind(start, bytes, after, law.mask(), false) } else { errno }
}

fn populate_by_node(law: Law, start: u64, bytes: u64) -> u32 {
    for node in (0..64).filter(|node| law.mask() & 1 << node != 0) {
        let errno = kernel::set_thread_policy(libc::MPOL_PREFERRED, 1 << node);
        if errno != 0 {
            return errno;
        }
        let ours = law.stripes(start, bytes).filter(|stripe| stripe.node == node);
        let refused = ours.map(|stripe| kernel::populate(stripe.start, stripe.bytes)).find(|errno| *errno != 0);
        if let Some(errno) = refused {
            return errno;
        }
    }
    0
}

/// Pages of one call.
const CHUNK: usize = 128;

/// What became of pages that were there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Moved {
    /// Pages that were there, wherever.
    pub(super) present: u64,
    /// Pages that had to move and did.
    pub(super) went: u64,
    /// Pages that had to and did not, and the first reason.
    pub(super) stuck: u64,
    pub(super) errno: u32,
}

/// Pages of one call that only asks which are there.
const LOOK: usize = 2048;

/// Whether any page of the range is there.
pub(super) fn any_present(start: u64, bytes: u64) -> bool {
    let mut there = [0_u8; LOOK];
    (0..bytes / PAGE_BYTES).step_by(LOOK).any(|first| {
        let count = LOOK.min(usize::try_from(bytes / PAGE_BYTES - first).unwrap_or(LOOK));
        let there = &mut there[..count];
        // Where the kernel does not say, they may be.
        kernel::mincore(start + first * PAGE_BYTES, there) != 0 || there.iter().any(|byte| byte & 1 != 0)
    })
}

/// Moves the pages that are there to where the law wants them.
///
/// What became of them is looked at when all is done: a huge page goes as a whole with the first of its
/// pages, and of the next one the kernel says `EBUSY`, or that it was there already.
pub(super) fn move_present(law: Law, start: u64, bytes: u64) -> Moved {
    let (mut present, mut before, mut after, mut errno) = (0, 0, 0, 0);
    in_chunks(start, bytes, |chunk| {
        present += chunk.present();
        before += chunk.wrong(&law).count() as u64;
    });
    if before == 0 {
        return Moved { present, ..Moved::default() };
    }
    in_chunks(start, bytes, |chunk| {
        let refused = chunk.move_wrong(&law);
        errno = if errno == 0 { refused } else { errno };
    });
    in_chunks(start, bytes, |chunk| after += chunk.wrong(&law).count() as u64);
    Moved { present, went: before.saturating_sub(after), stuck: after, errno: if after == 0 { 0 } else { errno } }
}

/// Some pages in a row, and the node of each or a negative error number.
struct Chunk {
    pages: [u64; CHUNK],
    status: [i32; CHUNK],
    count: usize,
}

/// Shows the pages of a range, as they are at that moment, piece by piece.
fn in_chunks(start: u64, bytes: u64, mut see: impl FnMut(&mut Chunk)) {
    let mut chunk = Chunk { pages: [0; CHUNK], status: [0; CHUNK], count: 0 };
    let end = start + bytes;
    let mut at = start;
    while at < end {
        chunk.count = 0;
        while at < end && chunk.count < CHUNK {
            chunk.pages[chunk.count] = at;
            chunk.count += 1;
            at += PAGE_BYTES;
        }
        if kernel::move_pages(&chunk.pages[..chunk.count], None, &mut chunk.status[..chunk.count]) == 0 {
            see(&mut chunk);
        }
    }
}

impl Chunk {
    /// Pages that are there, wherever.
    fn present(&self) -> u64 {
        self.status[..self.count].iter().map(|status| u64::from(*status >= 0)).sum()
    }

    /// Pages that are there and elsewhere than the law wants them.
    fn wrong<'a>(&'a self, law: &'a Law<'a>) -> impl Iterator<Item = (u64, i32)> + 'a {
        let seen = self.pages[..self.count].iter().zip(&self.status);
        let wanted = seen.map(|(page, status)| (*page, law.node(*page).cast_signed(), *status));
        wanted.filter(|(_, node, status)| *status >= 0 && status != node).map(|(page, node, _)| (page, node))
    }

    /// Has the kernel move them: 0 or the first reason why one of them did not go.
    fn move_wrong(&mut self, law: &Law) -> u32 {
        let (mut pages, mut nodes, mut count) = ([0_u64; CHUNK], [0_i32; CHUNK], 0);
        for (page, node) in self.wrong(law) {
            (pages[count], nodes[count]) = (page, node);
            count += 1;
        }
        if count == 0 {
            return 0;
        }
        let errno = kernel::move_pages(&pages[..count], Some(&nodes[..count]), &mut self.status[..count]);
        let refused = self.status[..count].iter().find(|status| **status < 0);
        if errno == 0 { refused.map_or(0, |status| status.unsigned_abs()) } else { errno }
    }
}

#[cfg(test)]
mod tests {
    use tierloom_wire::Turn;

    use super::*;

    const TURNS: [Turn; 2] = [Turn { node: 0, units: 3 }, Turn { node: 0, units: 1 }];
    const GIB: u64 = 1 << 30;
    const PLENTY: Situation = Situation {
        bytes: GIB,
        asked_unit: 0,
        page_bytes: PAGE_BYTES,
        no_policy: false,
        eager_bytes: 100 * GIB,
        stripes_left: 30_000,
    };

    fn law() -> Law<'static> {
        Law::new(&TURNS, PAGE_BYTES).unwrap()
    }

    #[test]
    fn the_means_fit_the_object() {
        let choose = |situation: Situation| choose(&law(), &situation);
        assert_eq!(choose(Situation { bytes: 1 << 20, ..PLENTY }), Choice { how: How::Stripes, unit: PAGE_BYTES });
        assert_eq!(choose(PLENTY), Choice { how: How::Populate, unit: PAGE_BYTES });
        let huge = choose(Situation { bytes: 256 << 20, page_bytes: 2 << 20, ..PLENTY });
        assert_eq!(huge, Choice { how: How::Stripes, unit: 2 << 20 });
        // 100 GiB in 8192 stripes of 3 and 1 units: two stripes every four units of 8 MiB.
        let large = choose(Situation { bytes: 100 * GIB, eager_bytes: 500 * GIB, ..PLENTY });
        assert_eq!(large, Choice { how: How::Stripes, unit: 8 << 20 });
        // 1 GiB in 8192 stripes: units of 64 KiB would do, but for the round that may begin before it.
        let short = choose(Situation { eager_bytes: GIB / 2, ..PLENTY });
        assert_eq!(short, Choice { how: How::Stripes, unit: 128 << 10 });
        let migratable = choose(Situation { bytes: 1 << 20, no_policy: true, ..PLENTY });
        assert_eq!(migratable, Choice { how: How::Populate, unit: PAGE_BYTES });
    }

    #[test]
    fn a_process_never_runs_out_of_mappings() {
        let choice = choose(&law(), &Situation { bytes: 1 << 40, stripes_left: 100, ..PLENTY });
        assert!(law().with_unit(choice.unit).unwrap().stripe_count(1 << 40) <= MOST_STRIPES);
    }

    #[test]
    fn no_object_takes_all_mappings_from_those_after_it() {
        let mut left = 32_765;
        for object in 0..32 {
            let situation = Situation { bytes: 8 * GIB, eager_bytes: 0, stripes_left: left, ..PLENTY };
            let Choice { how, unit } = choose(&law(), &situation);
            let stripes = law().with_unit(unit).unwrap().stripe_count(8 * GIB);
            assert!(how == How::Stripes && stripes <= left, "object {object}: {stripes} of {left}");
            left -= stripes;
        }
    }

    #[test]
    fn huge_pages_stay_whole() {
        let facts = Facts { huge_bytes: 2 << 20, stripes: 0, eager_bytes: 0 };
        assert_eq!(page_bytes(&facts, 1 << 20, 2 << 20, None), PAGE_BYTES);
        assert_eq!(page_bytes(&facts, 1 << 20, 3 << 20, None), 2 << 20);
        assert_eq!(page_bytes(&facts, 0, 1 << 30, Some(1 << 30)), 1 << 30);
        assert_eq!(page_bytes(&Facts { huge_bytes: 0, stripes: 0, eager_bytes: 0 }, 0, 1 << 30, None), PAGE_BYTES);
    }

    /// A fresh mapping that is never unmapped.
    fn mapping(bytes: usize) -> u64 {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) as u64 }
    }

    #[test]
    fn populated_pages_are_there_and_the_thread_is_as_it_was() {
        let (start, bytes) = (mapping(1 << 20), 1 << 20);
        let before = kernel::thread_policy();
        if before.is_err() {
            return; // a kernel without NUMA
        }
        assert!(!any_present(start, bytes));
        assert_eq!(populate(law(), start, bytes, libc::MPOL_INTERLEAVE), 0);
        assert_eq!(kernel::thread_policy(), before);
        let moved = move_present(law(), start, bytes);
        assert_eq!(moved, Moved { present: 256, went: 0, stuck: 0, errno: 0 });
    }

    #[test]
    fn stripes_reach_the_kernel_and_touch_nothing() {
        let (start, bytes) = (mapping(1 << 20), 1 << 20);
        assert!([0, libc::ENOSYS.unsigned_abs()].contains(&stripe(law(), start, bytes)));
        assert!(!any_present(start, bytes));
        let nowhere = [Turn { node: 63, units: 1 }];
        assert_ne!(stripe(Law::new(&nowhere, PAGE_BYTES).unwrap(), start, bytes), 0, "no machine has 64 nodes here");
    }

    #[test]
    fn pages_that_cannot_move_are_counted() {
        let (start, bytes) = (mapping(64 << 10), 64 << 10);
        kernel::populate(start, bytes);
        let nowhere = [Turn { node: 63, units: 1 }];
        let moved = move_present(Law::new(&nowhere, PAGE_BYTES).unwrap(), start, bytes);
        assert_eq!((moved.present, moved.went, moved.stuck), (16, 0, 16));
        assert_eq!(moved.errno, libc::ENODEV.unsigned_abs());
    }
}
