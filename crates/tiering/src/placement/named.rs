//! Placements by name: what is asked of the kernel for each region before the run.
//!
//! Object-level interleaving comes in the three forms that a user can build, because they differ in
//! what may migrate: interleaved by `mbind` with the rest at the built-in default (the rest migrates),
//! with the rest under `numactl --preferred` (nothing migrates), and placed page by page and bound with
//! `MPOL_F_NUMA_BALANCING` (everything migrates).

use std::collections::BTreeMap;

use tierloom_model::units::PAGE_BYTES_F64;
use tierloom_model::{Action, Plan, Socket};

use crate::error::{Result, TieringError};
use crate::kernel::nodes::Nodes;
use crate::kernel::vma::{VmaPolicy, Weight};
use crate::workload::demand::work_of;
use crate::workload::{Phase, Stream, Workload};

/// Least share of the footprint of an object that is interleaved; published (arXiv 2405.14209).
const LARGE: f64 = 0.1;
/// Share of the large objects' traffic that those carry; the study does not say, assumed.
const MOST: f64 = 0.8;

/// Shapes of the names that [`by_name`] reads.
pub const NAMES: &str = "first-touch, local, preferred:NODE, bind:NODE+…, bind-balancing:NODE+…, interleave[:NODE+…], \
                         interleave-migratable[:NODE+…], weighted:NODE=W+…, object-interleave[:NODE+…], \
                         object-interleave-preferred[:NODE+…], object-interleave-migratable[:NODE+…], soar";

/// What the rest of an object-level interleaving gets, and how the interleaved part is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Default,
    Preferred,
    Migratable,
}

/// Policies of all regions by the name of a placement.
///
/// # Errors
/// [`TieringError::BadRequest`] for a name, a node or a weight that is none.
pub(crate) fn by_name(name: &str, workload: &Workload, nodes: &Nodes, socket: &Socket) -> Result<Vec<VmaPolicy>> {
    let (kind, list) = name.split_once(':').map_or((name, None), |(kind, list)| (kind, Some(list)));
    let all: Vec<usize> = (0..nodes.len()).collect();
    let over = || list.map_or(Ok(all.clone()), |list| list.split('+').map(|node| nodes.find(node)).collect());
    let even = |nodes: Vec<usize>| nodes.into_iter().map(Weight::of).collect::<Vec<_>>();
    let everywhere = |policy: VmaPolicy| Ok(vec![policy; workload.regions.len()]);
    match (kind, list) {
        ("first-touch", None) => everywhere(VmaPolicy::Default),
        ("local", None) => everywhere(VmaPolicy::Local),
        ("preferred", _) => everywhere(VmaPolicy::Preferred(list.map_or(Ok(0), |node| nodes.find(node))?)),
        ("bind", Some(_)) => everywhere(VmaPolicy::Bind { nodes: over()?, balancing: false }),
        ("bind-balancing", _) => everywhere(VmaPolicy::Bind { nodes: over()?, balancing: true }),
        ("interleave", _) => everywhere(VmaPolicy::Interleave { weights: even(over()?) }),
        ("interleave-migratable", _) => everywhere(VmaPolicy::Placed { weights: even(over()?), balancing: true }),
        ("weighted", Some(list)) => everywhere(VmaPolicy::Interleave { weights: weights(list, nodes)? }),
        ("object-interleave", _) => Ok(object_level(workload, socket, even(over()?), Rest::Default)),
        ("object-interleave-preferred", _) => Ok(object_level(workload, socket, even(over()?), Rest::Preferred)),
        ("object-interleave-migratable", _) => Ok(object_level(workload, socket, even(over()?), Rest::Migratable)),
        ("soar", None) => Ok(soar(workload, nodes, socket)),
        _ => {
            let problem = format!("there is no placement `{name}`");
            Err(TieringError::request("placement", problem, format!("use one of: {NAMES}")))
        }
    }
}

/// The placement of a plan file: its rules by the names of objects.
///
/// # Errors
/// [`TieringError::BadRequest`] for a node that is not in use.
pub(crate) fn from_plan(plan: &Plan, workload: &Workload, nodes: &Nodes) -> Result<Vec<VmaPolicy>> {
    let mut rules = BTreeMap::new();
    for rule in &plan.rules {
        // The first rule of an object holds.
        rules.entry(rule.object.as_str()).or_insert(&rule.place);
    }
    let action_of = |name: &str| rules.get(name).map_or(&plan.default, |place| *place);
    workload.regions.iter().map(|region| policy_of(action_of(&region.name), nodes)).collect()
}

