//! The NUMA scanner: when it protects which page table entries.
//!
//! Source: Linux 6.12 `kernel/sched/fair.c` (`task_tick_numa`, `task_numa_work`, `task_scan_min`,
//! `task_scan_max`, `update_task_scan_period`, `vma_is_accessed`). One thread of a process scans at a
//! time, 256 MB of entries at once; every thread looks at its own clock, and has to run 32 times as
//! long as it scanned before it scans again. All threads are taken to share one scan period,
//! because they share the work; only the process's first thread, where it works, begins at the fastest.

use serde::{Deserialize, Serialize};

/// Scan periods are counted in these parts (`NUMA_PERIOD_SLOTS`).
const SLOTS: f64 = 10.0;
/// Parts that have to be local or private to scan less (`NUMA_PERIOD_THRESHOLD`).
const THRESHOLD: f64 = 7.0;
/// Fastest scan rate, MB/s (`MAX_SCAN_WINDOW`).
const MAX_SCAN_MB_S: f64 = 2560.0;
/// How much longer a thread runs than it scans: at most 3 % of its time goes to scanning.
const RUN_PER_SCAN: f64 = 32.0;
/// Empty entries that are passed for each one that counts (`virtpages`).
const VIRTUAL: f64 = 8.0;
/// Entries per step: ranges end on 2 MiB.
const HUGE: u64 = 512;
/// Sequences in which a mapping is scanned whoever touches it.
const UNCONDITIONAL: u32 = 2;
/// Scan delays after which it is forgotten who touched a mapping.
const FORGET: f64 = 4.0;

/// `debugfs sched/numa_balancing`, under the kernel's names.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScanKnobs {
    /// Age of a process before its first scan, ms.
    pub scan_delay_ms: f64,
    /// Least time to scan all of a process, ms.
    pub scan_period_min_ms: f64,
    /// Most time to scan all of a process, ms.
    pub scan_period_max_ms: f64,
    /// Entries protected at once, MB.
    pub scan_size_mb: f64,
}

impl Default for ScanKnobs {
    fn default() -> Self {
        Self { scan_delay_ms: 1000.0, scan_period_min_ms: 1000.0, scan_period_max_ms: 60_000.0, scan_size_mb: 256.0 }
    }
}

/// A mapping as the scanner sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mapping {
    pub(crate) pages: u64,
    /// `MPOL_F_MOF`.
    pub(crate) migrates: bool,
}

/// What one scan did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Walked {
    /// Entries looked at.
    pub(crate) visited: f64,
    /// Entries protected.
    pub(crate) updated: f64,
}

/// Faults that the period is adapted to.
#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    /// `numa_faults_locality`: since the period was last made of them. Where it is only doubled, they stay, so that one
    /// that failed slows scanning down for good.
    local: f64,
    remote: f64,
    failed: f64,
    /// Since the last sequence (`NUMA_MEMBUF`).
    private: f64,
    shared: f64,
}

/// `numab_state` of a mapping.
#[derive(Debug, Clone, Copy, Default)]
struct VmaState {
    /// Sequence of its first scan; none before.
    started: Option<u32>,
    /// Sequence of its last whole scan.
    scanned: Option<u32>,
    reset_s: f64,
    /// Faulted since the last reset, and in the stretch before.
    touched: [bool; 2],
}

/// One process's scanning.
#[derive(Debug, Clone)]
pub(crate) struct Scanner {
    knobs: ScanKnobs,
    /// In the order of addresses: `mmap` goes downwards, so the last one made comes first.
    mappings: Vec<Mapping>,
    /// First page of each.
    starts: Vec<u64>,
    vmas: Vec<VmaState>,
    /// By thread: when it next looks at the clock.
    due_s: Vec<f64>,
    next_scan_s: f64,
    period_s: f64,
    offset: u64,
    seq: u32,
    adapted: u32,
    faults: Faults,
    /// Private share of all faults so far, for the size of a NUMA group's period.
    shared_share: f64,
    started: bool,
    /// Whether thread 0 is the process's first, whose clock was not set when it was made.
    main_works: bool,
}

impl Scanner {
    pub(crate) fn new(knobs: ScanKnobs, mappings: Vec<Mapping>, threads: u32, main_works: bool) -> Self {
        let delay_s = knobs.scan_delay_ms * 1e-3;
        // `init_numa_balancing` means to stagger new threads, but takes ms for ns where it limits the delay.
        let due_s = vec![delay_s; threads.max(1) as usize];
        let vmas = vec![VmaState::default(); mappings.len()];
        let mappings: Vec<Mapping> = mappings.into_iter().rev().collect();
        let mut next = 0;
        let start = |mapping: &Mapping| {
            let start = next;
            next += mapping.pages.next_multiple_of(HUGE);
            start
        };
        Self {
            starts: mappings.iter().map(start).collect(),
            knobs,
            mappings,
            vmas,
            due_s,
            next_scan_s: delay_s,
            period_s: delay_s,
            offset: 0,
            seq: 0,
            adapted: 0,
            faults: Faults::default(),
            shared_share: 0.0,
            started: false,
            main_works,
        }
    }

