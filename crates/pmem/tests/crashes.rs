//! The power goes at every step of every transaction, and every legal content of the medium is tried:
//! what was acknowledged is there, what was not is gone, and nothing is torn.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test's own small numbers; failing is its job"
)]

mod common;

use common::{Recorder, Replay, Step};
use tierloom_pmem::{Durable, Entry, LEAST_BYTES, Medium, Pool, Problem, check};

/// Contents tried at each step beyond which they are drawn instead of enumerated.
const MOST: u128 = 128;
const BYTES: usize = LEAST_BYTES as usize;

/// The state that transaction `n` leaves: two arrays that say `n`, and a third from the fourth on.
fn expected(n: u64) -> Vec<(String, Vec<u8>)> {
    let fill = |bytes: usize, salt: u64| (0..bytes as u64).map(|at| (at * 7 + n * 31 + salt) as u8).collect();
    let mut state = vec![("a".to_owned(), fill(96, 1)), ("b".to_owned(), fill(200, 2))];
    if n >= 4 && n != 6 {
        state.push(("c".to_owned(), fill(64, 3)));
    }
    state
}

fn write(pool: &mut Pool<Recorder>, name: &str, content: &[u8]) {
    let entry = pool.array(name).unwrap().clone();
    // In two halves, so that one transaction has several snapshots of one array.
    for (offset, half) in [(0, &content[..content.len() / 2]), (content.len() / 2, &content[content.len() / 2..])] {
        let at = entry.offset + offset as u64;
        pool.save(at, half.len() as u64).unwrap();
        pool.medium_mut().store(at, half);
    }
}

/// Transaction `n`, from creating arrays to freeing one and using its room again.
fn transact(pool: &mut Pool<Recorder>, n: u64) {
    pool.begin().unwrap();
    let state = expected(n);
    let gone: Vec<String> = pool.arrays().iter().map(|entry| entry.name.clone()).collect();
    for name in gone.iter().filter(|name| !state.iter().any(|(kept, _)| kept == *name)) {
        pool.free(name).unwrap();
    }
    for (name, content) in &state {
        if pool.array(name).is_none() {
            // All but one carry checksums: whatever a crash leaves, they match what it leaves.
            pool.add(Entry::new(name, "|u1", content.len() as u64, n).with_checksums(name != "b")).unwrap();
        }
        write(pool, name, content);
    }
    pool.commit().unwrap();
    pool.medium_mut().steps.push(Step::Acknowledged(n));
}

fn state(pool: &Pool<Recorder>) -> Vec<(String, Vec<u8>)> {
    let content = |entry: &&tierloom_pmem::Entry| {
        (entry.name.clone(), pool.medium().copy(entry.offset, usize::try_from(entry.bytes).unwrap()))
    };
    pool.arrays().iter().map(content).collect()
}

/// Recovery of whatever a crash left has to be the state of the last acknowledged transaction, or of
/// the one under way where its commit got through.
fn holds(left: Vec<u8>, acknowledged: u64) {
    let before = check(&Recorder::of(left.clone()));
    assert!(!before.iter().any(Problem::is_damage), "a crash is no damage: {before:?}");
    let pool = Pool::open(Recorder::of(left)).unwrap();
    let found = state(&pool);
    assert!(
        found == expected(acknowledged) || found == expected(acknowledged + 1),
        "after transaction {acknowledged} a crash left {found:?}"
    );
    assert_eq!(check(pool.medium()), [], "recovery leaves a pool without problems");
}

fn fresh() -> (Vec<u8>, Pool<Recorder>) {
    let mut pool = Pool::create(Recorder::new(BYTES), Some(16 * 1024), 0x1234_5678).unwrap();
    transact(&mut pool, 0);
    let before = pool.medium().bytes.clone();
    pool.medium_mut().steps.clear();
    (before, pool)
}

#[test]
fn no_crash_loses_or_tears_a_transaction() {
    let (before, mut pool) = fresh();
    (1..=7).for_each(|n| transact(&mut pool, n));
    let steps = pool.into_medium().steps;
    let (mut replay, mut acknowledged, mut tried) = (Replay::new(before), 0, 0_u64);
    for (at, step) in steps.iter().enumerate() {
        replay.step(step);
        if let Step::Acknowledged(n) = step {
            acknowledged = *n;
        }
        replay.crashes(MOST, at as u64, |left| {
            holds(left, acknowledged);
            tried += 1;
        });
    }
    assert!(tried > 20_000, "{tried} contents tried in {} steps", steps.len());
}

#[test]
fn the_last_acknowledged_transaction_is_there_for_certain() {
    let (before, mut pool) = fresh();
    (1..=5).for_each(|n| transact(&mut pool, n));
    let mut replay = Replay::new(before);
    for step in &pool.into_medium().steps {
        replay.step(step);
        if let Step::Acknowledged(n) = step {
            let mut found = state(&Pool::open(Recorder::of(replay.crash(|_| 0))).unwrap());
            assert_eq!(found, expected(*n));
            found = state(&Pool::open(Recorder::of(replay.crash(|stores| stores))).unwrap());
            assert_eq!(found, expected(*n));
        }
    }
}

#[test]
fn a_crash_during_recovery_is_recovered_from() {
    let (before, mut pool) = fresh();
    transact(&mut pool, 1);
    let steps = pool.into_medium().steps;
    let mut replay = Replay::new(before);
    for step in &steps[..steps.len() * 3 / 4] {
        replay.step(step);
    }
    let crashed = replay.crash(|stores| stores);
    let recovering = Pool::open(Recorder::of(crashed.clone())).unwrap();
    assert!(recovering.recovered() > 0, "the cut is inside the transaction");
    let mut again = Replay::new(crashed);
    for (at, step) in recovering.into_medium().steps.iter().enumerate() {
        again.step(step);
        again.crashes(MOST, at as u64, |left| holds(left, 0));
    }
}

/// The checker can fail: a pool that forgets to fence after saving old bytes is caught.
#[test]
fn a_missing_fence_is_found() {
    let (before, mut pool) = fresh();
    (1..=3).for_each(|n| transact(&mut pool, n));
    let steps = pool.into_medium().steps;
    let mut caught = 0;
    let (mut replay, mut acknowledged) = (Replay::new(before), 0);
    for (at, step) in steps.iter().filter(|step| !matches!(step, Step::Fence)).enumerate() {
        replay.step(step);
        if let Step::Acknowledged(n) = step {
            acknowledged = *n;
        }
        replay.crashes(16, at as u64, |left| {
            let sound = Pool::open(Recorder::of(left)).is_ok_and(|pool| {
                let found = state(&pool);
                found == expected(acknowledged) || found == expected(acknowledged + 1)
            });
            caught += u64::from(!sound);
        });
    }
    assert!(caught > 0);
}

#[test]
fn what_is_aborted_never_was() {
    let (_, mut pool) = fresh();
    pool.begin().unwrap();
    pool.free("a").unwrap();
    let new = pool.allocate("d", "|u1", 96, 0).unwrap();
    pool.medium_mut().store(new.offset, &[9; 96]);
    write(&mut pool, "b", &[5; 200]);
    pool.abort().unwrap();
    assert_eq!(state(&pool), expected(0));
    assert_eq!(check(pool.medium()), []);
}
