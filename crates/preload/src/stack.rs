//! Who called: an id for the whole call stack, cheaply.
//!
//! Unwinding by tables costs microseconds. But a program allocates from few places over and over, so
//! a real unwind also notes *where on the stack* each return address lay. The next call with the same
//! return address and stack pointer re-reads those slots, and when all hold the same addresses it is
//! the same stack. That is exact where frames have a fixed size: the first slot is given by the stack
//! pointer; equal contents mean the same caller at the same instruction, whose frame size gives the
//! next slot; and so on outwards. (A frame of variable size, `alloca`, could be mistaken only if a
//! stale copy of the old return addresses lay at the old places.) The same argument keeps every read
//! inside the live stack: the check goes outwards and stops at the first difference.
//!
//! The memo is shared by all threads; an entry is guarded by a version that is odd while it changes.
//! When a library is unloaded, its addresses may soon mean another one's code: all that was known
//! belongs to an earlier generation then and is not used any more.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use tierloom_wire::{Event, MAX_FRAMES, NO_STACK};

use crate::place::{self, NO_RULE};
use crate::{modules, report, thread};

unsafe extern "C" {
    fn _Unwind_Backtrace(step: extern "C" fn(*mut c_void, *mut c_void) -> c_int, state: *mut c_void) -> c_int;
    fn _Unwind_GetIP(frame: *mut c_void) -> usize;
    fn _Unwind_GetCFA(frame: *mut c_void) -> usize;
}

const GO_ON: c_int = 0;
const STOP: c_int = 5;
const WORD: u64 = 8;

/// Address of the slot that holds the return address of a hook's caller.
pub(crate) type Entry = *const u64;

/// Lets the unwinder do what it does only once (it may allocate), before any hook needs it.
pub(crate) fn warm_up() {
    let mut here = 0_u64;
    unwind(&raw mut here);
}

/// How many times libraries were unloaded, as the loader counts, when stacks were last looked at. It lies
/// on the page of the next library's functions, which every call reads.
#[unsafe(link_section = ".data")]
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// A library may have been unloaded.
pub(crate) fn library_closed() {
    forget();
}

/// Libraries were unloaded, or the rules that stacks were held against have changed.
pub(crate) fn forget() {
    // It may wrap around: nobody keeps a stack for that long.
    #[allow(clippy::cast_possible_truncation)]
    GENERATION.store(modules::unloads().wrapping_add(place::generation()) as u32, Ordering::Release);
}

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
    // SAFETY: `entry` is the stack pointer at the entry of a hook: the return address lies there.
    let caller = unsafe { *entry };
    let remembered = memo_entry(caller, entry);
    if let Some(identity) = remembered.verify(caller, entry) {
        return identity;
    }
    thread::quietly(|| walked(entry, remembered))
}

#[cold]
#[inline(never)]
fn walked(entry: Entry, remembered: &Remembered) -> Identity {
    let walk = unwind(entry);
    let identity = known(walk.frames(), walk.generation);
    if identity.id != NO_STACK {
        remembered.store(&walk, identity);
    }
    identity
}

/// A stack as the unwinder found it.
struct Walk {
    entry: u64,
    generation: u32,
    count: usize,
    frames: [u64; MAX_FRAMES],
    slots: [u64; MAX_FRAMES],
    /// Every return address was read back from its slot.
    exact: bool,
}

impl Walk {
    fn frames(&self) -> &[u64] {
        &self.frames[..self.count]
    }
}

fn unwind(entry: Entry) -> Walk {
    let (frames, slots) = ([0; MAX_FRAMES], [0; MAX_FRAMES]);
    let generation = GENERATION.load(Ordering::Acquire);
    let mut walk = Walk { entry: entry as u64, generation, count: 0, frames, slots, exact: true };
    // SAFETY: `step` gets back the pointer to `walk`, which outlives the call.
    unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    walk
}

/// One frame: skipped while it is ours (its slot lies below the entry).
extern "C" fn step(frame: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: `unwind` passed a `Walk`; the unwinder passes a frame that lives during this call.
    let (walk, address, after) =
        unsafe { (&mut *walk.cast::<Walk>(), _Unwind_GetIP(frame) as u64, _Unwind_GetCFA(frame) as u64) };
    // The context's CFA is that of the frame just left: its return address lies right below.
    let slot = after.wrapping_sub(WORD);
    if slot < walk.entry {
        return GO_ON;
    }
    if address == 0 || walk.count == MAX_FRAMES {
        return STOP;
    }
    // SAFETY: the unwinder just restored registers around this address; it is part of the stack.
    walk.exact &= slot % WORD == 0 && unsafe { *(slot as *const u64) } == address;
    walk.frames[walk.count] = address;
    walk.slots[walk.count] = slot;
    walk.count += 1;
    GO_ON
}

/// Entries of the memo: a program has some hundred places that allocate much.
const MEMO: usize = 512;

struct Remembered {
    version: AtomicU32,
    generation: AtomicU32,
    identity: AtomicU64,
    caller: AtomicU64,
    entry: AtomicU64,
    count: AtomicU64,
    slots: [Slot; MAX_FRAMES],
}

