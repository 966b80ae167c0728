//! Pools that were damaged from outside are refused with a reason or repaired, and never crash the reader.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test's own small numbers; failing is its job"
)]

mod common;

use common::Recorder;
use proptest::prelude::*;
use tierloom_pmem::{Durable, LEAST_BYTES, Medium, PmemError, Pool, Problem, check, repair};

const BYTES: usize = LEAST_BYTES as usize;

fn pool() -> Vec<u8> {
    let mut pool = Pool::create(Recorder::new(BYTES), Some(16 * 1024), 99).unwrap();
    for (name, bytes) in [("one", 100), ("two", 5000)] {
        let entry = pool.allocate(name, "<f8", bytes, 0).unwrap();
        pool.medium_mut().store(entry.offset, &vec![7; usize::try_from(bytes).unwrap()]);
    }
    pool.begin().unwrap();
    let entry = pool.array("one").unwrap().clone();
    pool.save(entry.offset, 50).unwrap();
    pool.medium_mut().store(entry.offset, &[1; 50]);
    pool.into_medium().bytes
}

#[test]
fn what_was_under_way_is_told_and_undone() {
    let found = check(&Recorder::of(pool()));
    assert_eq!(found, [Problem::Unfinished { ranges: 1 }]);
    let opened = Pool::open(Recorder::of(pool())).unwrap();
    let entry = opened.array("one").unwrap();
    assert_eq!(opened.medium().copy(entry.offset, 100), [7; 100]);
}

#[test]
fn a_short_file_is_refused() {
    for bytes in [0, 100, BYTES / 2, BYTES - 1] {
        let error = Pool::open(Recorder::of(pool()[..bytes].to_vec())).unwrap_err();
        assert!(matches!(error, PmemError::Damaged { .. }), "{error}");
    }
}

#[test]
fn another_file_and_another_version_are_told_apart() {
    let told = |bytes: Vec<u8>| Pool::open(Recorder::of(bytes)).unwrap_err().to_string();
    assert!(told(vec![b'x'; BYTES]).contains("magic"));
    let mut newer = pool();
    for header in [0, 4096] {
        newer[header + 8] = 3;
        let sum = xxhash_rust::xxh3::xxh3_64(&newer[header..header + 56]);
        newer[header + 56..header + 64].copy_from_slice(&sum.to_le_bytes());
    }
    assert!(told(newer).contains("version 3"));
}

#[test]
fn one_broken_header_is_no_harm() {
    for header in [0, 4096] {
        let mut bytes = pool();
        bytes[header + 20] ^= 4;
        assert_eq!(Pool::open(Recorder::of(bytes)).unwrap().arrays().len(), 2);
    }
}

#[test]
fn a_broken_entry_is_refused_then_repaired() {
    let mut bytes = pool();
    let directory = 8192 + 16 * 1024;
    bytes[directory + 40] ^= 1;
    assert!(Pool::open(Recorder::of(bytes.clone())).unwrap_err().to_string().contains("entry 0"));
    let mut medium = Recorder::of(bytes);
    let problems = repair(&mut medium).unwrap();
    assert!(problems.iter().any(Problem::is_damage));
    let names: Vec<String> = Pool::open(medium).unwrap().arrays().iter().map(|entry| entry.name.clone()).collect();
    assert_eq!(names, ["two"]);
}

/// Whatever bit of a record flips, as long as a later one tells that it was whole once.
#[test]
fn a_record_that_is_broken_in_the_middle_is_never_skipped() {
    let mut open = Pool::open(Recorder::of(pool())).unwrap();
    let entry = open.array("two").unwrap().clone();
    open.begin().unwrap();
    for range in 0..3 {
        open.save(entry.offset + 100 * range, 80).unwrap();
    }
    let bytes = open.into_medium().bytes;
    let second = 8192 + 64 + 128;
    for bit in (0..112 * 8).step_by(3) {
        let mut flipped = bytes.clone();
        flipped[second + bit / 8] ^= 1 << (bit % 8);
        assert_eq!(check(&Recorder::of(flipped.clone())), [Problem::BrokenLog]);
        assert!(Pool::open(Recorder::of(flipped.clone())).unwrap_err().to_string().contains("middle of the log"));
        let mut medium = Recorder::of(flipped);
        repair(&mut medium).unwrap();
        assert_eq!(check(&medium), []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any damage: opening is right or refused, checking and repairing end, and what was repaired opens.
    #[test]
    fn damage_never_crashes_the_reader(
        flips in prop::collection::vec((prop_oneof![0..8192_usize, 8192..8192 + 512_usize, 24576..24576 + 4096_usize, 0..BYTES], any::<u8>()), 1..6),
        length in prop_oneof![4 => Just(BYTES), 1 => 0..BYTES],
    ) {
        let mut bytes = pool();
        for (at, change) in flips {
            bytes[at] ^= change;
        }
        bytes.truncate(length);
        let problems = check(&Recorder::of(bytes.clone()));
        let opened = Pool::open(Recorder::of(bytes.clone())).is_ok();
        let fatal = |problem: &Problem| matches!(problem, Problem::NoHeader(_) | Problem::BrokenLog | Problem::BrokenEntry { .. });
        prop_assert_eq!(opened, !problems.iter().any(fatal), "{:?}", problems);
        let mut medium = Recorder::of(bytes);
        if repair(&mut medium).is_ok() {
            let pool = Pool::open(medium).unwrap();
            prop_assert!(!check(pool.medium()).iter().any(fatal));
        }
    }

    /// Arrays of any sizes come and go without sharing bytes, and free room is found again.
    #[test]
    fn arrays_never_share_bytes(steps in prop::collection::vec((0..8_u8, 1..9000_u64), 1..40)) {
        let mut pool = Pool::create(Recorder::new(4 * BYTES), None, 5).unwrap();
        for (which, bytes) in steps {
            let name = format!("array {which}");
            if pool.array(&name).is_some() {
                pool.free(&name).unwrap();
            } else if let Err(error) = pool.allocate(&name, "|u1", bytes, 0) {
                let full = matches!(error, PmemError::Full { .. });
                prop_assert!(full, "{}", error);
            }
            prop_assert_eq!(check(pool.medium()), []);
            let usage = pool.usage();
            prop_assert!(usage.used_bytes <= usage.data_bytes.unwrap());
        }
        let names: Vec<String> = pool.arrays().iter().map(|entry| entry.name.clone()).collect();
        for name in &names {
            pool.free(name).unwrap();
        }
        prop_assert_eq!(pool.usage().longest_free_bytes, pool.usage().data_bytes);
    }
}
