//! What the preload library and the recorder say to each other, and how it lies in shared memory.
//!
//! One file is mapped by the recorder and by every process of the recorded program ([`Region`]): a
//! header, a ring of slots in which the processes append records and which the recorder empties, lanes
//! in which each thread does the same by itself, and the rules of a plan. Everything is an `AtomicU64`,
//! so neither side needs a lock or `unsafe` to look at it, and no system call is made for a record. A
//! process may die at any point: what it had published is read, what it had only reserved is skipped
//! and counted.
//!
//! Both sides must be of the same [`VERSION`]; the layout is private to one build of Tierloom.

#![no_std]

mod blocks;
mod lane;
mod law;
mod layout;
mod leave;
mod record;
mod region;
mod ring;
mod rules;
mod scatter;

pub use blocks::{BLOCKS_WORDS, Block, Blocks};
pub use lane::{Cursor, LaneRead, Owner};
pub use law::{Law, Stripe, Turn, sampled_page};
pub use layout::{PAGE_BYTES, Settings, words_needed};
pub use record::{
    Event, How, MAX_FRAMES, MAX_PATH_WORDS, MAX_RECORD_WORDS, MAX_RESIDENT_NODES, NO_STACK, Pages, Record, Source,
    Stamp, TOO_LITTLE_MEMORY, TOO_MANY_MAPPINGS, pack_node_pages, pack_path, unpack_node_pages, unpack_path,
};
pub use region::{Facts, Region, VERSION};
pub use ring::Popped;
pub use rules::{
    MAX_NODES, MAX_RULE_FRAMES, Options, Policy, Rule, RuleFrame, RuleReader, RuleWriter, Select, hash, is_same_file,
    stack_holds,
};
pub use scatter::scatter;

/// Environment variable that holds the path of the shared file.
pub const REGION_VARIABLE: &str = "TIERLOOM_REGION";
