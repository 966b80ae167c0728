//! The trade between fast memory and time.
//!
//! From no fast memory to as much as the program has data: first at even distances, then where the
//! time falls most between two points. Each point starts from the one below it, which still fits:
//! more memory is therefore never slower.

use tierloom_model::FrontierPoint;

use crate::context::Context;
use crate::error::PlaceError;
use crate::search::{self, Coarse, Lattice, Rows};

/// Budgets at even distances, ends included.
const EVEN_POINTS: u32 = 9;
/// Budgets between two others, where the time falls most.
const CLOSER_POINTS: u32 = 12;
/// Starts that are walked downhill from at each budget.
const REFINED: usize = 2;
/// Relative difference in time that a reader could see.
const VISIBLE: f64 = 1e-5;

/// Decimals of shares that a reader sees, as a factor.
const DECIMALS: f64 = 1e4;

/// A budget of fast memory and the best placement that was found for it.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    budget: f64,
    pub(crate) fast_bytes: f64,
    pub(crate) time_s: f64,
    pub(crate) rows: Rows,
}

/// A placement that was tried, as the trade between fast memory and time has it.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub(crate) fast_bytes: f64,
    pub(crate) time_s: f64,
    /// By object.
    fast_shares: Vec<f64>,
}

/// Best placements for budgets from the least that holds the data to all of it, growing.
pub(crate) fn frontier(context: &Context<'_>) -> Result<Vec<Found>, PlaceError> {
    let least = least_bytes(context);
    // More than the data is of no use.
    let most = context.capacity[context.fast].min(context.footprint());
    let coarse = Coarse::new(context);
    let solve_at = |budget: f64, below: Option<&Found>| {
        let context = context.with_budget(budget)?;
        let mut starts = coarse.fitting(&context);
        starts.extend(below.map(|found| found.rows.clone()));
        Ok::<_, PlaceError>(solve(&context, starts))
    };
    let mut found: Vec<Found> = Vec::new();
    for point in 0..EVEN_POINTS {
        let budget = least + (most - least) * f64::from(point) / f64::from(EVEN_POINTS - 1);
        found.extend(solve_at(budget, found.last())?);
    }
    for _ in 0..CLOSER_POINTS {
        let Some(below) = steepest(&found) else { break };
        let budget = f64::midpoint(found[below].fast_bytes, found[below + 1].budget);
        let Some(between) = solve_at(budget, Some(&found[below]))? else { break };
        found.insert(below + 1, between);
    }
    Ok(found)
}

/// The point after which the time falls most, if a reader could see it.
fn steepest(found: &[Found]) -> Option<usize> {
    let fall = |point: usize| found[point].time_s - found[point + 1].time_s;
    let steepest = (0..found.len().saturating_sub(1)).max_by(|a, b| fall(*a).total_cmp(&fall(*b)))?;
    (fall(steepest) > VISIBLE * found[steepest].time_s).then_some(steepest)
}

/// Bytes of fast memory below which the data does not fit.
pub(crate) fn least_bytes(context: &Context<'_>) -> f64 {
    let others: f64 = context.nodes.iter().filter(|node| **node != context.fast).map(|n| context.capacity[*n]).sum();
    // A page more than nothing to spare, so that rounding does not leave a byte without room.
    let least = context.footprint() - others;
    if least > 0.0 { least + 1.0 } else { 0.0 }
}

fn solve(context: &Context<'_>, mut starts: Vec<Rows>) -> Option<Found> {
    starts.extend(search::closed_form(context));
    search::best(context, starts, REFINED).map(|lattice| Found::of(&lattice))
}

impl Found {
    fn of(lattice: &Lattice<'_>) -> Self {
        let fast_bytes = lattice.used_bytes(lattice.context.fast);
        let budget = lattice.context.capacity[lattice.context.fast];
        Self { budget, fast_bytes, time_s: lattice.time_s(), rows: lattice.rows() }
    }

    pub(crate) fn point(&self, fast: usize) -> Point {
        Point::new(self.fast_bytes, self.time_s, self.rows.iter().map(|row| row[fast]))
    }
}

impl Point {
    pub(crate) fn new(fast_bytes: f64, time_s: f64, fast_shares: impl Iterator<Item = f64>) -> Self {
        let shown = |share: f64| (share * DECIMALS).round() / DECIMALS;
        Self { fast_bytes, time_s, fast_shares: fast_shares.map(shown).collect() }
    }
}

/// What a reader sees: of all points, those that no other one beats in both bytes and time. Shares of
/// objects add up to whole bytes only but for rounding.
pub(crate) fn envelope(mut tried: Vec<Point>) -> Vec<FrontierPoint> {
    for point in &mut tried {
        point.fast_bytes = point.fast_bytes.round();
    }
    tried.sort_by(|a, b| a.fast_bytes.total_cmp(&b.fast_bytes).then(a.time_s.total_cmp(&b.time_s)));
    let mut points: Vec<FrontierPoint> = Vec::new();
    for Point { fast_bytes, time_s, fast_shares } in tried {
        if points.last().is_none_or(|last| time_s < last.time_s * (1.0 - VISIBLE)) {
            points.push(FrontierPoint { fast_bytes, time_s, slowdown: 1.0, fast_shares });
        }
    }
    let least_s = points.last().map_or(0.0, |last| last.time_s);
    for point in points.iter_mut().filter(|_| least_s > 0.0) {
        point.slowdown = point.time_s / least_s;
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_budget_has_one_point() {
        let tried = [(8.0, 3.0, 0.5), (8.000_000_1, 2.0, 0.512_34), (4.0, 5.0, 0.25), (9.0, 2.5, 1.0)];
        let point = |(bytes, time_s, share): (f64, f64, f64)| Point::new(bytes, time_s, [share, 0.0].into_iter());
        let points = envelope(tried.map(point).to_vec());
        let seen: Vec<(f64, f64)> = points.iter().map(|point| (point.fast_bytes, point.time_s)).collect();
        assert_eq!(seen, [(4.0, 5.0), (8.0, 2.0)]);
        assert_eq!(points[1].fast_shares, [0.5123, 0.0], "of the point that is kept");
    }
}
