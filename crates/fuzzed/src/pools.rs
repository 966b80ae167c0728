//! A persistent pool whose file is anything.

use tierloom_pmem::{Durable, Medium, PmemError, Pool, Problem, check, repair};

/// Bytes in memory, durable at once.
#[derive(Debug, Clone)]
struct Held(Vec<u8>);

impl Medium for Held {
    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn load(&self, offset: u64, to: &mut [u8]) {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        to.copy_from_slice(&self.0[at..at + to.len()]);
    }
}

impl Durable for Held {
    fn store(&mut self, offset: u64, from: &[u8]) {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        self.0[at..at + from.len()].copy_from_slice(from);
    }

    fn write_back(&mut self, _: u64, _: u64) {}

    fn fence(&mut self) -> Result<(), PmemError> {
        Ok(())
    }
}

/// Where the made-up pool has its directory, and how many entries are in it.
const DIRECTORY: usize = 8192 + LOG;
const LOG: usize = 16 << 10;
const ENTRIES: usize = 16;

/// The bytes are changes of ten bytes (two of place, in eights, and eight of value) to a pool that a crash left
/// in a transaction. Where the first byte is odd, headers and directory get good checksums again, so that what
/// they say is believed.
pub(crate) fn pool(bytes: &[u8]) {
    let mut held = made();
    for change in bytes.chunks_exact(10) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) * 8 % held.0.len();
        held.0[place..place + 8].copy_from_slice(&change[2..]);
    }
    if bytes.first().is_some_and(|first| first % 2 == 1) {
        let entries = (0..ENTRIES).map(|entry| (DIRECTORY + 256 * entry, 256));
        [(0, 64), (4096, 64)].into_iter().chain(entries).for_each(|(at, length)| seal(&mut held.0[at..at + length]));
    }
    let problems = check(&held);
    if let Ok(mut pool) = Pool::open(held.clone()) {
        let names: Vec<String> = pool.arrays().iter().map(|entry| entry.name.clone()).collect();
        for name in names {
            let _ = pool.verify(&name);
            let _ = pool.free(&name);
        }
        let _ = pool.allocate("new", "<f8", 100, 0);
    } else {
        assert!(problems.iter().any(Problem::is_damage), "refused, and nothing is wrong: {problems:?}");
    }
    if repair(&mut held).is_ok() {
        assert!(Pool::open(held).is_ok(), "repaired, and does not open");
    }
}

fn seal(part: &mut [u8]) {
    let (content, sum) = part.split_at_mut(part.len() - 8);
    if content.iter().any(|byte| *byte != 0) {
        sum.copy_from_slice(&xxhash_rust::xxh3::xxh3_64(content).to_le_bytes());
    }
}

fn made() -> Held {
    let make = || -> Result<Held, PmemError> {
        let mut pool = Pool::create(Held(vec![0; 64 << 10]), Some(LOG as u64), 7)?;
        pool.add(tierloom_pmem::Entry::new("checked", "|u1", 5000, 1).with_checksums(true))?;
        let entry = pool.allocate("plain", "|u1", 100, 0)?;
        pool.begin()?;
        pool.save(entry.offset, 50)?;
        Ok(pool.into_medium())
    };
    make().unwrap_or_else(|error| panic!("a pool cannot be made: {error}"))
}
