//! Some machines, profiles and plans: good ones by proptest, and one small file of each.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tierloom_model::{
    Access, Action, Curve, DataSource, Figure, Form, Frame, Kind, Link, Load, Machine, MachineTag, Memory, MemoryKind,
    Object, ObjectKind, Origin, Path, Pattern, Peak, Phase, PhaseMove, Plan, PlanMemory, PlanPhase, PlanTag, Predicted,
    Profile, ProfileTag, Program, Rule, RuleOptions, Selector, Shape, Share, Site, Socket, Unattributed, Within,
};

fn figure<T: std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Figure<T>> {
    let kind = prop_oneof![Just(Kind::Measured), Just(Kind::Published), Just(Kind::Derived), Just(Kind::Assumed)];
    (value, kind, "[ -~]{0,12}").prop_map(|(value, kind, how)| Figure::new(value, kind, "paper", how))
}

fn origin() -> Origin {
    Origin { kind: Kind::Published, source: "paper".to_owned(), how: String::new() }
}

fn curve_points() -> impl Strategy<Value = Vec<[f64; 2]>> {
    let steps = prop::collection::vec((0.01f64..40.0, 0.0f64..80.0), 2..8);
    (50.0f64..300.0, steps).prop_map(|(idle_ns, steps)| {
        let mut at = [0.0, idle_ns];
        steps
            .into_iter()
            .map(|(gb_s, ns)| {
                at = [at[0] + gb_s, at[1] + ns];
                at
            })
            .collect()
    })
}

fn load() -> impl Strategy<Value = Load> {
    let points = (0.0f64..0.5, curve_points(), curve_points()).prop_map(|(read_fraction, low, high)| {
        let curve = |read_fraction, points| Curve { read_fraction, points, origin: origin() };
        Load::Points(vec![curve(read_fraction, low), curve(1.0, high)])
    });
    let shape = prop_oneof![
        (0.0f64..50.0, 0.0f64..30.0, 1.0f64..20.0).prop_map(|(linear_ns, wait_ns, exponent)| Shape::Knee {
            linear_ns,
            wait_ns,
            exponent
        }),
        (0.0f64..50.0, 0.1f64..3.0, 0.1f64..2.0).prop_map(|(rise_ns, exponent, wall)| Shape::Power {
            rise_ns,
            exponent,
            wall
        }),
    ];
    let peak = prop_oneof![
        (1.0f64..500.0, 1.0f64..500.0).prop_map(|(read_gb_s, write_gb_s)| Peak::Half { read_gb_s, write_gb_s }),
        (1.0f64..60.0, 1.0f64..60.0, 1.0f64..90.0, 1.0f64..8.0).prop_map(
            |(read_gb_s, write_gb_s, combined_gb_s, sharpness)| Peak::Full {
                read_gb_s,
                write_gb_s,
                combined_gb_s,
                sharpness
            }
        ),
    ];
    prop_oneof![points, (peak, shape).prop_map(|(peak, shape)| Load::Form(Form { peak, shape, origin: origin() }))]
}

fn socket() -> impl Strategy<Value = Socket> {
    (figure(1u32..256), figure(1u64..1 << 40), figure(1u64..1 << 30), figure(1.0f64..90.0), figure(1.0f64..20.0))
        .prop_map(|(cores, llc_bytes, llc_per_core_bytes, stream_lines, demand_lines)| Socket {
            name: "socket0".to_owned(),
            cpu: "a processor".to_owned(),
            core_cache_bytes: (cores.value % 2 == 1).then(|| Figure::new(1 << 20, Kind::Measured, "paper", "")),
            llc_ns: (cores.value % 2 == 1).then(|| Figure::new(31.5, Kind::Measured, "paper", "")),
            cores,
            llc_bytes,
            llc_per_core_bytes,
            stream_lines,
            demand_lines,
        })
}

