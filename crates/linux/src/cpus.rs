//! Which CPUs this thread may use, and how busy the CPUs of the machine are.

use crate::error::LinuxError;
use crate::root::Root;

/// CPUs that the calling thread may run on, ascending.
///
/// # Errors
/// The machine has more CPUs than a `cpu_set_t` holds (1024).
pub fn allowed_cpus() -> Result<Vec<u32>, LinuxError> {
    allowed_to(0)
}

/// CPUs that a thread may run on, ascending; 0 is the calling one.
///
/// # Errors
/// There is no such thread, or the machine has more CPUs than a `cpu_set_t` holds (1024).
pub fn allowed_to(tid: u32) -> Result<Vec<u32>, LinuxError> {
    // SAFETY: an all-zero cpu_set_t is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` may be written and has the size that is passed.
    if unsafe { libc::sched_getaffinity(tid.cast_signed(), size_of::<libc::cpu_set_t>(), &raw mut set) } != 0 {
        return Err(LinuxError::last("sched_getaffinity", format!("thread {tid}")));
    }
    let most = u32::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    // SAFETY: the index is below CPU_SETSIZE.
    Ok((0..most).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu as usize, &set) }).collect())
}

/// Lets the calling thread run on these CPUs alone.
///
/// # Errors
/// None of them is online or allowed.
pub fn run_on(cpus: &[u32]) -> Result<(), LinuxError> {
    // SAFETY: an all-zero cpu_set_t is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE.unsigned_abs()) {
        // SAFETY: the index is below CPU_SETSIZE.
        unsafe { libc::CPU_SET(*cpu as usize, &mut set) };
    }
    // SAFETY: `set` is readable and has the size that is passed.
    if unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) } != 0 {
        return Err(LinuxError::last("sched_setaffinity", format!("CPUs {cpus:?}")));
    }
    Ok(())
}

/// Asks for the processor in short slices, by which the calling thread gets it sooner where others want it, too, and no more
/// of it (`sched_setattr(2)`, Linux 6.12 on: the deadline of EEVDF, `set_load_weight` and `__setparam_fair` of
/// `kernel/sched/`). Older kernels take no notice.
///
/// # Errors
/// The thread has a policy without slices, such as `SCHED_FIFO`, or a filter forbids the call.
pub fn run_soon() -> Result<(), LinuxError> {
    /// The kernel's shortest, ns.
    const SLICE_NS: u64 = 100_000;
    const THIS_THREAD: libc::pid_t = 0;
    // SAFETY: `sched_attr` is plain data, for which zero is valid.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0);
    // SAFETY: the kernel fills at most `size` bytes of it.
    if unsafe { libc::syscall(libc::SYS_sched_getattr, THIS_THREAD, &raw mut attributes, size, 0) } != 0 {
        return Err(LinuxError::last("sched_getattr", "this thread"));
    }
    attributes.sched_runtime = SLICE_NS;
    // SAFETY: the kernel reads the `size` bytes that it says it has.
    if unsafe { libc::syscall(libc::SYS_sched_setattr, THIS_THREAD, &raw const attributes, 0) } != 0 {
        return Err(LinuxError::last("sched_setattr", "this thread"));
    }
    Ok(())
}

/// CPU time that the whole machine has spent since it started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Busy {
    /// In programs, the kernel and interrupts, s, summed over all CPUs.
    pub busy_s: f64,
    /// Taken away by the hypervisor, s, summed over all CPUs.
    pub stolen_s: f64,
}

/// First line of `/proc/stat` (`proc_stat(5)`); `None` where it cannot be read.
pub fn busy(root: &Root) -> Option<Busy> {
    let text = root.text("/proc/stat")?;
    let fields: Vec<f64> =
        text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _wait, interrupt, soft, stolen, ..] = fields[..] else { return None };
    // SAFETY: sysconf takes a plain number.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let ticks = if ticks > 0 { ticks as f64 } else { 100.0 };
    Some(Busy { busy_s: (user + nice + system + interrupt + soft) / ticks, stolen_s: stolen / ticks })
}

/// CPU time of this process so far, s.
pub fn own_cpu_s() -> f64 {
    clock_s(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the calling thread so far, s: stands still while the thread waits for a CPU.
pub fn thread_cpu_s() -> f64 {
    clock_s(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock_s(clock: libc::clockid_t) -> f64 {
    let mut spent = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `spent` is a timespec that the call may write; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut spent) };
    spent.tv_sec as f64 + spent.tv_nsec as f64 * 1e-9
}

/// Runnable tasks of the last minute, on average; `None` where `/proc/loadavg` cannot be read.
pub fn load_average(root: &Root) -> Option<f64> {
    root.text("/proc/loadavg")?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_held_on_one_cpu() {
        std::thread::spawn(|| {
            let allowed = allowed_cpus().unwrap();
            let last = *allowed.last().unwrap();
            run_on(&[last]).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [last]);
            assert_eq!(run_on(&[]).unwrap_err().call, "sched_setaffinity");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_keeps_its_weight_with_short_slices() {
        std::thread::spawn(|| {
            // SAFETY: both take plain numbers; each thread has its own.
            let nice = || unsafe {
                libc::nice(3);
                libc::getpriority(libc::PRIO_PROCESS, 0)
            };
            let before = nice();
            run_soon().unwrap();
            // SAFETY: as above.
            assert_eq!(unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }, before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn busy_time_is_read_from_a_recorded_machine() {
        let folder = std::env::temp_dir().join(format!("tierloom-cpus-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("proc")).unwrap();
        std::fs::write(folder.join("proc/stat"), "cpu  100 10 20 1000 5 1 2 300 0 0\ncpu0 1 1 1\n").unwrap();
        std::fs::write(folder.join("proc/loadavg"), "1.25 0.5 0.1 1/2 3\n").unwrap();
        let root = Root::at(&folder);
        let busy = busy(&root).unwrap();
        assert!((busy.busy_s * 300.0 - busy.stolen_s * 133.0).abs() < 1e-9);
        assert_eq!(load_average(&root), Some(1.25));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
