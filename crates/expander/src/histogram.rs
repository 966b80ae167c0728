//! Latencies in buckets an eighth of a power of two wide: percentiles within 9 %, in constant space.

use crate::time::{Ps, to_ns};

const STEPS: u32 = 8;
const BUCKETS: usize = 44 * STEPS as usize;

/// How long things took.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    counts: Vec<u32>,
    total: u64,
    sum: u128,
    longest: Ps,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, sum: 0, longest: 0 }
    }

    pub(crate) fn add(&mut self, span: Ps) {
        self.counts[bucket(span)] += 1;
        self.total += 1;
        self.sum += u128::from(span);
        self.longest = self.longest.max(span);
    }

    pub(crate) fn count(&self) -> u64 {
        self.total
    }

    pub(crate) fn mean_ns(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.sum as f64 * 1e-3 / self.total as f64 }
    }

    /// Time that `share` of all stay within: the upper edge of its bucket, at most the longest.
    pub(crate) fn percentile_ns(&self, share: f64) -> f64 {
        let wanted = (share * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (at, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= wanted {
                return to_ns(upper(at).min(self.longest));
            }
        }
        0.0
    }

    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
        (self.total, self.sum, self.longest) = (0, 0, 0);
    }
}

/// Power of two, then the eighth within it.
fn bucket(span: Ps) -> usize {
    let span = span.max(u64::from(STEPS));
    let power = span.ilog2();
    let eighth = (span >> (power - STEPS.ilog2())) as u32 - STEPS;
    (((power - STEPS.ilog2()) * STEPS + eighth) as usize).min(BUCKETS - 1)
}

fn upper(bucket: usize) -> Ps {
    let (power, eighth) = (bucket as u32 / STEPS, bucket as u32 % STEPS);
    u64::from(STEPS + eighth + 1) << power
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_percentile_is_within_a_bucket_of_the_exact_one(mut spans in prop::collection::vec(100_u64..1 << 40, 1..200), share in 0.01_f64..1.0) {
            let mut histogram = Histogram::new();
            for &span in &spans {
                histogram.add(span);
            }
            spans.sort_unstable();
            let exact = spans[((share * spans.len() as f64).ceil() as usize).max(1) - 1] as f64 * 1e-3;
            let found = histogram.percentile_ns(share);
            prop_assert!(exact <= found * 1.000_001 && found <= exact * 1.13, "{found} for {exact}");
        }
    }
}
