//! In which order memory fills up: the objects' pages in the order of their first touch.
//!
//! A kernel sees pages, not objects: where several objects are initialised side by side, they share
//! what is left of a node, and none of them is first.

use tierloom_model::{Object, Profile};

/// Part of an object that fills before the next piece does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Piece {
    /// Position of the object.
    pub(crate) object: usize,
    /// Share of its bytes.
    pub(crate) share: f64,
}

/// Pieces into which an object is cut whose pages come while those of others do: a page of the other
/// then stands at most this part of an object too early or too late.
const CUTS: u32 = 64;

/// All objects' pieces in the order in which they fill. An object that no other one meets is one piece.
pub(crate) fn order(profile: &Profile) -> Vec<Piece> {
    let mut cuts: Vec<(f64, usize)> = profile.objects.iter().enumerate().flat_map(cut).collect();
    cuts.sort_by(|left, right| left.0.total_cmp(&right.0));
    let mut pieces: Vec<Piece> = Vec::with_capacity(profile.objects.len());
    for (_, object) in cuts {
        let share = 1.0 / f64::from(cuts_of(&profile.objects[object]));
        match pieces.last_mut() {
            Some(last) if last.object == object => last.share += share,
            _ => pieces.push(Piece { object, share }),
        }
    }
    pieces
}

/// The middle of the time in which each of an object's equal parts fills.
fn cut((object, about): (usize, &Object)) -> impl Iterator<Item = (f64, usize)> {
    let (start, count) = (about.first_touch_s, cuts_of(about));
    let lasts = about.populated_s.map_or(0.0, |end| end - start);
    (0..count).map(move |part| (start + lasts * (f64::from(part) + 0.5) / f64::from(count), object))
}

fn cuts_of(object: &Object) -> u32 {
    if object.populated_s.is_some_and(|end| end > object.first_touch_s) { CUTS } else { 1 }
}

#[cfg(test)]
mod tests {
    use tierloom_fixtures::{object, profile};

    use super::*;

    fn filling(times: &[(f64, Option<f64>)]) -> Vec<Piece> {
        let made = |(start, end): &(f64, Option<f64>)| Object {
            first_touch_s: *start,
            populated_s: *end,
            ..object(&format!("o{start}"), 1 << 30)
        };
        order(&profile(times.iter().map(made).collect(), Vec::new()))
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
}