fn memory(name: &str, kind: MemoryKind) -> impl Strategy<Value = Memory> + use<> {
    let name = name.to_owned();
    let lines = prop::option::of(figure(1.0f64..2000.0));
    (figure(1u64..1 << 45), lines, prop::option::of(figure(0.1f64..50.0))).prop_map(
        move |(capacity_bytes, lines_in_flight, usd_per_gib)| Memory {
            name: name.clone(),
            kind,
            socket: "socket0".to_owned(),
            capacity_bytes,
            lines_in_flight,
            usd_per_gib,
        },
    )
}

fn path(to: &str, links: Vec<String>) -> impl Strategy<Value = Path> + use<> {
    let to = to.to_owned();
    let writes = prop::option::of(figure(1.0f64..3.0));
    let random = prop::option::of(figure(900.0f64..2000.0));
    (figure(20.0f64..900.0), random, writes, load()).prop_map(move |(idle_ns, random_idle_ns, writes_at_home, load)| {
        Path {
            from: "socket0".to_owned(),
            to: to.clone(),
            idle_ns,
            random_idle_ns,
            links: links.clone(),
            writes_at_home,
            load,
        }
    })
}

pub(crate) fn machine() -> impl Strategy<Value = Machine> {
    let near = (memory("dram", MemoryKind::Dram), path("dram", Vec::new()));
    let far = (memory("cxl", MemoryKind::Cxl), path("cxl", vec!["upi".to_owned()]));
    ("[a-z-]{1,9}", "\\PC{0,20}", socket(), near, far, figure(1.0f64..200.0)).prop_map(
        |(name, title, socket, near, far, gb_s_each_way)| Machine {
            host: None,
            kind: MachineTag::Machine,
            version: 1,
            name,
            title,
            notes: vec!["a note".to_owned()],
            sources: BTreeMap::from([("paper".to_owned(), "A Paper, 2024".to_owned())]),
            sockets: vec![socket],
            memories: vec![near.0, far.0],
            links: vec![Link { name: "upi".to_owned(), gb_s_each_way }],
            paths: vec![near.1, far.1],
        },
    )
}

fn frame() -> impl Strategy<Value = Frame> {
    ("[a-z.+@-]{1,9}", "[0-9a-f]{0,8}", any::<u64>(), prop::option::of("[a-z:]{1,9}")).prop_map(
        |(module, build_id, offset, function)| Frame { module, build_id, offset, function, ..Frame::default() },
    )
}

fn site() -> impl Strategy<Value = Site> {
    prop_oneof![
        prop::collection::vec(frame(), 1..5).prop_map(Site::Stack),
        "[a-z]{1,9}".prop_map(|symbol| Site::Symbol { module: "app".to_owned(), symbol }),
        "[a-z/]{1,9}".prop_map(Site::File),
        "[a-z]{1,9}".prop_map(Site::Name),
    ]
}

fn object(name: String) -> impl Strategy<Value = Object> {
    (site(), 0u64..1 << 57, 1u64..1 << 40, 0.0f64..9.0, 0.0f64..9.0, 0.0f64..1.0, prop::option::of(0.0f64..9.0))
        .prop_map(move |(site, size_bytes, allocations, first_s, more_s, share, filled_s)| Object {
            name: name.clone(),
            kind: ObjectKind::Heap,
            site,
            line: (size_bytes % 5 == 0).then(|| "app.c:7".to_owned()),
            size_bytes,
            address_bytes: (size_bytes % 3 == 0).then_some(size_bytes.saturating_mul(2).min(1 << 57)),
            allocations,
            first_s,
            last_s: first_s + more_s,
            accesses: None,
            first_touch_s: first_s,
            populated_s: filled_s.map(|seconds| first_s + seconds),
            stall: Some(Share { share, low: share / 2.0, high: share.sqrt() }),
            data_source: (size_bytes % 2 == 0).then_some(DataSource {
                remote: share,
                shared: share / 2.0,
                load_cycles: Some(first_s),
                store_cycles: None,
            }),
            hotness: Vec::new(),
            miss_curve: Vec::new(),
            origin: None,
        })
}

