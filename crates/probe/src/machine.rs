//! From the report to the noun: a machine that the other verbs read.
//!
//! What was measured is marked `measured` with its percentiles in words; what follows from it
//! (lines in flight, by Little's law) is marked `derived` with the arithmetic.

use std::collections::BTreeMap;

use tierloom_model::units::format_bytes;
use tierloom_model::{Curve, FORMAT_VERSION, Figure, Kind, Load, Machine, MachineTag, Memory, Origin, Path, Socket};

use crate::arena::ASSUMED_LLC_BYTES;
use crate::chase::Order;
use crate::error::ProbeError;
use crate::figures::in_curves;
use crate::host::{HostNode, HostSocket};
use crate::latency::own_gb_s;
use crate::mix::{LINE_BYTES, Mix};
use crate::monotone::monotone;
use crate::report::{Latency, Loaded, Report};
use crate::statistics::Percentiles;

/// Key of the one source.
const SOURCE: &str = "measured";

const AS_REPORTED: &str = "as the kernel reports it (/sys/devices/system/cpu/cpu*/cache)";

/// A curve must fall short of the peak by more than this share to be continued up to it.
const REACHED: f64 = 0.98;

/// The machine of a report, as its own check accepts it.
pub(crate) fn from_report(report: &Report) -> Result<Machine, ProbeError> {
    let host = &report.host;
    let text = format!("tierloom machine measure, {}, Linux {}, {}", report.date, host.kernel, host.cpu);
    let machine = Machine {
        kind: MachineTag::Machine,
        version: FORMAT_VERSION,
        name: report.name.clone(),
        title: format!("{}, {} socket(s), {} memory node(s), measured", host.cpu, host.sockets.len(), host.nodes.len()),
        host: Some(host.identity.clone()),
        notes: notes(report),
        sources: BTreeMap::from([(SOURCE.to_owned(), text)]),
        sockets: host.sockets.iter().map(|socket| socket_of(report, socket)).collect(),
        memories: host.nodes.iter().filter_map(|node| memory_of(report, node)).collect(),
        links: Vec::new(),
        paths: host.sockets.iter().flat_map(|socket| paths_from(report, socket)).collect(),
    };
    Ok(Machine::from_toml(&machine.to_toml(), &report.name)?)
}

fn notes(report: &Report) -> Vec<String> {
    let figures = "Every figure is the quiet tenth of the windows of its quietest round: the 10th percentile of \
                   latency, the 90th of bandwidth. Other work on a machine adds latency and takes bandwidth, never the other way round.";
    let no_links = "Interconnects that paths share cannot be told from outside; add [[links]] where you know them.";
    let several = report.host.sockets.len() > 1;
    let kinds = report.host.nodes.iter().filter(|node| !node.has_cpus);
    let kinds =
        kinds.map(|node| format!("{} is taken for {:?}: {}.", memory_name(node.node), node.kind, node.kind_because));
    let warnings =
        report.warnings.iter().map(|warning| format!("Warning of the measurement: {}.", warning.told().what));
    let first = [figures].into_iter().chain(several.then_some(no_links)).map(str::to_owned);
    first.chain(kinds).chain(warnings).collect()
}

fn socket_name(node: u32) -> String {
    format!("socket{node}")
}

fn memory_name(node: u32) -> String {
    format!("node{node}")
}

fn measured<T>(value: T, how: impl Into<String>) -> Figure<T> {
    Figure::new(value, Kind::Measured, SOURCE, how)
}

fn socket_of(report: &Report, socket: &HostSocket) -> Socket {
    let cores = u32::try_from(socket.cores.len()).unwrap_or(u32::MAX);
    Socket {
        name: socket_name(socket.node),
        cpu: report.host.cpu.clone(),
        cores: measured(cores, "cores of this node that the measuring process may use; one hardware thread each"),
        llc_bytes: cache(report, socket, socket.llc_bytes),
        llc_per_core_bytes: cache(report, socket, socket.llc_per_core_bytes),
        core_cache_bytes: socket.core_cache_bytes.map(|bytes| measured(bytes, AS_REPORTED)),
        llc_ns: llc_ns(report, socket),
        stream_lines: stream_lines(report, socket.node),
        demand_lines: demand_lines(report, socket.node),
    }
}

