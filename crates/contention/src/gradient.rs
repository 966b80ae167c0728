//! What a little more work on each path costs: the gradient of a time, by forward differences.

use crate::work::Work;

/// Step of the differences, as a share of the whole work: far above the tolerance of [`fixed_point`](crate::fixed_point),
/// and fine against the shares that a placement moves (assumed).
const STEP: f64 = 1e-3;

/// Seconds per unit of each part of work on each path, at `cells`; nothing for what `whole`, the sum of all work, has none of.
///
/// Exact to first order, and wrong to a step where two memories are the bottleneck together.
pub fn gradient(cells: &[Work], whole: Work, time_s: impl Fn(&[Work]) -> f64) -> Vec<Work> {
    let before_s = time_s(cells);
    let step = whole * STEP;
    let mut more = cells.to_vec();
    let mut price = |path: usize, extra: Work, amount: f64| {
        if amount <= 0.0 {
            return 0.0;
        }
        more[path] = cells[path] + extra;
        let after_s = time_s(&more);
        more[path] = cells[path];
        (after_s - before_s) / amount
    };
    let none = Work::default();
    (0..cells.len())
        .map(|path| Work {
            wait: price(path, Work { wait: step.wait, ..none }, step.wait),
            random: price(path, Work { random: step.random, ..none }, step.random),
            beside: price(path, Work { beside: step.beside, ..none }, step.beside),
            alone: price(path, Work { alone: step.alone, ..none }, step.alone),
            read: price(path, Work { read: step.read, ..none }, step.read),
            write: price(path, Work { write: step.write, ..none }, step.write),
        })
        .collect()
}
