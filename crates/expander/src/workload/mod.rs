//! What the GPU's warps access: real addresses of real algorithms on real data structures.
//!
//! A `Kernel` walks its data structure and names, for each warp, the line of its next load and the
//! line that a store at that point of the algorithm goes to. A [`Workload`] deals loads and stores in
//! the published ratio and ends each warp after its share of the accesses. One file holds the kernels
//! of one kind of data structure.

mod graph;
mod grid;
mod kernel;
mod matrix;
mod mesh;
mod trace;
mod tree;
mod vector;

use tierloom_model::index::IndexVec;

use crate::error::{ExpanderError, Result};
use crate::ids::WarpId;
use crate::parameters::Mix;
use kernel::{Kernel, Shape};

pub(crate) use kernel::Touch;
pub use trace::{RECORD_BYTES, Trace};

/// The accesses of all warps.
pub(crate) struct Workload {
    source: Source,
    /// Loads, of all accesses.
    loads: f64,
}

enum Source {
    Kernels { phases: Vec<Box<dyn Kernel>>, warps: IndexVec<WarpId, Progress>, accesses: u32 },
    Trace(trace::Replay),
}

/// How far a warp has come.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    done: u32,
    /// Loads due beyond those dealt; between 0 and 1.
    due: f64,
}

impl Workload {
    /// A workload by its name, of `passes` line accesses for every line of its data.
    pub(crate) fn new(name: &str, mix: &Mix, lines: u32, passes: f64, warps: u32, seed: u64) -> Result<Self> {
        let shape = Shape { lines, warps, seed };
        let phases = kernels(name, shape)?;
        let accesses = ((f64::from(lines) * passes / f64::from(warps)) as u32).max(phases.len() as u32);
        let warps = (0..warps).map(|_| Progress::default()).collect();
        Ok(Self { source: Source::Kernels { phases, warps, accesses }, loads: mix.loads.value })
    }

    /// A recorded trace, replayed.
    pub(crate) fn replay(trace: &Trace, warps: u32) -> Self {
        Self { source: Source::Trace(trace::Replay::new(trace, warps)), loads: 0.0 }
    }

    /// A warp's next access; none when it has done its share.
    pub(crate) fn next(&mut self, warp: WarpId) -> Option<Touch> {
        let (phases, progress, accesses) = match &mut self.source {
            Source::Trace(replay) => return replay.next(warp),
            Source::Kernels { phases, warps, accesses } => (phases, &mut warps[warp], *accesses),
        };
        if progress.done == accesses {
            return None;
        }
        let phase = match phases.len() {
            1 => 0,
            count => u64::from(progress.done) * count as u64 / u64::from(accesses),
        };
        let kernel = &mut phases[phase as usize];
        progress.done += 1;
        progress.due += self.loads;
        if progress.due < 1.0 {
            return Some(Touch { line: kernel.store(warp.0), store: true });
        }
        progress.due -= 1.0;
        Some(Touch { line: kernel.load(warp.0), store: false })
    }
}

/// The kernels that a workload runs one after another; the two real applications are mixtures.
fn kernels(name: &str, shape: Shape) -> Result<Vec<Box<dyn Kernel>>> {
    let parts: &[&str] = match name {
        "gnn" => &["bfs", "vadd", "gemm"],
        "mri" => &["sort", "conv3"],
        single => &[single],
    };
    parts.iter().map(|part| by_name(part, shape)).collect()
}

fn by_name(name: &str, shape: Shape) -> Result<Box<dyn Kernel>> {
    Ok(match name {
        "rsum" => Box::new(vector::Sum::new(shape)),
        "vadd" => Box::new(vector::Add::new(shape)),
        "saxpy" => Box::new(vector::Saxpy::new(shape)),
        "stencil" => Box::new(grid::Stencil::new(shape)),
        "conv3" => Box::new(grid::Convolution::new(shape)),
        "path" => Box::new(grid::Paths::new(shape)),
        "sort" => Box::new(tree::Sort::new(shape)),
        "gemm" => Box::new(matrix::Multiply::new(shape)),
        "gauss" => Box::new(matrix::Eliminate::new(shape)),
        "cfd" => Box::new(mesh::Flow::new(shape)),
        "bfs" => Box::new(graph::Search::new(shape)),
        _ => {
            let hint = "rsum, stencil, sort, gemm, vadd, saxpy, conv3, path, cfd, gauss, bfs, gnn, mri";
            return Err(ExpanderError::Unknown { what: "workload", name: name.to_owned(), known: hint.to_owned() });
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tierloom_model::{Figure, Kind};

    use super::*;

    const ALL: [&str; 13] =
        ["rsum", "stencil", "sort", "gemm", "vadd", "saxpy", "conv3", "path", "cfd", "gauss", "bfs", "gnn", "mri"];

    fn mix(loads: f64) -> Mix {
        let figure = |value| Figure::new(value, Kind::Assumed, "", "");
        Mix { group: String::new(), compute: figure(0.2), loads: figure(loads) }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn every_workload_stays_within_its_data_and_keeps_its_ratio(
            megabytes in 1_u32..5, warps in prop::sample::select(vec![1_u32, 7, 64]), loads in 0.3_f64..0.999, seed in 0_u64..9,
        ) {
            let lines = megabytes << 14;
            for name in ALL {
                let mut workload = Workload::new(name, &mix(loads), lines, 0.5, warps, seed).unwrap();
                let (mut accesses, mut stores) = (0_u32, 0_u32);
                for warp in 0..warps {
                    while let Some(Touch { line, store }) = workload.next(WarpId(warp)) {
                        prop_assert!(line < lines, "{name} reaches line {line} of {lines}");
                        accesses += 1;
                        stores += u32::from(store);
                    }
                }
                prop_assert!(accesses <= lines / 2 && accesses + warps > lines / 2);
                let found = 1.0 - f64::from(stores) / f64::from(accesses);
                prop_assert!((found - loads).abs() < 0.01 + f64::from(warps) / f64::from(accesses), "{name}: {found}");
            }
        }
    }

    #[test]
    fn a_workload_repeats_itself() {
        for name in ALL {
            let run = || {
                let mut workload = Workload::new(name, &mix(0.7), 1 << 14, 0.2, 4, 3).unwrap();
                (0..2000).map(|step| workload.next(WarpId(step % 4))).collect::<Vec<_>>()
            };
            assert_eq!(run(), run(), "{name}");
        }
    }
}
