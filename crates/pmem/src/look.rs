//! Looking at a pool without changing it: on a file that cannot be written, and before any recovery.

use std::path::Path;

use tierloom_linux::mapped::maps_directly;

use crate::backend::Kind;
use crate::device::WriteBack;
use crate::directory::{Entry, read_all};
use crate::error::PmemError;
use crate::layout::{Layout, damaged};
use crate::log::{BROKEN_LOG, Log};
use crate::pool::{Usage, usage};
use crate::read_only::{ReadOnly, Undone};

/// What a pool says of itself.
#[derive(Debug)]
pub struct Look {
    /// Who keeps it.
    pub kind: Kind,
    /// What would make stores durable.
    pub durability: &'static str,
    /// Arrays, by name, as they are once what a crash cut off is undone.
    pub entries: Vec<Entry>,
    /// How full it is.
    pub usage: Usage,
    /// Ranges of a transaction that a crash cut off: opening undoes it. libpmemobj does not say.
    pub unfinished: Option<usize>,
}

/// Looks at a file with a pool of our own.
///
/// # Errors
/// There is no pool, it is damaged, or a process has it open.
pub(crate) fn look(path: &Path) -> Result<Look, PmemError> {
    let file = ReadOnly::open(path)?;
    let layout = Layout::read(&file)?;
    let log = Log::open(&layout, &file)?;
    if log.has_gap(&file) {
        return Err(damaged("a record in the middle of the log is broken".to_owned(), BROKEN_LOG));
    }
    let undone = Undone::new(&file, &log);
    let mut entries: Vec<Entry> = read_all(&undone, &layout)?.into_iter().flatten().collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Look {
        kind: Kind::Native,
        durability: WriteBack::of(maps_directly(path)).name(),
        usage: usage(&layout, &entries),
        unfinished: Some(undone.ranges()),
        entries,
    })
}
