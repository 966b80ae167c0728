//! `tierloom`: object-level placement that migrates only when the predicted gain pays.
//!
//! Before the run, every object (or the part of one that is visited alike) gets its own share of each
//! memory: where misses wait most per byte and per GB/s (`frank_wolfe.rs`). At the start of a phase that
//! behaves otherwise, pages move only if `Δ = T_stay - T_moved`, over the phase, is more than twice what
//! moving them costs: two copies of each page's traffic and the shootdowns. Nothing
//! moves within a phase, so a placement is never worked against.

use tierloom_contention::Work;
use tierloom_model::units::NS;

use super::frank_wolfe::{Problem, Shares, best};
use super::named;
use crate::cohort::{self, Cohort, Cohorts, Rate, chunk_pages};
use crate::engine::host::Setup;
use crate::engine::layout::Layout;
use crate::engine::page_state::PageState;
use crate::error::Result;
use crate::kernel::vma::{VmaPolicy, Weight};
use crate::outcome::Outcome;
use crate::policy::{self, Move};
use crate::request::{OURS, Request, Setting};
use crate::workload::{Phase, Workload};

const ABOUT: &str = "each object where its misses cost least, searched; moves between phases only when it pays twice";
/// A move has to bring this many times what it costs.
const PAYS: f64 = 2.0;

/// Cohorts that are visited alike in every phase; the search places each as a whole.
struct Units {
    /// Unit of each cohort.
    of: Vec<usize>,
    pages: Vec<f64>,
}

/// Searches a placement, then simulates it.
pub(crate) fn simulate(workload: &Workload, setting: &Setting<'_>, request: &Request) -> Result<Outcome> {
    let policies = vec![VmaPolicy::Placed { weights: vec![Weight::of(0)], balancing: false }; workload.regions.len()];
    let layout = Layout::new(workload, &policies);
    let cohorts = Cohorts::new(workload, &layout, chunk_pages(&layout));
    let rates: Vec<Vec<Rate>> =
        workload.phases.iter().map(|phase| cohorts.rates(workload, &layout, phase, setting.socket)).collect();
    let units = units(&cohorts, &rates);
    let mut starts = starts(workload, setting, request, &units)?;
    let whole = problem(setting, &units, &workload.phases, &rates);
    let fixed = best(&whole, &starts);
    let still = run(workload, layout.clone(), setting, request, &units, &[], &fixed)?;
    if workload.phases.len() == 1 {
        return Ok(named(still));
    }
    // A placement of its own for each phase, where moving to it pays.
    starts.push(fixed);
    let mut plans = Vec::new();
    for (phase, rates) in workload.phases.iter().zip(&rates) {
        let alone = problem(setting, &units, std::slice::from_ref(phase), std::slice::from_ref(rates));
        let found = best(&alone, &starts);
        plans.push((alone, found));
    }
    let first = plans[0].1.clone();
    let moving = run(workload, layout, setting, request, &units, &plans, &first)?;
    Ok(named(if moving.time_s < still.time_s { moving } else { still }))
}

fn named(outcome: Outcome) -> Outcome {
    Outcome { policy: OURS.to_owned(), about: ABOUT.to_owned(), placement: "searched".to_owned(), ..outcome }
}

/// Joins cohorts of a region with the same rates.
fn units(cohorts: &Cohorts, rates: &[Vec<Rate>]) -> Units {
    let mut units = Units { of: Vec::with_capacity(cohorts.places.len()), pages: Vec::new() };
    let mut first_of: Vec<usize> = Vec::new();
    let alike = |a: usize, b: usize| {
        let close = |x: f64, y: f64| (x - y).abs() <= 1e-6 * x.abs().max(y.abs());
        let same = |rates: &Vec<Rate>| {
            let (a, b) = (rates[a].work, rates[b].work);
            close(a.wait, b.wait)
                && close(a.random, b.random)
                && close(a.alone, b.alone)
                && close(a.read, b.read)
                && close(a.write, b.write)
        };
        cohorts.places[a].region == cohorts.places[b].region && rates.iter().all(same)
    };
    for cohort in 0..cohorts.places.len() {
        let start = cohorts.by_region[cohorts.places[cohort].region];
        let found = (0..first_of.len()).rev().find(|unit| first_of[*unit] >= start && alike(first_of[*unit], cohort));
        let unit = found.unwrap_or_else(|| {
            first_of.push(cohort);
            units.pages.push(0.0);
            first_of.len() - 1
        });
        units.pages[unit] += cohorts.places[cohort].pages();
        units.of.push(unit);
    }
    units
}

/// The phases' work by unit, whole.
fn problem<'a>(setting: &'a Setting<'_>, units: &Units, phases: &[Phase], rates: &[Vec<Rate>]) -> Problem<'a> {
    let count = units.pages.len();
    let work = |rates: &Vec<Rate>| {
        let mut works = vec![Work::default(); count];
        let mut seen = vec![false; count];
        for (cohort, unit) in units.of.iter().enumerate() {
            if !std::mem::replace(&mut seen[*unit], true) {
                works[*unit] = rates[cohort].work * units.pages[*unit];
            }
        }
        works
    };
    Problem {
        nodes: &setting.nodes,
        pages: units.pages.clone(),
        room: setting.nodes.list.iter().map(|node| (node.pages - node.spills_at()).max(0.0)).collect(),
        compute_s: phases.iter().map(|phase| phase.compute_s / f64::from(phase.threads)).collect(),
        works: rates.iter().map(work).collect(),
    }
}

