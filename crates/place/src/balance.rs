//! How to share traffic over memories, in closed form.
//!
//! For latency `L(x) = L0·C/(C-x)` at load `x` (an M/M/1 queue with peak `C`), two goals have an
//! answer on paper. *Least mean latency* equalises marginal latency `d(x·L)/dx`, which gives
//! `x = C·[1 - √L0·(ΣC-R)/Σ(C·√L0)]`; *equal latency* (Wardrop's equilibrium, what Colloid steers
//! to; SOSP 2024) has `L0` in place of `√L0`. Both sums go over the memories in use; a memory is
//! used once the others' (marginal) latency passes its idle latency. As the total `R` nears `ΣC`,
//! both tend to shares in proportion to bandwidth, the kernel's automatic weights.
//!
//! Real curves are not of this form, so the result is where a search starts, not where it ends.

/// A memory as the closed form sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tier {
    /// Latency at rest, ns.
    pub idle_ns: f64,
    /// Highest bandwidth, GB/s.
    pub peak_gb_s: f64,
}

/// What is made equal over the memories in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Equal {
    /// Marginal latency: the mean latency is least.
    Marginal,
    /// Latency: no access would be faster elsewhere.
    Latency,
}

/// Load of each tier, GB/s, for a total of `load` GB/s.
///
/// A total at or beyond the sum of peaks is shared in proportion to the peaks.
pub fn loads(tiers: &[Tier], load: f64, equal: Equal) -> Vec<f64> {
    let power = |tier: &Tier| match equal {
        Equal::Marginal => tier.idle_ns.sqrt(),
        Equal::Latency => tier.idle_ns,
    };
    let mut order: Vec<usize> = (0..tiers.len()).collect();
    order.sort_by(|a, b| tiers[*a].idle_ns.total_cmp(&tiers[*b].idle_ns));
    for count in 1..=order.len() {
        let active = &order[..count];
        let spare = active.iter().map(|t| tiers[*t].peak_gb_s).sum::<f64>() - load;
        let scale = spare / active.iter().map(|t| tiers[*t].peak_gb_s * power(&tiers[*t])).sum::<f64>();
        // The common (marginal) latency is 1/scale, squared for the marginal one: the next tier
        // stays unused while its own at rest is no better.
        let next_waits = order.get(count).is_none_or(|next| power(&tiers[*next]) * scale >= 1.0);
        if scale > 0.0 && next_waits {
            let share = |t: usize| tiers[t].peak_gb_s * (1.0 - power(&tiers[t]) * scale);
            return (0..tiers.len()).map(|t| if active.contains(&t) { share(t).max(0.0) } else { 0.0 }).collect();
        }
    }
    let total: f64 = tiers.iter().map(|tier| tier.peak_gb_s).sum();
    tiers.iter().map(|tier| load * tier.peak_gb_s / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAM_AND_CXL: [Tier; 2] =
        [Tier { idle_ns: 110.0, peak_gb_s: 200.0 }, Tier { idle_ns: 250.0, peak_gb_s: 50.0 }];

    fn mean_ns(tiers: &[Tier], loads: &[f64]) -> f64 {
        let total: f64 = loads.iter().sum();
        let part = |(tier, x): (&Tier, &f64)| x * tier.idle_ns * tier.peak_gb_s / (tier.peak_gb_s - x);
        tiers.iter().zip(loads).filter(|(_, x)| **x > 0.0).map(part).sum::<f64>() / total
    }

    #[test]
    fn mean_latency_is_as_on_paper() {
        // Total GB/s, ns of least mean latency, of equal latency, of shares by bandwidth.
        let table = [
            (100.0, 211.0, 220.0, 230.0),
            (120.0, 247.0, 265.0, 265.0),
            (150.0, 326.0, 345.0, 345.0),
            (180.0, 470.0, 493.0, 493.0),
        ];
        for (load, marginal, latency, bandwidth) in table {
            let mean = |equal| mean_ns(&DRAM_AND_CXL, &loads(&DRAM_AND_CXL, load, equal));
            let by_bandwidth = mean_ns(&DRAM_AND_CXL, &[load * 0.8, load * 0.2]);
            assert!((mean(Equal::Marginal) - marginal).abs() < 0.5, "{load}: {}", mean(Equal::Marginal));
            assert!((mean(Equal::Latency) - latency).abs() < 0.5, "{load}: {}", mean(Equal::Latency));
            assert!((by_bandwidth - bandwidth).abs() < 0.5, "{load}: {by_bandwidth}");
        }
    }

    #[test]
    fn the_far_memory_waits_until_it_pays() {
        for (equal, threshold) in [(Equal::Marginal, 67.3), (Equal::Latency, 112.0)] {
            assert!(loads(&DRAM_AND_CXL, threshold - 0.5, equal)[1].abs() < 1e-12);
            assert!(loads(&DRAM_AND_CXL, threshold + 0.5, equal)[1] > 0.0);
        }
    }

    #[test]
    fn no_other_split_has_less_mean_latency() {
        let tiers = [DRAM_AND_CXL[0], DRAM_AND_CXL[1], Tier { idle_ns: 190.0, peak_gb_s: 90.0 }];
        for load in [20.0, 90.0, 150.0, 220.0, 300.0] {
            let best = mean_ns(&tiers, &loads(&tiers, load, Equal::Marginal));
            for a in 0..=200u32 {
                for b in 0..=200 - a {
                    let split = [a, b, 200 - a - b].map(|part| load * f64::from(part) / 200.0);
                    if split.iter().zip(&tiers).all(|(x, tier)| *x < tier.peak_gb_s) {
                        assert!(best <= mean_ns(&tiers, &split) * (1.0 + 1e-12), "{load} {split:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_no_memory_can_carry_is_shared_by_bandwidth() {
        assert_eq!(loads(&DRAM_AND_CXL, 500.0, Equal::Marginal), [400.0, 100.0]);
    }
}
