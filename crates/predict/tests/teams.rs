//! Threads on several sockets share the work and wait for the last of them.

#![allow(clippy::unwrap_used, reason = "test data")]

mod common;

use common::{access, machine, object, phase, profile, small_profile};
use tierloom_model::{Pattern, Placement, Profile};
use tierloom_predict::{PredictError, Predictor, Run};

const NEAR: Run = Run { socket: 0, threads: 8 };
const FAR: Run = Run { socket: 1, threads: 8 };

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// One stream, whole in a memory, by threads on these sockets.
fn stream_s(runs: &[Run], memory: usize) -> f64 {
    let stream = profile(
        vec![object("o", 1 << 30)],
        vec![phase("p", 16, 0.0, vec![access("o", Pattern::Stream, 300e9, 100e9, 64.0)])],
    );
    let predictor = Predictor::over(&machine(), &stream, runs).unwrap();
    predictor.predict(&Placement::uniform(1, 3, memory)).time_s
}

#[test]
fn one_team_is_the_run_on_its_socket() {
    let (one, team) = (
        Predictor::new(&machine(), &small_profile(), NEAR).unwrap(),
        Predictor::over(&machine(), &small_profile(), &[NEAR]).unwrap(),
    );
    let placement = Placement::uniform(4, 3, 1);
    assert_eq!(one.predict(&placement), team.predict(&placement));
}

#[test]
fn a_full_memory_gives_no_more_to_more_sockets() {
    let most = Run { threads: 64, ..FAR };
    let alone = stream_s(&[most], 2);
    let both = stream_s(&[Run { threads: 64, ..NEAR }, most], 2);
    assert!(both > 0.95 * alone && both < 1.05 * alone, "{both} {alone}");
}

#[test]
fn unloaded_threads_finish_with_the_farthest_of_them() {
    let few = |socket| Run { socket, threads: 1 };
    // Twice one far thread's half: what two far threads take, but for their load.
    let (both, far, near) = (stream_s(&[few(0), few(1)], 1), stream_s(&[Run { socket: 0, threads: 2 }], 1), {
        stream_s(&[Run { socket: 1, threads: 2 }], 1)
    });
    assert!(both <= far * (1.0 + 1e-9) && both > near, "{near} {both} {far}");
}

#[test]
fn what_a_report_over_two_sockets_says_adds_up() {
    let predictor = Predictor::over(&machine(), &small_profile(), &[NEAR, FAR]).unwrap();
    let mixed = vec![vec![0.0, 0.3, 0.7], vec![0.0, 0.0, 1.0], vec![0.0, 1.0, 0.0], vec![0.0, 1.0, 0.0]];
    for placement in [Placement::uniform(4, 3, 1), Placement::uniform(4, 3, 2), Placement::new(mixed, 3).unwrap()] {
        let found = predictor.predict(&placement);
        assert!(close(found.tiers.iter().map(|tier| tier.read_bytes + tier.write_bytes).sum::<f64>(), 795e9));
        assert!(close(found.time_s, found.compute_s + found.stall_s));
        assert!(close(found.objects.iter().map(|object| object.stall_s).sum::<f64>(), found.stall_s));
        assert!(close(found.time_s, predictor.time_s(&predictor.demand(placement.rows()))));
        assert!(found.low_s < found.time_s && found.time_s < found.high_s);
    }
}

#[test]
fn shifting_over_two_sockets_is_the_same_as_starting_over() {
    let predictor = Predictor::over(&machine(), &small_profile(), &[NEAR, FAR]).unwrap();
    let from = Placement::uniform(4, 3, 1);
    let mut demand = predictor.demand(from.rows());
    predictor.shift(&mut demand, 2, 1, 2, 0.25);
    let mut rows = from.rows().to_vec();
    rows[2] = vec![0.0, 0.75, 0.25];
    assert!(close(predictor.time_s(&demand), predictor.time_s(&predictor.demand(&rows))));
}

#[test]
fn one_thread_alone_runs_on_the_first_socket() {
    let serial: Profile = profile(
        vec![object("o", 1 << 30)],
        vec![
            phase("wide", 16, 1.0, Vec::new()),
            phase("alone", 1, 1.0, vec![access("o", Pattern::Chain, 64e6, 0.0, 1.0)]),
        ],
    );
    let time_s = |runs: &[Run], memory| {
        let predictor = Predictor::over(&machine(), &serial, runs).unwrap();
        predictor.predict(&Placement::uniform(1, 3, memory)).stall_s
    };
    assert!(close(time_s(&[NEAR, FAR], 1), time_s(&[Run { threads: 16, ..NEAR }], 1)));
}

#[test]
fn wrong_teams_say_what_to_do() {
    let refuse = |runs: &[Run]| Predictor::over(&machine(), &small_profile(), runs).unwrap_err();
    assert!(matches!(refuse(&[]), PredictError::NoThreads { .. }));
    assert!(matches!(refuse(&[NEAR, NEAR]), PredictError::SocketTwice { .. }));
    assert!(matches!(refuse(&[NEAR, Run { threads: 65, ..FAR }]), PredictError::TooManyThreads { .. }));
}
