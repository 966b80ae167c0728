//! Pools by the path of their file, of either kind: made, opened, looked at, checked, repaired.

use std::path::Path;

use tierloom_linux::mapped::{MappedFile, bytes_of, is_device};

use crate::backend::{Backend, Kind};
use crate::check::{self, Problem};
use crate::device::Device;
use crate::error::PmemError;
use crate::layout::long_enough;
use crate::look::{self, Look};
use crate::pmdk::{self, LibraryPool};
use crate::pool::Pool;
use crate::read_only::ReadOnly;

/// Who keeps the pool of a file: libpmemobj's files say so at their start.
pub fn kind_of(path: &Path) -> Kind {
    if pmdk::is_its_own(path) { Kind::Library } else { Kind::Native }
}

/// Makes a pool in a new file, or on a device. `identity` is any random number.
///
/// # Errors
/// The file exists, there is no room, or the sizes make no pool; no file is left then.
pub fn create(
    kind: Kind,
    path: &Path,
    bytes: u64,
    log: Option<u64>,
    identity: u64,
) -> Result<Box<dyn Backend>, PmemError> {
    match kind {
        Kind::Library if log.is_some() => {
            let what = "a pool of libpmemobj has no log of a fixed size".to_owned();
            Err(PmemError::Request { what, hint: "leave the log's size out: transactions take room from the data" })
        }
        Kind::Library => Ok(Box::new(LibraryPool::create(path, bytes)?)),
        Kind::Native => {
            let device = Device::new(MappedFile::create(path, bytes)?);
            let made = Pool::create(device, log, identity);
            let cleared = made.inspect_err(|_| {
                if !is_device(path) {
                    std::fs::remove_file(path).ok();
                }
            });
            Ok(Box::new(cleared?))
        }
    }
}

/// Opens a pool of either kind; what a crash cut off is undone.
///
/// # Errors
/// There is no pool, it is damaged, or another process has it.
pub fn open(path: &Path) -> Result<Box<dyn Backend>, PmemError> {
    match kind_of(path) {
        Kind::Library => Ok(Box::new(LibraryPool::open(path)?)),
        Kind::Native => {
            long_enough(bytes_of(path)?)?;
            Ok(Box::new(Pool::open(Device::new(MappedFile::open(path)?))?))
        }
    }
}

/// Everything that is wrong with a pool's file; nothing is changed.
///
/// # Errors
/// It cannot be read, or another process has it.
pub fn check_file(path: &Path) -> Result<Vec<Problem>, PmemError> {
    match kind_of(path) {
        Kind::Library => pmdk::check(path),
        Kind::Native => Ok(check::check(&ReadOnly::open(path)?)),
    }
}

/// Makes a damaged pool one that opens; returns what was wrong.
///
/// # Errors
/// There is nothing to start from; the medium failed.
pub fn repair_file(path: &Path) -> Result<Vec<Problem>, PmemError> {
    match kind_of(path) {
        Kind::Library => pmdk::repair(path),
        Kind::Native => {
            long_enough(bytes_of(path)?)?;
            check::repair(&mut Device::new(MappedFile::open(path)?))
        }
    }
}

/// Looks at a pool's file; nothing is changed, and it need not be writable.
///
/// # Errors
/// There is no pool, it is damaged, or a process has it open.
pub fn look(path: &Path) -> Result<Look, PmemError> {
    match kind_of(path) {
        Kind::Library => pmdk::look(path),
        Kind::Native => look::look(path),
    }
}
