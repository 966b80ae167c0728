//! Runs a workload phase by phase, each in steps.

use tierloom_contention::Work;
use tierloom_model::Socket;

use super::state::Cohort;
use crate::workload::{Phase, Workload};

/// Runs a workload whose pages have been touched; `between` may move pages before each phase.
pub(crate) fn run(
    cohort: &mut Cohort<'_>,
    workload: &Workload,
    socket: &Socket,
    mut between: impl FnMut(&mut Cohort<'_>, usize),
) {
    for (index, phase) in workload.phases.iter().enumerate() {
        let from_s = cohort.host.ledger.parts.sum();
        enter(cohort, workload, phase, socket);
        between(cohort, index);
        cohort.refresh_sums();
        let compute_s = phase.compute_s / f64::from(phase.threads);
        let mut done = 0.0;
        while done < 1.0 - 1e-12 {
            done += cohort.step(compute_s, 1.0 - done);
        }
        cohort.host.ledger.phase(&phase.name, from_s);
    }
}

fn enter(cohort: &mut Cohort<'_>, workload: &Workload, phase: &Phase, socket: &Socket) {
    cohort.rates = cohort.cohorts.rates(workload, &cohort.host.layout, phase, socket);
    cohort.host.set_threads(phase.threads);
    cohort.rerouted.fill(Work::default());
    cohort.refresh_sums();
}
