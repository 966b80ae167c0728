//! Which nodes of a host a plan's memories are: laws over all machines and hosts, and those that people have.

#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tierloom_model::{Action, HostMemory, MemoryKind, Plan, PlanMemory, PlanTag, Predicted};
use tierloom_place::{Because, MatchError, match_nodes, nodes_to_give};

const GIB: u64 = 1 << 30;

fn memory(name: &str, kind: MemoryKind, near: bool, idle_ns: f64, gib: u64) -> PlanMemory {
    let capacity_bytes = gib * GIB;
    PlanMemory { name: name.to_owned(), kind, near, capacity_bytes, idle_ns: Some(idle_ns), gb_s: Some(1e4 / idle_ns) }
}

fn node(node: u32, kind: MemoryKind, near: Option<bool>, distance: u64) -> HostMemory {
    let distance = near.map(|_| distance);
    HostMemory { node, kind, near, capacity_bytes: 64 * GIB, distance, latency_ns: None, gb_s: None }
}

/// A plan that uses some of these memories.
fn plan(memories: Vec<PlanMemory>, used: &[&str]) -> Plan {
    let nodes: Vec<String> = memories.iter().map(|memory| memory.name.clone()).collect();
    let used: Vec<String> = used.iter().map(|name| (*name).to_owned()).collect();
    Plan {
        kind: PlanTag::Plan,
        version: 1,
        machine: "m".to_owned(),
        profile: "p".to_owned(),
        policy: "x".to_owned(),
        predicted: Predicted { time_s: 1.0, low_s: 1.0, high_s: 1.0, threads: 1, bytes: vec![0; nodes.len()] },
        nodes,
        memories,
        default: if used.is_empty() { Action::FirstTouch } else { Action::Interleave(used) },
        rules: Vec::new(),
        phases: Vec::new(),
    }
}

/// A plan that says only names.
fn names(nodes: &[&str], used: &[&str]) -> Plan {
    let memories = nodes.iter().map(|name| memory(name, MemoryKind::Ssd, true, 1.0, 1)).collect();
    Plan { memories: Vec::new(), ..plan(memories, used) }
}

/// A machine of two sockets with a card on the first, in the order of its file.
fn server(used: &[&str]) -> Plan {
    let memories = vec![
        memory("rdram", MemoryKind::Dram, false, 153.0, 196),
        memory("ldram", MemoryKind::Dram, true, 85.0, 196),
        memory("cxl", MemoryKind::Cxl, true, 238.0, 128),
    ];
    plan(memories, used)
}

fn given(nodes: &[(&str, u32)]) -> BTreeMap<String, u32> {
    nodes.iter().map(|(name, node)| ((*name).to_owned(), *node)).collect()
}

fn numbers(plan: &Plan, host: &[HostMemory], by_hand: &[(&str, u32)]) -> Result<BTreeMap<String, u32>, String> {
    let found = match_nodes(plan, host, &given(by_hand)).map_err(|error| error.to_string())?;
    Ok(found.into_iter().map(|found| (found.memory, found.node)).collect())
}

fn dram_and_cxl() -> [HostMemory; 2] {
    [node(0, MemoryKind::Dram, Some(true), 10), node(1, MemoryKind::Cxl, Some(true), 24)]
}

fn two_sockets(near: [Option<bool>; 2]) -> Vec<HostMemory> {
    vec![
        node(0, MemoryKind::Dram, near[0], if near[0] == Some(true) { 10 } else { 21 }),
        node(1, MemoryKind::Dram, near[1], if near[1] == Some(true) { 10 } else { 21 }),
        node(2, MemoryKind::Cxl, Some(true), 24),
    ]
}

#[test]
fn the_commonest_box_gets_local_data_on_its_dram() {
    let found = numbers(&server(&["ldram", "cxl"]), &dram_and_cxl(), &[]);
    assert_eq!(found, Ok(given(&[("ldram", 0), ("cxl", 1)])));
}

#[test]
fn sockets_tell_dram_apart_when_the_program_runs_on_one() {
    let all = server(&["rdram", "ldram", "cxl"]);
    let on_the_second = two_sockets([Some(false), Some(true)]);
    assert_eq!(numbers(&all, &on_the_second, &[]), Ok(given(&[("ldram", 1), ("rdram", 0), ("cxl", 2)])));
    let unpinned = numbers(&all, &two_sockets([None, None]), &[]).unwrap_err();
    assert!(unpinned.contains("several sockets") && unpinned.contains("--node rdram=0 --node ldram=1"), "{unpinned}");
    let half = numbers(&all, &two_sockets([None, None]), &[("ldram", 0)]);
    assert_eq!(half, Ok(given(&[("ldram", 0), ("rdram", 1), ("cxl", 2)])));
}

