//! Persistent pools for Python, which maps the same file for its arrays.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use tierloom_linux::LinuxError;
use tierloom_linux::mapped::MappedFile;
use tierloom_pmem::{Device, Entry, PmemError, Pool, WriteBack, check, repair};

use crate::errors;

/// Name, kind, offset (bytes), size (bytes), version of an array.
type ArrayRow = (String, String, u64, u64, u64);

/// An open pool. Offsets and sizes are bytes of its file.
#[pyclass(frozen)]
pub(crate) struct NativePool {
    pool: Mutex<Pool<Device>>,
}

#[pymethods]
impl NativePool {
    /// A new pool in a new file.
    #[staticmethod]
    fn create(py: Python<'_>, path: PathBuf, size: u64, log_bytes: Option<u64>, identity: u64) -> PyResult<Self> {
        let made = py.detach(|| {
            let device = Device::new(MappedFile::create(&path, size)?);
            Pool::create(device, log_bytes, identity)
        });
        Self::of(made.inspect_err(|error| {
            if !matches!(error, PmemError::Kernel { .. }) {
                std::fs::remove_file(&path).ok();
            }
        }))
    }

    /// An existing pool; what a crash cut off is undone.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::of(py.detach(|| Pool::open(device(&path)?)))
    }

    /// How stores become durable: `clwb`, `clflushopt` or `msync`.
    fn write_back_by(&self) -> &'static str {
        match self.lock().medium().how() {
            WriteBack::Clwb => "clwb",
            WriteBack::ClflushOpt => "clflushopt",
            WriteBack::Msync => "msync",
        }
    }

    /// Whether the file is persistent memory, mapped with `MAP_SYNC`.
    fn direct(&self) -> bool {
        self.lock().medium().file().is_direct()
    }

    /// Snapshots that opening put back.
    fn recovered(&self) -> usize {
        self.lock().recovered()
    }

    fn arrays(&self) -> Vec<ArrayRow> {
        self.lock().arrays().into_iter().map(row).collect()
    }

    /// All bytes, bytes for data, used, longest free piece, log.
    fn usage(&self) -> (u64, u64, u64, u64, u64) {
        let usage = self.lock().usage();
        (usage.bytes, usage.data_bytes, usage.used_bytes, usage.longest_free_bytes, usage.log_bytes)
    }

    fn allocate(&self, name: &str, kind: &str, size: u64, version: u64) -> PyResult<ArrayRow> {
        self.lock().allocate(name, kind, size, version).map(|entry| row(&entry)).map_err(failed)
    }

    fn free(&self, name: &str) -> PyResult<()> {
        self.lock().free(name).map_err(failed)
    }

    fn begin(&self) -> PyResult<()> {
        self.lock().begin().map_err(failed)
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
        py.detach(|| {
            let mut pool = self.lock();
            pool.write_back(offset, size);
            pool.fence()
        })
        .map_err(failed)
    }

    /// Makes the pool larger.
    fn grow(&self, py: Python<'_>, size: u64) -> PyResult<()> {
        py.detach(|| {
            let mut pool = self.lock();
            let larger = pool.medium().file().grown(size)?;
            pool.grow(Device::new(larger))
        })
        .map_err(failed)
    }
}

impl NativePool {
    fn of(pool: Result<Pool<Device>, PmemError>) -> PyResult<Self> {
        Ok(Self { pool: Mutex::new(pool.map_err(failed)?) })
    }

    /// A panic elsewhere left the pool as a crash would: the file is sound.
    fn lock(&self) -> MutexGuard<'_, Pool<Device>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Everything wrong with a pool's file, as (is damage, words); nothing is changed.
#[pyfunction]
pub(crate) fn check_pool(py: Python<'_>, path: PathBuf) -> PyResult<Vec<(bool, String)>> {
    let problems = py.detach(|| device(&path).map(|device| check(&device)));
    let told = problems.map_err(|error| failed(error.into()))?;
    Ok(told.iter().map(|problem| (problem.is_damage(), problem.to_string())).collect())
}

/// Repairs a pool's file; returns what was wrong, as [`check_pool`] does.
#[pyfunction]
pub(crate) fn repair_pool(py: Python<'_>, path: PathBuf) -> PyResult<Vec<(bool, String)>> {
    let problems = py.detach(|| repair(&mut device(&path)?)).map_err(failed)?;
    Ok(problems.iter().map(|problem| (problem.is_damage(), problem.to_string())).collect())
}

fn device(path: &std::path::Path) -> Result<Device, LinuxError> {
    MappedFile::open(path).map(Device::new)
}

fn row(entry: &Entry) -> ArrayRow {
    (entry.name.clone(), entry.kind.clone(), entry.offset, entry.bytes, entry.version)
}

fn failed(error: PmemError) -> PyErr {
    errors::from_pmem(&error)
}
