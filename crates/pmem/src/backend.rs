//! What a pool can do, whoever keeps its bytes in order: our own undo log, or libpmemobj.
//!
//! Arrays are ranges of the pool's file: who uses them maps the file, or stores through
//! [`Backend::start`]. One transaction is open at a time, and ends in the thread that began it.

use std::fmt::Debug;
use std::ops::Range;
use std::path::Path;

use tierloom_linux::mapped::{MappedFile, bytes_of, is_device};

use crate::check::{Problem, check, repair};
use crate::device::Device;
use crate::directory::Entry;
use crate::error::PmemError;
use crate::layout::long_enough;
use crate::look::ReadOnly;
use crate::pmdk::{self, LibraryPool};
use crate::pool::{Pool, Usage};

/// Who keeps a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// This crate's own format: [`crate::Pool`].
    Native,
    /// libpmemobj of PMDK.
    Library,
}

/// An open pool of either kind.
///
/// # Contract
/// After [`Backend::commit`] returned, what was saved, allocated and freed since [`Backend::begin`] survives
/// a power failure; before, none of it does. Methods that change something open a transaction of their own
/// where none is open.
pub trait Backend: Debug + Send + Sync {
    /// Who keeps it.
    fn kind(&self) -> Kind;
    /// First byte of the file as it is mapped here.
    fn start(&self) -> *mut u8;
    /// What makes stores durable: an instruction, a library, or `msync`.
    fn durability(&self) -> &'static str;
    /// Whether the file is persistent memory that is mapped with `MAP_SYNC`.
    fn is_direct(&self) -> bool;
    /// Ranges that opening put back after a crash; `None` where the library keeps that to itself.
    fn recovered(&self) -> Option<usize>;
    /// Arrays, by name.
    fn entries(&self) -> Vec<Entry>;
    /// How full it is.
    fn usage(&self) -> Usage;
    /// A new array; what is written to it in this transaction is durable when that commits.
    ///
    /// # Errors
    /// The name is taken or too long, or there is no room.
    fn add(&mut self, wanted: Entry) -> Result<Entry, PmemError>;
    /// The same for an array without checksums.
    ///
    /// # Errors
    /// As [`Backend::add`].
    fn allocate(&mut self, name: &str, kind: &str, bytes: u64, version: u64) -> Result<Entry, PmemError> {
        self.add(Entry::new(name, kind, bytes, version))
    }
    /// Ranges of an array, in bytes from its start, that do not match its checksums; an array without any has
    /// none, and neither has what the open transaction changes.
    ///
    /// # Errors
    /// There is no such array.
    fn verify(&self, name: &str) -> Result<Vec<Range<u64>>, PmemError>;
    /// Gives an array's room back.
    ///
    /// # Errors
    /// There is no such array.
    fn free(&mut self, name: &str) -> Result<(), PmemError>;
    /// Whether a transaction is open.
    fn in_transaction(&self) -> bool;
    /// Opens one.
    ///
    /// # Errors
    /// One is open.
    fn begin(&mut self) -> Result<(), PmemError>;
    /// Keeps the present bytes of a range of an array, so that it may change.
    ///
    /// # Errors
    /// No transaction is open, the range is no data, or there is no room for it.
    fn save(&mut self, offset: u64, bytes: u64) -> Result<(), PmemError>;
    /// Ends the transaction for good.
    ///
    /// # Errors
    /// No transaction is open; the medium failed.
    fn commit(&mut self) -> Result<(), PmemError>;
    /// Takes the transaction's changes back.
    ///
    /// # Errors
    /// No transaction is open; the medium failed.
    fn abort(&mut self) -> Result<(), PmemError>;
    /// Makes what was stored in a range durable; any thread may, beside others.
    ///
    /// # Errors
    /// The medium failed; the range is of an array with checksums, which a crash here would belie.
    fn flush(&self, offset: u64, bytes: u64) -> Result<(), PmemError>;
    /// Makes the pool larger.
    ///
    /// # Errors
    /// There is no room, or the back-end cannot.
    fn grow(&mut self, bytes: u64) -> Result<(), PmemError>;
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
        Kind::Native => Ok(check(&ReadOnly::open(path)?)),
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
            repair(&mut Device::new(MappedFile::open(path)?))
        }
    }
}

/// What has checksums is not made durable piece by piece: a crash between the bytes and their checksums would
/// look like damage.
pub(crate) fn in_transactions_only() -> PmemError {
    let what = "an array with checksums changes in transactions only".to_owned();
    PmemError::Request { what, hint: "change it inside `with pool.transaction(array):`" }
}

/// Who keeps the pool of a file: libpmemobj's files say so at their start.
pub fn kind_of(path: &Path) -> Kind {
    if pmdk::is_its_own(path) { Kind::Library } else { Kind::Native }
}

impl Backend for Pool<Device> {
    fn kind(&self) -> Kind {
        Kind::Native
    }

    fn start(&self) -> *mut u8 {
        self.medium().file().start()
    }

    fn durability(&self) -> &'static str {
        self.medium().how().name()
    }

    fn is_direct(&self) -> bool {
        self.medium().file().is_direct()
    }

    fn recovered(&self) -> Option<usize> {
        Some(Pool::recovered(self))
    }

    fn entries(&self) -> Vec<Entry> {
        self.arrays().into_iter().cloned().collect()
    }

    fn usage(&self) -> Usage {
        Pool::usage(self)
    }

    fn add(&mut self, wanted: Entry) -> Result<Entry, PmemError> {
        self.medium().is_whole()?;
        Pool::add(self, wanted)
    }

    fn free(&mut self, name: &str) -> Result<(), PmemError> {
        self.medium().is_whole()?;
        Pool::free(self, name)
    }

    fn verify(&self, name: &str) -> Result<Vec<Range<u64>>, PmemError> {
        self.medium().is_whole()?;
        Pool::verify(self, name)
    }

    fn in_transaction(&self) -> bool {
        Pool::in_transaction(self)
    }

    fn begin(&mut self) -> Result<(), PmemError> {
        Pool::begin(self)
    }

    fn save(&mut self, offset: u64, bytes: u64) -> Result<(), PmemError> {
        self.medium().is_whole()?;
        Pool::save(self, offset, bytes)
    }

    fn commit(&mut self) -> Result<(), PmemError> {
        self.medium().is_whole()?;
        Pool::commit(self)
    }

    fn abort(&mut self) -> Result<(), PmemError> {
        self.medium().is_whole()?;
        Pool::abort(self)
    }

    fn flush(&self, offset: u64, bytes: u64) -> Result<(), PmemError> {
        self.medium().is_whole()?;
        if self.is_checked(offset, bytes) {
            return Err(in_transactions_only());
        }
        self.medium().flush(offset, bytes)
    }

    fn grow(&mut self, bytes: u64) -> Result<(), PmemError> {
        let larger = self.medium().file().grown(bytes)?;
        Pool::grow(self, Device::new(larger))
    }
}
