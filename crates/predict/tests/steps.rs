//! A step of a search is judged as if the whole run were solved anew.
#![allow(
    clippy::float_cmp,
    clippy::unwrap_used,
    reason = "the same arithmetic gives the same bits; a test that panics has failed"
)]

mod common;

use proptest::prelude::*;
use tierloom_predict::{Demand, Predictor, Run};

/// Object, from, to, share.
type Shift = (usize, usize, usize, f64);

fn any_shift() -> impl Strategy<Value = Shift> {
    (0usize..4, 0usize..3, 0usize..3, 0.01f64..0.3)
}

fn predictor() -> Predictor {
    Predictor::new(&common::machine(), &common::small_profile(), Run { socket: 0, threads: 8 }).unwrap()
}

fn shifted(predictor: &Predictor, demand: &Demand, steps: &[Shift]) -> Demand {
    let mut demand = demand.clone();
    for (object, from, to, share) in steps {
        predictor.shift(&mut demand, *object, *from, *to, *share);
    }
    demand
}

proptest! {
    #[test]
    fn a_step_is_faster_exactly_where_its_whole_solution_is(
        rows in prop::collection::vec((0.34f64..1.0, 0.34f64..1.0, 0.34f64..1.0), 4),
        steps in prop::collection::vec(any_shift(), 0..4),
        limit in 0.9f64..1.1,
    ) {
        let predictor = predictor();
        let rows: Vec<[f64; 3]> =
            rows.iter().map(|(a, b, c)| [a, b, c].map(|part| part / (a + b + c))).collect();
        let near = predictor.timed(predictor.demand(&rows));
        prop_assert_eq!(near.time_s(), predictor.time_s(near.demand()));
        let after = shifted(&predictor, near.demand(), &steps);
        let (time_s, limit_s) = (predictor.time_s(&after), near.time_s() * limit);
        match predictor.faster(&near, after.clone(), limit_s) {
            Some(found) => {
                prop_assert!(time_s <= limit_s * (1.0 + 1e-9));
                prop_assert!((found.time_s() / time_s - 1.0).abs() < 1e-9);
                prop_assert_eq!(found.demand(), &after);
            }
            None => prop_assert!(time_s >= limit_s * (1.0 - 1e-9), "{} below {}", time_s, limit_s),
        }
    }

    #[test]
    fn costs_of_all_moves_are_those_of_each(row in (0.1f64..1.0, 0.1f64..1.0, 0.1f64..1.0), from in 0usize..3) {
        let predictor = predictor();
        let sum = row.0 + row.1 + row.2;
        let prices = predictor.prices(&predictor.demand([[row.0 / sum, row.1 / sum, row.2 / sum]; 4]));
        for object in 0..4 {
            let mut costs_s = [f64::NAN; 3];
            predictor.costs_of_moves_s(&prices, object, from, &[0, 1, 2], &mut costs_s);
            for (to, cost_s) in costs_s.iter().enumerate() {
                prop_assert_eq!(*cost_s, predictor.cost_of_move_s(&prices, object, from, to));
            }
        }
    }
}
