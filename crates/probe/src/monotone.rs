//! From measured points to a loaded-latency curve: one documented rule.
//!
//! A loaded-latency curve only rises: more traffic, more waiting. Measured points are noisy, and
//! past saturation many machines even lose bandwidth. The rule:
//! 1. points past the one with the most bandwidth are dropped (more load, less traffic: overload);
//! 2. the others are sorted by bandwidth, and points closer than [`SAME_LOAD`] become their mean;
//! 3. latencies are replaced by their isotonic regression, the rising sequence with the least
//!    squared distance from them (pool-adjacent-violators; Ayer et al. 1955).
//!
//! A curve that already rises passes unchanged.

/// Points whose bandwidths differ by less than this share measure the same load.
const SAME_LOAD: f64 = 0.005;

/// `[GB/s, ns]` points, in the order of growing load, as a curve that rises in both.
pub fn monotone(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let most = points.iter().map(|point| point[0]).fold(f64::NEG_INFINITY, f64::max);
    let peak = points.iter().position(|point| point[0] >= most);
    let mut kept: Vec<[f64; 2]> = peak.map_or(Vec::new(), |peak| points[..=peak].to_vec());
    kept.sort_by(|a, b| a[0].total_cmp(&b[0]));
    rising(&merge_equal_loads(&kept))
}

fn merge_equal_loads(sorted: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let same = |a: &[f64; 2], b: &[f64; 2]| b[0] - a[0] <= SAME_LOAD * b[0];
    let mean = |group: &[[f64; 2]]| [0, 1].map(|axis| group.iter().map(|p| p[axis]).sum::<f64>() / group.len() as f64);
    sorted.chunk_by(same).map(mean).collect()
}

fn rising(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    // Pools of (mean latency, points in it).
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for [_, ns] in points {
        let mut pool = (*ns, 1);
        while let Some((mean, count)) = pools.pop_if(|before| before.0 > pool.0) {
            let all = count + pool.1;
            pool = ((mean * count as f64 + pool.0 * pool.1 as f64) / all as f64, all);
        }
        pools.push(pool);
    }
    let latencies = pools.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count));
    points.iter().zip(latencies).map(|([gb_s, _], ns)| [*gb_s, ns]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_points_make_a_rising_curve(
            points in prop::collection::vec((0.1_f64..500.0, 50.0_f64..1000.0).prop_map(|(x, y)| [x, y]), 1..30),
        ) {
            let curve = monotone(&points);
            prop_assert!(!curve.is_empty());
            prop_assert!(curve.windows(2).all(|pair| pair[0][0] < pair[1][0] && pair[0][1] <= pair[1][1]));
            let least = points.iter().map(|p| p[1]).fold(f64::INFINITY, f64::min);
            let most = points.iter().map(|p| p[1]).fold(0.0, f64::max);
            prop_assert!(curve.iter().all(|p| (least - 1e-9..=most + 1e-9).contains(&p[1])));
        }

        #[test]
        fn the_rule_leaves_its_own_curves_alone(
            points in prop::collection::vec((0.1_f64..500.0, 50.0_f64..1000.0).prop_map(|(x, y)| [x, y]), 1..30),
        ) {
            let curve = monotone(&points);
            prop_assert_eq!(rising(&curve), curve);
        }
    }

    #[test]
    fn a_curve_that_rises_passes_unchanged() {
        let curve = [[1.0, 100.0], [10.0, 110.0], [20.0, 150.0], [25.0, 400.0]];
        assert_eq!(monotone(&curve), curve);
    }

    #[test]
    fn overload_is_dropped_noise_is_pooled_equal_loads_are_merged() {
        let points = [[1.0, 100.0], [10.0, 120.0], [20.0, 110.0], [30.0, 200.0], [30.1, 220.0], [28.0, 300.0]];
        assert_eq!(monotone(&points), [[1.0, 100.0], [10.0, 115.0], [20.0, 115.0], [30.05, 210.0]]);
    }

    #[test]
    fn no_points_make_no_curve() {
        assert!(monotone(&[]).is_empty());
    }
}