fn policy_of(action: &Action, nodes: &Nodes) -> Result<VmaPolicy> {
    let named = |list: &[String]| list.iter().map(|name| nodes.find(name)).collect::<Result<Vec<usize>>>();
    Ok(match action {
        Action::FirstTouch => VmaPolicy::Default,
        Action::Bind(list) => VmaPolicy::Bind { nodes: named(list)?, balancing: false },
        Action::PreferMany(list) => VmaPolicy::PreferredMany(named(list)?),
        Action::Prefer(node) => VmaPolicy::Preferred(nodes.find(node)?),
        Action::Interleave(list) => {
            VmaPolicy::Interleave { weights: named(list)?.into_iter().map(Weight::of).collect() }
        }
        Action::Weighted(weights) => {
            let weight = |(name, weight): (&String, &u32)| {
                nodes.find(name).map(|node| Weight { node, pages: f64::from(*weight) })
            };
            VmaPolicy::Interleave { weights: weights.iter().map(weight).collect::<Result<_>>()? }
        }
    })
}

fn weights(list: &str, nodes: &Nodes) -> Result<Vec<Weight>> {
    let weight = |part: &str| {
        let (name, weight) = part.split_once('=').unwrap_or((part, ""));
        match weight.parse::<u8>() {
            Ok(weight @ 1..) => Ok(Weight { node: nodes.find(name)?, pages: f64::from(weight) }),
            _ => Err(TieringError::request(
                "placement",
                format!("`{part}` is not a node with a weight of 1 to 255"),
                format!("write for example weighted:{}=3", nodes.list[0].name),
            )),
        }
    };
    list.split('+').map(weight).collect()
}

/// Bytes to and from memory, and waiting, of each region over all phases.
fn demands(workload: &Workload, socket: &Socket) -> Vec<Demand> {
    let demand = |streams: &Vec<(&Phase, &Stream)>| {
        streams.iter().fold(Demand::default(), |sum, (phase, stream)| {
            let work = work_of(stream, phase, socket);
            Demand { bytes: sum.bytes + work.read + work.write, wait: sum.wait + work.wait }
        })
    };
    workload.streams_by_region().iter().map(demand).collect()
}

/// What a region asks of memory over all phases.
#[derive(Debug, Clone, Copy, Default)]
struct Demand {
    bytes: f64,
    wait: f64,
}

/// The fewest large objects that carry most of their traffic.
fn chosen(workload: &Workload, socket: &Socket) -> Vec<usize> {
    let least = LARGE * workload.footprint_bytes() as f64;
    let demands = demands(workload, socket);
    let traffic = |region: &usize| demands[*region].bytes;
    let mut large: Vec<usize> = (0..workload.regions.len())
        .filter(|region| workload.regions[*region].size_bytes as f64 >= least && traffic(region) > 0.0)
        .collect();
    large.sort_by(|a, b| traffic(b).total_cmp(&traffic(a)));
    let enough = MOST * large.iter().map(traffic).sum::<f64>();
    let mut carried = 0.0;
    large.retain(|region| {
        let needed = carried < enough;
        carried += traffic(region);
        needed
    });
    large
}

fn object_level(workload: &Workload, socket: &Socket, weights: Vec<Weight>, rest: Rest) -> Vec<VmaPolicy> {
    let chosen = chosen(workload, socket);
    let others = if rest == Rest::Preferred { VmaPolicy::Preferred(0) } else { VmaPolicy::Default };
    let interleaved = match rest {
        Rest::Migratable => VmaPolicy::Placed { weights, balancing: true },
        Rest::Default | Rest::Preferred => VmaPolicy::Interleave { weights },
    };
    let policy = |region: usize| if chosen.contains(&region) { interleaved.clone() } else { others.clone() };
    (0..workload.regions.len()).map(policy).collect()
}

/// Soar (OSDI'25): objects by waiting per byte, best first, into fast memory; the rest below.
fn soar(workload: &Workload, nodes: &Nodes, socket: &Socket) -> Vec<VmaPolicy> {
    let pages = |region: usize| workload.regions[region].size_bytes as f64 / PAGE_BYTES_F64;
    let demands = demands(workload, socket);
    let score = |region: &usize| demands[*region].wait / pages(*region);
    let mut order: Vec<usize> = (0..workload.regions.len()).collect();
    order.sort_by(|a, b| score(b).total_cmp(&score(a)));
    let mut free = nodes.list[0].pages - nodes.list[0].spills_at();
    let mut policies =
        vec![VmaPolicy::Preferred(nodes.list[0].demotion.unwrap_or(nodes.len() - 1)); workload.regions.len()];
    for region in order {
        if pages(region) <= free {
            free -= pages(region);
            policies[region] = VmaPolicy::Preferred(0);
        }
    }
    policies
}
