//! Persistent pools for Python, which maps the same file for its arrays.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use tierloom_pmem::stream::{self, Kernel, Persist, Setup};
use tierloom_pmem::{
    Backend, Entry, Kind, PmemError, Problem, Usage, check_file, create, kind_of, look, open, pmdk, repair_file,
};

use crate::errors;

/// Name, kind, offset (bytes), size (bytes), version of an array, and whether it carries checksums.
type ArrayRow = (String, String, u64, u64, u64, bool);
/// All bytes, bytes for data, used, longest free piece, log.
type UsageRow = (u64, Option<u64>, u64, Option<u64>, Option<u64>);
/// Of a problem: it is damage, a repair mends it, what it is.
type Told = (bool, bool, String);

/// An open pool. Offsets and sizes are bytes of its file.
#[pyclass(frozen)]
pub(crate) struct OpenPool {
    pool: Mutex<Box<dyn Backend>>,
}

#[pymethods]
impl OpenPool {
    /// A new pool in a new file, kept by `"native"` or `"pmdk"`.
    #[staticmethod]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        size: u64,
        log_bytes: Option<u64>,
        identity: u64,
        backend: &str,
    ) -> PyResult<Self> {
        let kind = if backend == name(Kind::Library) { Kind::Library } else { Kind::Native };
        Self::of(py.detach(|| create(kind, &path, size, log_bytes, identity)))
    }

    /// An existing pool; what a crash cut off is undone.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::of(py.detach(|| open(&path)))
    }

    /// Who keeps it: `native` or `pmdk`.
    fn backend(&self) -> &'static str {
        name(self.lock().kind())
    }

    /// How stores become durable: `clwb`, `clflushopt`, `libpmem` or `msync`.
    fn write_back_by(&self) -> &'static str {
        self.lock().durability()
    }

    /// Whether the file is persistent memory, mapped with `MAP_SYNC`.
    fn direct(&self) -> bool {
        self.lock().is_direct()
    }

    /// Snapshots that opening put back; the library does not say.
    fn recovered(&self) -> Option<usize> {
        self.lock().recovered()
    }

    fn arrays(&self) -> Vec<ArrayRow> {
        self.lock().entries().iter().map(row).collect()
    }

    fn usage(&self) -> UsageRow {
        usage_row(&self.lock().usage())
    }

    fn allocate(
        &self,
        py: Python<'_>,
        name: &str,
        kind: &str,
        size: u64,
        version: u64,
        checksums: bool,
    ) -> PyResult<ArrayRow> {
        let wanted = Entry::new(name, kind, size, version).with_checksums(checksums);
        py.detach(|| self.lock().add(wanted)).map(|entry| row(&entry)).map_err(failed)
    }

    /// First byte and end of each range of an array that does not match its checksums.
    fn verify(&self, py: Python<'_>, name: &str) -> PyResult<Vec<(u64, u64)>> {
        let ranges = py.detach(|| self.lock().verify(name)).map_err(failed)?;
        Ok(ranges.into_iter().map(|range| (range.start, range.end)).collect())
    }

    fn free(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        py.detach(|| self.lock().free(name)).map_err(failed)
    }

    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lock().begin()).map_err(failed)
    }

    fn in_transaction(&self) -> bool {
        self.lock().in_transaction()
    }

    fn save(&self, py: Python<'_>, offset: u64, size: u64) -> PyResult<()> {
        py.detach(|| self.lock().save(offset, size)).map_err(failed)
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lock().commit()).map_err(failed)
    }

    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lock().abort()).map_err(failed)
    }

    /// Makes a range durable, outside of transactions.
    fn persist(&self, py: Python<'_>, offset: u64, size: u64) -> PyResult<()> {
        py.detach(|| self.lock().flush(offset, size)).map_err(failed)
    }

    /// Makes the pool larger.
    fn grow(&self, py: Python<'_>, size: u64) -> PyResult<()> {
        py.detach(|| self.lock().grow(size)).map_err(failed)
    }

    /// STREAM on three of its arrays of doubles: seconds of every counted round, by kernel.
    fn stream(
        &self,
        py: Python<'_>,
        offsets: [u64; 3],
        elements: usize,
        cpus: Vec<u32>,
        rounds: usize,
        persist: &str,
    ) -> PyResult<Vec<(String, Vec<f64>)>> {
        let persist = match persist {
            "flush" => Persist::Flush,
            "transaction" => Persist::Transaction,
            _ => Persist::None,
        };
        let setup = Setup { elements, cpus, rounds, persist };
        let times = py.detach(|| stream::in_pool(&setup, self.lock().as_mut(), offsets));
        times.map(named).map_err(failed)
    }
}

