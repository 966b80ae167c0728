//! Which thing lies at an address: ranges that replace each other where they overlap.

use std::collections::BTreeMap;

/// Address ranges that do not overlap, each with a value and the start it was inserted with.
#[derive(Debug, Clone)]
pub(crate) struct RangeMap<T> {
    by_start: BTreeMap<u64, Piece<T>>,
}

/// What is left of an inserted range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece<T> {
    /// One past the last address.
    pub(crate) end: u64,
    /// First address of the range as it was inserted: offsets count from here.
    pub(crate) origin: u64,
    pub(crate) value: T,
}

impl<T> Default for RangeMap<T> {
    fn default() -> Self {
        Self { by_start: BTreeMap::new() }
    }
}

impl<T: Clone> RangeMap<T> {
    /// Puts a range in; what was there gives way. Returns what was displaced, as (bytes, value).
    pub(crate) fn insert(&mut self, start: u64, bytes: u64, value: T) -> Vec<(u64, T)> {
        let displaced = self.remove(start, bytes);
        if bytes > 0 {
            self.by_start.insert(start, Piece { end: start.saturating_add(bytes), origin: start, value });
        }
        displaced
    }

    /// Takes a range out, cutting what reaches over its ends. Returns what was in it.
    pub(crate) fn remove(&mut self, start: u64, bytes: u64) -> Vec<(u64, T)> {
        let end = start.saturating_add(bytes);
        let before = self.by_start.range(..start).next_back().filter(|(_, piece)| piece.end > start).map(|(at, _)| *at);
        let inside = self.by_start.range(start..end).map(|(at, _)| *at);
        let touched: Vec<u64> = before.into_iter().chain(inside).collect();
        touched.into_iter().filter_map(|at| self.cut(at, start, end)).collect()
    }

    fn cut(&mut self, at: u64, start: u64, end: u64) -> Option<(u64, T)> {
        let piece = self.by_start.remove(&at)?;
        let taken = piece.end.min(end) - at.max(start);
        if at < start {
            self.by_start.insert(at, Piece { end: start, ..piece.clone() });
        }
        if piece.end > end {
            self.by_start.insert(end, piece.clone());
        }
        Some((taken, piece.value))
    }

    /// What is in a range, cut off at its ends, as (bytes, value to change); offsets count from where they did.
    pub(crate) fn inside(&mut self, start: u64, bytes: u64) -> impl Iterator<Item = (u64, &mut T)> {
        let end = start.saturating_add(bytes);
        self.split(start);
        self.split(end);
        self.by_start.range_mut(start..end).map(|(at, piece)| (piece.end - at, &mut piece.value))
    }

    /// The whole piece that holds an address, as [`RangeMap::inside`] gives it.
    pub(crate) fn around(&mut self, address: u64) -> Option<(u64, &mut T)> {
        let (start, piece) = self.by_start.range_mut(..=address).next_back()?;
        (address < piece.end).then(|| (piece.end - start, &mut piece.value))
    }

    fn split(&mut self, address: u64) {
        let before = self.by_start.range_mut(..address).next_back().map(|(_, piece)| piece);
        if let Some(piece) = before.filter(|piece| piece.end > address) {
            let tail = piece.clone();
            piece.end = address;
            self.by_start.insert(address, tail);
        }
    }

    /// Takes out the piece that starts exactly here.
    pub(crate) fn remove_at(&mut self, start: u64) -> Option<(u64, T)> {
        self.by_start.remove(&start).map(|piece| (piece.end - start, piece.value))
    }

    /// The piece that holds an address.
    pub(crate) fn get(&self, address: u64) -> Option<&Piece<T>> {
        self.by_start.range(..=address).next_back().map(|(_, piece)| piece).filter(|piece| address < piece.end)
    }

    /// The pieces that reach into a range, as (first address, bytes in it, value).
    pub(crate) fn overlapping(&self, start: u64, bytes: u64) -> impl Iterator<Item = (u64, u64, &T)> {
        let end = start.saturating_add(bytes);
        let before = self.by_start.range(..start).next_back().filter(|(_, piece)| piece.end > start);
        let pieces = before.into_iter().chain(self.by_start.range(start..end));
        pieces.map(move |(at, piece)| {
            let first = (*at).max(start);
            (first, piece.end.min(end) - first, &piece.value)
        })
    }

    /// All pieces as (bytes, value).
    pub(crate) fn values(&self) -> impl Iterator<Item = (u64, &T)> {
        self.by_start.iter().map(|(start, piece)| (piece.end - start, &piece.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the naive model: an array of one value per address.
        #[test]
        fn it_answers_like_an_array(
            changes in prop::collection::vec((any::<bool>(), 0u32..60, 0u32..30), 0..40)
        ) {
            let mut map = RangeMap::default();
            let mut array = [None; 100];
            for (name, (insert, start, bytes)) in changes.into_iter().enumerate() {
                let range = start as usize..(start + bytes) as usize;
                let (start, bytes) = (u64::from(start), u64::from(bytes));
                let there = array[range.clone()].iter().filter(|cell| cell.is_some()).count() as u64;
                let gone = if insert { map.insert(start, bytes, name) } else { map.remove(start, bytes) };
                prop_assert_eq!(gone.iter().map(|piece| piece.0).sum::<u64>(), there);
                array[range].fill(insert.then_some((name, start)));
            }
            let (before, _) = array.split_at(70);
            let there = before[20..].iter().filter(|cell| cell.is_some()).count() as u64;
            prop_assert_eq!(map.overlapping(20, 50).map(|(_, bytes, _)| bytes).sum::<u64>(), there);
            let pieces = map.by_start.len();
            let (_, half) = array.split_at(50);
            let there = half.iter().filter(|cell| cell.is_some()).count() as u64;
            prop_assert_eq!(map.inside(50, 50).map(|(bytes, _)| bytes).sum::<u64>(), there);
            prop_assert!(map.by_start.len() <= pieces + 1);
            for (address, cell) in array.iter().enumerate() {
                let found = map.get(address as u64).map(|piece| (piece.value, piece.origin));
                prop_assert_eq!(found, *cell);
            }
        }
    }
}
