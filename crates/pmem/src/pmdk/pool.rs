//! An open pool of libpmemobj.
//!
//! The library keeps transactions by thread: the one that began a transaction ends it.

mod backend;

use std::path::{Path, PathBuf};
use std::thread::ThreadId;

use tierloom_linux::mapped::{bytes_of, is_device, maps_directly};
use tierloom_model::units::PAGE_BYTES;

use super::library::{Functions, NO_ABORT, PoolPointer, functions};
use crate::backend::Backend;
use crate::check::{Problem, conflicts, damage};
use crate::directory::{Entry, Slot};
use crate::error::PmemError;
use crate::layout::{ENTRY, damaged, entries_of, seal, sealed, word};
use crate::medium::Medium;
use crate::sums::{Stale, Sums};

/// Bytes of the root object before the entries: magic, version, number of entries, checksum.
const HEAD: usize = 64;
const MAGIC: [u8; 8] = *b"TIERROOT";
/// As in our own headers (`crate::layout`): version 2 has arrays with checksums.
const VERSION: u64 = 2;
const OLDEST_VERSION: u64 = 1;
/// `PMEMOBJ_MIN_POOL` of `libpmemobj/pool_base.h`.
const LEAST_BYTES: u64 = 8 << 20;
/// Type number of arrays in libpmemobj's heap; any number but 0, which is the root object's.
const ARRAY_TYPE: u64 = 1;
/// `ECANCELED` of Linux's errno.h: why a transaction that the user takes back ends.
const CANCELLED: i32 = 125;

/// A pool of libpmemobj; closed when dropped.
#[derive(Debug)]
pub(crate) struct LibraryPool {
    functions: &'static Functions,
    pool: PoolPointer,
    path: PathBuf,
    bytes: u64,
    /// Whether the file is persistent memory.
    direct: bool,
    /// Offset of the root object.
    root: u64,
    /// The pool's number in the addresses of its objects.
    identity: u64,
    slots: Vec<Option<Entry>>,
    /// Version of the directory.
    version: u64,
    /// Checksums that the open transaction made wrong.
    stale: Stale,
    /// The thread whose transaction is open.
    owner: Option<ThreadId>,
}

// SAFETY: libpmemobj's pools may be used by any thread; what is bound to one, a transaction, is refused
// to others by `own`.
unsafe impl Send for LibraryPool {}
// SAFETY: by shared reference only `flush` reaches the library, and pmemobj_persist(3) is thread-safe.
unsafe impl Sync for LibraryPool {}

impl LibraryPool {
    /// A new pool; on a device, all of it.
    pub(crate) fn create(path: &Path, bytes: u64) -> Result<Self, PmemError> {
        let functions = functions()?;
        if bytes < LEAST_BYTES {
            let what = format!("{bytes} bytes are too few for a pool of libpmemobj");
            return Err(PmemError::Request { what, hint: "take at least 8 MiB" });
        }
        let size = if is_device(path) { 0 } else { usize::try_from(bytes).unwrap_or(usize::MAX) };
        let pool = functions.create_pool(path, size)?;
        let mut made = Self::around(functions, pool, path);
        made.format(bytes)?;
        Ok(made)
    }

    pub(crate) fn open(path: &Path) -> Result<Self, PmemError> {
        let (pool, problems) = Self::open_with_problems(path)?;
        let broken = problems.into_iter().find(|problem| matches!(problem, Problem::BrokenEntry { .. }));
        match broken {
            Some(problem) => Err(damaged(problem.to_string(), "`pmem repair` drops it and keeps the others")),
            None => Ok(pool),
        }
    }

    /// Opens a pool whose directory may have entries that nobody wrote; they count as free.
    pub(super) fn open_with_problems(path: &Path) -> Result<(Self, Vec<Problem>), PmemError> {
        let functions = functions()?;
        let pool = functions.open_pool(path)?;
        let mut opened = Self::around(functions, pool, path);
        let problems = opened.read_directory()?;
        Ok((opened, problems))
    }

    fn around(functions: &'static Functions, pool: PoolPointer, path: &Path) -> Self {
        let direct = maps_directly(path);
        Self {
            functions,
            pool,
            path: path.to_owned(),
            bytes: 0,
            direct,
            root: 0,
            identity: 0,
            slots: Vec::new(),
            version: VERSION,
            stale: Stale::default(),
            owner: None,
        }
    }

