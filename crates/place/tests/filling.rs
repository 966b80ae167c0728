//! The order in which memory fills, on made-up profiles.

use tierloom_fixtures::{object, profile};
use tierloom_model::{Object, Piece};

fn filling(times: &[(f64, Option<f64>)]) -> Vec<Piece> {
    let made = |(start, end): &(f64, Option<f64>)| Object {
        first_touch_s: *start,
        populated_s: *end,
        ..object(&format!("o{start}"), 1 << 30)
    };
    profile(times.iter().map(made).collect(), Vec::new()).filling()
}

#[test]
fn objects_that_never_meet_are_whole() {
    let pieces = filling(&[(5.0, None), (1.0, Some(4.0)), (4.5, Some(4.6))]);
    let whole = |object| Piece { object, share: 1.0 };
    assert_eq!(pieces, [whole(1), whole(2), whole(0)]);
}

#[test]
fn objects_that_fill_together_take_turns() {
    let pieces = filling(&[(0.0, Some(4.0)), (2.0, Some(4.0))]);
    // Half of the first is there before the second begins; from then on the second is twice as fast.
    assert_eq!((pieces[0].object, pieces[0].share), (0, 0.5));
    let of = |object| pieces.iter().filter(|piece| piece.object == object).map(|piece| piece.share).sum::<f64>();
    assert!((of(0) - 1.0).abs() < 1e-12 && (of(1) - 1.0).abs() < 1e-12);
    let half_way: Vec<&Piece> = pieces[1..=pieces.len() / 2].iter().collect();
    let second: f64 = half_way.iter().filter(|piece| piece.object == 1).map(|piece| piece.share).sum();
    assert!((second - 0.5).abs() < 0.05, "{second}");
}