/// A cache of the last level, or all of a socket, of which the kernel reports so much.
fn cache(report: &Report, socket: &HostSocket, bytes: Option<u64>) -> Figure<u64> {
    if let (Some(seen), Some(each), Some(bytes)) = (report.seen_cache(socket), socket.llc_per_core_bytes, bytes) {
        let how = format!(
            "{}largest footprint whose dependent loads, random or in order, take less than half of the memory's latency; the kernel \
             reports {}",
            if bytes > each { "of each cache of the last level the " } else { "" },
            format_bytes(bytes)
        );
        return measured(seen * (bytes / each.max(1)).max(1), how);
    }
    match bytes {
        Some(bytes) => measured(bytes, AS_REPORTED),
        None => Figure::new(ASSUMED_LLC_BYTES, Kind::Assumed, SOURCE, "the kernel reports no cache"),
    }
}

/// Latency of the last-level cache: of the largest footprint that half of it holds and the cache before it does not.
fn llc_ns(report: &Report, socket: &HostSocket) -> Option<Figure<f64>> {
    let most = report.seen_cache(socket).or(socket.llc_per_core_bytes)? / 2;
    let least = socket.core_cache_bytes.unwrap_or(0) * 2;
    let here = report.latencies.iter().filter(|l| l.socket == socket.node && l.order == Order::Random);
    let inside = here.filter(|l| (least..=most).contains(&(l.footprint_bytes as u64)));
    let quietest = |a: &&Latency, b: &&Latency| b.ns.p10.total_cmp(&a.ns.p10);
    let found = inside.max_by(|a, b| a.footprint_bytes.cmp(&b.footprint_bytes).then(quietest(a, b)))?;
    let how = format!(
        "dependent random loads over {}, quietest round; {}",
        format_bytes(found.footprint_bytes as u64),
        found.ns.words("ns")
    );
    Some(measured(significant(found.ns.p10), how))
}

/// The node with the least latency at rest from a socket, and that latency.
fn nearest(report: &Report, socket: u32) -> Option<(u32, f64)> {
    let nodes = report.host.nodes.iter().map(|node| node.node);
    let reached = nodes.filter_map(|node| Some((node, idle(report, socket, node)?.p10)));
    reached.min_by(|a, b| a.1.total_cmp(&b.1))
}

fn stream_lines(report: &Report, socket: u32) -> Figure<f64> {
    let found = nearest(report, socket).and_then(|(node, idle_ns)| {
        let all = report.bandwidths.iter().filter(|b| b.socket == socket && b.node == node);
        Some((quietest(all.filter(|b| b.mix == Mix::Reads && b.threads == 1).map(|b| b.gb_s.p90))?, idle_ns))
    });
    lines_in_flight("one thread's sequential reads", found)
}

fn demand_lines(report: &Report, socket: u32) -> Figure<f64> {
    let found = nearest(report, socket).and_then(|(node, idle_ns)| {
        let all = report.scattered.iter().filter(|s| s.socket == socket && s.node == node);
        Some((quietest(all.map(|s| s.gb_s.p90))?, idle_ns))
    });
    lines_in_flight("one thread's independent random loads", found)
}

/// The round that was disturbed least: whatever disturbs takes bandwidth.
fn quietest(rounds: impl Iterator<Item = f64>) -> Option<f64> {
    rounds.max_by(f64::total_cmp)
}

/// Little's law: what is under way is throughput times latency.
fn lines_in_flight(what: &str, throughput: Option<(f64, f64)>) -> Figure<f64> {
    let Some((gb_s, idle_ns)) = throughput else {
        return Figure::new(1.0, Kind::Assumed, SOURCE, format!("{what} were not measured"));
    };
    let lines = (gb_s * idle_ns / LINE_BYTES as f64).max(1.0);
    let how = format!("Little's law: {what}, {gb_s:.2} GB/s x {idle_ns:.1} ns / {LINE_BYTES} bytes");
    Figure::new(significant(lines), Kind::Derived, SOURCE, how)
}

fn memory_of(report: &Report, node: &HostNode) -> Option<Memory> {
    let sockets = report.host.sockets.iter().map(|socket| socket.node);
    let reached = sockets.filter_map(|socket| Some((socket, idle(report, socket, node.node)?.p10)));
    let home = reached.min_by(|a, b| a.1.total_cmp(&b.1))?.0;
    Some(Memory {
        name: memory_name(node.node),
        kind: node.kind,
        socket: socket_name(home),
        capacity_bytes: measured(node.capacity_bytes, "MemTotal of the node"),
        lines_in_flight: None,
        usd_per_gib: None,
    })
}

