//! Samples of a program and its descendants: `perf_event_open(2)`.
//!
//! One event per CPU counts the CPU time of one process and, by `inherit`, of everything that it
//! starts. Each has a ring of its own into which the kernel writes records ([`Record`]). Nothing here
//! knows what a sample is good for.

mod record;
mod ring;

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub use record::{Fault, Layout, REGISTERS, Record, Sample, parse};
pub use ring::Ring;

use crate::error::LinuxError;

/// AX BX CX DX SI DI BP SP IP, FLAGS, R8 to R15: bits of `arch/x86/include/uapi/asm/perf_regs.h`.
/// The segment registers between them are refused by the kernel.
const REGISTER_MASK: u64 = 0x1ff | (1 << 9) | 0xff_0000;

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const SOFTWARE_CPU_CLOCK: u64 = 0;
const SOFTWARE_PAGE_FAULTS: u64 = 2;
const HARDWARE_INSTRUCTIONS: u64 = 1;

const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_ADDR: u64 = 1 << 3;
const SAMPLE_READ: u64 = 1 << 4;
const SAMPLE_CPU: u64 = 1 << 7;
const SAMPLE_REGS_USER: u64 = 1 << 12;
const FORMAT_GROUP: u64 = 1 << 3;
/// As CPU of an event: all of them.
const ANY_CPU: u32 = u32::MAX;
/// `_IO('$', 0)` and `_IO('$', 1)`.
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;

/// Bits of `perf_event_attr` (`include/uapi/linux/perf_event.h`).
mod flag {
    pub(super) const DISABLED: u64 = 1;
    pub(super) const INHERIT: u64 = 1 << 1;
    pub(super) const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub(super) const EXCLUDE_HV: u64 = 1 << 6;
    pub(super) const MMAP: u64 = 1 << 8;
    pub(super) const COMM: u64 = 1 << 9;
    pub(super) const ENABLE_ON_EXEC: u64 = 1 << 12;
    pub(super) const TASK: u64 = 1 << 13;
    pub(super) const WATERMARK: u64 = 1 << 14;
    pub(super) const MMAP_DATA: u64 = 1 << 17;
    pub(super) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(super) const MMAP2: u64 = 1 << 23;
    pub(super) const COMM_EXEC: u64 = 1 << 24;
    pub(super) const USE_CLOCKID: u64 = 1 << 25;
}

/// `struct perf_event_attr`, up to `PERF_ATTR_SIZE_VER6`.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// What to sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Process, which has not called `exec` yet: sampling begins there.
    pub pid: u32,
    /// CPU time between samples, ns.
    pub period_ns: u64,
    /// Whether each sample also reads the thread's count of user instructions (Linux 6.12; needs
    /// a hardware counter).
    pub instructions: bool,
    /// One of so many page faults of user space is told too; 0 for none.
    pub faults: u64,
}

/// Events of one process on every CPU, and their rings.
#[derive(Debug)]
pub struct Sampler {
    rings: Vec<Ring>,
    /// Page faults, in rings of their own: their loss must not look like that of samples.
    faults: Vec<Ring>,
    /// Counters of instructions: read through the samples, never by themselves.
    counters: Vec<OwnedFd>,
    layout: Layout,
}

impl Sampler {
    /// Opens one event per CPU. They start with the process's next `exec`.
    ///
    /// # Errors
    /// `perf_event_open` is refused: `EACCES`/`EPERM` by `perf_event_paranoid` or seccomp, `ENOSYS`
    /// where the kernel has none, `EINVAL` for what this kernel does not know.
    pub fn open(request: &Request, cpus: &[u32]) -> Result<Self, LinuxError> {
        let layout = Layout::Clock { group: request.instructions };
        let faults = if request.faults > 0 { fault_rings(request, cpus) } else { Vec::new() };
        let mut sampler = Self { rings: Vec::new(), faults, counters: Vec::new(), layout };
        for cpu in cpus {
            let event = open_event(&clock_attributes(request), request.pid, *cpu, None)?;
            if request.instructions {
                sampler.counters.push(open_event(&counter_attributes(), request.pid, *cpu, Some(&event))?);
            }
            sampler.rings.push(Ring::map(event, *cpu, ring::LARGEST)?);
        }
        Ok(sampler)
    }

    /// Rings, for waiting on.
    pub fn rings(&self) -> impl Iterator<Item = &Ring> {
        self.rings.iter().chain(&self.faults)
    }

    /// Takes everything out of the rings; records of one ring come in the order of their times.
    pub fn drain(&mut self, mut each: impl FnMut(Record)) {
        for ring in &mut self.rings {
            let layout = self.layout;
            ring.drain(|bytes| {
                parse(bytes, layout).into_iter().for_each(&mut each);
            });
        }
        for ring in &mut self.faults {
            ring.drain(|bytes| {
                let faults = parse(bytes, Layout::Faults).into_iter();
                faults.filter(|record| matches!(record, Record::Fault(_))).for_each(&mut each);
            });
        }
    }
}

/// Samples of the calling thread itself, on whatever CPU it runs, while it wants them.
#[derive(Debug)]
pub struct SelfSampler(Ring);

