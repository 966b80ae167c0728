//! Whether the machine was quiet: watched from the first figure to the last.

use std::time::Instant;

use tierloom_linux::cpus::{self, Busy};
use tierloom_linux::root::Root;

use crate::chase::Order;
use crate::host::HostSocket;
use crate::report::Report;
use crate::statistics::Percentiles;
use crate::warning::Warning;

/// CPUs' worth of other work, or of stolen time, that is worth a word.
const MUCH: f64 = 0.05;

/// Spread of a figure that is worth a word: ten per cent.
const TOO_MUCH_SPREAD: f64 = 0.10;

/// Time and CPU time since the measurement began.
pub(crate) struct Watch {
    root: Root,
    started: Instant,
    busy: Option<Busy>,
    own_cpu_s: f64,
    load_average: Option<f64>,
}

impl Watch {
    pub(crate) fn start(root: Root) -> Self {
        let (busy, load_average) = (cpus::busy(&root), cpus::load_average(&root));
        Self { started: Instant::now(), busy, own_cpu_s: cpus::own_cpu_s(), load_average, root }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// What disturbed the measurement from outside.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let (Some(before), Some(now)) = (self.busy, cpus::busy(&self.root)) else { return Vec::new() };
        let own_s = cpus::own_cpu_s() - self.own_cpu_s;
        disturbances(before, now, own_s, self.seconds(), self.load_average)
    }
}

fn disturbances(before: Busy, now: Busy, own_s: f64, seconds: f64, load_average: Option<f64>) -> Vec<Warning> {
    let others = (now.busy_s - before.busy_s - own_s) / seconds;
    let stolen = (now.stolen_s - before.stolen_s) / seconds;
    let load = (others > MUCH).then_some(Warning::OtherLoad { cpus: others, load_average });
    load.into_iter().chain((stolen > MUCH).then_some(Warning::Stolen { cpus: stolen })).collect()
}

/// Change of the clock that is worth a word.
const MOVING: f64 = 0.05;

impl Report {
    /// What the numbers themselves say against them.
    pub(crate) fn doubts(&self) -> Vec<Warning> {
        let change = self.arithmetic_ns.p90 / self.arithmetic_ns.p10 - 1.0;
        let moving = (change > MOVING).then_some(Warning::FrequencyMoving { change });
        moving.into_iter().chain(self.unseen_caches()).chain(self.noise()).collect()
    }

    /// Sockets whose last-level cache is reported, but half of it is as slow as memory.
    fn unseen_caches(&self) -> impl Iterator<Item = Warning> {
        self.host.sockets.iter().filter_map(|socket| {
            let (reported_bytes, seen_bytes) = (socket.llc_per_core_bytes?, self.seen_cache(socket)?);
            Some(Warning::CacheNotSeen { socket: socket.node, reported_bytes, seen_bytes })
        })
    }

    /// What a socket's last-level cache holds, bytes, where half of what the kernel reports is as slow as memory: the largest
    /// footprint whose loads, random or in order, take less than half of the memory's latency.
    ///
    /// In order, because random loads are slow within a cache, too, where the host backs a virtual machine by small pages:
    /// each then waits for the walk of two page tables.
    pub(crate) fn seen_cache(&self, socket: &HostSocket) -> Option<u64> {
        let reported_bytes = socket.llc_per_core_bytes?;
        let fast = |order| self.fast_bytes(socket.node, order, reported_bytes);
        let seen_bytes = fast(Order::Random).max(fast(Order::Sequential))?;
        let mut footprints =
            self.latencies.iter().filter(|l| l.socket == socket.node).map(|l| l.footprint_bytes as u64);
        footprints.any(|bytes| (seen_bytes + 1..=reported_bytes / 2).contains(&bytes)).then_some(seen_bytes)
    }

    /// The largest footprint that was fast in an order of loads, bytes; nothing where none went to memory.
    fn fast_bytes(&self, socket: u32, order: Order, reported_bytes: u64) -> Option<u64> {
        let here = || self.latencies.iter().filter(|l| l.socket == socket && l.order == order);
        let largest = here().max_by_key(|latency| latency.footprint_bytes)?;
        let memory_ns = (largest.footprint_bytes as u64 > reported_bytes).then_some(largest.ns.p10)?;
        here().filter(|latency| latency.ns.p10 < memory_ns / 2.0).map(|latency| latency.footprint_bytes as u64).max()
    }