/// Latency at rest: random order, largest footprint, the quietest of all rounds. Beside load nobody waits less than at rest, so
/// where one did, somebody else was busy when nobody should have been, and that one counts.
fn idle(report: &Report, socket: u32, node: u32) -> Option<Percentiles> {
    let loaded = report.loaded.iter().filter(move |l| l.socket == socket && l.node == node).map(|loaded| loaded.ns);
    at_rest(report, socket, node).into_iter().chain(loaded).min_by(|a, b| a.p10.total_cmp(&b.p10))
}

fn at_rest(report: &Report, socket: u32, node: u32) -> Option<Percentiles> {
    let here = || report.latencies.iter().filter(move |l| l.socket == socket && l.node == node);
    let largest = here().map(|latency| latency.footprint_bytes).max()?;
    let rounds = here().filter(|latency| latency.footprint_bytes == largest && latency.order == Order::Random);
    rounds.map(|latency| latency.ns).min_by(|a, b| a.p10.total_cmp(&b.p10))
}

fn paths_from(report: &Report, socket: &HostSocket) -> Vec<Path> {
    let nodes = report.host.nodes.iter().map(|node| node.node);
    nodes.filter_map(|node| path_of(report, socket.node, node)).collect()
}

fn path_of(report: &Report, socket: u32, node: u32) -> Option<Path> {
    let idle = idle(report, socket, node)?;
    let disturbed = at_rest(report, socket, node).is_some_and(|at_rest| at_rest.p10 > idle.p10);
    let how = format!(
        "dependent random loads on one full cycle, quietest round{}; {}",
        if disturbed { ", beside load: others disturbed those at rest" } else { "" },
        idle.words("ns")
    );
    let mut mixes: Vec<Mix> = report.bandwidths.iter().map(|b| b.mix).filter(|mix| in_curves(*mix)).collect();
    mixes.sort_by(|a, b| a.read_fraction().partial_cmp(&b.read_fraction()).unwrap_or(std::cmp::Ordering::Equal));
    mixes.dedup();
    Some(Path {
        from: socket_name(socket),
        to: memory_name(node),
        idle_ns: measured(significant(idle.p10), how),
        // In sequence the prefetchers answer: that figure is not the memory's, and random reads are `idle_ns` here.
        random_idle_ns: None,
        links: Vec::new(),
        writes_at_home: None,
        load: Load::Points(mixes.into_iter().filter_map(|mix| curve(report, socket, node, mix, idle.p10)).collect()),
    })
}

fn curve(report: &Report, socket: u32, node: u32, mix: Mix, idle_ns: f64) -> Option<Curve> {
    let loaded = quietest_curve(report, socket, node, mix);
    let raw: Vec<[f64; 2]> = loaded.iter().map(|point| [point.gb_s.p90, point.ns.p10]).collect();
    let mut points = monotone(&[&[[own_gb_s(idle_ns), idle_ns]], &raw[..]].concat());
    let peaks = report.bandwidths.iter().filter(|b| (b.socket, b.node, b.mix) == (socket, node, mix));
    let (threads, peak) = peaks.map(|b| (b.threads, &b.gb_s)).max_by(|a, b| a.1.p90.total_cmp(&b.1.p90))?;
    let mut how = format!(
        "{}: one thread of dependent loads beside {} load threads, made to rise (points past the peak dropped, \
         isotonic regression of latency); highest bandwidth: {threads} threads, {}",
        mix.words(),
        loaded.first().map_or(0, |point| point.threads),
        peak.words("GB/s"),
    );
    let last = *points.last()?;
    if last[0] < REACHED * peak.p90 {
        points.push([peak.p90, at_peak_ns(last, peak.p90, loaded.first().map_or(0, |point| point.threads))]);
        how += "; the last point's latency is derived: Little's law with one more thread's lines in flight";
    }
    let points = points.into_iter().map(|point| point.map(significant)).collect();
    let origin = Origin { kind: Kind::Measured, source: SOURCE.to_owned(), how };
    Some(Curve { read_fraction: mix.read_fraction()?, points, origin })
}

