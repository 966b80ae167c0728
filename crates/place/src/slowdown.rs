//! The least fast memory with which a program takes no longer than a bound on its slow-down allows.
//!
//! A slow-down is against the least time that is found with any amount of fast memory, as in the frontier. Budgets are
//! tried from the least that the frontier says may do, then between the one that did and the one below that did not. What
//! the frontier found may be none that policies can state, which leave arenas where they are; then more memory has to do.

use tierloom_model::PolicyResult;

use crate::compared::{Choice, Compared};
use crate::context::Context;
use crate::error::PlaceError;
use crate::frontier::{Found, Point, least_bytes};
use crate::request::Request;

/// Halvings between a budget that does and one that does not: to a 256th of a step of the frontier.
const HALVINGS: usize = 8;
/// Run times that differ by less, relative, are the same: one placement is found in several ways, whose sums are rounded
/// differently.
const ROUNDING: f64 = 1e-9;

/// Finds the least fast memory that keeps a bound.
///
/// # Errors
/// A bound that is none, or that nothing keeps; when no policy can be used.
pub(crate) fn least_memory<'a>(
    context: &Context<'a>,
    frontier: &[Found],
    request: &Request,
    asked: f64,
) -> Result<Choice<'a>, PlaceError> {
    if !(asked.is_finite() && asked >= 0.0) {
        return Err(PlaceError::BadSlowdown { asked });
    }
    let points = frontier.iter().map(|found| found.point(context.fast)).collect();
    let mut search = Search { context, frontier, request, asked, points };
    search.compared(&context.without_budget())?;
    loop {
        let best_s = search.best_s();
        let (compared, chosen) = search.within(best_s * (1.0 + asked + ROUNDING))?;
        // Where something faster was found on the way, the bound is tighter than it was.
        if search.best_s() >= best_s * (1.0 - ROUNDING) {
            return Ok(Choice { compared, chosen, points: search.points });
        }
    }
}

/// A bound on the slow-down, and what it is searched in.
struct Search<'a, 'r> {
    /// With all the fast memory that may be used.
    context: &'r Context<'a>,
    frontier: &'r [Found],
    request: &'r Request,
    asked: f64,
    /// All that was tried.
    points: Vec<Point>,
}

impl<'a> Search<'a, '_> {
    /// The least time that was found, s.
    fn best_s(&self) -> f64 {
        self.points.iter().map(|point| point.time_s).fold(f64::INFINITY, f64::min)
    }

    fn compared(&mut self, context: &Context<'a>) -> Result<Compared<'a>, PlaceError> {
        let compared = Compared::new(context.clone(), self.request, self.frontier)?;
        self.points.extend(compared.points());
        Ok(compared)
    }

    /// Policies within the least budget of which one keeps a limit on the run time, and that one.
    fn within(&mut self, limit_s: f64) -> Result<(Compared<'a>, usize), PlaceError> {
        let mut least_s = f64::INFINITY;
        let mut low = self.not_enough(limit_s);
        for budget in self.budgets(limit_s) {
            let compared = self.compared(&self.context.with_budget(budget)?)?;
            if let Some(chosen) = keeping(&compared, limit_s) {
                return self.less(compared, chosen, low, limit_s);
            }
            if self.context.capacity[self.context.fast] <= budget && compared.timed().next().is_none() {
                return Err(compared.nothing_fits());
            }
            least_s = compared.timed().map(|(_, time_s)| time_s).fold(least_s, f64::min);
            low = budget;
        }
        Err(self.out_of_reach(least_s))
    }

    /// Budgets that may do, growing: of what is known to keep the limit, then all.
    fn budgets(&self, limit_s: f64) -> Vec<f64> {
        let most = self.context.capacity[self.context.fast];
        let keeping = self.points.iter().filter(|point| point.time_s <= limit_s);
        let mut budgets: Vec<f64> =
            keeping.map(|point| point.fast_bytes.ceil()).filter(|bytes| *bytes < most).collect();
        budgets.push(most);
        budgets.sort_by(f64::total_cmp);
        budgets.dedup();
        budgets
    }

    /// The most fast memory below those budgets that is known not to do.
    fn not_enough(&self, limit_s: f64) -> f64 {
        let enough = self.budgets(limit_s)[0];
        let less = self.points.iter().map(|point| point.fast_bytes).filter(|bytes| *bytes < enough);
        less.fold(least_bytes(self.context), f64::max)
    }

    /// From a budget that does down to one that does not, by halves.
    fn less(
        &mut self,
        mut compared: Compared<'a>,
        mut chosen: usize,
        mut low: f64,
        limit_s: f64,
    ) -> Result<(Compared<'a>, usize), PlaceError> {
        for _ in 0..HALVINGS {
            let enough = compared.policies[chosen].fast_bytes;
            if enough <= low {
                break;
            }
            let budget = f64::midpoint(low, enough);
            let fewer = self.compared(&self.context.with_budget(budget)?)?;
            match keeping(&fewer, limit_s) {
                Some(keeping) => (compared, chosen) = (fewer, keeping),
                None => low = budget,
            }
        }
        Ok((compared, chosen))
    }

    /// Nothing keeps the bound: the least run time within the fast memory that may be used is this, s.
    fn out_of_reach(&self, least_s: f64) -> PlaceError {
        let fast = self.context.fast;
        let less = self.context.capacity[fast] < self.context.machine.memories[fast].capacity_bytes.value as f64;
        PlaceError::OutOfReach {
            asked: format!("{:.1} %", self.asked * 100.0),
            // Rounded up, so that it is kept by whoever asks for it.
            least: format!("{:.1} %", ((least_s / self.best_s() - 1.0) * 1e3).ceil() / 10.0),
            or_else: if less { ", or give more fast memory" } else { "" },
        }
    }
}

/// The position of the policy that keeps a limit on the run time with the least fast memory.
fn keeping(compared: &Compared<'_>, limit_s: f64) -> Option<usize> {
    let within = |result: &PolicyResult| result.outcome.as_ref().is_ok_and(|outcome| outcome.time_s <= limit_s);
    let keeping = compared.policies.iter().enumerate().filter(|(_, result)| within(result));
    keeping.min_by(|(_, a), (_, b)| a.fast_bytes.total_cmp(&b.fast_bytes)).map(|(at, _)| at)
}