    /// Time between two scans, s.
    #[cfg(test)]
    pub(crate) fn period_s(&self) -> f64 {
        self.period_s
    }

    /// The mapping that was made last has grown.
    pub(crate) fn grow(&mut self, pages: u64) {
        if let Some(mapping) = self.mappings.first_mut() {
            mapping.pages = pages;
        }
    }

    fn window_pages(&self) -> f64 {
        self.knobs.scan_size_mb * 256.0
    }

    /// `task_nr_scan_windows`.
    fn windows(&self) -> f64 {
        let pages: u64 = self.mappings.iter().map(|mapping| mapping.pages).sum();
        (pages as f64 / self.window_pages()).ceil().max(1.0)
    }

    fn period_min_s(&self) -> f64 {
        let floor_ms = 1000.0 / (MAX_SCAN_MB_S / self.knobs.scan_size_mb);
        floor_ms.max(self.knobs.scan_period_min_ms / self.windows()) * 1e-3
    }

    /// A group of threads that share pages takes turns.
    fn of_group(&self, period_s: f64) -> f64 {
        period_s * self.due_s.len() as f64 * self.shared_share
    }

    fn period_max_s(&self) -> f64 {
        let alone_s = self.knobs.scan_period_max_ms * 1e-3 / self.windows();
        alone_s.max(self.of_group(alone_s)).max(self.period_min_s())
    }

    /// Whether a thread scans by now; tells it what the scan cost it with [`Scanner::scanned`].
    pub(crate) fn due(&mut self, now_s: f64) -> Option<usize> {
        let mut found = None;
        for thread in 0..self.due_s.len() {
            if self.due_s[thread] > now_s {
                continue;
            }
            // `node_stamp += numa_scan_period`, caught up in one step.
            let period_s = self.period_of(thread);
            let missed = ((now_s - self.due_s[thread]) / period_s).floor() + 1.0;
            self.due_s[thread] += missed * period_s;
            if found.is_none() && now_s >= self.next_scan_s {
                found = Some(thread);
            }
        }
        if let Some(thread) = found {
            if !self.started && self.due_s.len() == 1 {
                self.period_s = self.period_min_s();
            }
            self.started = true;
            self.next_scan_s = now_s + self.period_of(thread);
        }
        found
    }

    /// `task_scan_start`, for a thread whose clock was not set when it was made (`init_numa_balancing` sets those of
    /// threads): the first of a process. Others go on at the scan delay until the first sequence is over.
    fn period_of(&self, thread: usize) -> f64 {
        let first = thread == 0 && self.main_works && self.adapted == 0;
        if first { self.period_min_s().min(self.period_s) } else { self.period_s }
    }

    /// Charges a scan to the thread that did it.
    pub(crate) fn scanned(&mut self, thread: usize, cost_s: f64) {
        self.due_s[thread] += RUN_PER_SCAN * cost_s;
    }

    /// One turn of scanning; `protect` does `(mapping, from, to)` in pages of the mapping and returns
    /// the entries it changed.
    pub(crate) fn walk(&mut self, now_s: f64, mut protect: impl FnMut(usize, u64, u64) -> f64) -> Walked {
        let mut walked = Walked::default();
        let (mut pages, mut virtual_pages) = (self.window_pages(), VIRTUAL * self.window_pages());
        for forced in [false, true] {
            let mut skipped = false;
            for vma in 0..self.mappings.len() {
                if self.starts[vma] + self.mappings[vma].pages <= self.offset {
                    continue;
                }
                if !self.mappings[vma].migrates || !self.may_scan(vma, now_s) {
                    continue;
                }
                if !forced && !self.is_touched(vma) {
                    skipped = true;
                    continue;
                }
                let (start, size) = (self.starts[vma], self.mappings[vma].pages);
                let mut at = self.offset.saturating_sub(start);
                while at < size {
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a scan size")]
                    let window = pages as u64;
                    let end = (start + at + window).next_multiple_of(HUGE).saturating_sub(start).min(size);
                    let updated = protect(self.region(vma), at, end);
                    walked.updated += updated;
                    walked.visited += (end - at) as f64;
                    pages -= if updated > 0.0 { (end - at) as f64 } else { 0.0 };
                    virtual_pages -= (end - at) as f64;
                    at = end;
                    self.offset = start + at;
                    if pages <= 0.0 || virtual_pages <= 0.0 {
                        self.finish_vma(vma, at >= size);
                        return walked;
                    }
                }
                self.finish_vma(vma, true);
                if forced {
                    break;
                }
            }
            if !skipped {
                break;
            }
        }
        self.offset = 0;
        self.seq += 1;
        walked
    }