/// The points of the round that reached the most bandwidth: curves of different rounds do not mix.
fn quietest_curve(report: &Report, socket: u32, node: u32, mix: Mix) -> Vec<&Loaded> {
    let all = || report.loaded.iter().filter(move |l| (l.socket, l.node, l.mix) == (socket, node, mix));
    let best = all().max_by(|a, b| a.gb_s.p90.total_cmp(&b.gb_s.p90)).map(|point| point.round);
    all().filter(|point| Some(point.round) == best).collect()
}

/// Latency with all threads at full speed, after `last`, where one of them measured.
///
/// By Little's law `N` threads with `l` lines each in flight move `N·l·64/L` bytes a ns. So from
/// `n` threads at `[B, L]` to `n+1` at `B'`, latency becomes `L·(n+1)/n·B/B'`; never less than `L`.
fn at_peak_ns(last: [f64; 2], peak_gb_s: f64, threads: usize) -> f64 {
    let [gb_s, ns] = last;
    let more = if threads == 0 { 1.0 } else { (threads + 1) as f64 / threads as f64 };
    ns * (more * gb_s / peak_gb_s).max(1.0)
}

/// Digits of a figure in a file: finer than any measurement, and enough to keep points apart that
/// the monotone rule keeps apart.
const DIGITS: i32 = 5;

fn significant(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the exponent of a double")]
    let unit = 10_f64.powi(DIGITS - 1 - value.abs().log10().floor() as i32);
    (value * unit).round() / unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_longer_at_rest_than_beside_load() {
        let mut report = Report::of_one_socket(&[(64 << 20, 350.0)]);
        let load = |ns: f64| Loaded {
            socket: 0,
            node: 0,
            round: 0,
            mix: Mix::Reads,
            threads: 1,
            pause_ns: 0.0,
            gb_s: Percentiles::of(vec![1.0]),
            ns: Percentiles::of(vec![ns]),
        };
        let idle_ns = |report: &Report| idle(report, 0, 0).unwrap().p10;
        report.loaded.push(load(400.0));
        assert!((idle_ns(&report) - 350.0).abs() < 1e-9);
        report.loaded.push(load(236.0));
        assert!((idle_ns(&report) - 236.0).abs() < 1e-9);
        assert!(path_of(&report, 0, 0).unwrap().idle_ns.how.contains("others disturbed those at rest"));
    }

    #[test]
    fn the_last_level_cache_is_as_slow_as_the_largest_footprint_that_half_of_it_holds() {
        let ns = |latencies: &[(usize, f64)]| {
            let report = Report::of_one_socket(latencies);
            llc_ns(&report, &report.host.sockets[0]).map(|figure| figure.value)
        };
        let walked =
            [(1 << 20, 5.0), (4 << 20, 21.0), (16 << 20, 24.0), (16 << 20, 23.0), (64 << 20, 90.0), (128 << 20, 99.0)];
        assert_eq!(ns(&walked), Some(23.0));
        assert_eq!(ns(&[(1 << 20, 5.0), (128 << 20, 99.0)]), None, "no footprint between the caches");
    }

    #[test]
    fn figures_keep_five_digits() {
        assert_eq!(significant(123.456_78).to_string(), "123.46");
        assert_eq!(significant(0.012_345_67).to_string(), "0.012346");
        assert_eq!(significant(0.0).to_string(), "0");
    }

    #[test]
    fn lines_in_flight_follow_littles_law_and_are_never_less_than_one() {
        let lines = lines_in_flight("reads", Some((12.8, 100.0)));
        assert!((lines.value - 20.0).abs() < 1e-9);
        assert_eq!(lines.kind, Kind::Derived);
        assert!((lines_in_flight("reads", Some((0.1, 100.0))).value - 1.0).abs() < 1e-9);
        assert_eq!(lines_in_flight("reads", None).kind, Kind::Assumed);
    }

    #[test]
    fn one_more_thread_on_a_full_memory_waits_longer() {
        assert!((at_peak_ns([20.0, 100.0], 20.0, 1) - 200.0).abs() < 1e-9);
        assert!((at_peak_ns([20.0, 100.0], 40.0, 1) - 100.0).abs() < 1e-9);
        assert!((at_peak_ns([20.0, 100.0], 50.0, 1) - 100.0).abs() < 1e-9);
        assert!((at_peak_ns([90.0, 300.0], 100.0, 9) - 300.0).abs() < 1e-9);
    }
}
