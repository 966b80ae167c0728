//! Arrays with checksums: no bit flips unseen, and nothing that was not damaged is called so.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test's own small numbers; failing is its job"
)]

mod common;

use std::ops::Range;
use std::sync::LazyLock;

use common::Recorder;
use proptest::prelude::*;
use tierloom_pmem::{CHUNK, Durable, Entry, Medium, Pool, Problem, check};

const BYTES: usize = 256 << 10;
const LOG: u64 = 16 << 10;
const DIRECTORY: usize = 8192 + LOG as usize;
/// Sizes around those of a chunk and of a line.
const SIZES: [u64; 7] = [1, 8, 63, CHUNK - 1, CHUNK, CHUNK + 1, 9 * CHUNK + 100];

/// A pool of arrays with checksums, written by two transactions as a checkpoint and its next change.
fn pool() -> Pool<Recorder> {
    let mut pool = Pool::create(Recorder::new(BYTES), Some(LOG), 7).unwrap();
    for (index, bytes) in SIZES.into_iter().enumerate() {
        pool.begin().unwrap();
        let entry = pool.add(Entry::new(&format!("state/1/{index}"), "|u1", bytes, 1).with_checksums(true)).unwrap();
        let content: Vec<u8> = (0..bytes).map(|byte| (byte * 31 + index as u64) as u8).collect();
        pool.medium_mut().store(entry.offset, &content);
        pool.commit().unwrap();
    }
    change(&mut pool, 6, 5000, 6000, 9);
    pool
}

/// A transaction that fills a range of one of the arrays.
fn change(pool: &mut Pool<Recorder>, index: usize, from: u64, bytes: usize, value: u8) {
    let entry = pool.array(&format!("state/1/{index}")).unwrap().clone();
    pool.begin().unwrap();
    pool.save(entry.offset + from, bytes as u64).unwrap();
    pool.medium_mut().store(entry.offset + from, &vec![value; bytes]);
    pool.commit().unwrap();
}

/// Everything that a checkpoint is: bytes, checksums, and entries of the directory, as ranges of the file.
fn parts(pool: &Pool<Recorder>) -> Parts {
    let entries = pool.arrays();
    let stored = entries.iter().flat_map(|entry| {
        let start = entry.offset as usize;
        let table = start + (entry.bytes as usize).next_multiple_of(64);
        let data = (start..start + entry.bytes as usize, Some(entry.name.clone()));
        [data, (table..table + 8 * entry.bytes.div_ceil(CHUNK) as usize, Some(entry.name.clone()))]
    });
    let slots = (0..entries.len()).map(|slot| (DIRECTORY + 256 * slot..DIRECTORY + 256 * (slot + 1), None));
    stored.chain(slots).collect()
}

/// Ranges of the file, and the array that each is of.
type Parts = Vec<(Range<usize>, Option<String>)>;

/// The pool's bytes, and its parts.
static MADE: LazyLock<(Vec<u8>, Parts)> = LazyLock::new(|| {
    let pool = pool();
    let parts = parts(&pool);
    (pool.into_medium().bytes, parts)
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Ten thousand flipped bits, none silent: in an entry the pool is refused, elsewhere the array is named.
    #[test]
    fn no_bit_of_a_checkpoint_flips_silently(part in 0..3 * SIZES.len(), place in 0.0..1.0, bit in 0..8_u32) {
        let (bytes, parts) = &*MADE;
        let (range, array) = &parts[part];
        #[expect(clippy::cast_sign_loss, reason = "a share of a length")]
        let at = range.start + (place * range.len() as f64) as usize;
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << bit;
        let problems = check(&Recorder::of(flipped.clone()));
        prop_assert!(problems.iter().any(Problem::is_damage));
        let Some(array) = array else {
            prop_assert!(Pool::open(Recorder::of(flipped)).is_err());
            return Ok(());
        };
        let pool = Pool::open(Recorder::of(flipped)).unwrap();
        let damaged = pool.verify(array).unwrap();
        prop_assert_eq!(damaged.len(), 1, "one chunk, or one checksum of a chunk");
        prop_assert!(damaged[0].end - damaged[0].start <= CHUNK);
        let byte = (at as u64).wrapping_sub(pool.array(array).unwrap().offset);
        prop_assert!(byte >= pool.array(array).unwrap().bytes || damaged[0].contains(&byte));
    }
}

#[test]
fn what_was_written_matches() {
    let (bytes, _) = &*MADE;
    assert_eq!(check(&Recorder::of(bytes.clone())), []);
}

#[test]
fn a_transaction_that_is_taken_back_takes_its_checksums_back() {
    let mut pool = pool();
    let entry = pool.array("state/1/6").unwrap().clone();
    pool.begin().unwrap();
    for piece in [0..10, 4000..9000, 8000..12000, 5..7] {
        pool.save(entry.offset + piece.start, piece.end - piece.start).unwrap();
        pool.medium_mut().store(entry.offset + piece.start, &vec![1; (piece.end - piece.start) as usize]);
        assert_eq!(pool.verify("state/1/6").unwrap(), [], "what a transaction changes has no checksum yet");
    }
    let cut_off = pool.medium().bytes.clone();
    assert_eq!(check(&Recorder::of(cut_off)), [Problem::Unfinished { ranges: 5 }], "no damage: opening undoes it");
    pool.abort().unwrap();
    assert_eq!(check(pool.medium()), []);
    assert_eq!(pool.medium().bytes[entry.offset as usize..][..40_000], MADE.0[entry.offset as usize..][..40_000]);
}

#[test]
fn what_is_stored_outside_of_a_transaction_is_damage_until_one_takes_it_in() {
    let mut pool = pool();
    let entry = pool.array("state/1/6").unwrap().clone();
    for chunk in [2, 3, 7] {
        pool.medium_mut().store(entry.offset + chunk * CHUNK + 5, &[255]);
    }
    assert_eq!(pool.verify("state/1/6").unwrap(), [2 * CHUNK..4 * CHUNK, 7 * CHUNK..8 * CHUNK]);
    let told = check(pool.medium())[0].to_string();
    assert_eq!(told, "array `state/1/6`: 12288 bytes do not match their checksums, the first at byte 8192");
    pool.begin().unwrap();
    pool.save(entry.offset, entry.bytes).unwrap_err(); // larger than the log: nothing was noted
    pool.abort().unwrap();
    for chunk in [2, 3, 7] {
        change(&mut pool, 6, chunk * CHUNK, 1, 0);
    }
    assert_eq!(check(pool.medium()), []);
}

#[test]
fn a_chunk_that_belongs_elsewhere_does_not_match() {
    let mut pool = pool();
    let entry = pool.array("state/1/6").unwrap().clone();
    pool.begin().unwrap();
    pool.save(entry.offset, 2 * CHUNK).unwrap();
    pool.medium_mut().store(entry.offset, &vec![3; CHUNK as usize]);
    pool.medium_mut().store(entry.offset + CHUNK, &vec![4; CHUNK as usize]);
    pool.commit().unwrap();
    let (table, length) = (entry.offset + entry.bytes.next_multiple_of(64), 16);
    let whole = pool.medium().copy(entry.offset, 2 * CHUNK as usize);
    let sums = pool.medium().copy(table, length);
    pool.medium_mut().store(entry.offset, &[&whole[CHUNK as usize..], &whole[..CHUNK as usize]].concat());
    pool.medium_mut().store(table, &[&sums[8..], &sums[..8]].concat());
    assert_eq!(pool.verify("state/1/6").unwrap(), vec![0..2 * CHUNK]);
}
