//! Prices say what a small move costs.

mod common;

use tierloom_predict::{Predictor, Run};

#[test]
fn a_small_move_costs_what_the_prices_say() {
    let profile = common::small_profile();
    let machine = common::machine();
    let predictor = Predictor::new(&machine, &profile, Run { socket: 0, threads: 8 }).unwrap();
    let rows = vec![vec![0.5, 0.3, 0.2]; profile.objects.len()];
    let demand = predictor.demand(&rows);
    let (prices, before_s) = (predictor.prices(&demand), predictor.time_s(&demand));
    for object in 0..profile.objects.len() {
        for (from, to) in [(0, 1), (1, 0), (2, 0), (0, 2), (1, 2)] {
            let mut moved = demand.clone();
            predictor.shift(&mut moved, object, from, to, 1e-4);
            let cost_s = (predictor.time_s(&moved) - before_s) / 1e-4;
            let priced_s = predictor.cost_of_move_s(&prices, object, from, to);
            // Forward differences of a curved function: a few percent of the run's own scale.
            assert!(
                (cost_s - priced_s).abs() <= 0.05 * cost_s.abs().max(0.01 * before_s),
                "{object}: {cost_s} {priced_s}"
            );
        }
    }
}
