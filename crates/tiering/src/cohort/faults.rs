//! Protection and hint faults, in closed form.

use super::{Cohort, DUST, GENERATIONS, Protection};
use crate::policy::Fault;

impl Cohort<'_> {
    /// Visits per second and page.
    fn rate_s(&self, cohort: usize) -> (f64, f64) {
        let rate = &self.rates[cohort];
        (rate.swept * self.speed, rate.random * self.speed)
    }

    /// Share of pages visited between two ages.
    pub(super) fn visited(&self, cohort: usize, from_s: f64, to_s: f64) -> f64 {
        let (swept, random) = self.rate_s(cohort);
        let idle = (-random * (to_s - from_s)).exp();
        // A sweep comes by once in 1/λ, at any time in it: of those it has not met by `from`, it meets
        // an even share.
        let left = 1.0 - swept * from_s;
        let idle_swept = if left <= 0.0 {
            if swept > 0.0 { 0.0 } else { 1.0 }
        } else {
            ((1.0 - swept * to_s) / left).clamp(0.0, 1.0)
        };
        1.0 - idle * idle_swept
    }

    /// Faults of the last `passed_s` seconds.
    pub(super) fn faults(&mut self, passed_s: f64) {
        let (from_s, to_s) = (self.now_s - passed_s, self.now_s);
        let mut kept = 0;
        for index in 0..self.watched.len() {
            let cohort = self.watched[index] as usize;
            let mut still = false;
            for node in 0..self.nodes.len() {
                still |= self.faults_on(cohort, node, from_s, to_s);
            }
            if still {
                self.watched[kept] = self.watched[index];
                kept += 1;
            } else {
                self.is_watched[cohort] = false;
            }
        }
        self.watched.truncate(kept);
    }

    /// Faults on one cell; true while it has protected pages.
    fn faults_on(&mut self, cohort: usize, node: usize, from_s: f64, to_s: f64) -> bool {
        let at = self.at(cohort, node);
        if self.cells[at].protected.is_empty() {
            return false;
        }
        let generations = std::mem::take(&mut self.cells[at].protected);
        let mut kept = Vec::with_capacity(generations.len());
        for generation in generations {
            let ages = [(from_s - generation.since_s).max(0.0), to_s - generation.since_s];
            let pages = generation.pages * self.visited(cohort, ages[0], ages[1]);
            let left = generation.pages - pages;
            if left > DUST {
                kept.push(Protection { pages: left, ..generation });
            }
            if pages > DUST {
                self.fault(cohort, node, pages, ages);
            }
        }
        let still = !kept.is_empty();
        self.cells[at].protected.extend(kept);
        still
    }

    /// Mean age at the fault, given that it falls between two ages, s.
    fn mean_age_s(&self, cohort: usize, ages: [f64; 2]) -> f64 {
        let (swept, random) = self.rate_s(cohort);
        let (rate, span) = (swept + random, ages[1] - ages[0]);
        let x = rate * span;
        if random <= 0.0 || x < 1e-6 {
            let end = if swept > 0.0 { ages[1].min((1.0 / swept).max(ages[0])) } else { ages[1] };
            return f64::midpoint(ages[0], end);
        }
        ages[0] + 1.0 / rate - span / x.exp_m1()
    }

    /// `do_numa_page` for pages that fault in one step.
    fn fault(&mut self, cohort: usize, node: usize, pages: f64, ages: [f64; 2]) {
        let at = self.at(cohort, node);
        let (local, slow) = (node == 0, !self.nodes.list[node].top);
        let cell = &self.cells[at];
        let of_pages = |count: f64| if cell.pages > 0.0 { pages * (count / cell.pages).min(1.0) } else { 0.0 };
        let fault = Fault {
            now_s: self.now_s,
            latency_ms: self.mean_age_s(cohort, ages) * 1e3,
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
        self.cells[at].active = (self.cells[at].active + verdict.activate).min(self.cells[at].pages);
        let wanted = if local { 0.0 } else { verdict.promote.min(self.cells[at].pages) };
        let moved = self.promote(cohort, node, wanted);
        let failed = wanted - moved;
        self.note(cohort, slow, local, [pages, moved, failed]);
    }

    /// Moves up what finds room; the faults of a step come one after the other, so kswapd, once woken, makes
    /// room for the later ones, for as long as the step is.
    fn promote(&mut self, cohort: usize, node: usize, wanted: f64) -> f64 {
        let slow = !self.nodes.list[node].top;
        let mut moved = 0.0;
        while wanted - moved > DUST {
            let step = (wanted - moved).min((self.visible(0) - self.nodes.list[0].marks.high).max(0.0));
            if step > DUST {
                self.relocate(cohort, node, 0, step);
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
            let place = &self.cohorts.places[cohort];
            if place.first >= to {
                break;
            }
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

    pub(super) fn protect_cell(&mut self, cohort: usize, node: usize, covered: f64, now_s: f64) -> f64 {
        let at = self.at(cohort, node);
        let cell = &mut self.cells[at];
        let protected: f64 = cell.protected.iter().map(|p| p.pages).sum();
        let pages = ((cell.pages - protected) * covered).max(0.0);
        if pages <= DUST {
            return 0.0;
        }
        cell.protected.push(Protection { since_s: now_s, pages });
        if cell.protected.len() > GENERATIONS {
            let oldest = cell.protected.remove(0);
            let next = &mut cell.protected[0];
            let sum = oldest.pages + next.pages;
            next.since_s = (oldest.since_s * oldest.pages + next.since_s * next.pages) / sum;
            next.pages = sum;
        }
        if node != 0 {
            self.fresh = self.fresh.max(self.rates[cohort].visits());
        }
        if !self.is_watched[cohort] {
            self.is_watched[cohort] = true;
            self.watched.push(u32::try_from(cohort).unwrap_or(u32::MAX));
        }
        pages
    }
}