    /// One warning for all figures that spread too much: the worst, and how many there are.
    fn noise(&self) -> Option<Warning> {
        let mut noisy: Vec<(f64, String)> = self.spreads().filter(|(spread, _)| *spread > TOO_MUCH_SPREAD).collect();
        noisy.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (spread, what) = noisy.pop()?;
        Some(Warning::Noisy { what, spread, others: noisy.len() })
    }

    fn spreads(&self) -> impl Iterator<Item = (f64, String)> {
        let name =
            |what: &str, socket: u32, node: u32| format!("{what} (CPUs of node {socket}, memory of node {node})");
        let said = |numbers: &Percentiles, text: String| (numbers.spread(), text);
        let latencies = self.latencies.iter().map(move |l| said(&l.ns, name("latency", l.socket, l.node)));
        let bandwidths = self.bandwidths.iter().map(move |b| said(&b.gb_s, name("bandwidth", b.socket, b.node)));
        let scattered = self.scattered.iter().map(move |s| said(&s.gb_s, name("random loads", s.socket, s.node)));
        let loaded = self.loaded.iter().map(move |l| said(&l.ns, name("latency under load", l.socket, l.node)));
        latencies.chain(bandwidths).chain(scattered).chain(loaded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Latency;

    const START: Busy = Busy { busy_s: 100.0, stolen_s: 5.0 };

    #[test]
    fn a_cache_that_does_not_show_is_told() {
        let shown = [(1 << 20, 10.0), (16 << 20, 30.0), (64 << 20, 80.0), (128 << 20, 150.0)];
        assert_eq!(Report::of_one_socket(&shown).doubts(), []);
        let hidden = [(1 << 20, 10.0), (4 << 20, 140.0), (16 << 20, 150.0), (128 << 20, 160.0)];
        let told = Warning::CacheNotSeen { socket: 0, reported_bytes: 32 << 20, seen_bytes: 1 << 20 };
        assert_eq!(Report::of_one_socket(&hidden).doubts(), [told]);
        assert_eq!(Report::of_one_socket(&hidden[..3]).doubts(), [], "no footprint went to memory");
        let holds = |latencies: &[(usize, f64)]| {
            let report = Report::of_one_socket(latencies);
            report.seen_cache(&report.host.sockets[0])
        };
        assert_eq!((holds(&shown), holds(&hidden)), (None, Some(1 << 20)));
    }

    #[test]
    fn a_cache_in_which_page_walks_make_random_loads_slow_shows_in_order() {
        // Measured on a Sapphire Rapids in a virtual machine: the kernel reports 260 MiB.
        let random = [(2 << 20, 18.5), (8 << 20, 99.7), (32 << 20, 94.2), (64 << 20, 126.0), (426 << 20, 161.9)];
        let in_order = [(2 << 20, 2.8), (8 << 20, 2.8), (32 << 20, 2.9), (64 << 20, 6.6), (426 << 20, 6.7)];
        let mut report = Report::of_one_socket(&random);
        report.host.sockets[0].llc_per_core_bytes = Some(260 << 20);
        assert_eq!(report.seen_cache(&report.host.sockets[0]), Some(2 << 20));
        let told = Report::of_one_socket(&in_order).latencies;
        report.latencies.extend(told.into_iter().map(|latency| Latency { order: Order::Sequential, ..latency }));
        assert_eq!(report.seen_cache(&report.host.sockets[0]), Some(32 << 20));
    }

    #[test]
    fn a_quiet_machine_is_not_warned_of() {
        let now = Busy { busy_s: 110.0, stolen_s: 5.1 };
        assert!(disturbances(START, now, 9.8, 10.0, Some(3.0)).is_empty());
    }

    #[test]
    fn other_work_and_stolen_time_are_told_apart() {
        let now = Busy { busy_s: 120.0, stolen_s: 8.0 };
        let said = disturbances(START, now, 10.0, 10.0, None);
        assert_eq!(said[0], Warning::OtherLoad { cpus: 1.0, load_average: None });
        assert!(matches!(said[1], Warning::Stolen { cpus } if (cpus - 0.3).abs() < 1e-12));
    }
}
