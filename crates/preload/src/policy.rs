//! A plan applied: the kernel is asked for a place when a range is handed out.
//!
//! The rules lie at the end of the shared file. A call stack is held against them once, when it is new; what it
//! matched is kept with its id. The policy covers the whole pages inside a range: the pages at its
//! edges may belong to others as well. The kernel's answer goes to the recorder either way, and where
//! the pages are, when the range is given back or the process ends.
//!
//! | file | step |
//! |---|---|
//! | `handed` | what the program was handed |
//! | `rules` | the rules in force, and which of them a range falls under |
//! | `apply` | one rule for one range: within the budget, asked, told, kept |
//! | `mempolicy` | a rule's policy and options as the kernel knows them |
//! | `alias` | an object whose pages are a few that repeat |
//! | `weighted_interleave` | weighted interleave of one object, by the means that fits it |
//! | `kernel` | the calls |
//! | `objects`, `budget` | which objects are placed, and what they may cost |
//! | `release`, `residency` | where an object's pages are when it goes |
//! | `unmatched` | blocks that no rule means |

mod alias;
mod apply;
mod budget;
mod handed;
mod kernel;
mod mempolicy;
mod objects;
mod release;
mod residency;
mod rules;
mod unmatched;
mod weighted_interleave;

use std::sync::atomic::Ordering;

use objects::OBJECTS;

use crate::generation::RULES;
use crate::{report, thread};

pub(crate) use handed::Handed;
pub(crate) use release::Fate;
pub(crate) use rules::{NO_RULE, look_for_rules, may_come, rule_of_stack};
pub(crate) use unmatched::{keep_again, keep_to_ourselves, table_of_blocks, take_back};

/// Applies what holds from the start: static arrays, and the policy of everything else.
pub(crate) fn start() {
    if report::region().is_none_or(|region| region.settings().rule_words == 0) {
        return;
    }
    unmatched::begin();
    OBJECTS.map();
    rules::expect();
    if let Some(region) = report::region().filter(|region| region.generation() > 0) {
        rules::begin(region);
    }
}

/// Places a range that was just handed out to a stack of this rule.
#[inline]
pub(crate) fn place(stack_rule: u32, address: u64, bytes: u64, handed: Handed) {
    if RULES.load(Ordering::Relaxed) != 0 {
        thread::quietly(|| rules::place(stack_rule, address, bytes, handed));
    }
}

/// A range that may be placed is about to be given back: where its pages are is told, and what its
/// next owner must not inherit is undone.
#[inline]
pub(crate) fn release(address: u64) {
    if RULES.load(Ordering::Relaxed) != 0 {
        thread::quietly(|| release::release(address));
    }
}

/// The same of any range of mappings, which need not be all of what was handed out.
#[inline]
pub(crate) fn release_range(address: u64, bytes: u64, fate: Fate) {
    if RULES.load(Ordering::Relaxed) != 0 {
        thread::quietly(|| release::release_range(address, bytes, fate));
    }
}

/// The process ends: where the pages of all placed objects are.
pub(crate) extern "C" fn finish() {
    if RULES.load(Ordering::Relaxed) != 0 {
        release::tell_all();
    }
}
