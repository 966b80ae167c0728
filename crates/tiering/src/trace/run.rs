//! A trace on a machine: every row is an access that goes to memory.

use std::collections::BTreeMap;

use tierloom_contention::LINE_BYTES;
use tierloom_model::Machine;
use tierloom_model::units::PAGE_BYTES;

use crate::error::{Result, TieringError};
use crate::exact::{Exact, PerVisit};
use crate::layout::{Layout, Placed};
use crate::outcome::Outcome;
use crate::request::Request;
use crate::settle::Work;
use crate::trace::Access;
use crate::vma::VmaPolicy;

/// Seconds in a nanosecond.
const NS: f64 = 1e-9;
/// Accesses of one window.
const BLOCK: usize = 16_384;
/// Addresses are mapped to pages in pieces of 2 MiB.
const CHUNK_PAGES: u64 = 512;
/// Pieces of one leaf, 16 GiB of addresses.
const LEAF_ENTRIES: usize = 8192;
const LEAF_CHUNKS: u64 = LEAF_ENTRIES as u64;
/// A piece that was not touched.
const UNKNOWN: u32 = u32::MAX;
/// Most pages of a trace: 4 TiB of touched memory.
const MOST_PAGES: u64 = 1 << 30;

/// What a trace does not say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Threads that the accesses come from.
    pub threads: u32,
    /// Misses that one thread keeps in flight.
    pub mlp: f64,
    /// Computing between two accesses where the rows have no time, ns over all threads.
    pub ns_per_access: f64,
}

/// Addresses as pages of one dense region, in the order of first touch: a page table of two levels.
#[derive(Debug, Default)]
struct Pages {
    leaves: Vec<Box<[u32]>>,
    /// Leaf by what it stands for.
    roots: BTreeMap<u64, usize>,
    last: Option<(u64, usize)>,
    chunks: u64,
}

impl Pages {
    fn count(&self) -> u64 {
        self.chunks * CHUNK_PAGES
    }

    fn of(&mut self, address: u64) -> Option<u32> {
        let page = address / PAGE_BYTES;
        let (chunk, within) = (page / CHUNK_PAGES, page % CHUNK_PAGES);
        let leaf = self.leaf(chunk / LEAF_CHUNKS);
        let entry = self.leaves[leaf].get_mut(usize::try_from(chunk % LEAF_CHUNKS).ok()?)?;
        if *entry == UNKNOWN {
            let next = self.chunks * CHUNK_PAGES;
            *entry = u32::try_from(next).ok().filter(|next| u64::from(*next) < MOST_PAGES)?;
            self.chunks += 1;
        }
        Some(*entry + u32::try_from(within).unwrap_or(0))
    }

    fn leaf(&mut self, root: u64) -> usize {
        if let Some((_, leaf)) = self.last.filter(|(last, _)| *last == root) {
            return leaf;
        }
        let leaf = *self.roots.entry(root).or_insert(self.leaves.len());
        if leaf == self.leaves.len() {
            self.leaves.push(vec![UNKNOWN; LEAF_ENTRIES].into_boxed_slice());
        }
        self.last = Some((root, leaf));
        leaf
    }
}

/// Runs a trace page by page; `next` fills a buffer with more accesses and leaves it empty at the end.
///
/// The clock of the rows, or `ns_per_access`, is taken as computing; waits for memory come on
/// top of it. Pages are placed when they are first accessed. Memory is taken for the pages that the
/// trace touches, not for its length.
///
/// # Errors
/// [`TieringError`] when the request names what is not there, the data does not fit, time runs backwards,
/// or `next` fails.
pub fn simulate_trace(
    machine: &Machine,
    request: &Request,
    pace: Pace,
    mut next: impl FnMut(&mut Vec<Access>) -> Result<()>,
) -> Result<Outcome> {
    let setting = request.setting(machine)?;
    let mut policy = request.policy()?;
    let vma = request.trace_policy(&setting)?;
    let region = Placed { name: "trace".to_owned(), start: 0, pages: 0, locked: false, policy: vma };
    let layout = Layout { regions: vec![region], filling: Vec::new(), main_works: true };
    let warning = policy.idle_on(&setting.nodes);
    let mut exact =
        Exact::new(&setting.nodes, layout, policy.as_mut(), setting.costs.clone(), request.lru, pace.threads, 1.0);
    let per = per_access(pace, setting.socket.demand_lines.value);
    let (mut pages, mut rows, mut clock) = (Pages::default(), Vec::new(), Clock { last_ns: None, row: 0, pace });
    loop {
        rows.clear();
        next(&mut rows)?;
        if rows.is_empty() {
            break;
        }
        for block in rows.chunks(BLOCK) {
            run_block(&mut exact, block, &mut pages, &mut clock, per)?;
        }
    }
    let mut outcome = exact.outcome();
    outcome.placement = request.placement.clone().unwrap_or_else(|| "first-touch".to_owned());
    outcome.evaluator = format!("exact: a trace of {} accesses to {} pages", clock.row, pages.count());
    outcome.warnings.extend(warning);
    Ok(outcome)
}

/// Turns rows into time.
struct Clock {
    last_ns: Option<u64>,
    row: u64,
    pace: Pace,
}

impl Clock {
    /// Program time of a block, s.
    fn span_s(&mut self, block: &[Access]) -> Result<f64> {
        let mut last_ns = self.last_ns.unwrap_or_else(|| block.first().map_or(0, |access| access.time_ns));
        let first_ns = last_ns;
        for access in block {
            self.row += 1;
            if access.time_ns < last_ns {
                return Err(TieringError::BadTrace {
                    file: "trace".to_owned(),
                    row: self.row,
                    problem: format!("time {} ns comes before {last_ns} ns", access.time_ns),
                    hint: "sort the rows by time".to_owned(),
                });
            }
            last_ns = access.time_ns;
        }
        self.last_ns = Some(last_ns);
        let clocked = (last_ns - first_ns) as f64 * NS;
        Ok(if last_ns > 0 { clocked } else { block.len() as f64 * self.pace.ns_per_access * NS })
    }
}

fn per_access(pace: Pace, most_lines: f64) -> PerVisit {
    let in_flight = pace.mlp.min(most_lines).max(1.0) * f64::from(pace.threads.max(1));
    PerVisit {
        read: Work { wait: NS / in_flight, read: LINE_BYTES, write: 0.0 },
        write: Work { wait: 0.0, read: 0.0, write: LINE_BYTES },
    }
}

fn run_block(
    exact: &mut Exact<'_>,
    block: &[Access],
    pages: &mut Pages,
    clock: &mut Clock,
    per: PerVisit,
) -> Result<()> {
    let span_s = clock.span_s(block)?;
    let mut codes = Vec::with_capacity(block.len());
    for access in block {
        let page = pages.of(access.address).ok_or_else(|| {
            TieringError::request("trace", "it touches more than 4 TiB", "simulate a workload by cohorts instead")
        })?;
        codes.push(page << 1 | u32::from(access.write));
    }
    exact.grow(pages.count());
    exact.visit_block(&codes, span_s, per)
}

impl Request {
    /// The policy of a trace's one region.
    fn trace_policy(&self, setting: &crate::request::Setting<'_>) -> Result<VmaPolicy> {
        let name = self.placement.as_deref().unwrap_or("first-touch");
        let one = crate::workload::Workload::of_one_region();
        let policies = crate::placement::by_name(name, &one, &setting.nodes, setting.socket)?;
        policies.into_iter().next().ok_or_else(|| TieringError::request("placement", "it is empty", "name one"))
    }
}
