//! What happened, under the names of `/proc/vmstat`.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Events since the start of the run. Whole pages in the exact evaluator, expected ones in the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Entries protected by the scanner.
    pub numa_pte_updates: f64,
    /// Hint faults.
    pub numa_hint_faults: f64,
    /// Hint faults on pages of the thread's own node.
    pub numa_hint_faults_local: f64,
    /// Pages moved by hint faults.
    pub numa_pages_migrated: f64,
    /// Pages moved into the top tier.
    pub pgpromote_success: f64,
    /// Pages that were hot enough to be moved there.
    pub pgpromote_candidate: f64,
    /// Pages moved out by kswapd.
    pub pgdemote_kswapd: f64,
    /// Pages moved out by an allocating thread.
    pub pgdemote_direct: f64,
    /// Pages moved out by a policy of its own, without kswapd.
    pub pgdemote_policy: f64,
    /// Pages moved at all.
    pub pgmigrate_success: f64,
    /// Pages that could not be moved.
    pub pgmigrate_fail: f64,
    /// Pages that got the node they were meant for.
    pub numa_hit: f64,
    /// Pages that landed on a node they were not meant for.
    pub numa_miss: f64,
    /// Pages that were meant for a node and did not get it.
    pub numa_foreign: f64,
    /// Interleaved pages that got their node.
    pub numa_interleave: f64,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.numa_pte_updates += other.numa_pte_updates;
        self.numa_hint_faults += other.numa_hint_faults;
        self.numa_hint_faults_local += other.numa_hint_faults_local;
        self.numa_pages_migrated += other.numa_pages_migrated;
        self.pgpromote_success += other.pgpromote_success;
        self.pgpromote_candidate += other.pgpromote_candidate;
        self.pgdemote_kswapd += other.pgdemote_kswapd;
        self.pgdemote_direct += other.pgdemote_direct;
        self.pgdemote_policy += other.pgdemote_policy;
        self.pgmigrate_success += other.pgmigrate_success;
        self.pgmigrate_fail += other.pgmigrate_fail;
        self.numa_hit += other.numa_hit;
        self.numa_miss += other.numa_miss;
        self.numa_foreign += other.numa_foreign;
        self.numa_interleave += other.numa_interleave;
    }
}
