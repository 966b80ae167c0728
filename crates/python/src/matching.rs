//! Which nodes of this machine a plan's memories are: its kernel asked, and the engine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use serde::Serialize;
use tierloom_linux::root::Root;
use tierloom_model::MemoryKind;
use tierloom_place::{NodeMatch, match_nodes as matched, nodes_to_give as to_give};
use tierloom_probe::host_memories;

use crate::documents::to_python;
use crate::errors;
use crate::nouns::Plan;

/// One memory of the plan and its node here: an entry of `memories` of `tierloom run --json`.
#[derive(Serialize)]
struct Entry {
    memory: String,
    node: u32,
    kind: MemoryKind,
    because: String,
}

/// Says which node of the machine at a root each memory is that a plan uses, for a program that may
/// run on some CPUs; `given` is taken as it is.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
pub(crate) fn match_nodes(
    py: Python<'_>,
    plan: Py<Plan>,
    given: BTreeMap<String, u32>,
    cpus: Vec<u32>,
    root: PathBuf,
) -> PyResult<Bound<'_, PyAny>> {
    let host = py.detach(|| host_memories(&Root::at(root), &cpus));
    let host = host.map_err(|error| errors::bad_machine(&error.to_string()))?;
    let found = matched(&plan.get().0, &host, &given).map_err(|error| errors::from_match(&error))?;
    to_python(py, &found.into_iter().map(Entry::from).collect::<Vec<_>>())
}

/// The nodes to give by hand to a program on some CPUs of the machine at a root, so that each memory has one.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
pub(crate) fn nodes_to_give(
    py: Python<'_>,
    plan: Py<Plan>,
    cpus: Vec<u32>,
    root: PathBuf,
) -> PyResult<BTreeMap<String, u32>> {
    let host = py.detach(|| host_memories(&Root::at(root), &cpus));
    let host = host.map_err(|error| errors::bad_machine(&error.to_string()))?;
    Ok(to_give(&plan.get().0, &host))
}

impl From<NodeMatch> for Entry {
    fn from(found: NodeMatch) -> Self {
        let NodeMatch { memory, node, kind, because } = found;
        Self { memory, node, kind, because: because.to_string() }
    }
}
