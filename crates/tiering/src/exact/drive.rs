//! Runs a workload window by window: how many visits each stream makes, and what they ask of memory.

use tierloom_model::Socket;

use super::source::{Drawer, Random, Visits};
use super::{Exact, WINDOW_S};
use crate::error::Result;
use crate::settle::{Work, settle};
use crate::stretch::{private_share, work_of};
use crate::workload::{Phase, Workload};

/// Runs a workload, page by page.
pub(crate) fn run(exact: &mut Exact<'_>, workload: &Workload, socket: &Socket, seed: u64) -> Result<()> {
    exact.touch_all()?;
    let mut random = Random::new(seed);
    for phase in &workload.phases {
        run_phase(exact, workload, phase, socket, &mut random)?;
    }
    Ok(())
}

fn run_phase(
    exact: &mut Exact<'_>,
    workload: &Workload,
    phase: &Phase,
    socket: &Socket,
    random: &mut Random,
) -> Result<()> {
    exact.ledger.set_threads(phase.threads);
    exact.threads = phase.threads;
    let region = |name: &str| workload.region_index(name).unwrap_or(0);
    let mut drawers: Vec<Drawer> =
        phase.streams.iter().map(|stream| Drawer::new(&exact.layout, region(&stream.region), stream)).collect();
    let works: Vec<Work> = phase.streams.iter().map(|stream| work_of(stream, phase, socket)).collect();
    let compute_s = phase.compute_s / f64::from(phase.threads);
    let mut visits = Visits::default();
    let (mut done, mut share) = (0.0, f64::INFINITY);
    while done < 1.0 - 1e-12 {
        // The first window guesses its share of the phase from the phase's time at rest.
        if share.is_infinite() {
            share = WINDOW_S / first_guess_s(exact, compute_s, &works);
        }
        share = share.max(1e-9).min(1.0 - done);
        let mut cells = vec![Work::default(); exact.nodes.len()];
        let started_s = exact.now_s;
        for (index, drawer) in drawers.iter_mut().enumerate() {
            drawer.draw(phase.streams[index].visits * share, random, &mut visits.pages);
            visits.pages.iter_mut().for_each(|page| *page <<= 1);
            exact.private = private_share(&phase.streams[index], phase.threads);
            let counts = exact.visit(&visits.pages, exact.now_s, WINDOW_S)?;
            let all: u64 = counts.iter().sum();
            for node in 0..exact.nodes.len() {
                let part = if all > 0 { counts[node << 1] as f64 / all as f64 } else { 0.0 };
                cells[node] += works[index] * (share * part);
            }
            if all == 0 {
                // Too few visits to draw one: the work goes where the region's pages are, on the whole.
                cells[0] += works[index] * share;
            }
        }
        exact.end_window(compute_s * share, &mut cells);
        done += share;
        let passed_s = (exact.now_s - started_s).max(1e-12);
        share *= (WINDOW_S / passed_s).clamp(0.25, 4.0);
    }
    Ok(())
}

fn first_guess_s(exact: &Exact<'_>, compute_s: f64, works: &[Work]) -> f64 {
    let mut cells = vec![Work::default(); exact.nodes.len()];
    cells[0] = works.iter().fold(Work::default(), |sum, work| sum + *work);
    settle(exact.nodes, compute_s, &cells).time_s.max(1e-6)
}
