//! The cohort evaluator: expected states in closed form, for terabytes and hours.
//!
//! A cohort's pages are visited at one rate, so of `n` pages protected at one time, `n·(1-e^{-λt})` have
//! faulted after `t` (visits at random), or those that a sweep has come by since (`sweep`). The same kernel
//! code as the exact evaluator's scans, reclaims and decides; only the state is a count instead of a bit. Steps
//! are as long as the least time between two scans, or as the points of the series are apart where nothing moves.

mod faults;
pub(crate) mod groups;
mod lists;
mod protections;

use tierloom_contention::Work;
use tierloom_model::Socket;
use tierloom_model::units::{LINE_BYTES_F64, PAGE_BYTES_F64};

use crate::costs::Costs;
use crate::error::Result;
use crate::filling::{Step, Taken};
use crate::layout::{Dealer, Layout, full};
use crate::ledger::Ledger;
use crate::nodes::Nodes;
use crate::outcome::{Outcome, RegionUse};
use crate::policy::{Group, Move, Policy, Room, ScanRule, View};
use crate::reclaim::{Kswapd, List, Lists, LruKind, ReclaimRule, Run};
use crate::scanner::{Mapping, Scanner};
use crate::settle::{Settled, settle};
use crate::sweep::LastSweep;
use crate::workload::{Phase, Workload};

use groups::{CHUNK, Cohorts, Rate};
use lists::Queue;
use protections::{Moment, Protections};

/// Most seconds of a step: the scanner's least period.
const STEP_S: f64 = 0.1;
/// The first step after a scan is this share of the mean time between visits to its hottest pages; each after that
/// is twice as long. So the pages that fault first meet the room that is there first.
const FIRST_STEP: f64 = 0.25;
/// Shortest step, as a share of the longest.
const LEAST_STEP: f64 = 1.0 / PAGE_BYTES_F64;
/// Pages below which a count is rounding.
const DUST: f64 = 1e-6;
/// Steps after which the sums over all cohorts are taken afresh.
const REFRESH: u32 = 256;
/// Most cohorts; beyond, chunks grow.
const MOST_COHORTS: u64 = 8192;

/// A cohort's pages on one node.
#[derive(Debug, Clone, Default)]
struct Cell {
    pages: f64,
    protected: Protections,
    /// On the active list of a slow node (TPP).
    active: f64,
    demoted: f64,
    /// Left the node while their run still stands on a list.
    gone: f64,
}

/// The state of one run.
pub(crate) struct Cohort<'a> {
    nodes: &'a Nodes,
    policy: &'a mut dyn Policy,
    layout: Layout,
    pub(crate) cohorts: Cohorts,
    /// By cohort and node.
    cells: Vec<Cell>,
    rates: Vec<Rate>,
    /// Visits per second are these times the rates.
    speed: f64,
    free: Vec<f64>,
    scan: Option<ScanRule>,
    scanner: Option<Scanner>,
    rule: ReclaimRule,
    lru: LruKind,
    kswapd: Vec<Kswapd>,
    lists: Vec<[Queue; 2]>,
    lengths: Vec<[f64; 2]>,
    pub(crate) ledger: Ledger,
    threads: f64,
    pub(crate) now_s: f64,
    /// Phases done, the share of the one that runs included: what visits go by, however fast the program is.
    progress: f64,
    /// Where the last step ended.
    last: Moment,
    settled: Settled,
    /// The phase's work by node, if it all were done with the pages as they are.
    sums: Vec<Work>,
    /// The part of it that belongs to another node, by node: a visit that moves its page is served by
    /// the page's new node. As the last step had it.
    rerouted: Vec<Work>,
    since_refresh: u32,
    /// Program time of the next step, and of the last, s.
    step_s: f64,
    last_step_s: f64,
    /// Most visits per second to a page that the last scan protected below the nearest node.
    fresh: f64,
    /// Cohorts that may have protected pages.
    watched: Vec<u32>,
    is_watched: Vec<bool>,
    cost_of_miss_ns: f64,
    last_look_s: f64,
    /// Time of this step that kswapd has not had yet, s.
    reclaim_s: f64,
}