    /// From the order of addresses to that of mapping, and back.
    fn region(&self, vma: usize) -> usize {
        self.mappings.len() - 1 - vma
    }

    fn finish_vma(&mut self, vma: usize, whole: bool) {
        if whole {
            self.vmas[vma].scanned = Some(self.seq);
        }
    }

    /// Sets a mapping's state up, forgets old touches, and skips what this sequence has scanned.
    fn may_scan(&mut self, vma: usize, now_s: f64) -> bool {
        let (seq, delay_s) = (self.seq, self.knobs.scan_delay_ms * 1e-3);
        let state = &mut self.vmas[vma];
        if state.started.is_none() {
            state.started = Some(seq);
            state.reset_s = now_s + delay_s + FORGET * delay_s;
        }
        if seq > 0 && now_s > state.reset_s {
            state.reset_s = now_s.max(state.reset_s + FORGET * delay_s);
            state.touched = [state.touched[1], false];
        }
        state.scanned != Some(seq)
    }

    fn is_touched(&self, vma: usize) -> bool {
        let state = &self.vmas[vma];
        let age = self.seq - state.started.unwrap_or(self.seq);
        let threads = u32::try_from(self.due_s.len()).unwrap_or(u32::MAX);
        age < UNCONDITIONAL
            || state.touched.contains(&true)
            || self.offset > self.starts[vma]
            || state.scanned.is_some_and(|scanned| self.seq > scanned.saturating_add(threads))
    }

    /// `vma_set_access_pid_bit`.
    pub(crate) fn touched(&mut self, region: usize) {
        let vma = self.region(region);
        self.vmas[vma].touched[1] = true;
    }

    /// `task_numa_fault`: where faults found their pages, and whether those could not be moved.
    pub(crate) fn faulted(&mut self, now_s: f64, pages: f64, local: bool, failed: bool, private: f64) {
        if self.adapted != self.seq {
            self.adapted = self.seq;
            self.adapt(now_s);
        }
        // Nobody has faulted on the pages of the first sequence before, which counts as private.
        let private = if self.seq == 0 { 1.0 } else { private };
        if local {
            self.faults.local += pages;
        } else {
            self.faults.remote += pages;
        }
        self.faults.failed += if failed { pages } else { 0.0 };
        self.faults.private += pages * private;
        self.faults.shared += pages * (1.0 - private);
        self.shared_share += (1.0 - private - self.shared_share) * (pages / (pages + self.window_pages()));
    }

