//! Traffic at a known rate beside what somebody else runs.
//!
//! A team reads the memory of its own node from cores that are left over. How long it pauses between bursts is found
//! before anything runs beside it, by halving, and stays as it is from then on: what the team still gets while the
//! memory is shared is counted, not assumed.

use std::time::{Duration, Instant};

use tierloom_linux::root::Root;

use crate::arena::Arena;
use crate::error::ProbeError;
use crate::host::Host;
use crate::kernels::{Instructions, Kernel};
use crate::mix::Mix;
use crate::request::Scale;
use crate::session::leave_out_forbidden_cpus;
use crate::team::{self, Load};

/// How long a rate is looked at while the pause is sought: a hundred slices of a scheduler that shares a core.
const LOOK: Duration = Duration::from_millis(50);

/// The longest pause that is tried, in steps of arithmetic: some 100 µs between bursts of less than 1 KiB.
const LONGEST_PAUSE: u32 = 1 << 17;

/// What ran beside neighbours, and what these had of the memory meanwhile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beside<R> {
    /// Bytes that neighbours read, by the time that `answer` took, GB/s.
    pub gb_s: f64,
    /// What the body returned.
    pub answer: R,
}

/// Runs `body` while neighbours read near memory at about `gb_s`; it is told the CPUs that they leave.
///
/// They take the fewest of the first socket's cores that reach the rate, the last ones first, and leave `keep` at least.
///
/// # Errors
/// [`ProbeError::NoCoreLeft`], [`ProbeError::Slower`]: there is no core for neighbours, or those that there are do not
/// reach the rate. Else as [`crate::measure`].
pub fn beside<R>(gb_s: f64, keep: usize, body: impl FnOnce(&[u32]) -> R) -> Result<Beside<R>, ProbeError> {
    let mut host = Host::read(&Root::default());
    leave_out_forbidden_cpus(&mut host)?;
    let socket = host.sockets.first().ok_or(ProbeError::NoCpus)?;
    let cores = &socket.cores;
    let most = cores.len().saturating_sub(keep);
    if most == 0 {
        return Err(ProbeError::NoCoreLeft { cores: cores.len(), keep });
    }
    let mut memory = Arena::near(&host, socket, Scale::QUICK.most_bytes)?;
    let reads = Kernel::new(Mix::Reads, Instructions::widest());
    let mut waiting = Some(body);
    let mut reached = 0.0;
    for team in 1..=most {
        let (left, taken) = cores.split_at(cores.len() - team);
        let jobs = team::walkers(reads, taken, memory.as_mut_slice());
        let found = team::under_load(jobs, |load| {
            reached = rate(load, LOOK);
            if reached < gb_s {
                return None;
            }
            load.set_pause(pause(load, gb_s));
            let body = waiting.take()?;
            let (bytes, start) = (load.bytes(), Instant::now());
            let answer = body(left);
            let read = (load.bytes() - bytes) as f64;
            Some(Beside { gb_s: read / start.elapsed().as_secs_f64() / 1e9, answer })
        })?;
        if let Some(found) = found {
            return Ok(found);
        }
    }
    Err(ProbeError::Slower { gb_s, reached })
}

/// What the team reads, GB/s.
fn rate(load: &Load, window: Duration) -> f64 {
    let (bytes, start) = (load.bytes(), Instant::now());
    std::thread::sleep(window);
    (load.bytes() - bytes) as f64 / start.elapsed().as_secs_f64() / 1e9
}

/// The longest pause at which the team still reads as much as asked.
fn pause(load: &Load, gb_s: f64) -> u32 {
    let (mut enough, mut too_long) = (0, LONGEST_PAUSE);
    while too_long - enough > 1 + enough / 16 {
        let tried = enough + (too_long - enough) / 2;
        load.set_pause(tried);
        if rate(load, LOOK) < gb_s {
            too_long = tried;
        } else {
            enough = tried;
        }
    }
    enough
}

#[cfg(test)]
mod tests {
    use tierloom_linux::cpus;

    use super::*;

    #[test]
    fn a_program_that_needs_all_cores_has_no_neighbours() {
        let refused = beside(1.0, usize::MAX, |_| ());
        assert!(matches!(refused, Err(ProbeError::NoCoreLeft { keep: usize::MAX, .. })), "{refused:?}");
    }

    /// What judges the machine: `make live`.
    mod live {
        use super::*;

        #[test]
        #[ignore = "live"]
        fn neighbours_read_about_as_much_as_asked_and_leave_their_cpus_to_nobody() {
            let cpus = cpus::allowed_cpus().unwrap();
            let found = beside(1.0, 1, |left| {
                std::thread::sleep(Duration::from_millis(300));
                left.to_vec()
            });
            match found {
                Ok(found) => {
                    assert!((0.5..2.0).contains(&found.gb_s), "{found:?}");
                    assert!(!found.answer.is_empty() && found.answer.len() < cpus.len(), "{found:?}");
                }
                Err(ProbeError::NoCoreLeft { cores: 1, keep: 1 }) => {}
                Err(error) => panic!("{error}"),
            }
        }

        #[test]
        #[ignore = "live"]
        fn more_than_there_is_is_refused_with_what_there_is() {
            let refused = beside(1e9, 0, |_| ());
            assert!(matches!(refused, Err(ProbeError::Slower { reached, .. }) if reached > 0.1), "{refused:?}");
        }
    }
}