impl<'a> Cohort<'a> {
    #[expect(clippy::too_many_arguments, reason = "what a run is made of")]
    pub(crate) fn new(
        nodes: &'a Nodes,
        workload: &Workload,
        layout: Layout,
        policy: &'a mut dyn Policy,
        costs: Costs,
        lru: LruKind,
        threads: u32,
        expected_s: f64,
    ) -> Self {
        let cohorts = Cohorts::new(workload, &layout, chunk_pages(&layout));
        let (scan, rule) = (policy.scan(), policy.reclaim());
        let mapping = |region: &crate::layout::Placed| Mapping {
            pages: region.pages,
            migrates: region.policy.migrates_on_fault(),
        };
        let mappings = layout.regions.iter().map(mapping).collect();
        let scanner = scan.map(|rule| Scanner::new(rule.knobs, mappings, threads, layout.main_works));
        let count = cohorts.places.len();
        Self {
            cells: vec![Cell::default(); count * nodes.len()],
            rates: vec![Rate::default(); count],
            speed: 0.0,
            free: nodes.list.iter().map(|node| node.pages).collect(),
            scan,
            scanner,
            rule,
            lru,
            kswapd: vec![Kswapd::new(); nodes.len()],
            lists: vec![[Queue::new(count), Queue::new(count)]; nodes.len()],
            lengths: vec![[0.0; 2]; nodes.len()],
            ledger: Ledger::new(costs, threads, nodes.len(), expected_s),
            threads: f64::from(threads),
            now_s: 0.0,
            progress: 0.0,
            last: Moment { s: 0.0, progress: 0.0 },
            settled: Settled {
                time_s: 0.0,
                latency_ns: settle(nodes, 0.0, &vec![Work::default(); nodes.len()]).latency_ns,
            },
            sums: vec![Work::default(); nodes.len()],
            rerouted: vec![Work::default(); nodes.len()],
            since_refresh: 0,
            step_s: STEP_S,
            last_step_s: STEP_S,
            fresh: 0.0,
            watched: Vec::new(),
            is_watched: vec![false; count],
            cost_of_miss_ns: 100.0,
            last_look_s: 0.0,
            reclaim_s: 0.0,
            nodes,
            policy,
            layout,
            cohorts,
        }
    }

    fn at(&self, cohort: usize, node: usize) -> usize {
        cohort * self.nodes.len() + node
    }

    fn keeps_list(&self, node: usize) -> bool {
        self.rule.demotion && self.nodes.list[node].demotion.is_some()
    }

    /// Touches every page once, as memory fills, within a region in the order of addresses.
    pub(crate) fn touch_all(&mut self) -> Result<()> {
        let mut taken = Taken::default();
        for step in self.layout.filling.clone() {
            match step {
                Step::Touch(region, from, to) => self.touch_part(region, from, to)?,
                Step::Take(name, policy, pages) => {
                    taken.take((&name, &policy, pages), self.nodes, &mut self.free, &mut self.ledger.counters)?;
                }
                Step::Free(name) => taken.free(&name, &mut self.free),
            }
        }
        Ok(())
    }

    fn touch_part(&mut self, region: usize, from: u64, to: u64) -> Result<()> {
        let dealer = Dealer::new(&self.layout.regions[region].policy, self.nodes);
        for cohort in self.cohorts.by_region[region]..self.cohorts.by_region[region + 1] {
            let place = &self.cohorts.places[cohort];
            let pages = to.min(place.first + place.chunk).saturating_sub(from.max(place.first)) as f64 * place.share;
            if pages > 0.0 {
                let placed = dealer
                    .many(pages, &mut self.free, &mut self.ledger.counters)
                    .map_err(|missing| full(&self.layout.regions[region].name, missing, self.nodes))?;
                self.fill(cohort, &placed);
            }
        }
        Ok(())
    }

    /// Puts each cohort's pages where `shares` says, by cohort and node; what finds no room spills.
    pub(crate) fn touch_as(&mut self, shares: &[Vec<f64>]) -> Result<()> {
        for (cohort, shares) in shares.iter().enumerate() {
            let place = &self.cohorts.places[cohort];
            let weights = shares.iter().copied().enumerate().collect();
            let policy = crate::vma::VmaPolicy::Placed { weights, balancing: false };
            let dealer = Dealer::new(&policy, self.nodes);
            let placed = dealer
                .many(place.pages(), &mut self.free, &mut self.ledger.counters)
                .map_err(|missing| full(&self.layout.regions[place.region].name, missing, self.nodes))?;
            self.fill(cohort, &placed);
        }
        Ok(())
    }

