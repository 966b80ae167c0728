//! The law of a window that retires in order against a real core: an Intel Sapphire Rapids, whose reorder buffer holds
//! 512 instructions (Intel 64 and IA-32 Architectures Optimization Reference Manual, Golden Cove).
//!
//! `benches/reorder_window.c` measured it, on 2026-11-29 in a virtual machine of 2 cores: ns of a read in a loop of
//! independent reads, by the share of them that goes to memory; the others are read from the second-level cache.

use tierloom_contention::{Work, held_up_s};

/// Instructions of the loop beside its fillers.
const LOOP: f64 = 27.0;
const REORDER_BUFFER: f64 = 512.0;
const SHARES: [f64; 7] = [0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0];

/// One run: fillers between reads, what a read alone takes from memory and from the cache, and by [`SHARES`] in the loop.
struct Measured {
    fillers: f64,
    memory_ns: f64,
    cache_ns: f64,
    read_ns: [f64; 7],
}

const RUNS: [Measured; 3] = [
    Measured {
        fillers: 25.0,
        memory_ns: 205.2,
        cache_ns: 6.0,
        read_ns: [16.18, 17.45, 18.40, 19.47, 20.29, 20.98, 21.10],
    },
    Measured {
        fillers: 50.0,
        memory_ns: 187.6,
        cache_ns: 6.5,
        read_ns: [21.47, 24.21, 24.85, 26.05, 27.24, 27.89, 28.47],
    },
    Measured {
        fillers: 100.0,
        memory_ns: 194.5,
        cache_ns: 6.0,
        read_ns: [35.64, 40.49, 43.42, 44.70, 45.84, 47.57, 47.90],
    },
];

impl Measured {
    /// Reads that the window holds.
    fn window(&self) -> f64 {
        REORDER_BUFFER / (LOOP + self.fillers)
    }

    /// What each read waits for itself, and what all wait with those that are held up, ns.
    fn predicted_ns(&self, share: f64) -> [f64; 2] {
        let part = |share: f64| Work { beside: share / self.window(), alone: share, ..Work::default() };
        let parts = [(part(share), self.memory_ns), (part(1.0 - share), self.cache_ns)];
        let itself_ns = parts.iter().map(|(work, ns)| work.beside * ns).sum();
        [itself_ns, itself_ns + held_up_s(parts.into_iter())]
    }
}

#[test]
fn reads_of_one_latency_are_as_many_as_the_reorder_buffer_holds() {
    for run in RUNS {
        let [itself_ns, all_ns] = run.predicted_ns(1.0);
        let measured_ns = run.read_ns[SHARES.len() - 1];
        assert!((itself_ns - all_ns).abs() < 1e-9, "{itself_ns} and {all_ns}");
        assert!((all_ns / measured_ns - 1.0).abs() < 0.03, "{} fillers: {all_ns} of {measured_ns}", run.fillers);
    }
}

#[test]
fn slow_reads_hold_up_fast_ones_as_they_do_in_a_real_core() {
    for run in RUNS {
        for (share, measured_ns) in SHARES.into_iter().zip(run.read_ns) {
            let [itself_ns, all_ns] = run.predicted_ns(share);
            let told = format!("{} fillers, {share}: {itself_ns} and {all_ns} of {measured_ns}", run.fillers);
            assert!((0.75..1.03).contains(&(all_ns / measured_ns)), "{told}");
            assert!(share > 0.5 || itself_ns < 0.6 * measured_ns, "each for itself would take less: {told}");
        }
    }
}
