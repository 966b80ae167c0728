//! Where the parts of the shared file lie: header, stamps and slots of the ring, owners of lanes, lanes, rules twice.
//!
//! Here because the region hands its parts to the ring and to the lanes, and all three must agree on their sizes.

/// Bytes of a base page.
pub const PAGE_BYTES: u64 = 4096;
/// Words of the header.
pub(crate) const HEADER_WORDS: usize = 128;
/// Words before those of a slot, which say whose turn it is.
pub(crate) const STAMP_WORDS: usize = 1;
/// Words of a slot: with its stamp it is one cache line.
pub(crate) const SLOT_WORDS: usize = 7;
/// Places of a lane; the first holds how many times the lane was in use.
pub(crate) const PLACES: u64 = 128;
/// Words of a place.
pub(crate) const PLACE_WORDS: u64 = 4;
/// Words of a lane: those of a page, so that it costs the program one page fault.
pub(crate) const LANE_WORDS: u64 = PLACES * PLACE_WORDS;

const _: () = assert!(LANE_WORDS * size_of::<u64>() as u64 == PAGE_BYTES);

/// What the recorder asks of the preload library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Slots of the ring; a power of two.
    pub slots: u64,
    /// Lanes that threads can have at once, all together.
    pub lanes: u64,
    /// Smallest allocation that is recorded, bytes.
    pub min_bytes: u64,
    /// Words that the rules of any plan may take; 0 = nothing is placed.
    pub rule_words: u64,
}

/// Where the parts of a shared file begin, words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) owners: usize,
    pub(crate) lanes: usize,
    pub(crate) rules: usize,
    pub(crate) end: usize,
}

impl Layout {
    /// `None` where the settings make no sense.
    pub(crate) fn of(settings: &Settings) -> Option<Self> {
        let slots = usize::try_from(settings.slots).ok().filter(|slots| slots.is_power_of_two())?;
        // A cursor has 32 bits for the position of a place.
        let lanes = usize::try_from(settings.lanes).ok().filter(|lanes| *lanes <= 1 << 20)?;
        let owners = slots.checked_mul(STAMP_WORDS + SLOT_WORDS)?.checked_add(HEADER_WORDS)?;
        let lane_words = usize::try_from(LANE_WORDS).ok()?;
        let first_lane = owners.checked_add(lanes)?.checked_next_multiple_of(lane_words)?;
        let rules = first_lane.checked_add(lanes.checked_mul(lane_words)?)?;
        let end = rules.checked_add(usize::try_from(settings.rule_words).ok()?.checked_mul(2)?)?;
        Some(Self { owners, lanes: first_lane, rules, end })
    }
}

/// Words that a shared file with these settings has, or `None` where they make no sense.
pub fn words_needed(settings: &Settings) -> Option<usize> {
    Layout::of(settings).map(|layout| layout.end)
}