#[test]
fn nodes_that_are_to_be_given_are_accepted() {
    let one = [node(0, MemoryKind::Dram, Some(true), 10)];
    let (all, near) = (server(&["rdram", "ldram", "cxl"]), server(&["ldram"]));
    for (plan, host) in [(&all, one.as_slice()), (&all, &two_sockets([None, None])), (&near, &one)] {
        let by_hand = nodes_to_give(plan, host);
        assert!(match_nodes(plan, host, &by_hand).is_ok(), "{by_hand:?}");
    }
    assert_eq!(nodes_to_give(&all, &one), given(&[("rdram", 0), ("cxl", 0)]));
    assert!(nodes_to_give(&near, &one).is_empty());
}

#[test]
fn what_is_not_here_is_refused_with_the_options_to_type() {
    let one = [node(0, MemoryKind::Dram, Some(true), 10)];
    let refused = numbers(&server(&["rdram", "ldram", "cxl"]), &one, &[]).unwrap_err();
    assert!(refused.contains("rdram: dram; no node of its kind is on another socket"), "{refused}");
    assert!(refused.contains("cxl: cxl; this machine has no node of its kind"), "{refused}");
    assert!(refused.ends_with("hint: say which nodes to take: --node rdram=0 --node cxl=0"), "{refused}");
    let rehearsed = numbers(&server(&["rdram", "ldram", "cxl"]), &one, &[("rdram", 0), ("cxl", 0)]);
    assert_eq!(rehearsed, Ok(given(&[("ldram", 0), ("rdram", 0), ("cxl", 0)])));
}

#[test]
fn a_card_that_is_alone_needs_no_socket() {
    let mut host = dram_and_cxl();
    host[1].near = Some(false);
    assert_eq!(numbers(&server(&["cxl"]), &host, &[]), Ok(given(&[("cxl", 1)])));
}

#[test]
fn cards_are_told_apart_by_the_first_figure_that_can() {
    let cards = |used: &[&str]| {
        let fast = memory("fast", MemoryKind::Cxl, true, 200.0, 64);
        plan(vec![fast, memory("slow", MemoryKind::Cxl, true, 400.0, 256)], used)
    };
    let host = |latency_ns: [Option<f64>; 2], gib: [u64; 2]| {
        let card = |at: usize| HostMemory {
            latency_ns: latency_ns[at],
            capacity_bytes: gib[at] * GIB,
            ..node([1, 2][at], MemoryKind::Cxl, Some(true), 24)
        };
        [node(0, MemoryKind::Dram, Some(true), 10), card(0), card(1)]
    };
    let because =
        |host: &[HostMemory]| match_nodes(&cards(&["slow"]), host, &BTreeMap::new()).map(|found| found[0].clone());
    let by_latency = because(&host([Some(500.0), Some(250.0)], [64, 256])).unwrap();
    assert_eq!((by_latency.node, by_latency.because), (1, Because::Latency));
    let by_capacity = because(&host([None, None], [256, 64])).unwrap();
    assert_eq!((by_capacity.node, by_capacity.because), (1, Because::Capacity));
    let twins = because(&host([None, None], [64, 65])).unwrap_err().to_string();
    assert!(
        twins.contains("nothing tells") && twins.contains("--node slow=1; others that may be meant: --node slow=2")
    );
}

#[test]
fn a_node_must_hold_what_the_plan_places_in_it() {
    let mut large = server(&["ldram", "cxl"]);
    large.predicted.bytes = vec![0, GIB, 65 * GIB];
    let refused = numbers(&large, &dram_and_cxl(), &[]).unwrap_err();
    assert!(refused.contains("the plan places 65GiB in it, node 1 has 64GiB"), "{refused}");
    assert!(numbers(&large, &dram_and_cxl(), &[("cxl", 1)]).is_ok(), "who says so knows it");
}

#[test]
fn without_a_table_names_tell_kinds_and_position_counts_where_all_are_alike() {
    let old = |used: &[&str]| names(&["rdram", "ldram", "cxl"], used);
    assert_eq!(numbers(&old(&["ldram", "cxl"]), &dram_and_cxl(), &[]), Ok(given(&[("ldram", 0), ("cxl", 1)])));
    assert!(numbers(&old(&["rdram", "ldram"]), &dram_and_cxl(), &[]).unwrap_err().contains("more of this kind"));
    let nameless = names(&["a", "b"], &["a", "b"]);
    let both = [node(0, MemoryKind::Dram, None, 10), node(3, MemoryKind::Dram, None, 10)];
    assert_eq!(numbers(&nameless, &both, &[]), Ok(given(&[("a", 0), ("b", 3)])));
    let refused = numbers(&nameless, &dram_and_cxl(), &[]).unwrap_err();
    assert!(refused.contains("does not say what it is") && refused.contains("--node a=0 --node b=1"), "{refused}");
    assert!(numbers(&names(&["dram", "cxl"], &["cxl"]), &both, &[]).is_err(), "a name that says cxl is no dram");
    assert!(numbers(&names(&["cxl-or-dram"], &["cxl-or-dram"]), &both, &[]).is_err());
}