    fn fill(&mut self, cohort: usize, placed: &[f64]) {
        for (node, pages) in placed.iter().enumerate().filter(|(_, pages)| **pages > 0.0) {
            let at = self.at(cohort, node);
            self.cells[at].pages += *pages;
            if self.keeps_list(node) {
                let id = u32::try_from(cohort).unwrap_or(u32::MAX);
                // Bits are set by the fault that maps a page, so they read as visited.
                let swept = LastSweep::by(self.progress);
                let run = Run { id, pages: *pages, referenced: false, cleared: f64::NEG_INFINITY, swept };
                self.lengths[node][0] += run.pages;
                self.lists[node][0].append(run, f64::NEG_INFINITY);
            }
        }
    }

    fn refresh_sums(&mut self) {
        self.sums = vec![Work::default(); self.nodes.len()];
        for cohort in 0..self.rates.len() {
            for node in 0..self.nodes.len() {
                let pages = self.cells[cohort * self.nodes.len() + node].pages;
                self.sums[node] += self.rates[cohort].work * pages;
            }
        }
        self.since_refresh = 0;
    }

    /// One step of at most `left_s` seconds; returns the share of the phase that it did.
    fn step(&mut self, compute_s: f64, left: f64) -> f64 {
        self.since_refresh += 1;
        if self.since_refresh >= REFRESH {
            self.refresh_sums();
        }
        let mut cells: Vec<Work> =
            self.sums.iter().zip(&self.rerouted).map(|(work, rerouted)| (*work + *rerouted).at_least_none()).collect();
        let copies = self.ledger.take_copies();
        let overhead_s = self.ledger.overhead_s();
        let goes_on = self.settled.time_s.max(1e-9) / (self.last_step_s + overhead_s);
        for (cell, copies) in cells.iter_mut().zip(&copies) {
            // What moved in the last step goes on moving beside the program at that rate.
            cell.read += copies.read * goes_on;
            cell.write += copies.write * goes_on;
        }
        self.settled = settle(self.nodes, compute_s, &cells);
        let phase_s = self.settled.time_s.max(1e-12);
        let work_s = (self.step_s.min(left * phase_s)).max(1e-12);
        let share = (work_s / phase_s).min(left);
        let passed_s = work_s + overhead_s;
        self.speed = share / passed_s;
        self.charge(compute_s, share, work_s);
        self.last = Moment { s: self.now_s, progress: self.progress };
        self.now_s += passed_s;
        self.progress += share;
        self.reclaim_s = passed_s;
        self.rerouted.fill(Work::default());
        let served: Vec<Work> = self.sums.iter().map(|work| *work * share).collect();
        self.faults();
        self.limit_rerouted(&served);
        self.ledger.rerouted(&self.rerouted);
        self.rerouted.iter_mut().for_each(|work| *work = *work * (1.0 / share));
        self.kernel_works();
        self.last_step_s = work_s;
        self.step_s = self.next_step_s();
        let used = self.used_pages();
        self.ledger.record(self.now_s, used, &self.settled.latency_ns.clone(), false);
        share
    }

    fn longest_s(&self) -> f64 {
        let moves = self.scanner.is_some() || self.rule.demotion || self.policy.period_s().is_some();
        if moves { STEP_S } else { self.ledger.every_s.max(STEP_S) }
    }

    /// Short after a scan, then longer and longer.
    fn next_step_s(&mut self) -> f64 {
        let fresh = std::mem::take(&mut self.fresh) * self.speed;
        let longer_s = (2.0 * self.step_s).min(self.longest_s());
        if fresh > 0.0 { longer_s.min((FIRST_STEP / fresh).max(STEP_S * LEAST_STEP)) } else { longer_s }
    }

