//! A pool: arrays by name, and transactions.
//!
//! Every change happens in a transaction; where the caller opened none, the pool opens one of its own.
//! After an error of the medium the pool refuses further changes: opening it again recovers.

use std::ops::Range;

use tierloom_model::units::PAGE_BYTES;

use crate::directory::{Entry, Slot, gaps, read_all};
use crate::error::PmemError;
use crate::layout::{ENTRY, Layout, VERSION, damaged};
use crate::log::{BROKEN_LOG, Log};
use crate::medium::Durable;
use crate::sums::{Stale, Sums};

/// An open pool.
#[derive(Debug)]
pub struct Pool<M> {
    medium: M,
    layout: Layout,
    log: Log,
    /// By slot of the directory.
    slots: Vec<Option<Entry>>,
    open: bool,
    /// Arrays freed in the open transaction: should it be undone, their bytes have to be there.
    freed: Vec<Entry>,
    /// Checksums that the open transaction made wrong.
    stale: Stale,
    recovered: usize,
}

/// How full a pool is, bytes; libpmemobj does not say all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// All of it.
    pub bytes: u64,
    /// For data.
    pub data_bytes: Option<u64>,
    /// Taken by arrays.
    pub used_bytes: u64,
    /// Largest piece that an array could take.
    pub longest_free_bytes: Option<u64>,
    /// What one transaction can save.
    pub log_bytes: Option<u64>,
}

impl<M: Durable> Pool<M> {
    /// Makes a pool on a medium that holds nothing of worth. `identity` tells this pool from others: any
    /// random number.
    ///
    /// # Errors
    /// The medium is too small, or failed.
    pub fn create(mut medium: M, log_bytes: Option<u64>, identity: u64) -> Result<Self, PmemError> {
        let layout = Layout::new(medium.bytes(), log_bytes, identity)?;
        Log::create(&layout, &mut medium)?;
        // A new file is zeroes; a device is whatever its last user left.
        for index in 0..layout.entries {
            if Slot::read(&medium, &layout, index) != Slot::Free {
                medium.persist(layout.entry(index), &[0; ENTRY])?;
            }
        }
        layout.write(&mut medium)?;
        Self::open(medium)
    }

    /// Opens a pool; a transaction that a crash cut off is undone.
    ///
    /// # Errors
    /// There is no pool, or it is damaged; nothing was changed then.
    pub fn open(mut medium: M) -> Result<Self, PmemError> {
        let layout = Layout::read(&medium)?;
        let mut log = Log::open(&layout, &medium)?;
        if log.has_gap(&medium) {
            return Err(damaged("a record in the middle of the log is broken".to_owned(), BROKEN_LOG));
        }
        let recovered = match log.records(&medium).len() {
            0 => 0,
            _ => log.undo(&layout, &mut medium)?,
        };
        let slots = read_all(&medium, &layout)?;
        let (freed, stale) = (Vec::new(), Stale::default());
        Ok(Self { medium, layout, log, slots, open: false, freed, stale, recovered })
    }

    /// Snapshots that recovery put back when the pool was opened.
    pub fn recovered(&self) -> usize {
        self.recovered
    }

    /// Arrays, by name.
    pub fn arrays(&self) -> Vec<&Entry> {
        let mut arrays: Vec<&Entry> = self.slots.iter().flatten().collect();
        arrays.sort_by(|a, b| a.name.cmp(&b.name));
        arrays
    }

    /// The array of a name.
    pub fn array(&self, name: &str) -> Option<&Entry> {
        self.slots.iter().flatten().find(|entry| entry.name == name)
    }

    /// What the pool lies on.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// What the pool lies on, to store into ranges that a transaction has saved.
    pub fn medium_mut(&mut self) -> &mut M {
        &mut self.medium
    }

    /// The medium, when the pool is needed no more.
    pub fn into_medium(self) -> M {
        self.medium
    }

    /// How full it is.
    pub fn usage(&self) -> Usage {
        usage(&self.layout, &self.taken())
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.open
    }

    /// Opens a transaction.
    ///
    /// # Errors
    /// One is open already.
    pub fn begin(&mut self) -> Result<(), PmemError> {
        if self.open {
            let what = "a transaction is open already".to_owned();
            return Err(PmemError::Request { what, hint: "transactions do not nest: commit or abort the first one" });
        }
        self.open = true;
        Ok(())
    }

