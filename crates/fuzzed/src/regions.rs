//! The shared file, after the program that has it mapped scribbled over it.

use std::sync::atomic::{AtomicU64, Ordering};

use tierloom_wire::{LaneRead, MAX_RECORD_WORDS, Popped, Record, Region, RuleReader, Settings, words_needed};

const SETTINGS: Settings = Settings { slots: 64, lanes: 4, min_bytes: 1, rule_words: 64 };
/// A change: two bytes of place, eight of value.
const CHANGE: usize = 10;

/// The bytes are changes to a fresh region, which the recorder then reads as it always does.
pub(crate) fn region(bytes: &[u8]) {
    let memory: Vec<AtomicU64> = (0..words_needed(&SETTINGS).unwrap_or(0)).map(|_| AtomicU64::new(0)).collect();
    let Some(fresh) = Region::create(&memory, &SETTINGS) else { return };
    fresh.push(&[5 << 8, 1, 2, 3, 4]);
    for change in bytes.chunks_exact(CHANGE) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % memory.len();
        let value = change[2..].try_into().map_or(0, u64::from_le_bytes);
        memory[place].store(value, Ordering::Relaxed);
    }
    if let Some(region) = Region::open(&memory) {
        read_ring(&region);
        read_lanes(&region);
        let (_, rules) = region.rules();
        let mut reader = RuleReader::new(rules);
        let read = std::iter::from_fn(|| reader.read().map(|_| ())).take(memory.len() + 1).count();
        assert!(read <= memory.len(), "rules never end");
    }
}

/// What is pending is given up, as the recorder does when the program is gone: after as many steps as the ring has
/// slots, and as many more, nothing is left.
fn read_ring(region: &Region) {
    let mut words = [0; MAX_RECORD_WORDS];
    for _ in 0..=2 * SETTINGS.slots {
        match region.pop(&mut words) {
            Popped::Record(length) => {
                let _ = Record::decode(&words[..length]);
            }
            Popped::Pending => region.skip(),
            Popped::Empty => return,
        }
    }
    panic!("the ring never ends");
}

fn read_lanes(region: &Region) {
    for lane in 0..region.lane_count() {
        for all in [false, true] {
            region.read_lane(lane, &mut LaneRead::default(), all, |words| {
                let _ = Record::decode(words);
            });
        }
        region.free_lane(lane);
    }
}