    fn charge(&mut self, compute_s: f64, share: f64, work_s: f64) {
        let bytes: Vec<f64> = self.sums.iter().map(|work| work.bytes() * share).collect();
        let reads: f64 = self.sums.iter().map(|work| work.read).sum();
        let waits = self.sums.iter().zip(&self.settled.latency_ns).filter(|(work, _)| work.wait > 0.0);
        let stall_s: f64 = waits.map(|(work, ns)| work.wait * ns).sum();
        if reads > 0.0 {
            self.cost_of_miss_ns = stall_s * 1e9 * self.threads / (reads / LINE_BYTES_F64);
        }
        let misses = bytes.iter().sum::<f64>() / LINE_BYTES_F64;
        self.ledger.sampled(misses, self.policy);
        self.ledger.step(compute_s * share, work_s - compute_s * share, &bytes);
    }

    /// Free pages that watermarks see.
    fn visible(&self, node: usize) -> f64 {
        self.free[node] - self.nodes.list[node].on_cpu_lists(self.now_s)
    }

    fn room(&self) -> Room {
        let node = &self.nodes.list[0];
        Room { free: self.visible(0), marks: node.marks, plenty: node.plenty(), cost_of_miss_ns: self.cost_of_miss_ns }
    }

    /// Moves pages of a cohort, of which so many are active; those that stand on a list are crossed off when their run
    /// is met.
    fn relocate(&mut self, cohort: usize, from: usize, to: usize, pages: f64, active: f64) {
        let (source, target) = (self.at(cohort, from), self.at(cohort, to));
        self.leave(source, pages, active);
        self.cells[target].pages += pages;
        self.free[from] += pages;
        self.free[to] -= pages;
        self.sums[from] += self.rates[cohort].work * -pages;
        self.sums[to] += self.rates[cohort].work * pages;
        if self.keeps_list(from) {
            self.cells[source].gone += pages;
            let lengths = &mut self.lengths[from];
            let inactive = lengths[0].min(pages);
            lengths[0] -= inactive;
            lengths[1] = (lengths[1] - (pages - inactive)).max(0.0);
        }
        if self.keeps_list(to) {
            let id = u32::try_from(cohort).unwrap_or(u32::MAX);
            // A fault has just used them.
            let swept = self.just_swept(cohort);
            self.put(to, List::Inactive, Run { id, pages, referenced: false, cleared: f64::NEG_INFINITY, swept });
        }
    }

    /// Takes pages out of a cell, those of them that are active, and their even share of those that were demoted once.
    fn leave(&mut self, at: usize, pages: f64, active: f64) {
        let cell = &mut self.cells[at];
        let kept = if cell.pages > pages { (cell.pages - pages) / cell.pages } else { 0.0 };
        cell.pages = (cell.pages - pages).max(0.0);
        cell.active = (cell.active - active).clamp(0.0, cell.pages);
        cell.demoted *= kept;
    }

    fn kernel_works(&mut self) {
        if let Some(mut scanner) = self.scanner.take() {
            if let Some(thread) = scanner.due(self.now_s) {
                let walked = scanner.walk(self.now_s, |region, from, to| self.protect(region, from, to));
                let cost_s = self.ledger.scan(walked);
                scanner.scanned(thread, cost_s);
            }
            self.scanner = Some(scanner);
        }
        for node in 0..self.nodes.len() {
            let left_s = self.reclaim_s;
            self.reclaim(node, left_s);
        }
        if self.policy.period_s().is_some_and(|period_s| self.now_s - self.last_look_s >= period_s) {
            self.look();
        }
    }

    /// Gives one node's kswapd so much time.
    fn reclaim(&mut self, node: usize, seconds: f64) {
        if !self.keeps_list(node) {
            return;
        }
        let goal = self.rule.goal(&self.nodes.list[node]);
        let now_s = self.now_s;
        if self.rule.proactive && self.visible(node) < goal.target {
            self.kswapd[node].wake(&self.rule, now_s);
        }
        let (pace, lru) = (self.ledger.reclaim_pace(seconds), self.lru);
        let mut kswapd = std::mem::replace(&mut self.kswapd[node], Kswapd::new());
        let done = kswapd.work(self, node, goal, lru, pace, now_s);
        self.kswapd[node] = kswapd;
        self.ledger.failed(done.failed);
    }

    fn look(&mut self) {
        let since_s = self.now_s - self.last_look_s;
        self.last_look_s = self.now_s;
        let groups: Vec<Group> = (0..self.rates.len()).map(|cohort| self.group(cohort)).collect();
        let view = View {
            now_s: self.now_s,
            since_s,
            groups: &groups,
            nodes: self.nodes,
            free: &self.free,
            latency_ns: &self.settled.latency_ns,
        };
        for step in self.policy.look(&view) {
            self.migrate(step);
        }
    }

