//! Pages of other processes, and what the kernel counts about the pages of all.
//!
//! `move_pages(2)` asks and moves; it needs the same user (`PTRACE_MODE_READ_REALCREDS` of `mm/migrate.c`).

use std::collections::BTreeMap;

use crate::error::LinuxError;
use crate::root::Root;

/// `MPOL_MF_MOVE`: pages that only this process maps.
const MOVE: i32 = 1 << 1;

/// Where pages of a process are: a node, or the negative of an error number (`ENOENT`: no page there).
///
/// # Errors
/// No such process (`ESRCH`), or one of another user (`EPERM`).
pub fn locate_pages(pid: u32, pages: &[u64]) -> Result<Vec<i32>, LinuxError> {
    call_move_pages(pid, pages, std::ptr::null())
}

/// Moves each page to its node; answers where each is then, or the negative of why it did not move.
///
/// # Errors
/// As [`locate_pages`]; a node that is not there (`ENODEV`) refuses the whole call.
pub fn move_pages(pid: u32, pages: &[u64], nodes: &[i32]) -> Result<Vec<i32>, LinuxError> {
    let count = pages.len().min(nodes.len());
    call_move_pages(pid, &pages[..count], nodes.as_ptr())
}

/// `nodes` is null, or points to as many as there are pages.
fn call_move_pages(pid: u32, pages: &[u64], nodes: *const i32) -> Result<Vec<i32>, LinuxError> {
    let mut status = vec![-libc::ENOENT; pages.len()];
    // SAFETY: `pages` and `status` have the length that is said, and so have `nodes` by the promise of
    // the two callers above; the kernel only moves pages, it does not change what is in them.
    let answer = unsafe {
        libc::syscall(libc::SYS_move_pages, pid, pages.len(), pages.as_ptr(), nodes, status.as_mut_ptr(), MOVE)
    };
    // A positive answer counts pages that stayed; each one's status says why.
    if answer < 0 { Err(LinuxError::last("move_pages", format!("process {pid}"))) } else { Ok(status) }
}

/// Words of a process's memory; fewer where some are not there.
///
/// # Errors
/// No such process (`ESRCH`), one that we may not look into (`EPERM`), or no such memory (`EFAULT`).
pub fn read_words(pid: u32, address: u64, count: usize) -> Result<Vec<u64>, LinuxError> {
    let mut words = vec![0_u64; count];
    let bytes = count * size_of::<u64>();
    let here = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: bytes };
    let there = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes };
    // SAFETY: the kernel writes at most as many bytes as the words have, and reads the other process's.
    let read = unsafe { libc::process_vm_readv(pid.cast_signed(), &raw const here, 1, &raw const there, 1, 0) };
    let read = usize::try_from(read)
        .map_err(|_| LinuxError::new("process_vm_readv", format!("process {pid}"), std::io::Error::last_os_error()))?;
    words.truncate(read / size_of::<u64>());
    Ok(words)
}

/// Counters of `/proc/vmstat` whose names begin with one of these.
pub fn vmstat(root: &Root, prefixes: &[&str]) -> BTreeMap<String, u64> {
    let text = root.text("/proc/vmstat").unwrap_or_default();
    let counter = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        let wanted = prefixes.iter().any(|prefix| name.starts_with(prefix));
        Some((name.to_owned(), value.trim().parse().ok().filter(|_| wanted)?))
    };
    text.lines().filter_map(counter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::recorded::Recorded;
    use crate::pages::{BASE_PAGE_BYTES, Pages};

    #[test]
    fn words_of_a_process_are_read_and_no_others() {
        let words: Vec<u64> = (0..5000).collect();
        let own = std::process::id();
        assert_eq!(read_words(own, words.as_ptr() as u64, words.len()).unwrap(), words);
        assert!(read_words(own, 8, 1).is_err());
    }

    #[test]
    fn our_own_pages_are_found_and_stay() {
        let mut pages = Pages::new(1, None).unwrap();
        let first = pages.as_mut_slice().as_ptr().addr();
        let addresses: Vec<u64> = (0..4).map(|page| (first + page * BASE_PAGE_BYTES) as u64).collect();
        let Ok(nodes) = locate_pages(0, &addresses) else { return };
        assert!(nodes.iter().all(|node| *node >= 0), "{nodes:?}");
        assert_eq!(move_pages(0, &addresses, &nodes).unwrap(), nodes);
        assert_eq!(locate_pages(0, &[0]).unwrap(), [-libc::EFAULT]);
        assert!(locate_pages(u32::MAX >> 1, &addresses).is_err());
    }

    #[test]
    fn a_recorded_host_has_counters() {
        let host = Recorded::new("counters");
        host.put("/proc/vmstat", "nr_free_pages 5\nnuma_hit 7\npgpromote_success 9\n");
        let counters = BTreeMap::from([("numa_hit".to_owned(), 7), ("pgpromote_success".to_owned(), 9)]);
        assert_eq!(vmstat(&host.root(), &["numa_", "pgpromote_"]), counters);
    }
}
