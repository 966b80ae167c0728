//! Which share of each object lives in which memory.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::machine::Machine;
use crate::profile::Profile;
use crate::units::format_bytes;

/// For each object of a profile, the fraction of its pages in each memory of a machine.
///
/// Row `o`, column `m`: fraction of object `o` in memory `m`; every row sums to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Placement {
    fractions: Vec<Vec<f64>>,
}

/// Why rows of fractions are not a placement.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PlacementError {
    /// A row does not belong to the machine, is negative, or does not sum to 1.
    #[error("object {object}: its fractions {row:?} are not {memories} non-negative numbers that sum to 1")]
    Row {
        /// Position of the object.
        object: usize,
        /// The row as given.
        row: Vec<f64>,
        /// Columns that a row must have.
        memories: usize,
    },
    /// More data than a memory holds.
    #[error("memory {memory}: {used} placed, {capacity} there")]
    Overfull {
        /// Name of the memory.
        memory: String,
        /// Bytes placed, for people.
        used: String,
        /// Bytes there, for people.
        capacity: String,
    },
}

/// Rounding that a row's sum may carry.
const SUM_TOLERANCE: f64 = 1e-9;

impl Placement {
    /// Takes rows of fractions, one per object, each with `memories` columns.
    ///
    /// # Errors
    /// [`PlacementError::Row`] for the first row that is not a distribution.
    pub fn new(fractions: Vec<Vec<f64>>, memories: usize) -> Result<Self, PlacementError> {
        for (object, row) in fractions.iter().enumerate() {
            let sum: f64 = row.iter().sum();
            let fits = row.len() == memories && row.iter().all(|f| *f >= 0.0) && (sum - 1.0).abs() <= SUM_TOLERANCE;
            if !fits {
                return Err(PlacementError::Row { object, row: row.clone(), memories });
            }
        }
        Ok(Self { fractions })
    }

    /// Every object whole in one memory.
    pub fn uniform(objects: usize, memories: usize, memory: usize) -> Self {
        let mut row = vec![0.0; memories];
        row[memory] = 1.0;
        Self { fractions: vec![row; objects] }
    }

    /// Fractions of one object by memory.
    pub fn row(&self, object: usize) -> &[f64] {
        &self.fractions[object]
    }

    /// All rows, by object.
    pub fn rows(&self) -> &[Vec<f64>] {
        &self.fractions
    }

    /// Bytes in each memory when every object is at its full size.
    pub fn bytes_by_memory(&self, profile: &Profile) -> Vec<f64> {
        let memories = self.fractions.first().map_or(0, Vec::len);
        let mut bytes = vec![0.0; memories];
        for (row, object) in self.fractions.iter().zip(&profile.objects) {
            for (sum, fraction) in bytes.iter_mut().zip(row) {
                *sum += fraction * object.size_bytes as f64;
            }
        }
        bytes
    }

    /// Refuses a placement that puts more into a memory than it holds.
    ///
    /// # Errors
    /// [`PlacementError::Overfull`] for the first such memory.
    pub fn check_capacity(&self, profile: &Profile, machine: &Machine) -> Result<(), PlacementError> {
        for (memory, used) in machine.memories.iter().zip(self.bytes_by_memory(profile)) {
            let capacity = memory.capacity_bytes.value;
            if used > capacity as f64 * (1.0 + SUM_TOLERANCE) {
                return Err(PlacementError::Overfull {
                    memory: memory.name.clone(),
                    used: format_bytes(crate::units::round_to_u64(used)),
                    capacity: format_bytes(capacity),
                });
            }
        }
        Ok(())
    }
}
