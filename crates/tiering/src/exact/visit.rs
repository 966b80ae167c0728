//! Visits: the path of every access, and what the first one of a page since a scan does.
//!
//! Almost every visit meets a page that is mapped, not protected and known to be in use. Such visits are read a batch
//! at a time without a branch between them, so that their cache misses overlap, and change nothing but the
//! counts; a batch with any other visit in it is gone through one by one.

use super::pages::{ABSENT, ACTIVE, DEMOTED, GROUP, IDLE, NODE, PROTECTED};
use super::state::Exact;
use crate::error::Result;
use crate::policy::Fault;

/// Visits that are read at once: more than a core keeps misses in flight.
pub(super) const BATCH: usize = 32;
/// Nodes, the place of pages that are on none, and reads and writes of each.
const KINDS: usize = 16;
/// Counters of each kind.
const TURNS: usize = 4;
/// Flags one of which every page has that was not visited since it was protected, cleared or made.
const FIRST: u8 = PROTECTED | IDLE;

/// Visits by node, reads and writes apart; counted in turns, so that visits of one kind do not wait for each other.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts([[u64; KINDS]; TURNS]);

impl Counts {
    /// Reads and writes of one node.
    pub(crate) fn of(&self, node: usize) -> [u64; 2] {
        [node << 1, (node << 1) | 1].map(|kind| self.0.iter().map(|turn| turn[kind]).sum())
    }

    /// All of them.
    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().flatten().sum()
    }

    fn add(&mut self, kinds: &[u8]) {
        for (index, kind) in kinds.iter().enumerate() {
            self.0[index % TURNS][usize::from(*kind) % KINDS] += 1;
        }
    }
}

/// Page of a code.
fn page_of(code: u32) -> usize {
    (code >> 1) as usize
}

/// What a visit counts as: the page's node, and whether it writes.
fn kind_of(flags: u8, code: u32) -> u8 {
    flags & NODE | u8::from(code & 1 != 0)
}

impl Exact<'_> {
    /// Visits pages in order; counts how many fell on each node, writes (bit 0 of a code) apart.
    ///
    /// `span_s` is the program time that the visits take without faults, for the times of faults.
    pub(crate) fn visit(&mut self, codes: &[u32], from_s: f64, span_s: f64, counts: &mut Counts) -> Result<()> {
        let step_s = span_s / codes.len().max(1) as f64;
        let (batches, rest) = codes.as_chunks::<BATCH>();
        for (index, batch) in batches.iter().enumerate() {
            if !self.count_known(batch, counts) {
                self.visit_each(batch, from_s + step_s * (index * BATCH) as f64, step_s, counts)?;
            }
        }
        self.visit_each(rest, from_s + step_s * (codes.len() - rest.len()) as f64, step_s, counts)?;
        if !self.touched.is_empty() {
            for code in codes {
                self.touched[page_of(*code) / GROUP] += 1;
            }
        }
        Ok(())
    }

    /// Counts visits none of which is the first of its page, which changes nothing else; false where one is.
    fn count_known(&self, codes: &[u32; BATCH], counts: &mut Counts) -> bool {
        let (mut kinds, mut any) = ([0; BATCH], 0);
        for (kind, code) in kinds.iter_mut().zip(codes) {
            let flags = self.pages.flags[page_of(*code)];
            any |= flags;
            *kind = kind_of(flags, *code);
        }
        let known = any & FIRST == 0;
        if known {
            counts.add(&kinds);
        }
        known
    }

    fn visit_each(&mut self, codes: &[u32], from_s: f64, step_s: f64, counts: &mut Counts) -> Result<()> {
        for (index, code) in codes.iter().enumerate() {
            let page = page_of(*code);
            let mut flags = self.pages.flags[page];
            if flags & FIRST != 0 {
                // What the window's faults have cost so far has passed as well.
                let now_s = from_s + step_s * index as f64 + self.host.ledger.overhead_s();
                flags = self.first_since(page, now_s)?;
            }
            counts.add(&[kind_of(flags, *code)]);
        }
        Ok(())
    }

    /// The first visit since the page was protected, cleared or mapped.
    #[cold]
    fn first_since(&mut self, page: usize, now_s: f64) -> Result<u8> {
        if self.pages.node(page) == ABSENT {
            let region = self.region_of(page as u64);
            self.touch(region, page as u64).ok_or_else(|| self.host.full(region, 1.0))?;
        }
        if self.pages.flags[page] & PROTECTED != 0 {
            self.fault(page, now_s);
        }
        self.pages.flags[page] &= !IDLE;
        Ok(self.pages.flags[page])
    }

    /// `do_numa_page`.
    fn fault(&mut self, page: usize, now_s: f64) {
        let flags = self.pages.flags[page];
        let from = self.pages.node(page);
        let local = from == 0;
        let slow = !self.host.nodes.list[from].top;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ms of a run")]
        let now_ms = (now_s * 1e3) as u32;
        let fault = Fault {
            now_s,
            latency_ms: f64::from(now_ms.wrapping_sub(self.pages.stamp[page])),
            pages: 1.0,
            active: if flags & ACTIVE == 0 { 0.0 } else { 1.0 },
            demoted: if flags & DEMOTED == 0 { 0.0 } else { 1.0 },
            slow,
            local,
            threads: f64::from(self.host.threads),
        };
        let room = self.host.room();
        let verdict = self.host.policy.on_fault(&fault, &room, &mut self.host.ledger.counters);
        self.host.ledger.faults(1.0 + verdict.repeats, local);
        self.pages.flags[page] &= !PROTECTED;
        if self.take_fraction(verdict.activate) && !self.host.keeps_list(from) {
            self.pages.flags[page] |= ACTIVE;
        }
        let (mut moved, mut failed) = (false, false);
        if self.take_fraction(verdict.promote) && !local {
            moved = room.free >= room.marks.high + 1.0;
            failed = !moved;
            if moved {
                self.relocate(page, from, 0);
                self.host.ledger.promoted(1.0, from, 0, slow, self.host.policy);
            } else if self.host.policy.wakes_kswapd() && self.host.keeps_list(0) {
                // It has worked since the last failure, if it was awake.
                self.reclaim_until(0, now_s);
                self.host.kswapd[0].wake(&self.host.rule, now_s);
                self.reclaimed_s = self.reclaimed_s.max(now_s);
            }
        }
        self.note(page, [slow, moved], local, failed, now_s);
    }

    /// `task_numa_fault` and the bit that tells who touches a mapping. In mode 2, faults that leave a
    /// page in slow memory do not count, and others there are private: who faulted last is not known.
    fn note(&mut self, page: usize, [slow, moved]: [bool; 2], local: bool, failed: bool, now_s: f64) {
        let region = self.region_of(page as u64);
        let tiering = slow && self.host.ignores_slow();
        let private = if tiering { 1.0 } else { self.private };
        if let Some(scanner) = &mut self.host.scanner {
            scanner.touched(region);
            if moved || !tiering {
                scanner.faulted(now_s, 1.0, local, failed, private);
            }
        }
    }

    /// Fractions of a page add up to whole ones.
    fn take_fraction(&mut self, share: f64) -> bool {
        if share >= 1.0 {
            return true;
        }
        self.owed += share;
        let whole = self.owed >= 1.0;
        self.owed -= if whole { 1.0 } else { 0.0 };
        whole
    }
}
