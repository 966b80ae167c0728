//! CPU time of processes.

use crate::root::Root;

/// User and system CPU time of a process and of the children that it has waited for, s; zeroes where it is gone.
pub fn of_process(root: &Root, pid: u32) -> (f64, f64) {
    parse(&root.text(&format!("/proc/{pid}/stat")).unwrap_or_default()).unwrap_or_default()
}

/// User and system CPU time of a process alone, s; `None` where it is gone.
pub fn of_process_alone(root: &Root, pid: u32) -> Option<(f64, f64)> {
    let fields = fields(&root.text(&format!("/proc/{pid}/stat"))?)?;
    Some((fields[0], fields[1]))
}

/// What the scheduler gave a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scheduled {
    /// CPU time, ns.
    pub ran_ns: u64,
    /// Time in which it could have run and had no CPU, ns.
    pub queued_ns: u64,
}

/// What a thread was given; `None` where it is gone, or the kernel does not count it (`schedstats`, the first two numbers
/// of `/proc/PID/task/TID/schedstat`).
pub fn scheduled(root: &Root, pid: u32, tid: u32) -> Option<Scheduled> {
    let text = root.text(&format!("/proc/{pid}/task/{tid}/schedstat"))?;
    let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
    Some(Scheduled { ran_ns: numbers.next()?, queued_ns: numbers.next()? })
}

/// Fields 14 to 17 of `proc_pid_stat(5)`, counted from behind the name, which may hold anything.
fn parse(text: &str) -> Option<(f64, f64)> {
    let [user, system, childrens_user, childrens_system] = fields(text)?;
    Some((user + childrens_user, system + childrens_system))
}

/// The same fields, s.
fn fields(text: &str) -> Option<[f64; 4]> {
    /// `USER_HZ` of `include/asm-generic/param.h`: what the kernel tells in, whatever its own rate.
    const TICKS_PER_S: f64 = 100.0;
    let fields: Vec<f64> =
        text.rsplit_once(')')?.1.split_whitespace().skip(11).take(4).map_while(|field| field.parse().ok()).collect();
    let fields: [f64; 4] = fields.try_into().ok()?;
    Some(fields.map(|ticks| ticks / TICKS_PER_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_process_and_its_children() {
        let text = "7 (a ) 9 9) S 1 7 7 0 -1 4194560 1 0 0 0 150 20 50 5 20 0 1 0 4711 0 0";
        assert_eq!(parse(text), Some((2.0, 0.25)));
        assert_eq!(parse("7 (a) Z"), None);
        assert_eq!(of_process(&Root::default(), u32::MAX), (0.0, 0.0));
        assert_eq!(of_process_alone(&Root::default(), u32::MAX), None);
        assert!(of_process_alone(&Root::default(), std::process::id()).is_some());
    }
}
