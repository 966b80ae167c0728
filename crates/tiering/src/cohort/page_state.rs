//! What the kernel and the policy do with pages, a cohort at a time.

use tierloom_model::units::LINE_BYTES_F64;

use super::protections::Protection;
use super::scale::DUST;
use super::state::Cohort;
use crate::engine::host::Host;
use crate::engine::page_state::PageState;
use crate::error::Result;
use crate::kernel::first_touch::Dealer;
use crate::policy::{Group, Move};
use crate::workload::sweep::LastSweep;

impl<'a> PageState<'a> for Cohort<'a> {
    fn host(&mut self) -> &mut Host<'a> {
        &mut self.host
    }

    fn touch_part(&mut self, region: usize, from: u64, to: u64) -> Result<()> {
        let dealer = Dealer::new(&self.host.layout.regions[region].policy, self.host.nodes);
        for cohort in self.cohorts.by_region[region]..self.cohorts.by_region[region + 1] {
            let place = &self.cohorts.places[cohort];
            let pages = to.min(place.first + place.chunk).saturating_sub(from.max(place.first)) as f64 * place.share;
            if pages > 0.0 {
                let placed = dealer
                    .many(pages, &mut self.host.free, &mut self.host.ledger.counters)
                    .map_err(|missing| self.host.full(region, missing))?;
                self.fill(cohort, &placed);
            }
        }
        Ok(())
    }

    fn protect(&mut self, region: usize, from: u64, to: u64) -> f64 {
        let Some(rule) = self.host.scan else { return 0.0 };
        let now_s = self.host.now_s;
        let cohorts = self.cohorts.by_region[region]..self.cohorts.by_region[region + 1];
        let first = cohorts.start + self.cohorts.places[cohorts.clone()].partition_point(|p| p.first + p.chunk <= from);
        let mut updated = 0.0;
        for cohort in first..cohorts.end {
            if self.cohorts.places[cohort].first >= to {
                break;
            }
            let place = &self.cohorts.places[cohort];
            let covered = (to.min(place.first + place.chunk) - from.max(place.first)) as f64 / place.chunk as f64;
            for node in 0..self.host.nodes.len() {
                if self.host.may_protect(&rule, node) {
                    updated += self.protect_cell(cohort, node, covered, now_s);
                }
            }
        }
        if updated < 0.5 { 0.0 } else { updated }
    }

    fn groups(&mut self, _since_s: f64) -> Vec<Group> {
        (0..self.rates.len()).map(|cohort| self.group(cohort)).collect()
    }

    fn migrate(&mut self, step: Move) {
        let at = self.at(step.group, step.from);
        let room = (self.host.free[step.to] - self.host.nodes.list[step.to].marks.min).max(0.0);
        let pages = step.pages.min(self.cells[at].pages).min(room);
        if pages > DUST {
            let active = self.cells[at].active * (pages / self.cells[at].pages);
            self.relocate(step.group, step.from, step.to, pages, active);
            self.host.ledger.moved(pages, step.from, step.to, self.host.policy);
        }
    }
}

impl Cohort<'_> {
    fn group(&self, cohort: usize) -> Group {
        let (rate, lines) = (&self.rates[cohort], self.speed / LINE_BYTES_F64);
        Group {
            region: self.cohorts.places[cohort].region,
            pages: (0..self.host.nodes.len()).map(|node| self.cells[self.at(cohort, node)].pages).collect(),
            reads: rate.work.read * lines,
            writes: rate.work.write * lines,
            visits: rate.visits() * self.speed,
        }
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