    /// Saves a range of the file, so that it may change until the transaction ends.
    ///
    /// # Errors
    /// No transaction is open, the range is not data, or the log is full.
    pub fn save(&mut self, offset: u64, bytes: u64) -> Result<(), PmemError> {
        let end = offset.checked_add(bytes).filter(|end| *end <= self.layout.bytes);
        if offset < self.layout.data() || end.is_none() {
            let what = format!("{bytes} bytes at {offset} are no data of the pool");
            return Err(PmemError::Request { what, hint: "save ranges of its arrays" });
        }
        self.save_any(offset, bytes)?;
        for sums in self.sums() {
            let chunks = sums.touched(offset, bytes);
            if !chunks.is_empty() {
                let (table, bytes) = sums.words(&chunks);
                self.save_any(table, bytes)?;
                self.stale.note(sums, chunks);
            }
        }
        Ok(())
    }

    /// Of all arrays that carry checksums.
    fn sums(&self) -> Vec<Sums> {
        self.slots.iter().flatten().filter_map(Entry::sums).collect()
    }

    /// Whether a range holds bytes of an array with checksums.
    pub(crate) fn is_checked(&self, offset: u64, bytes: u64) -> bool {
        self.sums().iter().any(|sums| !sums.touched(offset, bytes).is_empty())
    }

    /// Ranges of an array, in bytes from its start, that do not match its checksums; what the open transaction
    /// changes has none yet.
    ///
    /// # Errors
    /// There is no such array.
    pub fn verify(&self, name: &str) -> Result<Vec<Range<u64>>, PmemError> {
        let Some(entry) = self.array(name) else { return Err(self.no_array(name)) };
        Ok(entry.sums().map_or_else(Vec::new, |sums| sums.damage(&self.medium, &self.stale)))
    }

    fn no_array(&self, name: &str) -> PmemError {
        let known: Vec<&str> = self.arrays().iter().map(|entry| entry.name.as_str()).collect();
        let what = format!("the pool has no array `{name}`, it has: {}", known.join(", "));
        PmemError::Request { what, hint: "look at its arrays first" }
    }

    fn save_any(&mut self, offset: u64, bytes: u64) -> Result<(), PmemError> {
        if !self.open {
            let what = "there is no open transaction".to_owned();
            return Err(PmemError::Request { what, hint: "begin one before data changes" });
        }
        if bytes == 0 || self.log.covers(offset, bytes) {
            return Ok(());
        }
        self.log.save(&mut self.medium, offset, bytes)
    }

    /// Ends the transaction; when this returns, its changes survive anything.
    ///
    /// # Errors
    /// No transaction is open; the medium failed.
    pub fn commit(&mut self) -> Result<(), PmemError> {
        self.needs_transaction()?;
        for (offset, words) in self.stale.renewed(&self.medium) {
            self.medium.store(offset, &words);
        }
        self.log.commit(&mut self.medium)?;
        self.open = false;
        self.freed.clear();
        Ok(())
    }

    /// Ends the transaction and takes its changes back.
    ///
    /// # Errors
    /// No transaction is open; the medium failed.
    pub fn abort(&mut self) -> Result<(), PmemError> {
        self.needs_transaction()?;
        self.log.undo(&self.layout, &mut self.medium)?;
        self.open = false;
        self.freed.clear();
        self.stale.clear();
        self.slots = read_all(&self.medium, &self.layout)?;
        Ok(())
    }

    fn needs_transaction(&self) -> Result<(), PmemError> {
        if self.open {
            return Ok(());
        }
        Err(PmemError::Request { what: "there is no open transaction".to_owned(), hint: "begin one first" })
    }

    /// A new array without checksums; see [`Pool::add`].
    ///
    /// # Errors
    /// As [`Pool::add`].
    pub fn allocate(&mut self, name: &str, kind: &str, bytes: u64, version: u64) -> Result<Entry, PmemError> {
        self.add(Entry::new(name, kind, bytes, version))
    }

