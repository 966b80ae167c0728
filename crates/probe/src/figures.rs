//! The list of what is measured for one pair of a socket and a node: known before it begins, so
//! that progress can be told.

use crate::chase::Order;
use crate::kernels::{Instructions, Kernel};
use crate::latency::DUTIES;
use crate::mix::Mix;
use crate::request::Scale;

/// Most splits of the threads over two nodes.
const MOST_SPLITS: usize = 5;

/// One thing to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Figure {
    /// Latency at rest.
    Latency { footprint: usize, order: Order },
    /// Independent random loads of one thread.
    Scatter,
    /// Bandwidth at full speed.
    Peak { mix: Mix, threads: usize },
    /// A loaded-latency curve.
    Curve { mix: Mix },
}

impl Figure {
    /// Rounds of windows that it takes.
    pub(crate) fn rounds(self) -> usize {
        if let Figure::Curve { .. } = self { DUTIES.len() } else { 1 }
    }
}

/// All of them, in the order in which they are measured.
pub(crate) fn of_pair(scale: &Scale, footprints: &[usize], cores: usize, instructions: Instructions) -> Vec<Figure> {
    let latency = |footprint| [Order::Random, Order::Sequential].map(|order| Figure::Latency { footprint, order });
    let mixes: Vec<Mix> = Mix::ALL.into_iter().filter(|mix| Kernel::new(*mix, instructions).is_some()).collect();
    let mut figures: Vec<Figure> = footprints.iter().copied().flat_map(latency).collect();
    figures.push(Figure::Scatter);
    for threads in counts(cores) {
        let all = scale.every_count || threads == 1 || threads == cores;
        let chosen = mixes.iter().filter(|mix| all || **mix == Mix::Reads);
        figures.extend(chosen.map(|mix| Figure::Peak { mix: *mix, threads }));
    }
    if cores > 1 {
        figures.extend(mixes.iter().filter(|mix| in_curves(**mix)).map(|mix| Figure::Curve { mix: *mix }));
    }
    figures
}

/// Mixes that become curves of the machine: one for each read fraction of the bus.
pub(crate) fn in_curves(mix: Mix) -> bool {
    mix.read_fraction().is_some() && mix != Mix::NonTemporalCopy
}

/// 1, 2, 4, … and all cores.
pub(crate) fn counts(cores: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1_usize), |count| count.checked_mul(2));
    powers.take_while(|count| *count < cores).chain([cores]).collect()
}

/// How many threads read from the first of two nodes.
pub(crate) fn splits(cores: usize) -> Vec<usize> {
    let most = cores.saturating_sub(1).min(MOST_SPLITS);
    (1..=most).map(|part| part * cores / (most + 1)).map(|threads| threads.max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_counts_double_up_to_all_cores() {
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(2), [1, 2]);
        assert_eq!(counts(24), [1, 2, 4, 8, 16, 24]);
    }

    #[test]
    fn splits_leave_a_thread_for_each_node() {
        assert!(splits(1).is_empty());
        assert_eq!(splits(2), [1]);
        assert_eq!(splits(48), [8, 16, 24, 32, 40]);
        for cores in 2..70 {
            assert!(splits(cores).iter().all(|threads| (1..cores).contains(threads)));
        }
    }

    #[test]
    fn one_core_has_no_curve_and_two_have_one_for_each_read_fraction() {
        let curves = |cores| {
            let all = of_pair(&Scale::QUICK, &[4096], cores, Instructions::widest());
            all.into_iter()
                .filter_map(|f| if let Figure::Curve { mix } = f { mix.read_fraction() } else { None })
                .collect()
        };
        let (none, mut some): (Vec<f64>, Vec<f64>) = (curves(1), curves(2));
        assert!(none.is_empty());
        let found = some.len();
        some.dedup();
        assert!(found >= 4 && some.len() == found);
    }
}
