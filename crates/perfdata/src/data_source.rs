//! Where a sample's data came from: `union perf_mem_data_src` of `include/uapi/linux/perf_event.h`.
//!
//! Every event can be asked for the word, and one that is no memory event leaves it empty: only a word that says load
//! or store makes a sample one of memory.

use tierloom_recording::DataSource;

/// What was done (5 bits from 0).
const LOAD: u64 = 0x02;
const STORE: u64 = 0x04;
/// The older field of levels (14 bits).
mod level {
    pub(super) const SHIFT: u32 = 5;
    pub(super) const MISS: u64 = 0x04;
    /// Local and remote.
    pub(super) const RAM: u64 = 0x80 | 0x100 | 0x200;
    /// RAM and caches, one and two hops away.
    pub(super) const REMOTE: u64 = 0x100 | 0x200 | 0x400 | 0x800;
}
/// The newer one (4 bits).
mod number {
    pub(super) const SHIFT: u32 = 33;
    /// CXL, RAM and persistent memory.
    pub(super) const MEMORY: [u64; 3] = [0x09, 0x0d, 0x0e];
    pub(super) const NONE: u64 = 0x0f;
}
/// Another core's cache had the line, modified.
const SNOOP_HIT_MODIFIED: u64 = 0x10 << 19;
/// Another core's cache gave the line: what Arm tells.
const SNOOP_PEER: u64 = 0x02 << 38;
const REMOTE: u64 = 1 << 37;
const HOPS_SHIFT: u32 = 43;
/// A remote core of the same node.
const SAME_NODE: u64 = 1;

/// Whether an access is a store, and where its data came from; `None` where the word says neither load nor store.
pub(super) fn decoded(word: u64) -> Option<(bool, DataSource)> {
    if word & (LOAD | STORE) == 0 {
        return None;
    }
    let store = word & LOAD == 0;
    let levels = (word >> level::SHIFT) & 0x3fff;
    let number = (word >> number::SHIFT) & 0xf;
    let numbered = number != 0 && number != number::NONE;
    let from_memory = if numbered { number::MEMORY.contains(&number) } else { levels & level::RAM != 0 };
    let far = word & REMOTE != 0 && (word >> HOPS_SHIFT) & 0x7 != SAME_NODE;
    let source = DataSource {
        memory: from_memory || (store && levels & level::MISS != 0),
        remote: far || levels & level::REMOTE != 0,
        shared: word & (SNOOP_HIT_MODIFIED | SNOOP_PEER) != 0,
    };
    Some((store, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: DataSource = DataSource { memory: false, remote: false, shared: false };

    #[test]
    fn sources_are_decoded_as_the_kernels_header_lays_them_out() {
        let old = |op: u64, level: u64| decoded(op | level << level::SHIFT).unwrap();
        let new = |op: u64, number: u64| decoded(op | number << number::SHIFT).unwrap();
        assert_eq!(old(LOAD, 0x80 | 0x02), (false, DataSource { memory: true, ..NEAR }));
        assert_eq!(old(LOAD, 0x08 | 0x02), (false, NEAR));
        assert_eq!(old(STORE, 0x08 | 0x04), (true, DataSource { memory: true, ..NEAR }));
        assert_eq!(new(LOAD, 0x09), (false, DataSource { memory: true, ..NEAR }));
        assert_eq!(new(LOAD, 0x03), (false, NEAR));
        assert_eq!(new(LOAD, 0x0f), (false, NEAR));
    }

    #[test]
    fn a_word_without_load_or_store_is_of_no_access() {
        for word in [0, 1, 0x80 << level::SHIFT, 0x08, 0x10] {
            assert_eq!(decoded(word), None, "{word:#x}");
        }
    }

    #[test]
    fn what_is_far_and_what_is_shared_is_told() {
        let far = DataSource { memory: true, remote: true, ..NEAR };
        assert_eq!(decoded(LOAD | 0x100 << level::SHIFT), Some((false, far)));
        assert_eq!(decoded(LOAD | REMOTE | 0x0d << number::SHIFT), Some((false, far)));
        let beside = LOAD | REMOTE | SAME_NODE << HOPS_SHIFT | 0x02 << number::SHIFT;
        assert_eq!(decoded(beside), Some((false, NEAR)));
        let shared = LOAD | 0x40 << level::SHIFT | SNOOP_HIT_MODIFIED;
        assert_eq!(decoded(shared), Some((false, DataSource { shared: true, ..NEAR })));
        assert_eq!(decoded(LOAD | SNOOP_PEER), Some((false, DataSource { shared: true, ..NEAR })));
    }
}
