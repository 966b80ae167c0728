//! Paths that share a memory or a link slow each other down, by their busiest station.

#![allow(clippy::unwrap_used, reason = "test data")]

use std::collections::BTreeMap;

use tierloom_contention::{ContentionError, Fabric, Station, Traffic, Work, fixed_point};
use tierloom_model::units::LINE_BYTES_F64;
use tierloom_model::{
    Figure, Form, Kind, Link, Load, Machine, MachineTag, Memory, MemoryKind, Origin, Path, Peak, Shape, Socket,
};

fn figure<T>(value: T) -> Figure<T> {
    Figure::new(value, Kind::Assumed, "test", "made up")
}

fn load(gb_s: f64, wait_ns: f64) -> Load {
    let peak = Peak::Half { read_gb_s: gb_s, write_gb_s: gb_s };
    let shape = Shape::Knee { linear_ns: 0.0, wait_ns, exponent: 1.0 };
    let origin = Origin { kind: Kind::Assumed, source: "test".to_owned(), how: String::new() };
    Load::Form(Form { peak, shape, origin })
}

fn socket(name: &str) -> Socket {
    Socket {
        name: name.to_owned(),
        cpu: "test".to_owned(),
        cores: figure(8),
        llc_bytes: figure(1 << 20),
        llc_per_core_bytes: figure(1 << 20),
        core_cache_bytes: None,
        llc_ns: None,
        stream_lines: figure(20.0),
        demand_lines: figure(10.0),
    }
}

fn memory(name: &str, socket: &str) -> Memory {
    let (name, socket) = (name.to_owned(), socket.to_owned());
    Memory {
        name,
        kind: MemoryKind::Dram,
        socket,
        capacity_bytes: figure(1 << 30),
        lines_in_flight: None,
        usd_per_gib: None,
    }
}

fn path(from: &str, to: &str, idle_ns: f64, links: &[&str], load: Load) -> Path {
    let links = links.iter().map(|link| (*link).to_owned()).collect();
    Path {
        from: from.to_owned(),
        to: to.to_owned(),
        idle_ns: figure(idle_ns),
        random_idle_ns: None,
        links,
        writes_at_home: None,
        load,
    }
}

/// A memory near, two behind one link, and one that only the other socket reaches. The remote paths'
/// own curves are all but flat, so that what they share shows.
fn machine() -> Machine {
    let flat = || load(1000.0, 0.1);
    Machine {
        host: None,
        kind: MachineTag::Machine,
        version: 1,
        name: "test".to_owned(),
        title: "shared".to_owned(),
        notes: Vec::new(),
        sources: BTreeMap::from([("test".to_owned(), "made up".to_owned())]),
        sockets: vec![socket("s0"), socket("s1")],
        memories: vec![memory("near", "s0"), memory("far", "s1"), memory("cxl", "s1"), memory("hidden", "s1")],
        links: vec![Link { name: "upi".to_owned(), gb_s_each_way: figure(50.0) }],
        paths: vec![
            path("s0", "near", 100.0, &[], load(200.0, 20.0)),
            path("s0", "far", 180.0, &["upi"], flat()),
            path("s0", "cxl", 300.0, &["upi"], flat()),
            path("s1", "far", 100.0, &[], load(60.0, 20.0)),
            path("s1", "cxl", 220.0, &[], load(20.0, 20.0)),
            path("s1", "hidden", 400.0, &[], flat()),
        ],
    }
}

