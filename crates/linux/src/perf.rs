//! Samples of a program and its descendants: `perf_event_open(2)`.
//!
//! One event per CPU counts the CPU time of one process and, by `inherit`, of everything that it
//! starts. Each has a ring of its own into which the kernel writes records ([`Record`]). Nothing here
//! knows what a sample is good for.

mod fields;
mod format;
mod record;
mod ring;
mod sample;
mod thread_clock;

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub use fields::Fields;
pub use format::{Damaged, Format};
pub use record::{Fault, REGISTERS, Record, STACK_WORDS, Sample};
pub use ring::Ring;
pub use sample::GENERAL_REGISTERS;
pub use thread_clock::ThreadClock;

use crate::error::LinuxError;

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const SOFTWARE_CPU_CLOCK: u64 = 0;
const SOFTWARE_TASK_CLOCK: u64 = 1;
const SOFTWARE_PAGE_FAULTS: u64 = 2;
const HARDWARE_INSTRUCTIONS: u64 = 1;

const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_ADDR: u64 = 1 << 3;
const SAMPLE_READ: u64 = 1 << 4;
const SAMPLE_CPU: u64 = 1 << 7;
const SAMPLE_REGS_USER: u64 = 1 << 12;
const SAMPLE_STACK_USER: u64 = 1 << 13;
/// What is copied of the stack, bytes.
#[allow(clippy::cast_possible_truncation, reason = "some hundred")]
const STACK_BYTES: u32 = 8 * STACK_WORDS as u32;
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

impl Attributes {
    /// What records of an event with these attributes carry.
    fn format(&self) -> Result<Format, LinuxError> {
        // SAFETY: the fields fill the struct without a gap, so that every byte of it is set.
        let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast::<u8>(), size_of::<Self>()) };
        let unknown = || std::io::Error::from_raw_os_error(libc::EINVAL);
        Format::of(bytes).ok_or_else(|| LinuxError::new("perf_event_open", "attributes of an event", unknown()))
    }
}

/// What to sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Process, which has not called `exec` yet: sampling begins there.
    pub pid: u32,
    /// CPU time between samples, ns.
    pub period_ns: u64,
    /// CPU time between samples of a second event, ns, which are taken beside those of the first.
    pub beside_ns: Option<u64>,
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
    faults_refused: Option<LinuxError>,
    /// Events without a ring of their own: the second one of each CPU, which writes into the first one's, and counters of
    /// instructions, which are read through the samples.
    #[expect(dead_code, reason = "open for as long as the sampler is there")]
    without_ring: Vec<OwnedFd>,
    format: Format,
    format_of_faults: Format,
}

impl Sampler {
    /// Opens one event per CPU, or two. They start with the process's next `exec`.
    ///
    /// # Errors
    /// `perf_event_open` is refused: `EACCES`/`EPERM` by `perf_event_paranoid` or seccomp, `ENOSYS`
    /// where the kernel has none, `EINVAL` for what this kernel does not know.
    pub fn open(request: &Request, cpus: &[u32]) -> Result<Self, LinuxError> {
        let (clock, faults) = (clock_attributes(request), fault_attributes(request.faults));
        let (format, format_of_faults) = (clock.format()?, faults.format()?);
        let opened = if request.faults > 0 { fault_rings(&faults, request.pid, cpus) } else { Ok(Vec::new()) };
        let (faults, faults_refused) = opened.map_or_else(|refused| (Vec::new(), Some(refused)), |rings| (rings, None));
        let (mut rings, mut without_ring) = (Vec::new(), Vec::new());
        for cpu in cpus {
            let mut open = |attributes: &Attributes| {
                let event = open_event(attributes, request.pid, *cpu, None)?;
                if request.instructions {
                    without_ring.push(open_event(&counter_attributes(), request.pid, *cpu, Some(&event))?);
                }
                Ok(event)
            };
            let ring = Ring::map(open(&clock)?, *cpu, ring::LARGEST)?;
            if let Some(beside_ns) = request.beside_ns {
                let event = open(&beside(&clock, beside_ns))?;
                ring.take_from(&event)?;
                without_ring.push(event);
            }
            rings.push(ring);
        }
        Ok(Self { rings, faults, faults_refused, without_ring, format, format_of_faults })
    }

