//! The same measurement where the kernel gives no samples: the loop runs in a forked child that is halted again
//! and again.

use std::thread;
use std::time::Duration;

use super::{Memory, Skid, landmarks};
use crate::error::LinuxError;
use crate::ptrace::{Tracer, Why};

/// Runs the loop over `bytes` (a power of two) of memory and halts it every `period_ns` until `samples` were taken.
///
/// # Errors
/// No memory or process is left, or the kernel lets nobody trace.
pub fn measure_by_ptrace(bytes: usize, period_ns: u64, samples: u32) -> Result<Skid, LinuxError> {
    let memory = Memory::new(bytes)?;
    let child = Walker::start(&memory)?;
    // Whoever traces must be one thread, and must not wait for what this one traces.
    thread::scope(|scope| scope.spawn(|| sampled(child.pid.unsigned_abs(), period_ns, samples)).join())
        .unwrap_or_else(|_| Err(LinuxError::new("ptrace", "measurement of skid", std::io::ErrorKind::Other.into())))
}

fn sampled(pid: u32, period_ns: u64, samples: u32) -> Result<Skid, LinuxError> {
    let (tracer, (load, after)) = (Tracer::new(), landmarks());
    let mut skid = Skid::default();
    for _ in 0..samples {
        thread::sleep(Duration::from_nanos(period_ns));
        tracer.hold(pid)?;
        let Some(halt) = tracer.next_halt(true).filter(|halt| halt.why != Why::Ended) else { break };
        skid.count(tracer.registers(pid)?.rip, load, after);
        tracer.let_go(halt);
    }
    Ok(skid)
}

/// A child that walks until it is killed.
struct Walker {
    pid: libc::pid_t,
}

impl Walker {
    fn start(memory: &Memory) -> Result<Self, LinuxError> {
        // SAFETY: the child runs a loop of ours and makes one system call before it.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(LinuxError::last("fork", "measurement of skid"));
        }
        if pid == 0 {
            // It ends with its parent, whatever becomes of that.
            // SAFETY: plain numbers.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let mut seed = 12345;
            loop {
                seed = memory.walk(seed);
            }
        }
        Ok(Self { pid })
    }
}

impl Drop for Walker {
    fn drop(&mut self) {
        let mut status = 0;
        // SAFETY: it is our child, and `status` an int.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            while libc::waitpid(self.pid, &raw mut status, 0) < 0
                && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
            {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_fall_into_the_loop() {
        match measure_by_ptrace(1 << 20, 200_000, 20) {
            Ok(skid) => assert_eq!(skid.behind.iter().sum::<u32>() + skid.elsewhere, 20),
            Err(error) => assert_eq!(error.errno(), Some(libc::EPERM), "{error}"),
        }
    }
}
