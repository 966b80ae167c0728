//! The front of the GPU: cores that issue the accesses of their warps, and wait for loads.
//!
//! A core issues one access after another, each taking the issue cycles of its instructions; it
//! issues nothing while it waits for as many lines as it can. With one line a core this is the law
//! that Vortex's cycle-level simulator obeys: cycles = issue + loads / cores x latency.

use std::collections::VecDeque;

use tierloom_model::index::IndexVec;

use crate::ids::{CoreId, WarpId};
use crate::line::Line;
use crate::parameters::Gpu as Parameters;
use crate::time::{Ps, from_ns};
use crate::workload::{Touch, Workload};

/// A 64-byte access of a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) warp: WarpId,
    pub(crate) line: Line,
    pub(crate) store: bool,
}

#[derive(Debug, Default)]
struct Core {
    ready: VecDeque<WarpId>,
    loads: u32,
    current: Option<Access>,
    stalled: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Warp {
    loads: u32,
    /// Neither ready nor at the issue port.
    waits: bool,
}

/// All cores and warps.
#[derive(Debug)]
pub(crate) struct Gpu {
    cores: IndexVec<CoreId, Core>,
    warps: IndexVec<WarpId, Warp>,
    warps_per_core: u32,
    core_loads: u32,
    warp_loads: u32,
    issue: Ps,
    /// Line accesses issued.
    pub(crate) accesses: u64,
    pub(crate) stores: u64,
}

impl Gpu {
    /// A GPU at rest; `compute` is the share of instructions that do not touch memory.
    pub(crate) fn new(gpu: &Parameters, compute: f64) -> Self {
        let (cores, warps_per_core) = (gpu.cores.value, gpu.warps.value);
        let core = |number| Core {
            ready: (0..warps_per_core).map(|w| WarpId(number * warps_per_core + w)).collect(),
            ..Core::default()
        };
        let cycles = gpu.line_cycles.value / (1.0 - compute);
        Self {
            cores: (0..cores).map(core).collect(),
            warps: (0..cores * warps_per_core).map(|_| Warp::default()).collect(),
            warps_per_core,
            core_loads: gpu.core_loads.value,
            warp_loads: gpu.warp_loads.value,
            issue: from_ns(cycles / gpu.clock_ghz.value),
            accesses: 0,
            stores: 0,
        }
    }

    pub(crate) fn cores(&self) -> impl Iterator<Item = CoreId> + use<> {
        self.cores.ids()
    }

    /// The core of a warp.
    pub(crate) fn core_of(&self, warp: WarpId) -> CoreId {
        CoreId(warp.0 / self.warps_per_core)
    }

    /// Puts the next access of a core at its issue port; when it will leave, if there is one.
    pub(crate) fn next(&mut self, core: CoreId, now: Ps, workload: &mut Workload) -> Option<Ps> {
        let state = &mut self.cores[core];
        if state.current.is_some() || state.stalled || state.loads >= self.core_loads {
            return None;
        }
        while let Some(warp) = state.ready.pop_front() {
            if let Some(Touch { line, store }) = workload.next(warp) {
                state.current = Some(Access { warp, line, store });
                return Some(now + self.issue);
            }
        }
        None
    }

    /// The access that leaves a core's issue port.
    pub(crate) fn issued(&mut self, core: CoreId) -> Option<Access> {
        let access = self.cores[core].current.take();
        if let Some(access) = access {
            self.accesses += 1;
            self.stores += u64::from(access.store);
        }
        access
    }

    /// The access cannot go on: its core waits with it.
    pub(crate) fn stall(&mut self, warp: WarpId) {
        let core = self.core_of(warp);
        self.cores[core].stalled = true;
    }

    /// The access goes on.
    pub(crate) fn resume(&mut self, warp: WarpId) {
        let core = self.core_of(warp);
        self.cores[core].stalled = false;
    }

    /// A warp's access waits for its line, or is `done` at once.
    pub(crate) fn accepted(&mut self, warp: WarpId, done: bool) {
        let core = self.core_of(warp);
        let state = &mut self.warps[warp];
        if !done {
            state.loads += 1;
            self.cores[core].loads += 1;
        }
        state.waits = state.loads >= self.warp_loads;
        if !state.waits {
            self.cores[core].ready.push_back(warp);
        }
    }

    /// A line that a warp waited for is there.
    pub(crate) fn answered(&mut self, warp: WarpId) {
        let core = self.core_of(warp);
        let state = &mut self.warps[warp];
        state.loads -= 1;
        self.cores[core].loads -= 1;
        if std::mem::take(&mut state.waits) {
            self.cores[core].ready.push_back(warp);
        }
    }

    /// A warp's access waits for its page, as long as that takes.
    pub(crate) fn fault(&mut self, warp: WarpId) {
        self.warps[warp].loads += 1;
        let core = self.core_of(warp);
        self.cores[core].loads += 1;
    }

    /// The access is tried again.
    pub(crate) fn replay(&mut self, warp: WarpId) {
        self.warps[warp].loads -= 1;
        let core = self.core_of(warp);
        self.cores[core].loads -= 1;
    }

    /// Whether no core waits for anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.cores.iter().all(|core| core.loads == 0 && !core.stalled && core.current.is_none())
    }
}