fn reads(gigabytes: [f64; 4]) -> [Traffic; 4] {
    gigabytes.map(|gigabytes| Traffic { read: gigabytes * 1e9, write: 0.0 })
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

/// Rise of the test's forms at a utilisation, ns.
fn rise(wait_ns: f64, u: f64) -> f64 {
    wait_ns * u / (1.0 - u)
}

/// Little's law: 100 lines at 100 ns and more carry less than 64 GB/s.
#[test]
fn a_memory_that_takes_so_many_lines_carries_them_over_their_latency() {
    let mut limited = machine();
    limited.memories[0].lines_in_flight = Some(figure(100.0));
    let fabric = Fabric::new(&limited, 0).unwrap();
    let flow = fabric.flow(reads([100.0, 0.0, 0.0, 0.0]).into_iter());
    assert!(close(flow.least_s(), 0.5), "the path would let it through");
    let time_s = fixed_point(flow.least_s(), |seconds| flow.held_back(seconds).1);
    let latency_ns = flow.latency_ns(0, time_s);
    assert_eq!(flow.held_back(time_s).0, Some(0));
    assert!(time_s > 0.5 && (100.0 / time_s - 100.0 * LINE_BYTES_F64 / latency_ns).abs() < 1e-6, "{time_s}");
    assert_eq!(
        Fabric::new(&machine(), 0).unwrap().flow(reads([100.0, 0.0, 0.0, 0.0]).into_iter()).held_back(0.6),
        (None, 0.0)
    );
}

/// The limit is the memory's: lines from both sockets share it.
#[test]
fn sockets_share_the_lines_that_a_memory_takes() {
    let mut limited = machine();
    limited.memories[1].lines_in_flight = Some(figure(200.0));
    let fabric = Fabric::over(&limited, &[0, 1]).unwrap();
    let held =
        |over: f64, own: f64| fabric.flow(from_both(&fabric, [over, 0.0], [own, 0.0]).into_iter()).held_back(10.0);
    let (both, one, other) = (held(20.0, 10.0), held(20.0, 0.0), held(0.0, 10.0));
    assert_eq!(both.0, Some(1));
    assert!(both.1 >= one.1 + other.1, "{both:?} {one:?} {other:?}");
}

#[test]
fn random_reads_take_as_much_longer_at_any_load() {
    let mut apart = machine();
    apart.paths[0].random_idle_ns = Some(figure(140.0));
    let fabric = Fabric::new(&apart, 0).unwrap();
    let flow = fabric.flow(reads([150.0, 0.0, 0.0, 0.0]).into_iter());
    for seconds in [0.8, 1.0, f64::INFINITY] {
        let stream = flow.wait_s(0, Work { wait: 1.0, ..Work::default() }, seconds);
        let random = flow.wait_s(0, Work { wait: 1.0, random: 1.0, ..Work::default() }, seconds);
        assert!(close(stream, flow.latency_ns(0, seconds)) && close(random - stream, 40.0));
    }
}

#[test]
fn a_path_alone_has_its_own_curve() {
    let fabric = Fabric::new(&machine(), 0).unwrap();
    let flow = fabric.flow(reads([100.0, 0.0, 0.0, 0.0]).into_iter());
    assert!(close(flow.latency_ns(0, 1.0), 100.0 + rise(20.0, 0.5)));
    assert!(close(flow.latency_ns(0, f64::INFINITY), 100.0));
    assert!(close(flow.least_s(), 0.5));
    assert_eq!(flow.bottleneck(), Some(Station::Memory(0)));
}

#[test]
fn the_memory_behind_a_remote_path_waits_by_its_home_curve() {
    let fabric = Fabric::new(&machine(), 0).unwrap();
    let flow = fabric.flow(reads([0.0, 0.0, 10.0, 0.0]).into_iter());
    let (home, link) = (rise(20.0, 10.0 / 20.0), rise(LINE_BYTES_F64 / 50.0, 10.0 / 50.0));
    assert!(home > link);
    assert!(close(flow.latency_ns(2, 1.0), 300.0 + home), "the largest rise, not the sum");
    assert!(close(fabric.peak_gb_s(2, 1.0), 20.0), "and its peak is the home's");
    assert_eq!(flow.bottleneck(), Some(Station::Memory(2)));
}

#[test]
fn two_memories_behind_a_link_fill_it_together() {
    let fabric = Fabric::new(&machine(), 0).unwrap();
    let both = fabric.flow(reads([0.0, 34.0, 15.0, 0.0]).into_iter());
    let alone = fabric.flow(reads([0.0, 34.0, 0.0, 0.0]).into_iter());
    assert_eq!(both.bottleneck(), Some(Station::Link(0)));
    assert!(close(both.least_s(), 49.0 / 50.0));
    assert!(close(both.latency_ns(1, 1.0), 180.0 + rise(LINE_BYTES_F64 / 50.0, 49.0 / 50.0)));
    assert!(both.latency_ns(1, 1.0) > alone.latency_ns(1, 1.0));
}

#[test]
fn a_link_carries_reads_and_writes_in_different_directions() {
    let fabric = Fabric::new(&machine(), 0).unwrap();
    let of = |read: f64, write: f64| {
        let far = Traffic { read: read * 1e9, write: write * 1e9 };
        fabric.flow([Traffic::default(), far, Traffic::default(), Traffic::default()].into_iter()).least_s()
    };
    assert!(close(of(30.0, 30.0), 1.0), "60 GB/s of the memory, 30 GB/s each way of the link");
    assert!(close(of(60.0, 0.0), 60.0 / 50.0), "the link's one way");
}

#[test]
fn a_memory_that_no_path_reaches_takes_forever_only_when_used() {
    let fabric = Fabric::new(&machine(), 0).unwrap();
    assert!(!fabric.reaches(3) && fabric.idle_ns(3).is_infinite());
    assert!(fabric.flow(reads([1.0, 0.0, 0.0, 0.0]).into_iter()).least_s().is_finite());
    assert!(fabric.flow(reads([1.0, 0.0, 0.0, 1.0]).into_iter()).least_s().is_infinite());
    assert!(fabric.crosses(1, 0) && !fabric.crosses(0, 0));
}

#[test]
fn more_time_never_means_more_latency() {
    let fabric = Fabric::new(&machine(), 0).unwrap();
    let flow = fabric.flow(reads([150.0, 20.0, 12.0, 0.0]).into_iter());
    for memory in 0..3 {
        let ladder: Vec<f64> = (0..200).map(|step| flow.latency_ns(memory, 0.5 + f64::from(step) * 0.02)).collect();
        assert!(ladder.windows(2).all(|pair| pair[1] <= pair[0]));
    }
}

#[test]
fn a_socket_that_is_not_there_is_an_error() {
    assert_eq!(Fabric::new(&machine(), 2).unwrap_err(), ContentionError::NoSocket { socket: 2, sockets: 2 });
}

/// Traffic of both sockets on `far`, GB read and written: from the first over the link, from its own.
fn from_both(fabric: &Fabric, over: [f64; 2], own: [f64; 2]) -> Vec<Traffic> {
    let traffic = |[read, write]: [f64; 2]| Traffic { read: read * 1e9, write: write * 1e9 };
    let mut ways = vec![Traffic::default(); fabric.ways()];
    (ways[1], ways[5]) = (traffic(over), traffic(own));
    ways
}

#[test]
fn sockets_that_meet_at_a_memory_wait_for_all_of_its_traffic() {
    let fabric = Fabric::over(&machine(), &[0, 1]).unwrap();
    assert_eq!((fabric.ways(), fabric.memories(), fabric.memory_of(5)), (8, 4, 1));
    let flow = fabric.flow(from_both(&fabric, [10.0, 0.0], [20.0, 0.0]).into_iter());
    let shared = rise(20.0, 30.0 / 60.0);
    assert!(close(flow.latency_ns(1, 1.0), 180.0 + shared) && close(flow.latency_ns(5, 1.0), 100.0 + shared));
    assert!(close(flow.least_s(), 30.0 / 60.0));
    assert_eq!(flow.bottleneck(), Some(Station::Memory(1)));
}

#[test]
fn a_socket_alone_gets_what_it_gets_beside_an_idle_one() {
    let (alone, both) = (Fabric::new(&machine(), 0).unwrap(), Fabric::over(&machine(), &[0, 1]).unwrap());
    let mut ways = reads([50.0, 20.0, 5.0, 0.0]).to_vec();
    let one = alone.flow(ways.clone().into_iter());
    ways.resize(8, Traffic::default());
    let two = both.flow(ways.into_iter());
    assert!(close(one.least_s(), two.least_s()));
    assert!((0..3).all(|way| close(one.latency_ns(way, 2.0), two.latency_ns(way, 2.0))));
}

#[test]
fn what_sockets_read_from_each_other_passes_a_link_in_opposite_directions() {
    let mut wide = machine();
    wide.paths.push(path("s1", "near", 180.0, &["upi"], load(1000.0, 0.1)));
    let fabric = Fabric::over(&wide, &[0, 1]).unwrap();
    let mut ways = vec![Traffic::default(); 8];
    ways[1] = Traffic { read: 40e9, write: 0.0 };
    ways[4] = Traffic { read: 40e9, write: 5e9 };
    assert!(close(fabric.flow(ways.into_iter()).least_s(), 45.0 / 50.0), "40 one way, and beside it 5; 40 the other");
}

#[test]
fn a_directory_makes_the_other_sockets_writes_cost_the_memory_more() {
    let mut kept = machine();
    kept.paths[1].writes_at_home = Some(figure(2.0));
    let least_s = |machine: &Machine, over, own| {
        let fabric = Fabric::over(machine, &[0, 1]).unwrap();
        fabric.flow(from_both(&fabric, over, own).into_iter()).least_s()
    };
    assert!(close(least_s(&kept, [24.0, 8.0], [0.0, 0.0]), 40.0 / 60.0), "24 read, 8 written twice");
    assert!(close(least_s(&kept, [24.0, 8.0], [24.0, 8.0]), 72.0 / 60.0), "its own writes count once");
    assert!(close(least_s(&machine(), [24.0, 8.0], [0.0, 0.0]), 32.0 / 60.0));
    let far_gb_s = Fabric::new(&kept, 0).unwrap().peak_gb_s(1, 0.75);
    assert!(close(far_gb_s, 60.0 * 32.0 / 40.0), "the peak is of what the path carries");
}
