//! Blocks that no rule means: kept in a table of this process, and nobody is told, unless the rules change before
//! they are given back.

use std::sync::atomic::{AtomicU64, Ordering};

use tierloom_wire::{BLOCKS_WORDS, Block, Blocks};

use super::rules::{NO_RULE, may_come, take_by_size};
use crate::generation::RULES;
use crate::mapped::Mapped;
use crate::report;
use crate::stack::Identity;

static TABLE: Mapped<[AtomicU64; BLOCKS_WORDS]> = Mapped::nothing();

/// Makes the table.
pub(super) fn begin() {
    TABLE.map();
}

/// Where this process keeps them, for who wants to read it from outside; 0 = nowhere.
pub(crate) fn table_of_blocks() -> u64 {
    TABLE.get().map_or(0, |words| words.as_ptr() as u64)
}

/// Keeps a block that no rule means to ourselves; `false` where one does, or where all are to be told.
#[inline]
pub(crate) fn keep_to_ourselves(identity: Identity, address: u64, bytes: u64) -> bool {
    let is_meant = identity.rule != NO_RULE || take_by_size(bytes);
    if is_meant || !may_come() {
        return false;
    }
    keep(&Block { address, bytes, stack: identity.id, generation: low_bits(RULES.load(Ordering::Relaxed)) })
}

/// A block that was kept to ourselves is about to be given back; `None` where it was not, or where somebody
/// knows of it: new rules came into force, so the table may have been read.
#[inline]
pub(crate) fn take_back(address: u64) -> Option<Block> {
    if !may_come() {
        return None;
    }
    let now = low_bits(report::region()?.generation());
    table()?.remove(address).filter(|block| block.generation == now)
}

/// It was not given back after all.
pub(crate) fn keep_again(block: &Block) {
    if !keep(block) {
        report::count_lost();
    }
}

fn table() -> Option<Blocks<'static>> {
    Blocks::new(TABLE.get()?)
}

/// Keeps a block; `false` where there is no room.
fn keep(block: &Block) -> bool {
    table().is_some_and(|table| table.insert(block))
}

/// A generation, as far as the table keeps it.
#[allow(clippy::cast_possible_truncation)]
fn low_bits(generation: u64) -> u32 {
    generation as u32
}