fn access(object: &str) -> impl Strategy<Value = Access> + use<> {
    let object = object.to_owned();
    let pattern =
        prop_oneof![Just(Pattern::Stream), Just(Pattern::Strided), Just(Pattern::Random), Just(Pattern::Chain)];
    (pattern, prop::collection::vec(0.0f64..1e15, 6), 0.5f64..60.0).prop_map(move |(pattern, counts, mlp)| Access {
        wait_s: None,
        wait_factor: None,
        traffic_within: Some(Within { low: 1.0 / mlp.max(1.0), high: 1.0 + mlp }),
        object: object.clone(),
        pattern,
        reads: counts[0],
        writes: counts[1],
        read_bytes: counts[2],
        write_bytes: counts[3],
        dram_read_bytes: counts[4],
        dram_write_bytes: counts[5],
        mlp,
        touched: None,
        origin: Some(origin()),
    })
}

pub(crate) fn profile() -> impl Strategy<Value = Profile> {
    let objects = (object("a".to_owned()), object("b".to_owned()));
    let accesses = (access("a"), access("b"), access("b"));
    (objects, accesses, 1u32..512, 0.0f64..1e5).prop_map(|(objects, accesses, threads, seconds)| Profile {
        kind: ProfileTag::Profile,
        version: 1,
        name: "app".to_owned(),
        program: Program {
            command: vec!["./app".to_owned(), "-n 3".to_owned()],
            exit_code: Some(0),
            signal: None,
            wall_s: seconds,
            system_s: None,
            queued_s: None,
            held_s: None,
            sampled_s: None,
            unprofiled_s: vec![1.0, 1.1],
            objects_bytes: Some(77),
            host: None,
            cpu_s: seconds * 2.0,
            threads,
            cpu: "a processor".to_owned(),
            llc_bytes: 1 << 25,
            memory_ns: Some(98.7),
        },
        sources: BTreeMap::from([("paper".to_owned(), "A Paper, 2024".to_owned())]),
        objects: vec![objects.0, objects.1],
        phases: vec![Phase {
            idle_s: None,
            meeting_s: None,
            in_regions: None,
            name: "whole".to_owned(),
            start_s: 0.0,
            end_s: seconds,
            threads,
            compute_s: seconds,
            accesses: vec![accesses.0, accesses.1, accesses.2],
        }],
        unattributed: vec![Unattributed {
            name: "[compute]".to_owned(),
            stall: Share { share: 0.1, low: 0.05, high: 0.2 },
        }],
        sampling: None,
    })
}

fn selector() -> impl Strategy<Value = Selector> {
    prop_oneof![
        prop::collection::vec(frame().prop_map(|frame| frame.to_string()), 1..5).prop_map(Selector::Stack),
        "[a-z:]{1,9}".prop_map(Selector::Symbol),
        "[a-z/]{1,9}".prop_map(Selector::File),
        any::<u32>().prop_map(|bytes| Selector::SizeAtLeast(u64::from(bytes))),
        "[a-z]{1,9}".prop_map(Selector::Name),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(Action::FirstTouch),
        Just(Action::Bind(vec!["dram".to_owned(), "cxl".to_owned()])),
        Just(Action::Prefer("cxl".to_owned())),
        Just(Action::PreferMany(vec!["cxl".to_owned(), "dram".to_owned()])),
        Just(Action::Interleave(vec!["dram".to_owned(), "cxl".to_owned()])),
        (1u32..256, 1u32..256).prop_map(|(dram, cxl)| Action::Weighted(BTreeMap::from([
            ("dram".to_owned(), dram),
            ("cxl".to_owned(), cxl)
        ]))),
    ]
}

fn options() -> impl Strategy<Value = RuleOptions> {
    let unit = prop::option::of((12u32..31).prop_map(|shift| 1_u64 << shift));
    (any::<bool>(), any::<Option<bool>>(), unit).prop_map(|(hold, hint_faults, unit_bytes)| RuleOptions {
        hold,
        hint_faults,
        unit_bytes,
    })
}

fn phase(object: &str, start_s: f64, place: Action) -> PlanPhase {
    let moves = vec![PhaseMove { object: object.to_owned(), place }];
    PlanPhase { name: "later".to_owned(), start_s, gain_s: start_s / 2.0, moves }
}

