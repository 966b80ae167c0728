//! A whole measurement of this machine, on regions so small that it takes a moment.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use tierloom_model::{Load, Machine};
use tierloom_probe::{Measurement, Mix, Order, Progress, Request, Scale, measure};

/// One measurement for all tests: it keeps every core busy, so a second one beside it would disturb it.
static TINY: LazyLock<(Measurement, Vec<f64>)> = LazyLock::new(|| {
    let scale = Scale {
        rounds: 2,
        windows: 5,
        window_s: 0.001,
        total_s: 1.0,
        footprint_step: 16,
        most_bytes: 2 << 20,
        ..Scale::QUICK
    };
    let request = Request { name: "here".to_owned(), date: "2026-01-02".to_owned(), scale };
    let mut told = Vec::new();
    let mut tell = |progress: &Progress| {
        told.push(progress.fraction);
        ControlFlow::Continue(())
    };
    match measure(&request, &mut tell) {
        Ok(found) => (found, told),
        Err(error) => panic!("{error}"),
    }
});

/// What judges the machine: `make live`.
mod live {
    use super::*;

    #[test]
    #[ignore = "live"]
    fn a_tiny_measurement_makes_a_machine_that_its_own_check_accepts() {
        let (Measurement { machine, report }, told) = &*TINY;
        assert_eq!(Machine::from_toml(&machine.to_toml(), "here.toml").unwrap(), *machine);
        assert_eq!(machine.name, "here");
        assert!(machine.sources["measured"].contains("2026-01-02"));
        assert_eq!(machine.paths.len(), report.host.sockets.len() * machine.memories.len());

        assert!(told.is_sorted() && told[0] < 1e-9 && told.iter().all(|fraction| *fraction <= 1.0), "{told:?}");
    }

    #[test]
    #[ignore = "live"]
    fn every_order_mix_and_thread_count_is_in_the_report() {
        let report = &TINY.0.report;
        for order in [Order::Random, Order::Sequential] {
            assert!(report.latencies.iter().any(|latency| latency.order == order));
        }
        let smallest = report.latencies.iter().map(|latency| latency.footprint_bytes).min();
        assert_eq!(smallest, Some(16 << 10));
        for mix in Mix::ALL {
            assert!(report.bandwidths.iter().any(|b| b.mix == mix), "{mix:?}");
        }
        let cores = report.host.sockets[0].cores.len();
        assert!(report.bandwidths.iter().any(|b| b.threads == cores));
        assert!(report.latencies.iter().all(|latency| latency.ns.count >= 5 && latency.ns.min > 0.0));
        let json: serde_json::Value = serde_json::to_value(report).unwrap();
        assert!(json["warnings"].as_array().unwrap().iter().all(|warning| warning["remedy"].is_string()));
    }

    #[test]
    #[ignore = "live"]
    fn every_curve_reaches_the_peak_of_its_mix() {
        let Measurement { machine, report } = &TINY.0;
        let Load::Points(curves) = &machine.paths[0].load else { panic!("a measured load is points") };
        assert!(curves.len() >= 4);
        for (curve, mix) in
            curves.iter().zip([Mix::NonTemporal, Mix::OneToOne, Mix::TwoToOne, Mix::ThreeToOne, Mix::Reads])
        {
            assert_eq!(Some(curve.read_fraction), mix.read_fraction());
            let peaks = report.bandwidths.iter().filter(|b| b.mix == mix).map(|b| b.gb_s.p90);
            let last = curve.points[curve.points.len() - 1][0];
            assert!(last >= 0.97 * peaks.fold(0.0, f64::max), "{mix:?}: {last}");
        }
    }
}
