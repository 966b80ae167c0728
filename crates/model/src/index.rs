//! Numbers that stand for things, a type for each kind, and vectors that only their own kind indexes.
//!
//! ```
//! use tierloom_model::index::IndexVec;
//!
//! tierloom_model::id! {
//!     /// A port.
//!     pub struct PortId(u8);
//! }
//! let mut names: IndexVec<PortId, &str> = IndexVec::default();
//! let first = names.push("first");
//! assert_eq!(names[first], "first");
//! assert_eq!(names.ids().collect::<Vec<_>>(), [PortId(0)]);
//! ```

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A number that stands for a thing; [`id!`](crate::id) makes one.
pub trait Id: Copy {
    /// Of the thing at a position.
    fn of(position: usize) -> Self;
    /// Its position.
    fn position(self) -> usize;
}

/// Makes a kind of number that stands for things of one kind.
#[macro_export]
macro_rules! id {
    ($(#[$about:meta])* $visible:vis struct $name:ident($number:ty);) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visible struct $name($visible $number);

        impl $crate::index::Id for $name {
            #[allow(clippy::cast_possible_truncation, reason = "whoever chose the width knows how many there are")]
            fn of(position: usize) -> Self {
                Self(position as $number)
            }

            fn position(self) -> usize {
                self.0 as usize
            }
        }
    };
}

/// A vector of things, each found by its own kind of number.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexVec<I, T> {
    all: Vec<T>,
    kind: PhantomData<fn(I)>,
}

impl<I: Id, T> IndexVec<I, T> {
    /// Adds a thing; its number.
    pub fn push(&mut self, thing: T) -> I {
        self.all.push(thing);
        I::of(self.all.len() - 1)
    }

    /// The thing of a number, if there is one.
    pub fn get(&self, id: I) -> Option<&T> {
        self.all.get(id.position())
    }

    /// All numbers.
    pub fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.all.len()).map(I::of)
    }

    /// All things, in the order of their numbers.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.all.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl<I, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Self { all: Vec::new(), kind: PhantomData }
    }
}

impl<I, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<S: IntoIterator<Item = T>>(things: S) -> Self {
        Self { all: Vec::from_iter(things), kind: PhantomData }
    }
}

impl<'a, I: Id, T> IntoIterator for &'a IndexVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<I: Id, T> Index<I> for IndexVec<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.all[id.position()]
    }
}

impl<I: Id, T> IndexMut<I> for IndexVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.all[id.position()]
    }
}
