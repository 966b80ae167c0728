//! A medium whose power can be cut between any two steps.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses its own part; a wrong fixture should stop it")]

use std::collections::BTreeMap;

use tierloom_model::units::LINE_BYTES;
use tierloom_pmem::{Durable, Medium, PmemError};

/// What was done to the medium, in order.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Bytes of one cache line, at most.
    Store(u64, Vec<u8>),
    WriteBack(u64),
    Fence,
    /// A mark of the test's own: a transaction was acknowledged.
    Acknowledged(u64),
}

/// Bytes in memory, and the steps that changed them.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    pub(crate) bytes: Vec<u8>,
    pub(crate) steps: Vec<Step>,
}

impl Recorder {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes], steps: Vec::new() }
    }

    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        Self { bytes, steps: Vec::new() }
    }
}

impl Medium for Recorder {
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn load(&self, offset: u64, to: &mut [u8]) {
        let at = usize::try_from(offset).unwrap();
        to.copy_from_slice(&self.bytes[at..at + to.len()]);
    }
}

impl Durable for Recorder {
    /// A store of many bytes is as many stores of eight, and cache lines become durable on their own.
    fn store(&mut self, offset: u64, from: &[u8]) {
        let at = usize::try_from(offset).unwrap();
        self.bytes[at..at + from.len()].copy_from_slice(from);
        let mut done = 0;
        while done < from.len() {
            let here = offset + done as u64;
            let length = usize::try_from(8 - here % 8).unwrap().min(from.len() - done);
            self.steps.push(Step::Store(here, from[done..done + length].to_vec()));
            done += length;
        }
    }

    fn write_back(&mut self, offset: u64, bytes: u64) {
        let first = offset / LINE_BYTES;
        let last = (offset + bytes.max(1) - 1) / LINE_BYTES;
        self.steps.extend((first..=last).map(Step::WriteBack));
    }

    fn fence(&mut self) -> Result<(), PmemError> {
        self.steps.push(Step::Fence);
        Ok(())
    }
}

/// Replays steps and knows what can be durable at each moment.
///
/// Each line has a history of contents since it was last durable for certain; any prefix of its own
/// history may be what a crash leaves, independently of other lines. A fence makes everything durable
/// that was in a line when it was written back.
pub(crate) struct Replay {
    durable: Vec<u8>,
    /// By line: stores since, and how many of them were written back.
    dirty: BTreeMap<u64, (Stores, usize)>,
}

/// Stores to one line, in order: offset and bytes.
type Stores = Vec<(u64, Vec<u8>)>;

impl Replay {
    pub(crate) fn new(before: Vec<u8>) -> Self {
        Self { durable: before, dirty: BTreeMap::new() }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match step {
            Step::Store(offset, bytes) => {
                self.dirty.entry(offset / LINE_BYTES).or_default().0.push((*offset, bytes.clone()));
            }
            Step::WriteBack(line) => {
                if let Some((stores, back)) = self.dirty.get_mut(line) {
                    *back = stores.len();
                }
            }
            Step::Fence => {
                for (stores, back) in self.dirty.values_mut() {
                    for (offset, bytes) in stores.drain(..*back) {
                        apply(&mut self.durable, offset, &bytes);
                    }
                    *back = 0;
                }
                self.dirty.retain(|_, (stores, _)| !stores.is_empty());
            }
            Step::Acknowledged(_) => {}
        }
    }

    /// How many different things a crash could leave now, if each line chose its prefix.
    pub(crate) fn choices(&self) -> u128 {
        self.dirty.values().fold(1, |product: u128, (stores, _)| product.saturating_mul(stores.len() as u128 + 1))
    }

    /// The content after a crash in which each line kept the prefix that `choose` names, given how many
    /// stores it holds.
    pub(crate) fn crash(&self, mut choose: impl FnMut(usize) -> usize) -> Vec<u8> {
        let mut left = self.durable.clone();
        for (stores, _) in self.dirty.values() {
            for (offset, bytes) in &stores[..choose(stores.len())] {
                apply(&mut left, *offset, bytes);
            }
        }
        left
    }

    /// Calls `visit` with what crashes can leave now: all of it where there are at most `most`
    /// possibilities, else so many, among them nothing, everything, and single lines missing or alone.
    pub(crate) fn crashes(&self, most: u128, seed: u64, mut visit: impl FnMut(Vec<u8>)) {
        if self.choices() <= most {
            for number in 0..self.choices() {
                let mut rest = number;
                visit(self.crash(|stores| {
                    let radix = stores as u128 + 1;
                    let digit = rest % radix;
                    rest /= radix;
                    usize::try_from(digit).unwrap()
                }));
            }
            return;
        }
        visit(self.crash(|_| 0));
        visit(self.crash(|stores| stores));
        let mut random = seed | 1;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            usize::try_from(random >> 33).unwrap()
        };
        for round in 0..usize::try_from(most).unwrap() {
            let lines = self.dirty.len();
            let mut line = 0;
            let odd = next() % lines;
            visit(self.crash(|stores| {
                line += 1;
                match round % 3 {
                    0 => next() % (stores + 1),
                    1 if line - 1 == odd => 0,
                    1 => stores,
                    _ if line - 1 == odd => stores,
                    _ => 0,
                }
            }));
        }
    }
}

fn apply(content: &mut [u8], offset: u64, bytes: &[u8]) {
    let at = usize::try_from(offset).unwrap();
    content[at..at + bytes.len()].copy_from_slice(bytes);
}
