//! Processes that write transactions are killed at random moments, many times: what they
//! acknowledged is there, what was under way is there as a whole or not at all.
//!
//! SIGKILL takes a process away between any two instructions, so this tests recovery with the real
//! `Device` and the real library, and that no step of ours is kept in the process. The page cache
//! survives it: a write-back or a fence that is missing is not found here but by `crashes.rs`, which
//! cuts the power.
//!
//! The writer is this program itself, started again with a pool in its environment. It undoes what its
//! predecessor left, so kills meet recovery too.

#![allow(unsafe_code, reason = "looks at arrays where they lie")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_ptr_alignment,
    reason = "a test's own processes and small numbers; failing is its job"
)]

mod common;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use common::Recorder;
use tierloom_pmem::{Backend, Entry, Kind, Medium, Pool, check, check_file, create, open, pmdk};

const POOL: &str = "TIERLOOM_TEST_POOL";
/// Words of the two arrays that every transaction rewrites, and that say its number; several lines and
/// a page's end in each.
const WORDS: [u64; 2] = [700, 90];
/// Kills of each kind of pool in every run of the tests.
const KILLS: usize = 100;

/// A transaction and its acknowledgement, for ever. The test harness says nothing on stderr.
#[test]
#[ignore = "a process of the other tests"]
fn writer() {
    let Some(path) = std::env::var_os(POOL) else { return };
    let mut pool = open(Path::new(&path)).unwrap();
    let mut said = std::io::stderr().lock();
    loop {
        let next = number(pool.as_ref()) + 1;
        transact(pool.as_mut(), next);
        said.write_all(&next.to_le_bytes()).unwrap();
    }
}

/// Rewrites both arrays; every third time a third array comes or goes.
fn transact(pool: &mut dyn Backend, n: u64) {
    pool.begin().unwrap();
    for name in ["left", "right"] {
        let entry = found(pool, name).unwrap();
        pool.save(entry.offset, entry.bytes).unwrap();
        fill(pool, &entry, n);
    }
    match found(pool, "extra") {
        Some(_) if n % 3 == 2 => pool.free("extra").unwrap(),
        None if n.is_multiple_of(3) => {
            let entry = pool.allocate("extra", "<u8", 8 * (1 + n % 5 * 200), n).unwrap();
            fill(pool, &entry, n);
        }
        _ => {}
    }
    pool.commit().unwrap();
}

fn found(pool: &dyn Backend, name: &str) -> Option<Entry> {
    pool.entries().into_iter().find(|entry| entry.name == name)
}

fn fill(pool: &dyn Backend, entry: &Entry, n: u64) {
    for word in 0..entry.bytes / 8 {
        // SAFETY: the word lies in an array of the pool, which is mapped as a whole.
        unsafe { pool.start().add((entry.offset + 8 * word) as usize).cast::<u64>().write_volatile(n) };
    }
}

fn number(pool: &dyn Backend) -> u64 {
    let entry = found(pool, "left").unwrap();
    // SAFETY: as in `fill`.
    unsafe { pool.start().add(entry.offset as usize).cast::<u64>().read_volatile() }
}

/// The number that a state says, if it is one that a transaction left.
fn sound(entries: &[Entry], word: impl Fn(u64) -> u64) -> Option<u64> {
    let n = word(entries.iter().find(|entry| entry.name == "left")?.offset);
    let extra = entries.iter().find(|entry| entry.name == "extra");
    let extra_is_right = match extra {
        // It came with the last multiple of three.
        Some(entry) => n % 3 != 2 && entry.version == n - n % 3,
        None => n % 3 == 2 || n < 3,
    };
    let says = |entry: &Entry, n| (0..entry.bytes / 8).all(|at| word(entry.offset + 8 * at) == n);
    let all_say = entries.iter().all(|entry| says(entry, if entry.name == "extra" { n - n % 3 } else { n }));
    (all_say && extra_is_right).then_some(n)
}

/// A file in memory where that can be: a kill leaves the page cache alone, so a disk would add nothing but time.
fn place(name: &str) -> PathBuf {
    let may_write = |path: &PathBuf| std::fs::write(path, []).and_then(|()| std::fs::remove_file(path)).is_ok();
    let file = format!("tierloom-kills-{}-{name}", std::process::id());
    let in_memory = Path::new("/dev/shm").join(&file);
    Some(in_memory).filter(may_write).unwrap_or_else(|| std::env::temp_dir().join(file))
}

