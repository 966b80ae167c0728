//! Hint faults, in closed form.

use tierloom_contention::Work;

use super::protections::Due;
use super::scale::DUST;
use super::state::Cohort;
use crate::engine::page_state::PageState;
use crate::policy::Fault;

impl Cohort<'_> {
    /// Faults since the last step.
    pub(super) fn faults(&mut self) {
        // Cohorts that are demoted for these faults to have room, and so protected, are watched from the next step on.
        let mut watched = std::mem::take(&mut self.watched);
        watched.retain(|cohort| {
            let cohort = *cohort as usize;
            for node in 0..self.host.nodes.len() {
                self.faults_on(cohort, node);
            }
            let cells = self.at(cohort, 0)..self.at(cohort + 1, 0);
            self.is_watched[cohort] = self.cells[cells].iter().any(|cell| !cell.protected.is_empty());
            self.is_watched[cohort]
        });
        watched.append(&mut self.watched);
        self.watched = watched;
    }

    /// Faults on one cell: what is due leaves the protected pages first, since what is demoted for these faults to have
    /// room is protected after all of them.
    fn faults_on(&mut self, cohort: usize, node: usize) {
        let at = self.at(cohort, node);
        if self.cells[at].protected.is_empty() {
            return;
        }
        let (rate, last, until, now_s) = (&self.rates[cohort], self.last, self.progress, self.host.now_s);
        let due = self.cells[at].protected.take_due(|generation| {
            let after = last.progress.max(generation.from);
            let pages = generation.pages * rate.visited(generation.swept, after, until);
            let from_s = last.s.max(generation.since_s);
            let at_s = || from_s + (now_s - from_s) * rate.mean_share(generation.swept, after, until);
            Due { pages, latency_s: if pages > DUST { at_s() - generation.since_s } else { 0.0 } }
        });
        for Due { pages, latency_s } in due.into_iter().filter(|due| due.pages > DUST) {
            self.fault(cohort, node, pages, latency_s);
        }
    }

    /// `do_numa_page` for pages that fault in one step.
    fn fault(&mut self, cohort: usize, node: usize, pages: f64, latency_s: f64) {
        let at = self.at(cohort, node);
        let (local, slow) = (node == 0, !self.host.nodes.list[node].top);
        let cell = &self.cells[at];
        let of_pages = |count: f64| if cell.pages > 0.0 { pages * (count / cell.pages).min(1.0) } else { 0.0 };
        let fault = Fault {
            now_s: self.host.now_s,
            latency_ms: latency_s * 1e3,
            pages,
            active: of_pages(cell.active),
            demoted: of_pages(cell.demoted),
            slow,
            local,
            threads: f64::from(self.host.threads),
        };
        let room = self.host.room();
        let verdict = self.host.policy.on_fault(&fault, &room, &mut self.host.ledger.counters);
        self.host.ledger.faults(pages + verdict.repeats, local);
        self.cells[at].active += verdict.activate;
        let wanted = if local { 0.0 } else { verdict.promote.min(self.cells[at].pages) };
        let active = if wanted > 0.0 { ((fault.active + verdict.activate) / wanted).min(1.0) } else { 0.0 };
        let moved = self.promote(cohort, node, wanted, active);
        let failed = wanted - moved;
        self.note(cohort, slow, local, [pages, moved, failed]);
    }

    /// Moves up what finds room, of which a share is active; the faults of a step come one after the other, so kswapd,
    /// once woken, makes room for the later ones, for as long as the step is.
    fn promote(&mut self, cohort: usize, node: usize, wanted: f64, active: f64) -> f64 {
        let slow = !self.host.nodes.list[node].top;
        let mut moved = 0.0;
        while wanted - moved > DUST {
            let step = (wanted - moved).min((self.host.visible(0) - self.host.nodes.list[0].marks.high).max(0.0));
            if step > DUST {
                self.relocate(cohort, node, 0, step, step * active);
                self.reroute(cohort, node, step);
                self.host.ledger.promoted(step, node, 0, slow, self.host.policy);
                moved += step;
                continue;
            }
            if !self.host.policy.wakes_kswapd() || self.reclaim_s <= 0.0 || !self.host.keeps_list(0) {
                break;
            }
            let (now_s, before) = (self.host.now_s, self.host.visible(0));
            self.host.kswapd[0].wake(&self.host.rule, now_s);
            let slice_s = self.host.ledger.reclaim_pace(0.0).for_pages(wanted - moved).min(self.reclaim_s);
            self.reclaim_s -= slice_s;
            self.reclaim(0, slice_s, now_s);
            self.reclaim_s += self.host.kswapd[0].unspent_s();
            if self.host.visible(0) <= before + DUST {
                break;
            }
        }
        moved
    }

    /// The visits that faulted go on where their pages went.
    fn reroute(&mut self, cohort: usize, from: usize, pages: f64) {
        let rate = &self.rates[cohort];
        let visits = rate.work * (pages / rate.visits());
        self.rerouted[from] += visits * -1.0;
        self.rerouted[0] += visits;
    }

    /// No node loses more visits than it had. Of pages that are swept and have just been demoted more are due than of
    /// others, and those others, where they are, are visited less.
    pub(super) fn limit_rerouted(&mut self, served: &[Work]) {
        let mut gained = Work::default();
        for (rerouted, served) in self.rerouted.iter_mut().zip(served).skip(1) {
            let lost = (*rerouted * -1.0).at_most(*served);
            *rerouted = lost * -1.0;
            gained += lost;
        }
        self.rerouted[0] = gained;
    }

    fn note(&mut self, cohort: usize, slow: bool, local: bool, [pages, moved, failed]: [f64; 3]) {
        let (region, private, now_s) =
            (self.cohorts.places[cohort].region, self.rates[cohort].private, self.host.now_s);
        let tiering = slow && self.host.ignores_slow();
        let Some(scanner) = &mut self.host.scanner else { return };
        scanner.touched(region);
        let private = if tiering { 1.0 } else { private };
        let counted = if tiering { moved } else { pages };
        if counted > DUST {
            scanner.faulted(now_s, counted, local, failed > DUST && !tiering, private);
        }
    }
}
