//! What a pool can do, whoever keeps its bytes in order: our own undo log, or libpmemobj.
//!
//! Arrays are ranges of the pool's file: who uses them maps the file, or stores through
//! [`Backend::start`]. One transaction is open at a time, and ends in the thread that began it.

use std::fmt::Debug;
use std::ops::Range;

use crate::directory::Entry;
use crate::error::PmemError;
use crate::pool::Usage;

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

/// What has checksums is not made durable piece by piece: a crash between the bytes and their checksums would
/// look like damage.
pub(crate) fn in_transactions_only() -> PmemError {
    let what = "an array with checksums changes in transactions only".to_owned();
    PmemError::Request { what, hint: "change it inside `with pool.transaction(array):`" }
}
