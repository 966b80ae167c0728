//! Blocks that no rule means: kept in a table of this process, and nobody is told, unless the rules change before
//! they are given back.

use std::sync::atomic::AtomicU64;

use tierloom_wire::{BLOCKS_WORDS, Block, Blocks};

use crate::mapped::Mapped;

static TABLE: Mapped<[AtomicU64; BLOCKS_WORDS]> = Mapped::nothing();

/// Makes the table; where it is, for who wants to read it from outside.
pub(super) fn begin() -> u64 {
    TABLE.map().map_or(0, |words| words.as_ptr() as u64)
}

/// Where the table is; 0 = there is none.
pub(super) fn place() -> u64 {
    TABLE.get().map_or(0, |words| words.as_ptr() as u64)
}

fn table() -> Option<Blocks<'static>> {
    Blocks::new(TABLE.get()?)
}

/// Keeps a block; `false` where there is no room.
pub(super) fn keep(block: &Block) -> bool {
    table().is_some_and(|table| table.insert(block))
}

/// Takes a block out.
pub(super) fn take(address: u64) -> Option<Block> {
    table()?.remove(address)
}