/// Where every static placement puts the units: the search is never worse than any of them.
fn starts(workload: &Workload, setting: &Setting<'_>, request: &Request, units: &Units) -> Result<Vec<Shares>> {
    let nodes = &setting.nodes;
    let mut names: Vec<String> =
        ["first-touch", "interleave", "object-interleave", "soar"].iter().map(|name| (*name).to_owned()).collect();
    for slow in nodes.list.iter().skip(1) {
        let fast = &nodes.list[0].name;
        names.push(format!("interleave:{fast}+{}", slow.name));
        names.push(format!("object-interleave:{fast}+{}", slow.name));
        names.push(format!("preferred:{}", slow.name));
        names.extend([2, 3, 5, 9, 17].iter().map(|weight| format!("weighted:{fast}={weight}+{}=1", slow.name)));
    }
    let mut starts = Vec::new();
    for name in names {
        let policies = named::by_name(&name, workload, nodes, setting.socket)?;
        let layout = Layout::new(workload, &policies);
        let mut none = policy::by_name("none")?;
        let mut cohort = Cohort::new(setting.setup(layout, none.as_mut(), request.lru, workload.threads), workload);
        match cohort.touch_all() {
            Ok(()) => {}
            // First touch takes any room that there is: what it cannot place, nothing can.
            Err(error) if name == "first-touch" => return Err(error),
            Err(_) => continue,
        }
        let mut shares = vec![vec![0.0; nodes.len()]; units.pages.len()];
        for (cohort_index, row) in cohort.shares().iter().enumerate() {
            let unit = units.of[cohort_index];
            let weight = cohort.cohorts.places[cohort_index].pages() / units.pages[unit];
            shares[unit].iter_mut().zip(row).for_each(|(sum, share)| *sum += share * weight);
        }
        starts.push(shares);
    }
    Ok(starts)
}

fn run(
    workload: &Workload,
    layout: Layout,
    setting: &Setting<'_>,
    request: &Request,
    units: &Units,
    plans: &[(Problem<'_>, Shares)],
    first: &Shares,
) -> Result<Outcome> {
    let mut none = policy::by_name("none")?;
    let expected_s = workload.phases.iter().map(|phase| phase.compute_s / f64::from(phase.threads)).sum();
    let setup = Setup { expected_s, ..setting.setup(layout, none.as_mut(), request.lru, workload.threads) };
    let mut cohort = Cohort::new(setup, workload);
    let shares: Vec<Vec<f64>> = units.of.iter().map(|unit| first[*unit].clone()).collect();
    cohort.touch_as(&shares)?;
    cohort::run(&mut cohort, workload, setting.socket, |cohort, phase| {
        if let Some((problem, wanted)) = plans.get(phase) {
            move_if_it_pays(cohort, units, problem, wanted, setting);
        }
    });
    Ok(cohort.outcome())
}

/// Moves to the phase's own placement when that brings twice what the copies cost.
fn move_if_it_pays(
    cohort: &mut Cohort<'_>,
    units: &Units,
    problem: &Problem<'_>,
    wanted: &Shares,
    setting: &Setting<'_>,
) {
    let rows = cohort.shares();
    let mut now = vec![vec![0.0; setting.nodes.len()]; units.pages.len()];
    for (index, row) in rows.iter().enumerate() {
        let (unit, weight) = (units.of[index], cohort.cohorts.places[index].pages() / units.pages[units.of[index]]);
        now[unit].iter_mut().zip(row).for_each(|(sum, share)| *sum += share * weight);
    }
    let moved: f64 = now
        .iter()
        .zip(wanted)
        .zip(&units.pages)
        .map(|((now, wanted), pages)| pages * now.iter().zip(wanted).map(|(a, b)| (a - b).max(0.0)).sum::<f64>())
        .sum();
    let cost_s = moved * (setting.costs.demote_ns.value + setting.costs.shootdown_ns.value / 512.0) * NS;
    if problem.time_s(&now) - problem.time_s(wanted) <= PAYS * cost_s {
        return;
    }
    // Down before up, so that there is room.
    for up in [false, true] {
        for (index, row) in rows.iter().enumerate() {
            let (unit, pages) = (units.of[index], cohort.cohorts.places[index].pages());
            shift(cohort, index, pages, row, &wanted[unit], up);
        }
    }
}

fn shift(cohort: &mut Cohort<'_>, group: usize, pages: f64, now: &[f64], wanted: &[f64], up: bool) {
    let mut missing: Vec<f64> = now.iter().zip(wanted).map(|(now, wanted)| (wanted - now) * pages).collect();
    for from in 0..now.len() {
        for to in 0..now.len() {
            let step = (-missing[from]).min(missing[to]);
            if step > 0.0 && (to < from) == up {
                missing[from] += step;
                missing[to] -= step;
                cohort.migrate(Move { group, from, to, pages: step });
            }
        }
    }
}
