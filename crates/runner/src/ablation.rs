//! What can be always in the cache, and in how large a window.
//!
//! An object is ablated when all of its pages are the same few, a window that is mapped over it again and again
//! (`preload/policy/alias`): its accesses cost no memory then, and what it holds is lost. So it must be memory that may
//! lose what it holds when the program gets it, and that is much larger than a window; and each repetition is a mapping of
//! the kernel's, of which a process has only so many.

use object::{Object, ObjectSection, SectionIndex, SectionKind};
use tierloom_model::units::format_bytes;
use tierloom_model::{Rule, Selector};

/// The smallest window: a third to a half of a core's first-level data cache, which has 32 to 48 KiB on servers since 2011.
const LEAST_BYTES: u64 = 16 << 10;
/// The window of a large object: a second-level cache of 1 to 2 MiB, which servers have since 2017 but for AMD's before
/// Zen 4. In smaller ones, single streams of several ran slower than from memory on Zen 4 (by 10 to 20 %); random accesses
/// take about as long.
const USUAL_BYTES: u64 = 1 << 20;
/// The largest window: a small part of a last-level cache.
const MOST_BYTES: u64 = 4 << 20;
/// An object has at least so many windows, so that hardly any of it would have been in the cache anyway (assumed).
const LEAST_WINDOWS: u64 = 16;

/// The usual window, a smaller one where the object is small, and a larger one where it would take more than so many
/// mappings, bytes.
///
/// # Errors
/// Why the rule's object cannot be ablated.
pub(super) fn window_bytes(rule: &Rule, mappings: u64) -> Result<u64, String> {
    let size = format_bytes(rule.size_bytes);
    if let Selector::File(_) = rule.select {
        return Err("it is a mapped file, whose contents would be lost".to_owned());
    }
    if rule.size_bytes < LEAST_BYTES * LEAST_WINDOWS {
        return Err(format!("{size} are too little: what is left of it is {}", format_bytes(LEAST_BYTES)));
    }
    let least = (rule.size_bytes / LEAST_WINDOWS).clamp(LEAST_BYTES, USUAL_BYTES);
    let windows = std::iter::successors(Some(1 << least.ilog2()), |bytes| Some(bytes * 2));
    // Half of them are for blocks that come beside those of the profile, and for the ends of blocks.
    let fits = |window: &u64| rule.size_bytes.div_ceil(*window) <= mappings / 2;
    windows.take_while(|window| *window <= MOST_BYTES).find(fits).ok_or_else(|| {
        let wanted = 4 * rule.size_bytes.div_ceil(MOST_BYTES);
        format!("{size} take too many mappings; set vm.max_map_count to {wanted} or more with sysctl")
    })
}

/// Makes sure that a static array in this section is all zeroes when the program starts, as the window is.
///
/// # Errors
/// It has values in its file.
pub(super) fn is_zero_at_start<'a>(file: &impl Object<'a>, section: Option<SectionIndex>) -> Result<(), String> {
    match section.and_then(|index| file.section_by_index(index).ok()).map(|section| section.kind()) {
        Some(SectionKind::UninitializedData) => Ok(()),
        _ => Err("it has values in the program's file (.data), which would be lost".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use tierloom_model::{Action, RuleOptions};

    use super::*;

    fn window(size_bytes: u64, mappings: u64) -> Result<u64, String> {
        let select = Selector::SizeAtLeast(1);
        let options = RuleOptions::default();
        window_bytes(&Rule { object: "o".to_owned(), size_bytes, select, place: Action::FirstTouch, options }, mappings)
    }

    #[test]
    fn the_window_grows_with_the_object() {
        let mappings = 65_530 / 2;
        assert_eq!(window(256 << 10, mappings), Ok(16 << 10));
        assert_eq!(window(4 << 20, mappings), Ok(256 << 10));
        assert_eq!(window(15 << 20, mappings), Ok(512 << 10));
        assert_eq!(window(16 << 20, mappings), Ok(1 << 20));
        assert_eq!(window(15 << 30, mappings), Ok(1 << 20));
        assert_eq!(window(40 << 30, mappings), Ok(4 << 20));
        for size in [1_u64 << 20, 300 << 20, 3 << 30, 60 << 30] {
            assert!(size / window(size, mappings).unwrap() <= mappings / 2);
        }
    }

    #[test]
    fn what_cannot_be_ablated_says_why() {
        assert!(window(100 << 10, 1000).unwrap_err().contains("too little"));
        let told = window(256 << 30, 65_530 / 2).unwrap_err();
        assert!(told.contains("vm.max_map_count to 262144"), "{told}");
        assert_eq!(window(256 << 30, 262_144 / 2), Ok(4 << 20), "as it says");
        let file = Rule {
            object: "o".to_owned(),
            size_bytes: 1 << 30,
            select: Selector::File("/data".to_owned()),
            place: Action::FirstTouch,
            options: RuleOptions::default(),
        };
        assert!(window_bytes(&file, 1000).unwrap_err().contains("file"));
    }
}