    fn group(&self, cohort: usize) -> Group {
        let (rate, lines) = (&self.rates[cohort], self.speed / LINE_BYTES_F64);
        Group {
            region: self.cohorts.places[cohort].region,
            pages: (0..self.nodes.len()).map(|node| self.cells[self.at(cohort, node)].pages).collect(),
            reads: rate.work.read * lines,
            writes: rate.work.write * lines,
            visits: rate.visits() * self.speed,
        }
    }

    /// Moves pages for a policy that does not ask the kernel.
    pub(crate) fn migrate(&mut self, step: Move) {
        let at = self.at(step.group, step.from);
        let room = (self.free[step.to] - self.nodes.list[step.to].marks.min).max(0.0);
        let pages = step.pages.min(self.cells[at].pages).min(room);
        if pages > DUST {
            let active = self.cells[at].active * (pages / self.cells[at].pages);
            self.relocate(step.group, step.from, step.to, pages, active);
            self.ledger.moved(pages, step.from, step.to, self.policy);
        }
    }

    pub(crate) fn used_pages(&self) -> Vec<f64> {
        self.nodes.list.iter().zip(&self.free).map(|(node, free)| node.pages - free).collect()
    }

    /// Pages of each cohort by node, as shares.
    pub(crate) fn shares(&self) -> Vec<Vec<f64>> {
        let share = |cohort: usize| {
            let pages: Vec<f64> = (0..self.nodes.len()).map(|node| self.cells[self.at(cohort, node)].pages).collect();
            let sum: f64 = pages.iter().sum();
            pages.into_iter().map(|count| count / sum.max(DUST)).collect()
        };
        (0..self.rates.len()).map(share).collect()
    }

    /// Closes the books.
    pub(crate) fn outcome(mut self) -> Outcome {
        let used = self.used_pages();
        self.ledger.record(self.now_s, used.clone(), &self.settled.latency_ns.clone(), true);
        let regions = (0..self.layout.regions.len()).map(|region| self.region_use(region)).collect();
        self.ledger.close("cohort", self.nodes, self.policy, &used, regions)
    }

    fn region_use(&self, region: usize) -> RegionUse {
        let mut pages = vec![0.0; self.nodes.len()];
        for cohort in self.cohorts.by_region[region]..self.cohorts.by_region[region + 1] {
            for (node, sum) in pages.iter_mut().enumerate() {
                *sum += self.cells[self.at(cohort, node)].pages;
            }
        }
        let all: f64 = pages.iter().sum();
        let name = self.layout.regions[region].name.clone();
        RegionUse { region: name, pages: all, shares: pages.iter().map(|count| count / all.max(DUST)).collect() }
    }
}

/// The scanner's window, or more where that would make too many cohorts.
pub(crate) fn chunk_pages(layout: &Layout) -> u64 {
    let pages: u64 = layout.regions.iter().map(|region| region.pages).sum();
    CHUNK.max(pages.div_ceil(MOST_COHORTS))
}

/// Runs a workload whose pages have been touched; `between` may move pages before each phase.
pub(crate) fn run(
    cohort: &mut Cohort<'_>,
    workload: &Workload,
    socket: &Socket,
    mut between: impl FnMut(&mut Cohort<'_>, usize),
) {
    for (index, phase) in workload.phases.iter().enumerate() {
        let from_s = cohort.ledger.parts.sum();
        enter(cohort, workload, phase, socket);
        between(cohort, index);
        cohort.refresh_sums();
        let compute_s = phase.compute_s / f64::from(phase.threads);
        let mut done = 0.0;
        while done < 1.0 - 1e-12 {
            done += cohort.step(compute_s, 1.0 - done);
        }
        cohort.ledger.phase(&phase.name, from_s);
    }
}

fn enter(cohort: &mut Cohort<'_>, workload: &Workload, phase: &Phase, socket: &Socket) {
    cohort.rates = cohort.cohorts.rates(workload, &cohort.layout, phase, socket);
    cohort.threads = f64::from(phase.threads);
    cohort.ledger.set_threads(phase.threads);
    cohort.rerouted.fill(Work::default());
    cohort.refresh_sums();
}