    /// `update_task_scan_period`. Pages that mode 2 moves up were not local and count as private, so where nothing else
    /// faults it scans ever more slowly.
    fn adapt(&mut self, now_s: f64) {
        let Faults { local, remote, failed, private, shared } = self.faults;
        (self.faults.private, self.faults.shared) = (0.0, 0.0);
        if local + shared < 1.0 || failed > 0.0 {
            self.period_s = (2.0 * self.period_s).min(self.period_max_s());
            self.next_scan_s = now_s + self.period_s;
            return;
        }
        self.faults = Faults::default();
        let all = private + shared;
        let slot = (self.period_s * 1e3 / SLOTS).ceil() * 1e-3;
        let (near, own) = ((SLOTS * local / (local + remote)).floor(), (SLOTS * private / all).floor());
        let change = if own >= THRESHOLD {
            (own - THRESHOLD).max(1.0)
        } else if near >= THRESHOLD {
            (near - THRESHOLD).max(1.0)
        } else {
            near.max(own) - THRESHOLD
        };
        self.period_s = (self.period_s + change * slot).clamp(self.period_min_s(), self.period_max_s());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(pages: u64) -> Scanner {
        let mapping = Mapping { pages, migrates: true };
        Scanner::new(ScanKnobs::default(), vec![mapping], 2, false)
    }

    #[test]
    fn a_large_process_scans_one_window_every_100_ms_at_best() {
        let mapping = Mapping { pages: 130 * 262_144, migrates: true };
        let mut scanner = Scanner::new(ScanKnobs::default(), vec![mapping], 1, false);
        let mut updated = 0.0;
        for tick in 0..1000 {
            let now_s = 2.0 + f64::from(tick) * 0.01;
            if let Some(thread) = scanner.due(now_s) {
                updated += scanner.walk(now_s, |_, from, to| (to - from) as f64).updated;
                scanner.scanned(thread, 0.0);
            }
        }
        assert!((scanner.period_s() - 0.1).abs() < 1e-12);
        assert!((4_000_000.0..=6_619_136.0).contains(&updated), "{updated} in 10 s, at most 655 360 a second");
    }

    #[test]
    fn mappings_without_the_flag_are_never_protected() {
        let mapping = Mapping { pages: 1000, migrates: false };
        let mut scanner = Scanner::new(ScanKnobs::default(), vec![mapping], 1, false);
        for second in 1..100 {
            let now_s = f64::from(second);
            if scanner.due(now_s).is_some() {
                assert_eq!(scanner.walk(now_s, |_, _, _| panic!("it is skipped")), Walked::default());
            }
        }
    }

    /// A skipped mapping is scanned after all when a turn reaches the end with nothing else to do.
    #[test]
    fn a_mapping_that_nobody_touches_is_scanned_twice_and_then_rarely() {
        let mapping = |pages| Mapping { pages, migrates: true };
        let mut scanner = Scanner::new(ScanKnobs::default(), vec![mapping(131_072), mapping(1024)], 30, false);
        let mut scans = [0, 0];
        for second in 1..=100 {
            scanner.walk(f64::from(second), |vma, from, to| {
                scans[vma] += 1;
                (to - from) as f64
            });
            scanner.touched(0);
        }
        assert!(scans[0] > 60 && (2..=4).contains(&scans[1]), "{scans:?}");
    }

    #[test]
    fn several_threads_scan_once_in_a_scan_delay_until_the_first_sequence_is_over() {
        let mut scanner = one(4 * 65_536);
        let mut scans = Vec::new();
        for tick in 0..600 {
            let now_s = f64::from(tick) * 0.01;
            if scanner.due(now_s).is_some() {
                scans.push(now_s);
                scanner.walk(now_s, |_, from, to| (to - from) as f64);
                scanner.faulted(now_s, 1000.0, true, false, 1.0);
            }
        }
        assert!(scans[..5].iter().zip(1..).all(|(at, second)| (at - f64::from(second)).abs() < 0.05), "{scans:?}");
    }

    #[test]
    fn a_first_thread_that_works_scans_as_fast_as_it_may_from_the_start() {
        let mapping = Mapping { pages: 130 * 262_144, migrates: true };
        let scans = |main_works| {
            let mut scanner = Scanner::new(ScanKnobs::default(), vec![mapping], 32, main_works);
            let now_s = |tick| 1.0 + f64::from(tick) * 0.01;
            let turns = (0..1000).filter(|tick| {
                let due = scanner.due(now_s(*tick)).is_some();
                if due {
                    scanner.walk(now_s(*tick), |_, from, to| (to - from) as f64);
                }
                due
            });
            turns.count()
        };
        assert!((90..=100).contains(&scans(true)) && (9..=11).contains(&scans(false)));
    }

    /// Tells a scanner of faults in sequences of their own; what one has seen counts when the next one begins.
    fn periods(faults: &[(bool, bool, f64)]) -> Vec<f64> {
        let mut scanner = one(102_400);
        let mut after = |(seq, (local, failed, private)): (u32, &(bool, bool, f64))| {
            scanner.seq = seq;
            scanner.faulted(f64::from(seq), 10.0, *local, *failed, *private);
            scanner.period_s()
        };
        (1..).zip(faults).map(&mut after).collect()
    }

    #[test]
    fn private_pages_lengthen_the_period_and_shared_ones_far_away_shorten_it() {
        let found = periods(&[(true, false, 1.0), (false, false, 0.0), (false, false, 0.0)]);
        assert!((found[1] - 1.3 * found[0]).abs() < 1e-12 && found[2] < found[1], "{found:?}");
    }

    /// `update_task_scan_period` clears what it counts where it makes a new period of it, not where it doubles it.
    #[test]
    fn one_migration_that_failed_doubles_the_period_in_every_sequence_from_then_on() {
        let found = periods(&[(false, true, 1.0), (true, false, 1.0), (true, false, 1.0), (true, false, 1.0)]);
        let doubles = |pair: &[f64]| (pair[1] - 2.0 * pair[0]).abs() < 1e-12;
        assert!(found.windows(2).all(doubles), "{found:?}");
    }

    /// As in mode 2, whose only faults that count are of pages that were moved up.
    #[test]
    fn where_all_faults_are_private_and_far_away_the_period_doubles() {
        let found = periods(&[(false, false, 1.0); 4]);
        assert!((found[3] - 8.0 * found[0]).abs() < 1e-12, "{found:?}");
    }
}
