//! The closed loop settles where it must, and stays there.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that prints its table")]

mod common;

use common::{Entry, published};
use tierloom_contention::{PathLoad, fit_curve, operating_point};
use tierloom_model::{Form, Kind, Load, Origin, Peak, Shape};

const LINES: [f64; 13] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];

fn form(idle_ns: f64, gb_s: f64, shape: Shape) -> PathLoad {
    let origin = Origin { kind: Kind::Assumed, source: "test".to_owned(), how: String::new() };
    let peak = Peak::Half { read_gb_s: gb_s, write_gb_s: gb_s };
    PathLoad::new(&Load::Form(Form { peak, shape, origin }), idle_ns).unwrap()
}

/// Every published curve twice, interpolated and fitted: name, read fraction, load.
fn loads() -> Vec<(String, f64, PathLoad)> {
    let twice = |entry: Entry| {
        let fit = fit_curve(&entry.points).unwrap();
        let (compiled, fitted) = (entry.compiled(), form(fit.idle_ns, fit.peak_gb_s, fit.shape));
        let r = entry.read_fraction;
        [(format!("{} interpolated", entry.name), r, compiled), (format!("{} fitted", entry.name), r, fitted)]
    };
    published().into_iter().flat_map(twice).collect()
}

/// `B = min(peak, 64 N / L(B))` by halving alone: slow, and independent of the crate's solver.
fn by_halving(load: &PathLoad, r: f64, lines: f64) -> f64 {
    let (mut low, mut high) = (0.0, load.peak_gb_s(r));
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if 64.0 * lines / load.latency_ns(middle, r) >= middle { low = middle } else { high = middle }
    }
    low
}

#[test]
fn the_point_is_the_fixed_point_for_every_curve_and_number_of_lines() {
    for (name, r, load) in loads() {
        for lines in LINES {
            let point = operating_point(&load, r, lines, f64::INFINITY);
            let reference = by_halving(&load, r, lines);
            assert!((point.gb_s / reference - 1.0).abs() < 1e-9, "{name} {lines}: {point:?}, {reference}");
            assert!((point.gb_s * point.latency_ns / (64.0 * lines) - 1.0).abs() < 1e-9, "Little's law: {point:?}");
            assert!(point.latency_ns >= load.latency_ns(point.gb_s * (1.0 - 1e-9), r) * (1.0 - 1e-6));
        }
    }
}

/// With exponent 1 the wait is that of an M/M/1 queue, and the fixed point solves a quadratic.
#[test]
fn the_point_is_the_solution_of_the_quadratic_for_an_mm1_queue() {
    let (idle_ns, wait_ns, peak) = (110.0, 12.0, 230.0);
    let load = form(idle_ns, peak, Shape::Knee { linear_ns: 0.0, wait_ns, exponent: 1.0 });
    for lines in LINES {
        // u peak (idle + wait u/(1-u)) = 64 N  ⇔  (wait - idle) u² + (idle + k) u - k = 0, k = 64 N / peak
        let k = 64.0 * lines / peak;
        let (a, b) = (wait_ns - idle_ns, idle_ns + k);
        let u = (-b + (b * b + 4.0 * a * k).sqrt()) / (2.0 * a);
        let point = operating_point(&load, 1.0, lines, f64::INFINITY);
        assert!((point.gb_s / (u * peak) - 1.0).abs() < 1e-9, "{lines}: {point:?} {}", u * peak);
    }
}

#[test]
fn demand_below_the_loop_is_served_at_the_curve() {
    let load = form(100.0, 50.0, Shape::Power { rise_ns: 40.0, exponent: 1.5, wall: 0.5 });
    let point = operating_point(&load, 1.0, 1000.0, 30.0);
    assert!((point.gb_s - 30.0).abs() < 1e-12);
    assert!((point.latency_ns - load.latency_ns(30.0, 1.0)).abs() < 1e-12);
}

