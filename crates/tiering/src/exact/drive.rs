//! Runs a workload window by window: how many visits each stream makes, and what they ask of memory.

use tierloom_contention::Work;
use tierloom_model::Socket;

use super::random::Random;
use super::source::Drawer;
use super::state::Exact;
use super::visit::{BATCH, Counts};
use super::window::WINDOW_S;
use crate::engine::page_state::PageState;
use crate::engine::settle::settle;
use crate::error::Result;
use crate::workload::demand::{private_share, work_of};
use crate::workload::samples::Samples;
use crate::workload::{Phase, Stream, Workload};

/// Runs a workload, page by page.
pub(crate) fn run(
    exact: &mut Exact<'_>,
    workload: &Workload,
    samples: Option<&Samples>,
    socket: &Socket,
    seed: u64,
) -> Result<()> {
    exact.touch_all()?;
    let (mut random, regions) = (Random::new(seed), workload.region_indices());
    for (index, phase) in workload.phases.iter().enumerate() {
        let draw = |stream: &Stream| {
            let region = regions.get(stream.region.as_str()).copied().unwrap_or(0);
            let seen = samples.and_then(|samples| samples.of(index, region));
            let whole = || Drawer::new(&exact.host.layout, region, stream);
            let drawer = seen.map_or_else(whole, |steps| Drawer::along(&exact.host.layout, region, stream, steps));
            (drawer, exact.shares(region))
        };
        let drawers = phase.streams.iter().map(draw).collect();
        let from_s = exact.host.ledger.parts.sum();
        run_phase(exact, drawers, phase, socket, &mut random)?;
        exact.host.ledger.phase(&phase.name, from_s);
    }
    Ok(())
}

/// `drawers` come with the share of their visits that each node serves, as far as is known.
fn run_phase(
    exact: &mut Exact<'_>,
    mut drawers: Vec<(Drawer, Vec<f64>)>,
    phase: &Phase,
    socket: &Socket,
    random: &mut Random,
) -> Result<()> {
    exact.host.set_threads(phase.threads);
    let works: Vec<Work> = phase.streams.iter().map(|stream| work_of(stream, phase, socket)).collect();
    let compute_s = phase.compute_s / f64::from(phase.threads);
    let mut visits = vec![Vec::new(); drawers.len()];
    let (mut done, mut share) = (0.0, f64::INFINITY);
    while done < 1.0 - 1e-12 {
        // The first window guesses its share of the phase from the phase's time at rest.
        if share.is_infinite() {
            share = WINDOW_S / first_guess_s(exact, compute_s, &works);
        }
        share = share.max(1e-9).min(1.0 - done);
        let mut cells = vec![Work::default(); exact.host.nodes.len()];
        let started_s = exact.host.now_s;
        for (index, (drawer, _)) in drawers.iter_mut().enumerate() {
            drawer.draw(phase.streams[index].visits * share, done + share, random, &mut visits[index]);
        }
        let counts = visit_window(exact, &visits, phase)?;
        for (index, ((_, served), counts)) in drawers.iter_mut().zip(counts).enumerate() {
            let all = counts.sum();
            for (node, part) in served.iter_mut().enumerate() {
                // Where there are too few visits to draw one, the work goes where the last ones went.
                *part = if all > 0 { counts.of(node)[0] as f64 / all as f64 } else { *part };
                cells[node] += works[index] * (share * *part);
            }
        }
        exact.end_window(compute_s * share, &mut cells);
        done += share;
        let passed_s = (exact.host.now_s - started_s).max(1e-12);
        share *= (WINDOW_S / passed_s).clamp(0.25, 4.0);
    }
    Ok(())
}

/// The streams' visits of one window, a few of each at a time, so that the clock does not go back from one stream to the
/// next: what kswapd has done by then depends on it.
fn visit_window(exact: &mut Exact<'_>, visits: &[Vec<u32>], phase: &Phase) -> Result<Vec<Counts>> {
    let mut counts = vec![Counts::default(); visits.len()];
    let slices = visits.iter().map(|codes| codes.len().div_ceil(BATCH)).max().unwrap_or(0);
    let span_s = WINDOW_S / slices as f64;
    for slice in 0..slices {
        let from_s = exact.host.now_s + span_s * slice as f64;
        for ((codes, counts), stream) in visits.iter().zip(&mut counts).zip(&phase.streams) {
            exact.private = private_share(stream, phase.threads);
            let upto = |slice: usize| codes.len() * slice / slices;
            exact.visit(&codes[upto(slice)..upto(slice + 1)], from_s, span_s, counts)?;
        }
    }
    Ok(counts)
}

fn first_guess_s(exact: &Exact<'_>, compute_s: f64, works: &[Work]) -> f64 {
    let mut cells = vec![Work::default(); exact.host.nodes.len()];
    cells[0] = works.iter().fold(Work::default(), |sum, work| sum + *work);
    settle(exact.host.nodes, compute_s, &cells).time_s.max(1e-6)
}
