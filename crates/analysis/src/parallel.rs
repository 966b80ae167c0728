//! The same work for many items, on all processors: for steps that take most of an analysis.
//!
//! Results come in the order of the items and depend on nothing but them, so an analysis is the same on any number
//! of processors. Where no thread is to be had, the work is done one by one.

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

/// What the work makes of each item.
pub(crate) fn mapped<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    // Threads of our own, which go with the work: the process may fork later, or have used up its share.
    let pool = if items.len() > 1 { ThreadPoolBuilder::new().build().ok() } else { None };
    match pool {
        // Items differ much in what they take.
        Some(pool) => pool.install(|| items.par_iter().with_max_len(1).map(&work).collect()),
        None => items.iter().map(work).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        let work = |item: &u64| (0..item % 7 * 1000).fold(*item, |sum, other| sum ^ other.wrapping_mul(sum));
        let expected: Vec<u64> = items.iter().map(work).collect();
        assert_eq!(mapped(&items, work), expected);
        assert_eq!(mapped(&items[..1], work), expected[..1]);
    }

    #[test]
    #[should_panic(expected = "item 3")]
    fn a_fault_in_the_work_is_not_lost() {
        mapped(&[1, 2, 3], |item| assert_ne!(*item, 3, "item {item}"));
    }
}