    /// A new array whose bytes are whatever the place held. What is written to it in the same transaction
    /// needs no saving, and is durable when that commits. Where it lies is the pool's to say.
    ///
    /// # Errors
    /// The name is taken or too long, or there is no room.
    pub fn add(&mut self, wanted: Entry) -> Result<Entry, PmemError> {
        if self.array(&wanted.name).is_some() {
            let what = format!("the pool has an array `{}` already", wanted.name);
            return Err(PmemError::Request { what, hint: "open it, free it, or choose another name" });
        }
        let entry = Entry { offset: self.room(&wanted)?, ..wanted };
        if entry.checked {
            self.allow_checksums()?;
        }
        let encoded = entry.encode()?;
        let free = self.slots.iter().position(Option::is_none);
        let slot = free.ok_or(PmemError::DirectoryFull { entries: self.layout.entries })?;
        self.within(|pool| {
            pool.set_slot(slot, &encoded, Some(entry.clone()))?;
            pool.log.fresh(entry.offset, entry.stored_bytes());
            if let Some(sums) = entry.sums() {
                pool.stale.note(sums, sums.chunks());
            }
            Ok(())
        })?;
        Ok(entry)
    }

    /// Before the first array with checksums: a Tierloom that knows none of them must not change the pool any more.
    fn allow_checksums(&mut self) -> Result<(), PmemError> {
        if self.layout.version < VERSION {
            let layout = Layout { version: VERSION, ..self.layout };
            self.layout = layout.write(&mut self.medium)?;
        }
        Ok(())
    }

    /// Gives an array's room back.
    ///
    /// # Errors
    /// There is no such array.
    pub fn free(&mut self, name: &str) -> Result<(), PmemError> {
        let found = self.slots.iter().position(|slot| slot.as_ref().is_some_and(|entry| entry.name == name));
        let Some(slot) = found else { return Err(self.no_array(name)) };
        self.within(|pool| {
            let freed = pool.slots[slot].clone();
            pool.set_slot(slot, &[0; ENTRY], None)?;
            pool.freed.extend(freed);
            Ok(())
        })
    }

    /// Takes a larger medium that starts with this pool's bytes.
    ///
    /// # Errors
    /// A transaction is open, or the medium is smaller.
    pub fn grow(&mut self, medium: M) -> Result<(), PmemError> {
        if self.open || medium.bytes() < self.layout.bytes {
            let what = "a pool grows to a larger medium, and not inside a transaction".to_owned();
            return Err(PmemError::Request { what, hint: "end the transaction, give more bytes" });
        }
        self.medium = medium;
        let layout = Layout { bytes: self.medium.bytes(), ..self.layout };
        self.layout = layout.write(&mut self.medium)?;
        Ok(())
    }

    /// What new arrays may not lie on.
    fn taken(&self) -> Vec<Entry> {
        self.slots.iter().flatten().chain(&self.freed).cloned().collect()
    }

    /// First gap that is large enough.
    fn room(&self, entry: &Entry) -> Result<u64, PmemError> {
        let gaps = gaps(&self.layout, &self.taken());
        let fits = gaps.iter().find(|(_, bytes)| *bytes >= entry.span());
        fits.map(|(offset, _)| *offset).ok_or_else(|| PmemError::Full {
            name: entry.name.clone(),
            needed: entry.stored_bytes(),
            free: gaps.iter().map(|(_, bytes)| bytes).sum(),
            longest: Some(gaps.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0)),
        })
    }

    fn set_slot(&mut self, slot: usize, encoded: &[u8], entry: Option<Entry>) -> Result<(), PmemError> {
        let offset = self.layout.entry(slot as u64);
        self.save_any(offset, encoded.len() as u64)?;
        self.medium.store(offset, encoded);
        self.slots[slot] = entry;
        Ok(())
    }

    /// In the caller's transaction, or in one of its own.
    fn within(&mut self, change: impl FnOnce(&mut Self) -> Result<(), PmemError>) -> Result<(), PmemError> {
        if self.open {
            return change(self);
        }
        self.begin()?;
        match change(self) {
            Ok(()) => self.commit(),
            Err(error) => {
                self.abort()?;
                Err(error)
            }
        }
    }
}

/// How full a pool with these arrays is.
pub(crate) fn usage(layout: &Layout, entries: &[Entry]) -> Usage {
    let gaps = gaps(layout, entries);
    let data_bytes = layout.bytes / PAGE_BYTES * PAGE_BYTES - layout.data();
    Usage {
        bytes: layout.bytes,
        data_bytes: Some(data_bytes),
        used_bytes: data_bytes - gaps.iter().map(|(_, bytes)| bytes).sum::<u64>(),
        longest_free_bytes: Some(gaps.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0)),
        log_bytes: Some(layout.log_bytes),
    }
}
