//! Fractions by object and memory, in one piece: a search goes over thousands of objects again and again.

use tierloom_model::Placement;

/// A row an object, a fraction a memory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rows {
    memories: usize,
    /// Row after row.
    fractions: Vec<f64>,
}

impl Rows {
    /// Nothing anywhere.
    pub(crate) fn none(objects: usize, memories: usize) -> Self {
        Self { memories, fractions: vec![0.0; objects * memories] }
    }

    /// Rows one after the other.
    pub(crate) fn of<'r>(rows: impl IntoIterator<Item = &'r [f64]>, memories: usize) -> Self {
        Self { memories, fractions: rows.into_iter().flatten().copied().collect() }
    }

    /// All rows, by object.
    pub(crate) fn iter(&self) -> std::slice::ChunksExact<'_, f64> {
        self.fractions.chunks_exact(self.memories)
    }

    /// Fractions of one object by memory.
    pub(crate) fn row(&self, object: usize) -> &[f64] {
        &self.fractions[object * self.memories..(object + 1) * self.memories]
    }

    /// The same, to be changed.
    pub(crate) fn row_mut(&mut self, object: usize) -> &mut [f64] {
        &mut self.fractions[object * self.memories..(object + 1) * self.memories]
    }
}

impl From<&Placement> for Rows {
    fn from(placement: &Placement) -> Self {
        let memories = placement.rows().first().map_or(1, Vec::len);
        Self::of(placement.rows().iter().map(Vec::as_slice), memories)
    }
}