/// Where a return address lay: the distance from the entry, bytes; and which it was.
struct Slot {
    distance: AtomicU64,
    frame: AtomicU64,
}

static REMEMBERED: [Remembered; MEMO] = [const { Remembered::new() }; MEMO];

fn memo_entry(caller: u64, entry: Entry) -> &'static Remembered {
    // Code addresses differ in low bits, stack pointers are multiples of 8 and mostly of 16.
    let mixed = (caller ^ ((entry as u64) >> 3)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    #[allow(clippy::cast_possible_truncation)]
    let index = (mixed >> (64 - MEMO.trailing_zeros())) as usize;
    &REMEMBERED[index]
}

impl Remembered {
    const fn new() -> Self {
        Self {
            version: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            identity: AtomicU64::new(0),
            caller: AtomicU64::new(0),
            entry: AtomicU64::new(0),
            count: AtomicU64::new(0),
            slots: [const { Slot { distance: AtomicU64::new(0), frame: AtomicU64::new(0) } }; MAX_FRAMES],
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn verify(&self, caller: u64, entry: Entry) -> Option<Identity> {
        let version = self.version.load(Ordering::Acquire);
        let same = self.caller.load(Ordering::Relaxed) == caller
            && self.entry.load(Ordering::Relaxed) == entry as u64
            && self.generation.load(Ordering::Relaxed) == GENERATION.load(Ordering::Relaxed);
        if !version.is_multiple_of(2) || !same || !self.slots_hold(entry) {
            return None;
        }
        let identity = Identity::unpack(self.identity.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        (self.version.load(Ordering::Relaxed) == version).then_some(identity)
    }

    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn slots_hold(&self, entry: Entry) -> bool {
        let count = usize::try_from(self.count.load(Ordering::Relaxed)).unwrap_or(0).min(MAX_FRAMES);
        self.slots[..count].iter().all(|Slot { distance, frame }| {
            let slot = (entry as u64 + distance.load(Ordering::Relaxed)) as *const u64;
            // SAFETY: all slots before this one hold what they held, so this one is on the live stack
            // of this thread (see the head of this file). A torn entry fails at its first slot, which
            // is the entry itself, or is found out by the version.
            unsafe { *slot == frame.load(Ordering::Relaxed) }
        })
    }

    /// Remembers a walk, unless it is inexact or another thread is at this entry.
    fn store(&self, walk: &Walk, identity: Identity) {
        if !walk.exact || walk.count == 0 || walk.slots[0] != walk.entry {
            return;
        }
        let version = self.version.load(Ordering::Relaxed);
        let odd = version | 1;
        if version == odd || self.version.compare_exchange(version, odd, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return;
        }
        fence(Ordering::Release);
        self.caller.store(walk.frames[0], Ordering::Relaxed);
        self.generation.store(walk.generation, Ordering::Relaxed);
        self.entry.store(walk.entry, Ordering::Relaxed);
        self.identity.store(identity.pack(), Ordering::Relaxed);
        for (slot, (frame, place)) in self.slots.iter().zip(walk.frames().iter().zip(&walk.slots)) {
            slot.frame.store(*frame, Ordering::Relaxed);
            slot.distance.store(place - walk.entry, Ordering::Relaxed);
        }
        self.count.store(walk.count as u64, Ordering::Relaxed);
        self.version.store(odd.wrapping_add(1), Ordering::Release);
    }
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
fn announce(frames: &[u64]) -> Identity {
    let Some(region) = report::region() else { return Identity::NONE };
    let (id, rule) = (region.take_stack_id(), place::rule_of_stack(frames));
    let told = report::send(report::now(), Event::Stack { id, frames });
    Identity { id: if told { id } else { NO_STACK }, rule }
}

/// Multiply and rotate over the frames; never 0, which marks a free place.
fn hash(frames: &[u64], generation: u32) -> u64 {
    let mix = |sum: u64, frame: &u64| (sum ^ frame).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    frames.iter().fold(frames.len() as u64 ^ u64::from(generation) << 8, mix) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn deep(depth: u32, entry: Entry, walks: &mut Vec<Vec<u64>>) {
        if depth > 0 {
            deep(depth - 1, entry, walks);
            std::hint::black_box(&walks);
        } else {
            walks.push(unwind(entry).frames().to_vec());
        }
    }

    #[test]
    fn a_walk_finds_callers_and_their_slots() {
        let mut walks = Vec::new();
        deep(3, std::ptr::null(), &mut walks);
        deep(9, std::ptr::null(), &mut walks);
        assert!(walks[0].len() > 4);
        assert_eq!(walks[1].len(), walks[0].len() + 6);
    }

    #[test]
    fn different_stacks_have_different_hashes() {
        assert_ne!(hash(&[1, 2], 0), hash(&[2, 1], 0));
        assert_ne!(hash(&[1, 2], 0), hash(&[1, 2], 1));
        assert_ne!(hash(&[], 0), hash(&[0], 0));
        assert_ne!(hash(&[5], 0), 0);
    }
}