#[test]
fn what_is_given_must_exist() {
    let unknown = match_nodes(&server(&[]), &dram_and_cxl(), &given(&[("hbm", 0)]));
    assert!(matches!(unknown, Err(MatchError::UnknownMemory { .. })), "{unknown:?}");
    let nowhere = numbers(&server(&[]), &dram_and_cxl(), &[("cxl", 7)]).unwrap_err();
    assert!(nowhere.contains("--node cxl=7: this machine has no node 7"), "{nowhere}");
    assert_eq!(numbers(&server(&[]), &dram_and_cxl(), &[]), Ok(BTreeMap::new()), "nothing is used");
}

fn kind() -> impl Strategy<Value = MemoryKind> {
    prop_oneof![Just(MemoryKind::Dram), Just(MemoryKind::Cxl), Just(MemoryKind::Hbm)]
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let one = (kind(), any::<bool>(), 50.0f64..500.0, 1u64..512, any::<bool>());
    (prop::collection::vec(one, 1..5), any::<bool>()).prop_map(|(all, table)| {
        let name = |at: usize, kind: MemoryKind| format!("{kind}{at}");
        let used: Vec<String> =
            all.iter().enumerate().filter(|(_, one)| one.4).map(|(at, one)| name(at, one.0)).collect();
        let one = |(at, (kind, near, ns, gib, _)): (usize, &_)| memory(&name(at, *kind), *kind, *near, *ns, *gib);
        let made =
            plan(all.iter().enumerate().map(one).collect(), &used.iter().map(String::as_str).collect::<Vec<_>>());
        if table { made } else { Plan { memories: Vec::new(), ..made } }
    })
}

fn any_host() -> impl Strategy<Value = Vec<HostMemory>> {
    let figures = (prop::option::of(50.0f64..500.0), prop::option::of(10.0f64..400.0));
    let one = (kind(), prop::option::of(any::<bool>()), 10u64..40, 1u64..512, figures);
    prop::collection::vec(one, 1..5).prop_map(|all| {
        let one = |(at, (kind, near, distance, gib, (latency_ns, gb_s))): (usize, _)| HostMemory {
            capacity_bytes: gib * GIB,
            latency_ns,
            gb_s,
            ..node(u32::try_from(at).unwrap() * 2, kind, near, distance)
        };
        all.into_iter().enumerate().map(one).collect()
    })
}

proptest! {
    #[test]
    fn a_match_by_itself_is_of_one_kind_and_nobody_shares_a_node(plan in any_plan(), host in any_host()) {
        let Ok(found) = match_nodes(&plan, &host, &BTreeMap::new()) else { return Ok(()) };
        let names: BTreeSet<&str> = found.iter().map(|found| found.memory.as_str()).collect();
        prop_assert_eq!(names, plan.used_memories());
        let nodes: BTreeSet<u32> = found.iter().map(|found| found.node).collect();
        prop_assert_eq!(nodes.len(), found.len());
        for found in &found {
            prop_assert!(found.memory.starts_with(&found.kind.to_string()), "{found:?}");
        }
    }

    /// A host whose nodes are numbered otherwise is the same host.
    #[test]
    fn position_of_a_node_does_not_matter(plan in any_plan(), host in any_host(), turn in 0usize..4) {
        prop_assume!(!plan.memories.is_empty());
        let mut other = host.clone();
        let count = other.len();
        other.rotate_left(turn % count);
        let numbers = |host: &[HostMemory]| match_nodes(&plan, host, &BTreeMap::new()).ok();
        prop_assert_eq!(numbers(&host), numbers(&other));
    }

    #[test]
    fn what_a_refusal_says_to_type_is_taken(plan in any_plan(), host in any_host(), choice in 0usize..4) {
        let Err(MatchError::Refused { open, .. }) = match_nodes(&plan, &host, &BTreeMap::new()) else { return Ok(()) };
        for each in &open {
            prop_assert!(!each.nodes.is_empty());
        }
        let typed: BTreeMap<String, u32> =
            open.iter().map(|each| (each.memory.clone(), each.nodes[choice % each.nodes.len()])).collect();
        let found = match_nodes(&plan, &host, &typed);
        prop_assert!(found.is_ok(), "{typed:?}: {found:?}");
        for found in found.unwrap() {
            prop_assert!(typed.get(&found.memory).is_none_or(|node| *node == found.node));
        }
    }
}
