//! What a pool of libpmemobj can do, as a [`Backend`]: each change inside one of the library's transactions.

use std::ops::Range;

use super::{CANCELLED, LibraryPool, VERSION};
use crate::backend::{Backend, Kind, in_transactions_only};
use crate::directory::Entry;
use crate::error::PmemError;
use crate::layout::ENTRY;
use crate::pmdk::library::{NO_ABORT, Oid, STAGE_WORK};
use crate::pool::Usage;

impl Backend for LibraryPool {
    fn kind(&self) -> Kind {
        Kind::Library
    }

    fn start(&self) -> *mut u8 {
        self.pool.cast()
    }

    /// As the library decides (PMDK, `util_replica_set_is_pmem`): a device, a file that can be mapped with
    /// `MAP_SYNC`, or anything where the environment says so (libpmem(7)).
    fn durability(&self) -> &'static str {
        let forced = std::env::var_os("PMEM_IS_PMEM_FORCE").is_some_and(|value| value == "1");
        if self.direct || forced { "libpmem" } else { "msync" }
    }

    fn is_direct(&self) -> bool {
        self.direct
    }

    fn recovered(&self) -> Option<usize> {
        None
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = self.slots.iter().flatten().cloned().collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    }

    fn usage(&self) -> Usage {
        let used_bytes = self.slots.iter().flatten().map(Entry::stored_bytes).sum();
        Usage { bytes: self.bytes, data_bytes: None, used_bytes, longest_free_bytes: None, log_bytes: None }
    }

    fn add(&mut self, wanted: Entry) -> Result<Entry, PmemError> {
        if self.slots.iter().flatten().any(|entry| entry.name == wanted.name) {
            let what = format!("the pool has an array `{}` already", wanted.name);
            return Err(PmemError::Request { what, hint: "open it, free it, or choose another name" });
        }
        wanted.encode()?;
        let free = self.slots.iter().position(Option::is_none);
        let index = free.ok_or(PmemError::DirectoryFull { entries: self.slots.len() as u64 })?;
        self.within(|pool| {
            if wanted.checked && pool.version < VERSION {
                pool.write_head()?;
            }
            let entry = Entry { offset: pool.new_object(&wanted)?, ..wanted };
            pool.change(pool.slot(index), &entry.encode()?)?;
            pool.slots[index] = Some(entry.clone());
            if let Some(sums) = entry.sums() {
                pool.stale.note(sums, sums.chunks());
            }
            Ok(entry)
        })
    }

    fn free(&mut self, name: &str) -> Result<(), PmemError> {
        let found = self.slots.iter().position(|slot| slot.as_ref().is_some_and(|entry| entry.name == name));
        let Some(index) = found else { return Err(self.no_array(name)) };
        self.within(|pool| {
            let Some(entry) = pool.slots[index].take() else { return Ok(()) };
            pool.change(pool.slot(index), &[0; ENTRY])?;
            let object = Oid { pool: pool.identity, offset: entry.offset };
            // SAFETY: this thread's transaction is in its working stage; the object was allocated by
            // `new_object` and its entry, checked by a checksum, is the only one that names it.
            match unsafe { (pool.functions.tx_free)(object, NO_ABORT) } {
                0 => Ok(()),
                _ => Err(pool.functions.refusal(&pool.path)),
            }
        })
    }

    fn verify(&self, name: &str) -> Result<Vec<Range<u64>>, PmemError> {
        let found = self.slots.iter().flatten().find(|entry| entry.name == name);
        let Some(entry) = found else { return Err(self.no_array(name)) };
        Ok(entry.sums().map_or_else(Vec::new, |sums| sums.damage(self, &self.stale)))
    }

    fn in_transaction(&self) -> bool {
        self.owner.is_some()
    }

    fn begin(&mut self) -> Result<(), PmemError> {
        if self.owner.is_some() {
            let what = "a transaction is open already".to_owned();
            return Err(PmemError::Request { what, hint: "transactions do not nest: commit or abort the first one" });
        }
        self.owner = Some(std::thread::current().id());
        if self.functions.begin(self.pool) == 0 {
            return Ok(());
        }
        let refusal = self.functions.refusal(&self.path);
        self.end().ok();
        Err(refusal)
    }

    fn save(&mut self, offset: u64, bytes: u64) -> Result<(), PmemError> {
        self.own()?;
        let end = offset.saturating_add(bytes);
        if bytes == 0 {
            return Ok(());
        }
        let inside = |entry: &Entry| entry.offset <= offset && end <= entry.offset + entry.bytes;
        if !self.slots.iter().flatten().any(inside) {
            let what = format!("{bytes} bytes at {offset} are no data of the pool");
            return Err(PmemError::Request { what, hint: "save ranges of its arrays" });
        }
        self.keep(offset, bytes)?;
        for sums in self.sums() {
            let chunks = sums.touched(offset, bytes);
            if !chunks.is_empty() {
                let (table, bytes) = sums.words(&chunks);
                self.keep(table, bytes)?;
                self.stale.note(sums, chunks);
            }
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), PmemError> {
        self.own()?;
        let mut stale = std::mem::take(&mut self.stale);
        for (offset, words) in stale.renewed(self) {
            self.change(offset, &words)?;
        }
        // SAFETY: this thread's transaction is in its working stage.
        unsafe { (self.functions.tx_commit)() };
        self.end()
    }

    fn abort(&mut self) -> Result<(), PmemError> {
        self.own()?;
        // SAFETY: the calls end this thread's transaction; aborting is for the working stage only.
        unsafe {
            if (self.functions.tx_stage)() == STAGE_WORK {
                (self.functions.tx_abort)(CANCELLED);
            }
            (self.functions.tx_end)();
        }
        self.owner = None;
        self.stale.clear();
        self.read_directory().map(|_| ())
    }

    fn flush(&self, offset: u64, bytes: u64) -> Result<(), PmemError> {
        let start = self.at(offset, bytes)?;
        if self.sums().iter().any(|sums| !sums.touched(offset, bytes).is_empty()) {
            return Err(in_transactions_only());
        }
        // SAFETY: the range lies in the open pool.
        unsafe { (self.functions.persist)(self.pool, start.cast(), usize::try_from(bytes).unwrap_or(0)) };
        Ok(())
    }

    fn grow(&mut self, _: u64) -> Result<(), PmemError> {
        let what = "a libpmemobj pool in one file keeps the size that it was made with".to_owned();
        Err(PmemError::Request { what, hint: "make a larger one and copy the arrays" })
    }
}
