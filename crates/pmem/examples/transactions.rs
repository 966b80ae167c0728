//! What a transaction costs by the bytes that it changes, ours, ours over an array with checksums, and libpmemobj's by turns in one process.
//!
//!     cargo run --release --package tierloom-pmem --example transactions -- FOLDER lines|msync
//!
//! `lines` writes cache lines back and fences, as on persistent memory: libpmemobj has to be told so with
//! `PMEM_IS_PMEM_FORCE=1`. Prints one JSON document a line: keeper, bytes, ns of each turn.

#![allow(unsafe_code, reason = "stores into arrays where they lie")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement: it works or it stops")]

use std::path::Path;
use std::time::Instant;

use tierloom_linux::mapped::MappedFile;
use tierloom_pmem::{Backend, Device, Entry, Kind, Pool, WriteBack, create};

/// From a cache line to what a checkpoint of a large array may be.
const SIZES: [u64; 8] = [64, 256, 1024, 4096, 16 << 10, 64 << 10, 1 << 20, 16 << 20];
/// Turns of each; the first does not count.
const TURNS: usize = 8;
/// Bytes that a turn changes altogether, so that each takes some milliseconds; at most as many transactions.
const BYTES_A_TURN: u64 = 16 << 20;
const MOST_TRANSACTIONS: u64 = 4000;
const POOL_BYTES: u64 = 256 << 20;
const LOG_BYTES: u64 = 32 << 20;

fn native(path: &Path, how: WriteBack) -> Box<dyn Backend> {
    let device = Device::new(MappedFile::create(path, POOL_BYTES).unwrap()).written_back_by(how);
    Box::new(Pool::create(device, Some(LOG_BYTES), 1).unwrap())
}

fn transactions(pool: &mut dyn Backend, entry: &Entry, bytes: u64) -> f64 {
    let count = (BYTES_A_TURN / bytes).clamp(1, MOST_TRANSACTIONS);
    let places = (entry.bytes / bytes).max(1);
    let began = Instant::now();
    for n in 0..count {
        let offset = entry.offset + (n * 7 % places) * bytes;
        pool.begin().unwrap();
        pool.save(offset, bytes).unwrap();
        change(pool, offset, bytes, n);
        pool.commit().unwrap();
    }
    began.elapsed().as_secs_f64() * 1e9 / count as f64
}

fn change(pool: &dyn Backend, offset: u64, bytes: u64, n: u64) {
    let (offset, bytes) = (usize::try_from(offset).unwrap(), usize::try_from(bytes).unwrap());
    // SAFETY: the range lies in an array of the pool, which is mapped as a whole.
    unsafe { pool.start().add(offset).write_bytes(n.to_le_bytes()[0], bytes) };
}

/// The same stores with nothing done about durability.
fn stores(pool: &dyn Backend, entry: &Entry, bytes: u64) -> f64 {
    let count = (BYTES_A_TURN / bytes).clamp(1, MOST_TRANSACTIONS);
    let places = (entry.bytes / bytes).max(1);
    let began = Instant::now();
    (0..count).for_each(|n| change(pool, entry.offset + (n * 7 % places) * bytes, bytes, n));
    began.elapsed().as_secs_f64() * 1e9 / count as f64
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, folder, how] = &words[..] else { panic!("usage: transactions FOLDER lines|msync") };
    let path = |name: &str| Path::new(folder).join(format!("tierloom-transactions-{}-{name}", std::process::id()));
    let how = if how == "lines" { WriteBack::Clwb } else { WriteBack::Msync };
    let mut pools = vec![("native", native(&path("native"), how)), ("checksums", native(&path("checksums"), how))];
    match create(Kind::Library, &path("pmdk"), POOL_BYTES, None, 1) {
        Ok(pool) => pools.push(("pmdk", pool)),
        Err(error) => println!("{{\"skipped\": {:?}}}", error.to_string()),
    }
    let largest = SIZES[SIZES.len() - 1];
    let wanted = |name: &str| Entry::new("data", "|u1", 2 * largest, 0).with_checksums(name == "checksums");
    let entries: Vec<Entry> = pools.iter_mut().map(|(name, pool)| pool.add(wanted(name)).unwrap()).collect();
    for bytes in SIZES {
        let mut turns = vec![Vec::new(); pools.len() + 1];
        for _ in 0..TURNS {
            for (((_, pool), entry), turns) in pools.iter_mut().zip(&entries).zip(&mut turns[1..]) {
                turns.push(transactions(pool.as_mut(), entry, bytes));
            }
            turns[0].push(stores(pools[0].1.as_ref(), &entries[0], bytes));
        }
        let names = ["stores"].into_iter().chain(pools.iter().map(|(name, _)| *name));
        for (name, turns) in names.zip(turns) {
            println!("{{\"keeper\": {name:?}, \"bytes\": {bytes}, \"ns\": {:?}}}", &turns[1..]);
        }
    }
    drop(pools);
    for name in ["native", "checksums", "pmdk"] {
        std::fs::remove_file(path(name)).ok();
    }
}
