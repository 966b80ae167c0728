//! Texts as `perf` writes them into its features.

use tierloom_linux::perf::Fields;

/// `struct perf_header_string`: length with padding, then the text.
pub(super) fn string(part: &mut Fields<'_>) -> Option<String> {
    let length = part.u32()?;
    Some(Fields(part.bytes(u64::from(length))?).text())
}

/// How many, then each.
pub(super) fn strings(part: &mut Fields<'_>) -> Option<Vec<String>> {
    let count = part.u32()?;
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(string(part)?);
    }
    Some(all)
}
