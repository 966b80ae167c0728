//! A trace on a machine: every row is an access that goes to memory.

use tierloom_contention::Work;
use tierloom_model::Machine;
use tierloom_model::units::{LINE_BYTES_F64, NS};

use super::access::Access;
use super::pages::Pages;
use crate::engine::layout::{Layout, Placed};
use crate::error::{Result, TieringError};
use crate::exact::{Exact, PerVisit};
use crate::kernel::vma::VmaPolicy;
use crate::outcome::Outcome;
use crate::placement::named;
use crate::request::{Request, Setting};
use crate::workload::Workload;

/// Accesses of one window.
const BLOCK: usize = 16_384;
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

/// Runs a trace page by page; `next` fills a buffer with more accesses and leaves it empty at the end. `file` is only
/// named in errors.
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
    file: &str,
    pace: Pace,
    mut next: impl FnMut(&mut Vec<Access>) -> Result<()>,
) -> Result<Outcome> {
    let setting = request.setting(machine)?;
    let mut policy = request.policy_on(&setting.nodes)?;
    let vma = request.trace_policy(&setting)?;
    let region = Placed { name: "trace".to_owned(), start: 0, pages: 0, locked: false, policy: vma };
    let layout = Layout { regions: vec![region], filling: Vec::new(), main_works: true };
    let warning = policy.idle_on(&setting.nodes);
    let mut exact = Exact::new(setting.setup(layout, policy.as_mut(), request.lru, pace.threads));
    let per = per_access(pace, setting.socket.demand_lines.value);
    let (mut pages, mut rows, mut clock) = (Pages::default(), Vec::new(), Clock { file, last_ns: None, row: 0, pace });
    let mut codes = Vec::with_capacity(BLOCK);
    loop {
        rows.clear();
        next(&mut rows)?;
        if rows.is_empty() {
            break;
        }
        for block in rows.chunks(BLOCK) {
            let span_s = clock.span_s(block)?;
            pages.codes_of(block, &mut codes)?;
            exact.grow(pages.count());
            exact.visit_block(&codes, span_s, per)?;
        }
    }
    let mut outcome = exact.outcome();
    outcome.placement = request.placement.clone().unwrap_or_else(|| "first-touch".to_owned());
    // State is kept by pieces of 2 MiB; what was touched is what is in use.
    let touched: f64 = outcome.nodes.iter().map(|node| node.used_pages).sum();
    outcome.evaluator = format!("exact: a trace of {} accesses to {touched:.0} pages", clock.row);
    outcome.warnings.extend(warning);
    Ok(outcome)
}

/// Turns rows into time.
struct Clock<'a> {
    file: &'a str,
    last_ns: Option<u64>,
    row: u64,
    pace: Pace,
}

impl Clock<'_> {
    /// Program time of a block, s.
    fn span_s(&mut self, block: &[Access]) -> Result<f64> {
        let (Some(first), Some(last)) = (block.first(), block.last()) else { return Ok(0.0) };
        let from_ns = self.last_ns.unwrap_or(first.time_ns);
        if first.time_ns < from_ns || block.windows(2).any(|two| two[1].time_ns < two[0].time_ns) {
            return Err(self.backwards(from_ns, block));
        }
        self.row += block.len() as u64;
        self.last_ns = Some(last.time_ns);
        let clocked = (last.time_ns - from_ns) as f64 * NS;
        Ok(if last.time_ns > 0 { clocked } else { block.len() as f64 * self.pace.ns_per_access * NS })
    }

    fn backwards(&self, from_ns: u64, block: &[Access]) -> TieringError {
        let times = || block.iter().map(|access| access.time_ns);
        let pairs = std::iter::once(from_ns).chain(times()).zip(times());
        let (row, (before, after)) = (self.row + 1..).zip(pairs).find(|(_, (a, b))| b < a).unwrap_or_default();
        TieringError::BadTrace {
            file: self.file.to_owned(),
            row,
            problem: format!("time {after} ns comes before {before} ns"),
            hint: "sort the rows by time".to_owned(),
        }
    }
}

fn per_access(pace: Pace, most_lines: f64) -> PerVisit {
    let in_flight = pace.mlp.min(most_lines).max(1.0) * f64::from(pace.threads.max(1));
    PerVisit {
        read: Work { wait: NS / in_flight, read: LINE_BYTES_F64, ..Work::default() },
        write: Work { write: LINE_BYTES_F64, ..Work::default() },
    }
}

impl Request {
    /// The policy of a trace's one region.
    fn trace_policy(&self, setting: &Setting<'_>) -> Result<VmaPolicy> {
        let name = self.placement.as_deref().unwrap_or("first-touch");
        let one = Workload::of_one_region();
        let policies = named::by_name(name, &one, &setting.nodes, setting.socket)?;
        policies.into_iter().next().ok_or_else(|| TieringError::request("placement", "it is empty", "name one"))
    }
}
