//! A mapped file as a medium: cache-line write-back where stores are durable without a system call,
//! `msync` elsewhere.

use tierloom_linux::mapped::MappedFile;
use tierloom_model::units::{LINE_BYTES, PAGE_BYTES};

use crate::error::PmemError;
use crate::layout::damaged;
use crate::medium::{Durable, Medium};

/// How stores become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteBack {
    /// `clwb`, then `sfence`: the line stays in the cache.
    Clwb,
    /// `clflushopt`, then `sfence`: the line leaves the cache.
    ClflushOpt,
    /// `msync`: the file is not persistent memory, or the processor has neither instruction.
    Msync,
}

impl WriteBack {
    /// The way of this processor with a file that is persistent memory (`direct`), or with any other.
    pub(crate) fn of(direct: bool) -> Self {
        if direct { by_processor() } else { Self::Msync }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clwb => "clwb",
            Self::ClflushOpt => "clflushopt",
            Self::Msync => "msync",
        }
    }
}

/// A pool's file.
#[derive(Debug)]
pub struct Device {
    file: MappedFile,
    how: WriteBack,
    /// Ranges that a fence has to sync, as (offset, bytes); only with `msync`.
    waiting: Vec<(u64, u64)>,
}

/// Ranges closer than this are synced by one call: the kernel looks at pages. Bytes.
const TOGETHER: u64 = PAGE_BYTES;

impl Device {
    /// The medium of a mapped file.
    pub fn new(file: MappedFile) -> Self {
        let how = WriteBack::of(file.is_direct());
        Self { file, how, waiting: Vec::new() }
    }

    /// The same with another way of writing back, for measurements on memory that only stands in for
    /// persistent memory; a way that the processor lacks becomes `msync`.
    #[must_use]
    pub fn written_back_by(mut self, how: WriteBack) -> Self {
        let has = how == by_processor() || (how == WriteBack::ClflushOpt && by_processor() == WriteBack::Clwb);
        self.how = if has { how } else { WriteBack::Msync };
        self
    }

    /// Writes a range back and waits until it is durable, beside whatever others write back.
    ///
    /// # Errors
    /// The medium failed.
    pub fn flush(&self, offset: u64, bytes: u64) -> Result<(), PmemError> {
        if self.how == WriteBack::Msync {
            return self.sync(offset, bytes);
        }
        self.write_lines_back(offset, bytes);
        fence_stores();
        Ok(())
    }

    /// That the file is as long as it was: who touches what it lost is ended by SIGBUS.
    ///
    /// # Errors
    /// It was cut short.
    pub(crate) fn is_whole(&self) -> Result<(), PmemError> {
        if self.file.is_whole() {
            return Ok(());
        }
        let what = format!("the file was cut to less than its {} bytes while it was open", self.file.bytes());
        Err(damaged(what, "touch none of its arrays any more; restore the file from a copy"))
    }

    fn sync(&self, offset: u64, bytes: u64) -> Result<(), PmemError> {
        if let (Ok(offset), Ok(bytes)) = (usize::try_from(offset), usize::try_from(bytes)) {
            self.file.sync(offset, bytes)?;
        }
        Ok(())
    }

    fn write_lines_back(&self, offset: u64, bytes: u64) {
        let first = offset / LINE_BYTES * LINE_BYTES;
        for line in (first..offset + bytes).step_by(64) {
            write_line_back(self.how, self.at(line, 1));
        }
    }

    /// How stores become durable here.
    pub fn how(&self) -> WriteBack {
        self.how
    }

    /// The mapping.
    pub fn file(&self) -> &MappedFile {
        &self.file
    }

    fn at(&self, offset: u64, bytes: usize) -> *mut u8 {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= self.file.bytes()), "outside of the pool");
        // SAFETY: the range was just checked to lie in the mapping.
        unsafe { self.file.start().add(offset) }
    }
}

impl Medium for Device {
    fn bytes(&self) -> u64 {
        self.file.bytes() as u64
    }

    fn load(&self, offset: u64, to: &mut [u8]) {
        let from = self.at(offset, to.len());
        // SAFETY: `from` points at `to.len()` mapped bytes; `to` is ours alone. Others in this process
        // may write to arrays meanwhile: what is read then is some mix, which a checksum or the caller's
        // own order of things catches; it is bytes in any case.
        unsafe { std::ptr::copy(from, to.as_mut_ptr(), to.len()) };
    }
}

impl Durable for Device {
    fn store(&mut self, offset: u64, from: &[u8]) {
        let to = self.at(offset, from.len());
        #[expect(clippy::cast_ptr_alignment, reason = "checked: the mapping starts at a page")]
        match <[u8; 8]>::try_from(from) {
            Ok(word) if offset.is_multiple_of(8) => {
                // SAFETY: eight mapped bytes at a multiple of eight: one store, which cannot tear.
                unsafe { to.cast::<u64>().write_volatile(u64::from_le_bytes(word)) };
            }
            // SAFETY: `to` points at `from.len()` mapped bytes.
            _ => unsafe { std::ptr::copy(from.as_ptr(), to, from.len()) },
        }
    }

    fn write_back(&mut self, offset: u64, bytes: u64) {
        if self.how == WriteBack::Msync {
            match self.waiting.last_mut() {
                Some((start, length)) if offset >= *start && offset <= *start + *length + TOGETHER => {
                    *length = (*length).max(offset + bytes - *start);
                }
                _ => self.waiting.push((offset, bytes)),
            }
            return;
        }
        self.write_lines_back(offset, bytes);
    }

    fn fence(&mut self) -> Result<(), PmemError> {
        if self.how == WriteBack::Msync {
            let waiting = std::mem::take(&mut self.waiting);
            return waiting.into_iter().try_for_each(|(offset, bytes)| self.sync(offset, bytes));
        }
        fence_stores();
        Ok(())
    }
}

fn fence_stores() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence touches no memory; every x86-64 processor has it.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// The better instruction that this processor has.
fn by_processor() -> WriteBack {
    #[cfg(target_arch = "x86_64")]
    {
        // Leaf 7, EBX: bit 24 is CLWB, bit 23 CLFLUSHOPT (Intel SDM 2A, CPUID).
        let features = std::arch::x86_64::__cpuid_count(7, 0).ebx;
        if features & 1 << 24 != 0 {
            return WriteBack::Clwb;
        }
        if features & 1 << 23 != 0 {
            return WriteBack::ClflushOpt;
        }
    }
    WriteBack::Msync
}

#[cfg(target_arch = "x86_64")]
fn write_line_back(how: WriteBack, line: *const u8) {
    match how {
        // SAFETY: `by_processor` saw that the processor has the instruction; it reads no register but
        // the address, which is mapped.
        WriteBack::Clwb => unsafe { std::arch::asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags)) },
        // SAFETY: as above.
        WriteBack::ClflushOpt => unsafe {
            std::arch::asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
        },
        WriteBack::Msync => {}
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn write_line_back(_: WriteBack, _: *const u8) {}