impl SelfSampler {
    /// Opens the event; it does not sample yet.
    ///
    /// # Errors
    /// As [`Sampler::open`].
    pub fn open(period_ns: u64) -> Result<Self, LinuxError> {
        let kept = flag::DISABLED | flag::EXCLUDE_KERNEL | flag::EXCLUDE_HV | flag::USE_CLOCKID;
        let mut attributes = clock_attributes(&Request { pid: 0, period_ns, instructions: false, faults: 0 });
        attributes.flags &= kept;
        Ok(Self(Ring::map(open_event(&attributes, 0, ANY_CPU, None)?, 0, ring::LARGEST)?))
    }

    /// Starts to sample.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn enable(&self) -> Result<(), LinuxError> {
        self.control(ENABLE)
    }

    /// Stops.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn disable(&self) -> Result<(), LinuxError> {
        self.control(DISABLE)
    }

    /// Takes everything out of the ring.
    pub fn drain(&mut self, each: impl FnMut(Record)) {
        self.0.drain(|bytes| parse(bytes, Layout::Clock { group: false }).into_iter().for_each(each));
    }

    fn control(&self, request: libc::c_ulong) -> Result<(), LinuxError> {
        // SAFETY: the request takes no argument but a number.
        if unsafe { libc::ioctl(self.0.descriptor(), request, 0) } != 0 {
            return Err(LinuxError::last("ioctl", "samples of this thread"));
        }
        Ok(())
    }
}

fn clock_attributes(request: &Request) -> Attributes {
    let group = if request.instructions { SAMPLE_READ } else { 0 };
    Attributes {
        kind: TYPE_SOFTWARE,
        config: SOFTWARE_CPU_CLOCK,
        period: request.period_ns,
        sample_type: SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_REGS_USER | group,
        read_format: if request.instructions { FORMAT_GROUP } else { 0 },
        flags: flag::DISABLED
            | flag::INHERIT
            | flag::EXCLUDE_KERNEL
            | flag::EXCLUDE_HV
            | flag::MMAP
            | flag::COMM
            | flag::ENABLE_ON_EXEC
            | flag::TASK
            | flag::WATERMARK
            | flag::MMAP_DATA
            | flag::SAMPLE_ID_ALL
            | flag::MMAP2
            | flag::COMM_EXEC
            | flag::USE_CLOCKID,
        wakeup_watermark: ring::WATERMARK,
        sample_regs_user: REGISTER_MASK,
        ..common()
    }
}

/// One ring of page faults per CPU; none at all where the kernel refuses one of them.
fn fault_rings(request: &Request, cpus: &[u32]) -> Vec<Ring> {
    let attributes = fault_attributes(request.faults);
    let open = |cpu: &u32| Ring::map(open_event(&attributes, request.pid, *cpu, None)?, *cpu, ring::SMALLEST);
    cpus.iter().map(open).collect::<Result<_, LinuxError>>().unwrap_or_default()
}

fn fault_attributes(period: u64) -> Attributes {
    Attributes {
        kind: TYPE_SOFTWARE,
        config: SOFTWARE_PAGE_FAULTS,
        period,
        sample_type: SAMPLE_TID | SAMPLE_TIME | SAMPLE_ADDR,
        flags: flag::DISABLED
            | flag::INHERIT
            | flag::EXCLUDE_KERNEL
            | flag::EXCLUDE_HV
            | flag::ENABLE_ON_EXEC
            | flag::WATERMARK
            | flag::USE_CLOCKID,
        wakeup_watermark: ring::WATERMARK_OF_SMALLEST,
        ..common()
    }
}

/// The sibling counts and never samples; it must carry the leader's clock or the kernel refuses it.
fn counter_attributes() -> Attributes {
    Attributes {
        kind: TYPE_HARDWARE,
        config: HARDWARE_INSTRUCTIONS,
        sample_type: SAMPLE_TID | SAMPLE_READ,
        read_format: FORMAT_GROUP,
        flags: flag::INHERIT | flag::EXCLUDE_KERNEL | flag::EXCLUDE_HV | flag::USE_CLOCKID,
        ..common()
    }
}

fn common() -> Attributes {
    // The struct has 112 bytes.
    #[allow(clippy::cast_possible_truncation)]
    let size = size_of::<Attributes>() as u32;
    Attributes { size, clock: libc::CLOCK_MONOTONIC, ..Attributes::default() }
}

fn open_event(attributes: &Attributes, pid: u32, cpu: u32, group: Option<&OwnedFd>) -> Result<OwnedFd, LinuxError> {
    const CLOSE_ON_EXEC: u64 = 8;
    let leader = group.map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: `attributes` is a perf_event_attr whose `size` says how long it is; the kernel reads it.
    let file = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            pid,
            cpu.cast_signed(),
            leader,
            CLOSE_ON_EXEC,
        )
    };
    match i32::try_from(file) {
        // SAFETY: the kernel just returned this descriptor, so nobody else owns it.
        Ok(file) if file >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(file) }),
        _ => Err(LinuxError::last("perf_event_open", format!("process {pid}, CPU {cpu}"))),
    }
}
