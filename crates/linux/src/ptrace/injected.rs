//! Memory for a program that it did not ask for: system calls that a halted thread makes for us, and memory of a
//! process, which is written through `/proc/PID/mem`.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use super::{Halt, Registers, Tracer, Why};
use crate::error::LinuxError;
use crate::root::Root;

/// Memory of a process, also where it may not write itself.
#[derive(Debug)]
pub struct Memory(File);

impl Memory {
    /// Of a process that we may trace.
    ///
    /// # Errors
    /// It is gone, or not ours.
    pub fn open(root: &Root, pid: u32) -> Result<Self, LinuxError> {
        let path = root.path(&format!("/proc/{pid}/mem"));
        let open = OpenOptions::new().read(true).write(true).open(&path);
        open.map(Self).map_err(|source| LinuxError::new("open", path.display().to_string(), source))
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// Nothing is mapped there, or the kernel lets nobody write what is read-only.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), LinuxError> {
        let failed = |source| LinuxError::new("write", format!("memory at {address:#x}"), source);
        self.0.write_all_at(bytes, address).map_err(failed)
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// Nothing is mapped there.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), LinuxError> {
        let failed = |source| LinuxError::new("read", format!("memory at {address:#x}"), source);
        self.0.read_exact_at(into, address).map_err(failed)
    }
}

/// A thread that is halted in its own code, which makes calls for us.
#[derive(Debug)]
pub struct Caller<'a> {
    /// Who halted it.
    pub tracer: &'a Tracer,
    /// It.
    pub tid: u32,
    /// Its registers, which it has again afterwards.
    pub registers: &'a Registers,
    /// An instruction of its memory that calls the kernel (`syscall`).
    pub instruction: u64,
}

impl Caller<'_> {
    /// Makes a call; its answer is that of the kernel, an error number below zero.
    ///
    /// # Errors
    /// Something else happened to the thread first: this halt, which is to be answered.
    pub fn call(&self, number: i64, arguments: [u64; 6]) -> Result<i64, Halt> {
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        let rax = number.cast_unsigned();
        let begun = Registers { rax, rdi, rsi, rdx, r10, r8, r9, rip: self.instruction, ..*self.registers };
        let answer = self.to_its_end(&begun);
        // It fails only where the thread was killed.
        let _killed = self.tracer.set_registers(self.tid, self.registers);
        answer
    }

    /// Memory that nobody else has, at an address where nothing is; `None` where the kernel gives none.
    ///
    /// # Errors
    /// As [`Caller::call`].
    pub fn map(&self, address: u64, bytes: u64, access: i32) -> Result<Option<u64>, Halt> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let (access, flags) = (u64::from(access.cast_unsigned()), u64::from(flags.cast_unsigned()));
        let nobody = u64::MAX;
        let answer = self.call(libc::SYS_mmap, [address, bytes, access, flags, nobody, 0])?;
        Ok((answer.cast_unsigned() == address).then_some(address))
    }

    /// Children that are forked do not have this memory.
    ///
    /// # Errors
    /// As [`Caller::call`].
    pub fn keep_from_children(&self, address: u64, bytes: u64) -> Result<(), Halt> {
        let advice = u64::from(libc::MADV_DONTFORK.cast_unsigned());
        self.call(libc::SYS_madvise, [address, bytes, advice, 0, 0, 0]).map(drop)
    }

    /// Gives memory without a file the name that is read at an address of the process, where the kernel keeps names
    /// (`CONFIG_ANON_VMA_NAME`).
    ///
    /// # Errors
    /// As [`Caller::call`].
    pub fn name(&self, address: u64, bytes: u64, name: u64) -> Result<(), Halt> {
        let [option, what] = [libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME].map(|word| u64::from(word.cast_unsigned()));
        self.call(libc::SYS_prctl, [option, what, address, bytes, name, 0]).map(drop)
    }

    fn to_its_end(&self, begun: &Registers) -> Result<i64, Halt> {
        let killed = |_| Halt { tid: self.tid, why: Why::Ended };
        self.tracer.set_registers(self.tid, begun).map_err(killed)?;
        for _ in ["its entry", "its end"] {
            self.tracer.run_to_call(self.tid).map_err(killed)?;
            let halt = self.tracer.wait_for(self.tid);
            if halt.why != Why::Call {
                return Err(halt);
            }
        }
        Ok(self.tracer.registers(self.tid).map_err(killed)?.rax.cast_signed())
    }
}
