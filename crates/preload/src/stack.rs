//! Who called: an id for the whole call stack.
//!
//! A stack is unwound at every call (see `unwind`; some ns a frame, because programs allocate from few places),
//! and what is known of its frames is looked up by their hash: its id, which the recorder was told once, and the
//! rule of a plan that it matches. So nothing is ever taken to be as it was before: frames of variable size,
//! stacks that are used again and signals are as good as any.
//!
//! When a library is unloaded, its addresses may soon mean another one's code: all that was known
//! belongs to an earlier generation then and is not used any more.

use std::sync::atomic::{AtomicU64, Ordering};

use tierloom_wire::{Event, NO_STACK, scatter};

use crate::policy::{NO_RULE, rule_of_stack};
use crate::unwind::{self, Entry};
use crate::{generation, report, thread};

/// What is known of a call stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Its id, or [`NO_STACK`].
    pub(crate) id: u32,
    /// The rule of a plan that it matches, or [`NO_RULE`].
    pub(crate) rule: u32,
}

impl Identity {
    /// A stack that could not be told.
    pub(crate) const NONE: Self = Self { id: NO_STACK, rule: NO_RULE };

    fn pack(self) -> u64 {
        u64::from(self.id) | (u64::from(self.rule) << 32)
    }

    #[allow(clippy::cast_possible_truncation)]
    fn unpack(word: u64) -> Self {
        Self { id: word as u32, rule: (word >> 32) as u32 }
    }
}

/// Identity of the stack of the call that entered at `entry`; announces it when it is new.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(crate) fn identify(entry: Entry) -> Identity {
    let generation = generation::of_stacks();
    unwind::with_frames(entry, generation, |frames| known(frames, generation))
}

/// Stacks that have an identity, by hash: key, and the packed identity with all bits turned (0 while
/// it is being made; only [`Identity::NONE`] would turn into 0, and that is not kept).
const KNOWN: usize = 1 << 14;
const PROBES: usize = 16;
static KNOWN_KEYS: [AtomicU64; KNOWN] = [const { AtomicU64::new(0) }; KNOWN];
static KNOWN_IDENTITIES: [AtomicU64; KNOWN] = [const { AtomicU64::new(0) }; KNOWN];

/// The identity of these frames. Two threads that meet a new stack at once may give it two ids, and so
/// does a full table: the frames decide, not the id.
fn known(frames: &[u64], generation: u32) -> Identity {
    let key = hash(frames, generation);
    for probe in 0..PROBES {
        #[allow(clippy::cast_possible_truncation)]
        let index = (key as usize).wrapping_add(probe) % KNOWN;
        let found = KNOWN_KEYS[index].load(Ordering::Acquire);
        if found == key {
            let kept = KNOWN_IDENTITIES[index].load(Ordering::Acquire);
            return if kept == 0 { announce(frames) } else { Identity::unpack(!kept) };
        }
        if found == 0 && KNOWN_KEYS[index].compare_exchange(0, key, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            let identity = announce(frames);
            if identity.id != NO_STACK {
                KNOWN_IDENTITIES[index].store(!identity.pack(), Ordering::Release);
            }
            return identity;
        }
    }
    announce(frames)
}

/// Takes an id and tells the recorder what it stands for; [`NO_STACK`] where the ring is full.
#[cold]
fn announce(frames: &[u64]) -> Identity {
    thread::quietly(|| announced(frames))
}

fn announced(frames: &[u64]) -> Identity {
    let Some(region) = report::region() else { return Identity::NONE };
    let (id, rule) = (region.take_stack_id(), rule_of_stack(frames));
    let told = report::send(report::now(), Event::Stack { id, frames });
    Identity { id: if told { id } else { NO_STACK }, rule }
}

/// Multiply and rotate over the frames; never 0, which marks a free place.
fn hash(frames: &[u64], generation: u32) -> u64 {
    let mix = |sum: u64, frame: &u64| scatter(sum ^ frame).rotate_left(29);
    frames.iter().fold(frames.len() as u64 ^ u64::from(generation) << 8, mix) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_stacks_have_different_hashes() {
        assert_ne!(hash(&[1, 2], 0), hash(&[2, 1], 0));
        assert_ne!(hash(&[1, 2], 0), hash(&[1, 2], 1));
        assert_ne!(hash(&[], 0), hash(&[0], 0));
        assert_ne!(hash(&[5], 0), 0);
    }
}
