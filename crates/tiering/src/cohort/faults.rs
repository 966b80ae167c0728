//! Protection and hint faults, in closed form.

use tierloom_contention::Work;

use super::groups::Rate;
use super::protections::{Protection, Protections};
use super::{Cohort, DUST};
use crate::policy::Fault;
use crate::sweep::LastSweep;

impl Cohort<'_> {
    /// Share of idle pages that are visited between two times, which are progress of the program.
    fn visited(&self, cohort: usize, last: LastSweep, after: f64, until: f64) -> f64 {
        let Rate { swept, random, .. } = self.rates[cohort];
        let met = if swept > 0.0 { last.met(1.0 / swept, after, until) } else { 0.0 };
        1.0 - (1.0 - met) * unvisited(random, until - after)
    }

    /// Share of pages that are visited between two times; when a sweep last passed by these, and by the others.
    pub(super) fn parted(&self, cohort: usize, last: LastSweep, after: f64, until: f64) -> (f64, [LastSweep; 2]) {
        let Rate { swept, random, .. } = self.rates[cohort];
        let (met, swept) =
            if swept > 0.0 { last.parted(1.0 / swept, after, until) } else { (0.0, [LastSweep::by(until); 2]) };
        // What was visited at random as well may have been met or not.
        let swept = if random > 0.0 { [LastSweep::by(until), swept[1]] } else { swept };
        (1.0 - (1.0 - met) * unvisited(random, until - after), swept)
    }

    /// When a sweep last passed by pages that fault in this step.
    pub(super) fn just_swept(&self, cohort: usize) -> LastSweep {
        let from = if self.rates[cohort].random > 0.0 { f64::NEG_INFINITY } else { self.last.progress };
        LastSweep::between(from, self.progress)
    }

    /// Faults since the last step.
    pub(super) fn faults(&mut self) {
        // Cohorts that are demoted for these faults to have room, and so protected, are watched from the next step on.
        let mut watched = std::mem::take(&mut self.watched);
        watched.retain(|cohort| {
            let cohort = *cohort as usize;
            for node in 0..self.nodes.len() {
                self.faults_on(cohort, node);
            }
            let cells = self.at(cohort, 0)..self.at(cohort + 1, 0);
            self.is_watched[cohort] = self.cells[cells].iter().any(|cell| !cell.protected.is_empty());
            self.is_watched[cohort]
        });
        watched.append(&mut self.watched);
        self.watched = watched;
    }

    /// Faults on one cell.
    fn faults_on(&mut self, cohort: usize, node: usize) {
        let at = self.at(cohort, node);
        if self.cells[at].protected.is_empty() {
            return;
        }
        let mut kept = Protections::default();
        for generation in std::mem::take(&mut self.cells[at].protected).iter() {
            let (after, until) = (self.last.progress.max(generation.from), self.progress);
            let pages = generation.pages * self.visited(cohort, generation.swept, after, until);
            let left = generation.pages - pages;
            if left > DUST {
                kept.push(Protection { pages: left, ..*generation });
            }
            if pages > DUST {
                let from_s = self.last.s.max(generation.since_s);
                let at_s = from_s + (self.now_s - from_s) * self.mean_share(cohort, generation.swept, after, until);
                let latency_s = at_s - generation.since_s;
                self.fault(cohort, node, pages, latency_s);
            }
        }
        // What was demoted for these faults to have room was protected after all of them.
        for new in self.cells[at].protected.iter() {
            kept.push(*new);
        }
        self.cells[at].protected = kept;
    }

    /// How far between two times the fault is on average, given that it falls between them.
    fn mean_share(&self, cohort: usize, last: LastSweep, after: f64, until: f64) -> f64 {
        let Rate { swept, random, .. } = self.rates[cohort];
        let x = (swept + random) * (until - after);
        if random > 0.0 && x >= 1e-6 {
            1.0 / x - 1.0 / x.exp_m1()
        } else if swept > 0.0 {
            last.met_at(1.0 / swept, after, until)
        } else {
            0.5
        }
    }

    /// `do_numa_page` for pages that fault in one step.
    fn fault(&mut self, cohort: usize, node: usize, pages: f64, latency_s: f64) {
        let at = self.at(cohort, node);
        let (local, slow) = (node == 0, !self.nodes.list[node].top);
        let cell = &self.cells[at];
        let of_pages = |count: f64| if cell.pages > 0.0 { pages * (count / cell.pages).min(1.0) } else { 0.0 };
        let fault = Fault {
            now_s: self.now_s,
            latency_ms: latency_s * 1e3,
            pages,
            active: of_pages(cell.active),
            demoted: of_pages(cell.demoted),
            slow,
            local,
            threads: self.threads,
        };
        let room = self.room();
        let verdict = self.policy.on_fault(&fault, &room, &mut self.ledger.counters);
        self.ledger.faults(pages + verdict.repeats, local);
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
        let slow = !self.nodes.list[node].top;
        let mut moved = 0.0;
        while wanted - moved > DUST {
            let step = (wanted - moved).min((self.visible(0) - self.nodes.list[0].marks.high).max(0.0));
            if step > DUST {
                self.relocate(cohort, node, 0, step, step * active);
                self.reroute(cohort, node, step);
                self.ledger.promoted(step, node, 0, slow, self.policy);
                moved += step;
                continue;
            }
            if !self.policy.wakes_kswapd() || self.reclaim_s <= 0.0 || !self.keeps_list(0) {
                break;
            }
            let (now_s, before) = (self.now_s, self.visible(0));
            self.kswapd[0].wake(&self.rule, now_s);
            let slice_s = self.ledger.reclaim_pace(0.0).for_pages(wanted - moved).min(self.reclaim_s);
            self.reclaim_s -= slice_s;
            self.reclaim(0, slice_s);
            self.reclaim_s += self.kswapd[0].unspent_s();
            if self.visible(0) <= before + DUST {
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
        let (region, private, now_s) = (self.cohorts.places[cohort].region, self.rates[cohort].private, self.now_s);
        let tiering = slow && self.scan.is_some_and(|scan| !scan.counts_slow);
        let Some(scanner) = &mut self.scanner else { return };
        scanner.touched(region);
        let private = if tiering { 1.0 } else { private };
        let counted = if tiering { moved } else { pages };
        if counted > DUST {
            scanner.faulted(now_s, counted, local, failed > DUST && !tiering, private);
        }
    }

    /// `change_prot_numa`.
    pub(super) fn protect(&mut self, region: usize, from: u64, to: u64) -> f64 {
        let Some(rule) = self.scan else { return 0.0 };
        let now_s = self.now_s;
        let cohorts = self.cohorts.by_region[region]..self.cohorts.by_region[region + 1];
        let first = cohorts.start + self.cohorts.places[cohorts.clone()].partition_point(|p| p.first + p.chunk <= from);
        let mut updated = 0.0;
        for cohort in first..cohorts.end {
            if self.cohorts.places[cohort].first >= to {
                break;
            }
            let place = &self.cohorts.places[cohort];
            let covered = (to.min(place.first + place.chunk) - from.max(place.first)) as f64 / place.chunk as f64;
            for node in 0..self.nodes.len() {
                if rule.slow_only && self.nodes.list[node].top || self.threads < 1.5 && node == 0 {
                    continue;
                }
                updated += self.protect_cell(cohort, node, covered, now_s);
            }
        }
        if updated < 0.5 { 0.0 } else { updated }
    }

    /// Protects a share of the pages of a cell that are not protected yet; returns how many.
    fn protect_cell(&mut self, cohort: usize, node: usize, covered: f64, now_s: f64) -> f64 {
        let cell = &self.cells[self.at(cohort, node)];
        let pages = ((cell.pages - cell.protected.pages()) * covered).max(0.0);
        let swept = LastSweep::by(self.progress);
        self.protect_pages(cohort, node, Protection { since_s: now_s, from: self.progress, swept, pages })
    }

    /// Protects pages of a cell that are not protected; returns how many, or none where they are but rounding.
    pub(super) fn protect_pages(&mut self, cohort: usize, node: usize, new: Protection) -> f64 {
        if new.pages <= DUST {
            return 0.0;
        }
        let at = self.at(cohort, node);
        self.cells[at].protected.push(new);
        if node != 0 {
            self.fresh = self.fresh.max(self.rates[cohort].visits());
        }
        if !self.is_watched[cohort] {
            self.is_watched[cohort] = true;
            self.watched.push(u32::try_from(cohort).unwrap_or(u32::MAX));
        }
        new.pages
    }
}

/// Share of pages that nobody visits at random in so much of the program.
fn unvisited(random: f64, progress: f64) -> f64 {
    if random > 0.0 { (-random * progress).exp() } else { 1.0 }
}
