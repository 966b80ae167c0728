//! Pools that libpmemobj of PMDK keeps, where it is installed: the same arrays and the same promises.
//!
//! ```text
//! root object   one line of head, then entries of 256 bytes, as in our own directory
//! objects       one an array; its entry has its offset from the pool's first byte
//! ```
//! libpmemobj keeps header, heap and undo log; the directory changes inside its transactions.

mod library;
mod pool;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tierloom_linux::looked::LookedAt;
use tierloom_linux::mapped::is_device;

use crate::backend::{Backend, Kind};
use crate::check::Problem;
use crate::error::PmemError;
use crate::layout::damaged;
use crate::look::Look;
pub(crate) use pool::LibraryPool;

/// Start of every libpmemobj pool (PMDK, src/libpmemobj/obj.h, `OBJ_HDR_SIG`).
const SIGNATURE: [u8; 8] = *b"PMEMOBJ\0";

/// Whether libpmemobj can be loaded here.
///
/// # Errors
/// It cannot; the error says why.
pub fn is_installed() -> Result<(), PmemError> {
    library::functions().map(|_| ())
}

/// Whether a file begins as libpmemobj's pools do.
pub(crate) fn is_its_own(path: &Path) -> bool {
    let start = if is_device(path) { start_of_device(path) } else { start_of_file(path) };
    start.is_some_and(|start| start == SIGNATURE)
}

fn start_of_file(path: &Path) -> Option<[u8; 8]> {
    let mut start = [0; 8];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).ok().map(|()| start)
}

/// A DAX device cannot be read (`drivers/dax/device.c` has no `read`), only mapped.
fn start_of_device(path: &Path) -> Option<[u8; 8]> {
    let mut start = [0; 8];
    LookedAt::open(path).ok()?.read(0, &mut start);
    Some(start)
}

/// What libpmemobj and our directory say of a pool. A broken heap can end the process that asks: a caller
/// who wants to go on asks in a process of its own.
///
/// # Errors
/// There is no library, or it cannot read the file.
pub(crate) fn check(path: &Path) -> Result<Vec<Problem>, PmemError> {
    let functions = library::functions()?;
    if is_device(path) {
        let what =
            format!("libpmemobj does not look at {} without changing it: it maps devices only shared", path.display());
        let hint = "`pmempool check` of pmdk-tools looks at its headers; opening the pool undoes what was cut off";
        return Err(PmemError::Request { what, hint });
    }
    if !functions.is_consistent(path)? {
        return Ok(vec![Problem::Library(functions.words())]);
    }
    let (pool, mut problems) = open_to_look(path)?;
    problems.extend(pool.damage());
    Ok(problems)
}

/// What a pool says of itself, as opening it would leave it; the file has to be writable, though nothing is
/// written to it. A device is opened as usual. The same care is due as with [`check`].
///
/// # Errors
/// There is no library, it cannot read the file, or an entry of the directory is broken.
pub(crate) fn look(path: &Path) -> Result<Look, PmemError> {
    let opened = if is_device(path) { LibraryPool::open_with_problems(path) } else { open_to_look(path) };
    let (pool, problems) = opened?;
    if let Some(problem) = problems.into_iter().find(|problem| matches!(problem, Problem::BrokenEntry { .. })) {
        return Err(damaged(problem.to_string(), "`pmem repair` drops it and keeps the others"));
    }
    let (durability, entries, usage) = (pool.durability(), pool.entries(), pool.usage());
    Ok(Look { kind: Kind::Library, durability, entries, usage, unfinished: None })
}

/// Opens a pool in private memory: what the library puts in order there, the file never sees.
fn open_to_look(path: &Path) -> Result<(LibraryPool, Vec<Problem>), PmemError> {
    /// The library's switch for looking without changing is one for the whole process.
    static LOOKING: Mutex<()> = Mutex::new(());
    let functions = library::functions()?;
    let _one_at_a_time = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
    functions.look_only(true);
    let opened = LibraryPool::open_with_problems(path);
    functions.look_only(false);
    opened
}

/// Drops directory entries that nobody wrote. What libpmemobj finds wrong with its own part, its tools
/// repair.
///
/// # Errors
/// libpmemobj does not open the pool.
pub(crate) fn repair(path: &Path) -> Result<Vec<Problem>, PmemError> {
    let (mut pool, problems) = LibraryPool::open_with_problems(path)?;
    pool.drop_broken(&problems)?;
    Ok(problems)
}