    /// Rings, for waiting on.
    pub fn rings(&self) -> impl Iterator<Item = &Ring> {
        self.rings.iter().chain(&self.faults)
    }

    /// Why page faults are not seen, where they were asked for and are not.
    pub fn faults_refused(&self) -> Option<&LinuxError> {
        self.faults_refused.as_ref()
    }

    /// Takes everything out of the rings of samples; records of one ring come in the order of their times.
    pub fn drain(&mut self, mut each: impl FnMut(Record)) {
        for ring in &mut self.rings {
            ring.drain(|bytes| self.format.records(bytes, &mut each));
        }
    }

    /// Takes the page faults out of theirs.
    pub fn drain_faults(&mut self, mut each: impl FnMut(Fault)) {
        for ring in &mut self.faults {
            ring.drain(|bytes| {
                self.format_of_faults.records(bytes, |record| {
                    if let Record::Sample(Sample { pid, time_ns, instruction, address, .. }) = record {
                        each(Fault { pid, time_ns, instruction, address });
                    }
                });
            });
        }
    }
}

/// Samples of the calling thread itself, on whatever CPU it runs, while it wants them.
#[derive(Debug)]
pub struct SelfSampler {
    ring: Ring,
    format: Format,
}

impl SelfSampler {
    /// Opens the event; it does not sample yet.
    ///
    /// # Errors
    /// As [`Sampler::open`].
    pub fn open(period_ns: u64) -> Result<Self, LinuxError> {
        let kept = flag::DISABLED | flag::EXCLUDE_KERNEL | flag::EXCLUDE_HV | flag::USE_CLOCKID;
        let alone = Request { pid: 0, period_ns, beside_ns: None, instructions: false, faults: 0 };
        let mut attributes = clock_attributes(&alone);
        attributes.flags &= kept;
        let ring = Ring::map(open_event(&attributes, 0, ANY_CPU, None)?, 0, ring::LARGEST)?;
        Ok(Self { ring, format: attributes.format()? })
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
        self.ring.drain(|bytes| self.format.records(bytes, each));
    }

    fn control(&self, request: libc::c_ulong) -> Result<(), LinuxError> {
        // SAFETY: the request takes no argument but a number.
        if unsafe { libc::ioctl(self.ring.descriptor(), request, 0) } != 0 {
            return Err(LinuxError::last("ioctl", "samples of this thread"));
        }
        Ok(())
    }
}

fn clock_attributes(request: &Request) -> Attributes {
    let group = if request.instructions { SAMPLE_READ } else { 0 };
    let user = SAMPLE_REGS_USER | SAMPLE_STACK_USER;
    Attributes {
        kind: TYPE_SOFTWARE,
        config: SOFTWARE_CPU_CLOCK,
        period: request.period_ns,
        sample_type: SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | user | group,
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
        sample_regs_user: GENERAL_REGISTERS,
        sample_stack_user: STACK_BYTES,
        ..common()
    }
}

/// An event whose samples look like another's, and which tells nothing else: the other one does.
fn beside(first: &Attributes, period_ns: u64) -> Attributes {
    let told = flag::MMAP | flag::COMM | flag::TASK | flag::MMAP_DATA | flag::MMAP2 | flag::COMM_EXEC;
    Attributes { period: period_ns, flags: first.flags & !told, ..*first }
}

/// One ring of page faults per CPU, or none at all.
fn fault_rings(attributes: &Attributes, pid: u32, cpus: &[u32]) -> Result<Vec<Ring>, LinuxError> {
    let open = |cpu: &u32| Ring::map(open_event(attributes, pid, *cpu, None)?, *cpu, ring::SMALLEST);
    cpus.iter().map(open).collect()
}

fn fault_attributes(period: u64) -> Attributes {
    Attributes {
        kind: TYPE_SOFTWARE,
        config: SOFTWARE_PAGE_FAULTS,
        period,
        sample_type: SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_ADDR,
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
