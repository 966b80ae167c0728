//! Our own pool on a mapped file, as a [`Backend`]: nothing changes once the medium is not whole any more.

use std::ops::Range;

use crate::backend::{Backend, Kind, in_transactions_only};
use crate::device::Device;
use crate::directory::Entry;
use crate::error::PmemError;
use crate::pool::{Pool, Usage};

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