fn fresh(kind: Kind, name: &str) -> PathBuf {
    let path = place(name);
    std::fs::remove_file(&path).ok();
    let mut pool = create(kind, &path, if kind == Kind::Native { 1 << 18 } else { 8 << 20 }, None, 7).unwrap();
    for (name, words) in ["left", "right"].into_iter().zip(WORDS) {
        let entry = pool.allocate(name, "<u8", 8 * words, 0).unwrap();
        fill(pool.as_ref(), &entry, 0);
        pool.flush(entry.offset, entry.bytes).unwrap();
    }
    path
}

fn start_writer(path: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "writer", "--ignored", "--nocapture"]).env(POOL, path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Kills the writer after some acknowledgements and some work more; the last number that it acknowledged.
fn kill(mut writer: Child, acknowledged: usize, moments: u64) -> Option<u64> {
    let mut said = writer.stderr.take().unwrap();
    let mut told = vec![0; 8 * acknowledged];
    said.read_exact(&mut told).unwrap();
    (0..moments).for_each(|_| std::hint::spin_loop());
    writer.kill().unwrap();
    said.read_to_end(&mut told).unwrap();
    writer.wait().unwrap();
    let whole = told.len() / 8 * 8;
    told[..whole].as_chunks::<8>().0.last().map(|word| u64::from_le_bytes(*word))
}

/// One test at a time: a writer that is started while libpmemobj has a pool open would inherit its lock.
static ALONE: Mutex<()> = Mutex::new(());

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }
}

/// Kills the writers of a pool of ours one after the other; how many of them were inside a transaction.
fn kill_writers(kills: usize, name: &str) -> usize {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = fresh(Kind::Native, name);
    let (mut random, mut before, mut cut_off) = (Random(0x5eed), 0, 0);
    for round in 0..kills {
        let writer = start_writer(&path);
        // Mostly after a few transactions; sometimes before the first, while what the kill before left is undone.
        let acknowledged = kill(writer, random.below(4) as usize, random.below(20_000)).unwrap_or(before);
        // The file is looked at as the kill left it; undoing is left to the next writer.
        let left = Recorder::of(std::fs::read(&path).unwrap());
        cut_off += usize::from(check(&left).iter().any(|problem| !problem.is_damage()));
        let pool = Pool::open(left).unwrap();
        assert_eq!(check(pool.medium()), [], "kill {round}");
        let entries: Vec<Entry> = pool.arrays().into_iter().cloned().collect();
        let n = sound(&entries, |offset| pool.medium().load_word(offset));
        let n = n.unwrap_or_else(|| panic!("kill {round} after {acknowledged} tore a transaction"));
        assert!(n == acknowledged || n == acknowledged + 1, "kill {round}: {acknowledged} acknowledged, {n} found");
        before = n;
    }
    std::fs::remove_file(&path).unwrap();
    cut_off
}

#[test]
fn no_kill_loses_or_tears_what_was_acknowledged() {
    kill_writers(KILLS, "native");
}

#[test]
fn libpmemobj_keeps_the_same_promise() {
    if let Err(why) = pmdk::is_installed() {
        assert!(std::env::var_os("TIERLOOM_REQUIRE").is_none(), "required, and did not run: {why}");
        println!("skipped: {why}");
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = fresh(Kind::Library, "pmdk");
    let (mut random, mut before) = (Random(0x5eed), 0);
    for round in 0..KILLS {
        let writer = start_writer(&path);
        let acknowledged = kill(writer, random.below(4) as usize, random.below(20_000)).unwrap_or(before);
        assert_eq!(check_file(&path).unwrap(), [], "kill {round}");
        let pool = open(&path).unwrap();
        // SAFETY: words of arrays of the pool, which is mapped as a whole.
        let word = |offset| unsafe { pool.start().add(offset as usize).cast::<u64>().read_volatile() };
        let n = sound(&pool.entries(), word);
        let n = n.unwrap_or_else(|| panic!("kill {round} after {acknowledged} tore a transaction"));
        assert!(n == acknowledged || n == acknowledged + 1, "kill {round}: {acknowledged} acknowledged, {n} found");
        before = n;
    }
    std::fs::remove_file(&path).unwrap();
}

/// What judges the machine: `make live`.
mod live {
    use super::*;

    #[test]
    #[ignore = "live"]
    fn thousands_of_kills_lose_nothing_and_many_meet_a_transaction() {
        let cut_off = kill_writers(20 * KILLS, "live");
        assert!(cut_off > KILLS / 5, "kills have to meet transactions: {cut_off} did");
    }
}
