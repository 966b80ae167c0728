//! In which order memory fills up: the objects' pages in the order of their first touch.
//!
//! A kernel sees pages, not objects: where several objects are initialised side by side, they share
//! what is left of a node, and none of them is first.

use crate::profile::{Object, Profile};

/// Part of an object that fills before the next piece does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// Position of the object.
    pub object: usize,
    /// Share of its bytes.
    pub share: f64,
}

/// Pieces into which an object is cut whose pages come while those of others do: a page of the other
/// then stands at most this part of an object too early or too late.
const CUTS: u32 = 64;

impl Profile {
    /// All objects' pieces in the order in which they fill. An object that no other one meets is one piece.
    pub fn filling(&self) -> Vec<Piece> {
        let mut cuts: Vec<(f64, usize)> = self.objects.iter().enumerate().flat_map(cut).collect();
        cuts.sort_by(|left, right| left.0.total_cmp(&right.0));
        let mut pieces: Vec<Piece> = Vec::with_capacity(self.objects.len());
        for (_, object) in cuts {
            let share = 1.0 / f64::from(cuts_of(&self.objects[object]));
            match pieces.last_mut() {
                Some(last) if last.object == object => last.share += share,
                _ => pieces.push(Piece { object, share }),
            }
        }
        pieces
    }
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