    /// Makes the directory of a new pool.
    fn format(&mut self, bytes: u64) -> Result<(), PmemError> {
        let entries = entries_of(bytes);
        let size = HEAD + usize::try_from(entries).unwrap_or(0) * ENTRY;
        self.find_root(size)?;
        self.slots = vec![None; usize::try_from(entries).unwrap_or(0)];
        self.write_head()
    }

    fn write_head(&mut self) -> Result<(), PmemError> {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&MAGIC);
        head[8..16].copy_from_slice(&VERSION.to_le_bytes());
        head[16..24].copy_from_slice(&(self.slots.len() as u64).to_le_bytes());
        seal(&mut head);
        self.within(|pool| pool.change(pool.root, &head))?;
        self.version = VERSION;
        Ok(())
    }

    /// The root object: made of zeroes where there is none, as it is where it has this size already.
    fn find_root(&mut self, size: usize) -> Result<(), PmemError> {
        // SAFETY: the pool is open.
        let root = unsafe { (self.functions.root)(self.pool, size) };
        if root.offset == 0 {
            return Err(self.functions.refusal(&self.path));
        }
        (self.root, self.identity) = (root.offset, root.pool);
        self.bytes = bytes_of(&self.path)?;
        Ok(())
    }

    fn read_directory(&mut self) -> Result<Vec<Problem>, PmemError> {
        // SAFETY: the pool is open.
        let size = unsafe { (self.functions.root_size)(self.pool) };
        if size < HEAD {
            return Err(damaged("its making was cut off: it has no directory".to_owned(), "make it again"));
        }
        self.find_root(size)?;
        let head = self.bytes_at(self.root, HEAD)?;
        let entries = usize::try_from(word(&head, 16)).unwrap_or(usize::MAX);
        if !sealed(&head) || head[..8] != MAGIC || entries.checked_mul(ENTRY).is_none_or(|all| all > size - HEAD) {
            return Err(damaged("the directory's head is broken".to_owned(), "restore the file from a copy"));
        }
        self.version = word(&head, 8);
        if !(OLDEST_VERSION..=VERSION).contains(&self.version) {
            let what = format!("its directory has version {}, this Tierloom reads 1 to {VERSION}", self.version);
            return Err(damaged(what, "use the Tierloom that made it"));
        }
        self.read_slots(entries)
    }

    fn read_slots(&mut self, entries: usize) -> Result<Vec<Problem>, PmemError> {
        let mut problems = Vec::new();
        self.slots = vec![None; entries];
        for index in 0..entries {
            let bytes = self.bytes_at(self.slot(index), ENTRY)?;
            match Slot::decode(&bytes, PAGE_BYTES..self.bytes) {
                Slot::Free => {}
                Slot::Used(entry) => self.slots[index] = Some(entry),
                Slot::Broken(why) => problems.push(Problem::BrokenEntry { index: index as u64, why }),
            }
        }
        problems.extend(conflicts(self.entries()));
        Ok(problems)
    }

    /// What does not match its checksums.
    pub(super) fn damage(&self) -> Vec<Problem> {
        self.slots.iter().flatten().filter_map(|entry| damage(self, entry)).collect()
    }

    /// Empties the entries that these problems name. Their objects stay taken: no one knows any more which.
    pub(super) fn drop_broken(&mut self, problems: &[Problem]) -> Result<(), PmemError> {
        for problem in problems {
            if let Problem::BrokenEntry { index, .. } = problem {
                let slot = self.slot(usize::try_from(*index).unwrap_or(usize::MAX));
                self.within(|pool| pool.change(slot, &[0; ENTRY]))?;
            }
        }
        Ok(())
    }

    fn slot(&self, index: usize) -> u64 {
        self.root + (HEAD + index * ENTRY) as u64
    }

    fn at(&self, offset: u64, bytes: u64) -> Result<*mut u8, PmemError> {
        let end = offset.checked_add(bytes).filter(|end| *end <= self.bytes);
        let (Ok(offset), Some(_)) = (usize::try_from(offset), end) else {
            return Err(damaged(format!("{bytes} bytes at {offset} lead out of the pool"), "restore it from a copy"));
        };
        // SAFETY: the library maps `bytes` bytes from `pool` on, and the range was just held against them.
        Ok(unsafe { self.pool.cast::<u8>().add(offset) })
    }

    fn bytes_at(&self, offset: u64, bytes: usize) -> Result<Vec<u8>, PmemError> {
        let from = self.at(offset, bytes as u64)?;
        let mut copy = vec![0; bytes];
        // SAFETY: `at` gave as many mapped bytes as the new vector has.
        unsafe { std::ptr::copy_nonoverlapping(from, copy.as_mut_ptr(), bytes) };
        Ok(copy)
    }

    /// Saves and stores, in the open transaction.
    fn change(&mut self, offset: u64, bytes: &[u8]) -> Result<(), PmemError> {
        self.keep(offset, bytes.len() as u64)?;
        let to = self.at(offset, bytes.len() as u64)?;
        // SAFETY: `at` gave that many mapped bytes; `bytes` are ours and elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Keeps the present bytes of a range until the open transaction ends.
    fn keep(&mut self, offset: u64, bytes: u64) -> Result<(), PmemError> {
        self.own()?;
        let start = self.at(offset, bytes)?;
        // SAFETY: this thread has a transaction in its working stage; the range lies in the pool.
        match unsafe { (self.functions.tx_add)(start.cast(), usize::try_from(bytes).unwrap_or(0), NO_ABORT) } {
            0 => Ok(()),
            _ => Err(self.functions.refusal(&self.path)),
        }
    }

    /// Of all arrays that carry checksums.
    fn sums(&self) -> Vec<Sums> {
        self.slots.iter().flatten().filter_map(Entry::sums).collect()
    }

    fn no_array(&self, name: &str) -> PmemError {
        let known: Vec<String> = self.entries().into_iter().map(|entry| entry.name).collect();
        let what = format!("the pool has no array `{name}`, it has: {}", known.join(", "));
        PmemError::Request { what, hint: "look at its arrays first" }
    }

    /// That a transaction is open, and this thread's.
    fn own(&self) -> Result<(), PmemError> {
        match self.owner {
            Some(owner) if owner == std::thread::current().id() => Ok(()),
            Some(_) => {
                let what = "the open transaction is another thread's".to_owned();
                Err(PmemError::Request { what, hint: "libpmemobj's transactions end in the thread that began them" })
            }
            None => {
                let what = "there is no open transaction".to_owned();
                Err(PmemError::Request { what, hint: "begin one before data changes" })
            }
        }
    }

    fn end(&mut self) -> Result<(), PmemError> {
        self.owner = None;
        // SAFETY: the transaction is this thread's and not in its working stage any more.
        if unsafe { (self.functions.tx_end)() } == 0 { Ok(()) } else { Err(self.functions.refusal(&self.path)) }
    }

    /// In the caller's transaction, or in one of its own.
    fn within<R>(&mut self, change: impl FnOnce(&mut Self) -> Result<R, PmemError>) -> Result<R, PmemError> {
        if self.owner.is_some() {
            self.own()?;
            return change(self);
        }
        self.begin()?;
        match change(self) {
            Ok(done) => self.commit().map(|()| done),
            Err(error) => {
                self.abort()?;
                Err(error)
            }
        }
    }

    fn new_object(&mut self, entry: &Entry) -> Result<u64, PmemError> {
        let bytes = usize::try_from(entry.stored_bytes().max(1)).unwrap_or(usize::MAX);
        // SAFETY: this thread's transaction is in its working stage.
        let object = unsafe { (self.functions.tx_alloc)(bytes, ARRAY_TYPE, NO_ABORT) };
        if object.offset != 0 {
            return Ok(object.offset);
        }
        let free = self.bytes - self.usage().used_bytes.min(self.bytes);
        Err(PmemError::Full { name: entry.name.clone(), needed: entry.stored_bytes(), free, longest: None })
    }
}

impl Medium for LibraryPool {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Of what lies outside, zeroes: to a reader of checksums that is damage.
    fn load(&self, offset: u64, to: &mut [u8]) {
        match self.bytes_at(offset, to.len()) {
            Ok(bytes) => to.copy_from_slice(&bytes),
            Err(_) => to.fill(0),
        }
    }
}

impl Drop for LibraryPool {
    fn drop(&mut self) {
        match self.owner {
            Some(owner) if owner != std::thread::current().id() => return, // its thread may still be at work
            Some(_) => drop(self.abort()),
            None => {}
        }
        // SAFETY: the pool is open, and nobody borrows `self` any more.
        unsafe { (self.functions.close)(self.pool) };
    }
}
