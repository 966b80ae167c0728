//! A flow solver on an unstructured mesh: fields in separate arrays, neighbours not far away.

use tierloom_model::hash::nth;

use super::kernel::{Kernel, Shape};
use crate::line::Line;

/// Four-byte fields of a cell: flow variables, fluxes, neighbour numbers, face normals.
const VARIABLES: u32 = 5;
const FLUXES: u32 = 5;
const NEIGHBOURS: u32 = 4;
const NORMALS: u32 = 12;
const FIELDS: u32 = VARIABLES + FLUXES + NEIGHBOURS + NORMALS;

/// Lines of a field within which neighbours lie: the bandwidth of a renumbered mesh.
const BAND: u64 = 64;

/// Flux computation of an Euler solver: a warp takes groups of cells, reads their geometry and
/// variables and those of four neighbours, and adds up fluxes.
pub(super) struct Flow {
    shape: Shape,
    field: u32,
    at: Vec<(u32, u32, u32)>,
}

impl Flow {
    pub(super) fn new(shape: Shape) -> Self {
        Self { shape, field: (shape.lines / FIELDS).max(1), at: vec![(0, 0, 0); shape.warps as usize] }
    }

    /// The group of cells where a warp is.
    fn group(&self, warp: u32) -> u32 {
        let (first, size) = self.shape.chunk(warp, self.field);
        first + self.at[warp as usize].0 % size
    }

    /// The group of the neighbours over one face.
    fn neighbour(&self, group: u32, face: u32) -> u32 {
        let random = nth(self.shape.seed, u64::from(group) * 4 + u64::from(face)) % (2 * BAND);
        let near = i64::from(group) + random as i64 - BAND as i64;
        near.clamp(0, i64::from(self.field) - 1) as u32
    }
}

impl Kernel for Flow {
    fn load(&mut self, warp: u32) -> Line {
        let own = VARIABLES + NEIGHBOURS + NORMALS;
        let (_, step, _) = self.at[warp as usize];
        let group = self.group(warp);
        let (field, cell) = match step {
            0..VARIABLES => (step, group),
            _ if step < own => (FLUXES + step, group),
            _ => ((step - own) % VARIABLES, self.neighbour(group, (step - own) / VARIABLES)),
        };
        let state = &mut self.at[warp as usize];
        *state =
            if step + 1 == own + NEIGHBOURS * VARIABLES { (state.0 + 1, 0, 0) } else { (state.0, step + 1, state.2) };
        field * self.field + cell
    }

    /// Fluxes are summed face by face, and the variables stepped with them.
    fn store(&mut self, warp: u32) -> Line {
        let group = self.group(warp);
        let state = &mut self.at[warp as usize];
        state.2 += 1;
        let field = VARIABLES + state.2 % FLUXES;
        let stepped = state.2 / FLUXES % (NEIGHBOURS + 1) == NEIGHBOURS;
        (if stepped { field - VARIABLES } else { field }) * self.field + group
    }
}