#[test]
fn more_lines_never_carry_less() {
    for (name, r, load) in loads() {
        let points = LINES.map(|lines| operating_point(&load, r, lines, f64::INFINITY));
        assert!(
            points.windows(2).all(|p| p[1].gb_s >= p[0].gb_s && p[1].latency_ns >= p[0].latency_ns * (1.0 - 1e-12)),
            "{name}"
        );
    }
}

/// The feedback rule of curve-driven memory simulators (Mess, MICRO 2024), from its description:
/// every window, smooth the bandwidth that the last latency allowed, look its latency up, smooth that;
/// beyond 99 % of the peak, push the latency up by a growing overload factor instead.
/// Returns the latency of each window.
fn feedback(points: &[[f64; 2]], lines: f64, windows: usize) -> Vec<f64> {
    const NEW: f64 = 0.05;
    let ([_, rest_ns], [peak, worst_ns]) = (points[0], points[points.len() - 1]);
    let (mut smooth_gb_s, mut smooth_ns, mut overload) = (0.0, rest_ns, 0.0_f64);
    let mut window = || {
        let gb_s = NEW * 64.0 * lines / smooth_ns.max(rest_ns) + (1.0 - NEW) * smooth_gb_s;
        let target_ns = if gb_s > 0.99 * peak {
            smooth_gb_s = NEW * peak + (1.0 - NEW) * smooth_gb_s;
            overload += 0.02;
            (1.0 + overload) * worst_ns
        } else {
            smooth_gb_s = gb_s;
            let target_ns = (1.0 + overload) * straight(points, gb_s);
            overload -= if overload > 0.01 { 0.01 } else { 0.0 };
            target_ns
        };
        smooth_ns = NEW * target_ns + (1.0 - NEW) * smooth_ns;
        smooth_ns.max(rest_ns)
    };
    (0..windows).map(|_| window()).collect()
}

fn straight(points: &[[f64; 2]], gb_s: f64) -> f64 {
    let after = points.partition_point(|point| point[0] <= gb_s).clamp(1, points.len() - 1);
    let ([x0, y0], [x1, y1]) = (points[after - 1], points[after]);
    y0 + (y1 - y0) * ((gb_s - x0) / (x1 - x0)).clamp(0.0, 1.0)
}

/// Standard deviation over mean.
fn ripple(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt() / mean
}

#[test]
fn the_feedback_rule_ripples_at_overload_and_ours_does_not() {
    let mut ripples = Vec::new();
    for entry in published() {
        let points = entry.rising();
        let [peak, worst_ns] = points[points.len() - 1];
        let lines = 2.0 * peak * worst_ns / 64.0;
        ripples.push(ripple(&feedback(&points, lines, 4000)[1000..]));
        let load = entry.compiled();
        let ours = [(); 100].map(|()| operating_point(&load, entry.read_fraction, lines, f64::INFINITY).latency_ns);
        assert!(ours.iter().all(|ns| ns.to_bits() == ours[0].to_bits()), "{}", entry.name);
        println!("{:30} feedback ripples by {:4.1} %", entry.name, ripples[ripples.len() - 1] * 100.0);
    }
    ripples.sort_by(f64::total_cmp);
    let median = ripples[ripples.len() / 2];
    let between = ripples.iter().filter(|ripple| (0.03..0.08).contains(*ripple)).count();
    println!("median {:.1} %, {between} of {} curves from 3 to 8 %", median * 100.0, ripples.len());
    assert!((0.03..0.08).contains(&median) && between > ripples.len() / 2, "{median} {between}");
}

/// Below the knee the rule is right, so it is implemented fairly.
#[test]
fn the_feedback_rule_settles_near_our_point_below_the_knee() {
    for entry in published() {
        let load = entry.compiled();
        let lines = 0.4 * load.peak_gb_s(entry.read_fraction) * load.idle_ns() / 64.0;
        let settled = *feedback(&entry.rising(), lines, 4000).last().unwrap();
        let ours = operating_point(&load, entry.read_fraction, lines, f64::INFINITY).latency_ns;
        assert!((settled / ours - 1.0).abs() < 0.05, "{}: {settled} ns, ours {ours} ns", entry.name);
    }
}