/// A table of what the plan's two memories are, or none.
fn plan_memories() -> impl Strategy<Value = Vec<PlanMemory>> {
    let figures = (any::<bool>(), 1..=i64::MAX as u64, prop::option::of(1e-3f64..1e6), prop::option::of(1e-3f64..1e6));
    let memory = |name: &str, kind, (near, capacity_bytes, idle_ns, gb_s)| {
        let name = name.to_owned();
        PlanMemory { name, kind, near, capacity_bytes, idle_ns, gb_s }
    };
    prop::option::of((figures.clone(), figures)).prop_map(move |both| {
        let both = both.map(|(a, b)| vec![memory("dram", MemoryKind::Dram, a), memory("cxl", MemoryKind::Cxl, b)]);
        both.unwrap_or_default()
    })
}

pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let rule = ("[a-z]{1,9}", any::<u32>(), selector(), action(), options()).prop_map(
        |(object, size_bytes, select, place, options)| Rule {
            object,
            size_bytes: u64::from(size_bytes),
            select,
            place,
            options,
        },
    );
    let parts = (action(), prop::collection::vec(rule, 0..6), 0.0f64..1e6, action(), plan_memories());
    parts.prop_map(|(default, rules, time_s, place, memories)| Plan {
        phases: rules.first().map(|rule: &Rule| phase(&rule.object, time_s, place)).into_iter().collect(),
        kind: PlanTag::Plan,
        version: 1,
        machine: "box".to_owned(),
        profile: "app".to_owned(),
        policy: "tierloom".to_owned(),
        nodes: vec!["dram".to_owned(), "cxl".to_owned()],
        memories,
        predicted: Predicted { time_s, low_s: time_s * 0.9, high_s: time_s * 1.1, threads: 2, bytes: vec![1, 2] },
        default,
        rules,
    })
}

/// A machine file as a person would write it.
pub(crate) fn small_machine_text() -> String {
    r#"version = 1
name = "box"
title = "a small machine"
[sources]
paper = "A Paper, 2024"
[[sockets]]
name = "socket0"
cpu = "a processor"
cores = { value = 8, kind = "published", source = "paper" }
llc_bytes = { value = 33554432, kind = "published", source = "paper" }
llc_per_core_bytes = { value = 33554432, kind = "published", source = "paper" }
stream_lines = { value = 40.0, kind = "assumed", source = "paper", how = "typical" }
demand_lines = { value = 12.0, kind = "assumed", source = "paper", how = "typical" }
[[memories]]
name = "dram"
kind = "dram"
socket = "socket0"
capacity_bytes = { value = 1073741824, kind = "published", source = "paper" }
[[memories]]
name = "cxl"
kind = "cxl"
socket = "socket0"
capacity_bytes = { value = 1073741824, kind = "published", source = "paper" }
[[links]]
name = "upi"
gb_s_each_way = { value = 60.0, kind = "published", source = "paper" }
[[paths]]
from = "socket0"
to = "dram"
idle_ns = { value = 90.0, kind = "published", source = "paper" }
[[paths.load.points]]
read_fraction = 1.0
points = [[0.0, 90.0], [10.0, 100.0], [20.0, 140.0]]
origin = { kind = "published", source = "paper" }
[[paths]]
from = "socket0"
to = "cxl"
idle_ns = { value = 250.0, kind = "published", source = "paper" }
links = ["upi"]
[paths.load.form]
origin = { kind = "published", source = "paper" }
peak.full = { read_gb_s = 27.0, write_gb_s = 23.0, combined_gb_s = 54.0, sharpness = 4.5 }
shape.knee = { linear_ns = 12.0, wait_ns = 0.1, exponent = 1.5 }
"#
    .to_owned()
}

/// A plan file as a person would write it.
pub(crate) fn small_plan_text() -> String {
    r#"version = 1
machine = "box"
profile = "app"
policy = "tierloom"
nodes = ["dram", "cxl"]
default = "first_touch"
[predicted]
time_s = 1.0
low_s = 0.9
high_s = 1.1
threads = 2
bytes = [1, 2]
[[rules]]
object = "u"
size_bytes = 4096
select.stack = ["app@ab12+0x40"]
place.weighted = { cxl = 1, dram = 3 }
"#
    .to_owned()
}