impl OpenPool {
    fn of(pool: Result<Box<dyn Backend>, PmemError>) -> PyResult<Self> {
        Ok(Self { pool: Mutex::new(pool.map_err(failed)?) })
    }

    /// A panic elsewhere left the pool as a crash would: the file is sound.
    fn lock(&self) -> MutexGuard<'_, Box<dyn Backend>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// STREAM in ordinary memory, on a node where one is named: seconds of every counted round, by kernel.
#[pyfunction]
pub(crate) fn stream_volatile(
    py: Python<'_>,
    elements: usize,
    cpus: Vec<u32>,
    rounds: usize,
    node: Option<u32>,
) -> PyResult<Vec<(String, Vec<f64>)>> {
    let setup = Setup { elements, cpus, rounds, persist: Persist::None };
    py.detach(|| stream::volatile(&setup, node)).map(named).map_err(failed)
}

/// Who keeps a pool, how it is durable, how full it is, its arrays, and ranges of a transaction that a crash
/// cut off.
type LookedAt = (&'static str, &'static str, UsageRow, Vec<ArrayRow>, Option<usize>);

/// What is in a pool's file; nothing is changed.
#[pyfunction]
pub(crate) fn look_at_pool(py: Python<'_>, path: PathBuf) -> PyResult<LookedAt> {
    let seen = py.detach(|| look(&path)).map_err(failed)?;
    let rows = seen.entries.iter().map(row).collect();
    Ok((name(seen.kind), seen.durability, usage_row(&seen.usage), rows, seen.unfinished))
}

/// Everything wrong with a pool's file; nothing is changed.
#[pyfunction]
pub(crate) fn check_pool(py: Python<'_>, path: PathBuf) -> PyResult<Vec<Told>> {
    py.detach(|| check_file(&path)).map(told).map_err(failed)
}

/// Repairs a pool's file; returns what was wrong, as [`check_pool`] does.
#[pyfunction]
pub(crate) fn repair_pool(py: Python<'_>, path: PathBuf) -> PyResult<Vec<Told>> {
    py.detach(|| repair_file(&path)).map(told).map_err(failed)
}

/// Who keeps the pool of a file, as its first bytes say.
#[pyfunction]
pub(crate) fn pool_backend(path: PathBuf) -> &'static str {
    name(kind_of(&path))
}

/// Why libpmemobj cannot be used here; none where it can.
#[pyfunction]
pub(crate) fn lacks_pmdk() -> Option<String> {
    pmdk::is_installed().err().map(|error| error.to_string())
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Native => "native",
        Kind::Library => "pmdk",
    }
}

fn told(problems: Vec<Problem>) -> Vec<Told> {
    problems.iter().map(|problem| (problem.is_damage(), problem.is_repairable(), problem.to_string())).collect()
}

fn named(times: stream::Times) -> Vec<(String, Vec<f64>)> {
    Kernel::ALL.iter().map(|kernel| kernel.name().to_owned()).zip(times).collect()
}

fn row(entry: &Entry) -> ArrayRow {
    (entry.name.clone(), entry.kind.clone(), entry.offset, entry.bytes, entry.version, entry.checked)
}

fn usage_row(usage: &Usage) -> UsageRow {
    (usage.bytes, usage.data_bytes, usage.used_bytes, usage.longest_free_bytes, usage.log_bytes)
}

fn failed(error: PmemError) -> PyErr {
    errors::from_pmem(&error)
}
