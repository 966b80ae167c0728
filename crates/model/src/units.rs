//! Quantities as people write them: `64GiB`, `40%`.
//!
//! GB is 10^9 bytes and GiB 2^30; bandwidth is GB/s, latency ns, time s.

/// Bytes that one memory access moves between a memory and the last-level cache.
pub const LINE_BYTES: u64 = 64;
/// Bytes of a base page; placement happens in pages.
pub const PAGE_BYTES: u64 = 4096;
/// Bytes in a MiB.
pub const MIB: u64 = 1 << 20;
/// Seconds in a nanosecond.
pub const NS: f64 = 1e-9;
/// [`LINE_BYTES`] for arithmetic with rates and times.
pub const LINE_BYTES_F64: f64 = LINE_BYTES as f64;
/// [`PAGE_BYTES`] for arithmetic with rates and times.
pub const PAGE_BYTES_F64: f64 = PAGE_BYTES as f64;

const SUFFIXES: [(&str, f64); 10] = [
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("KB", 1e3),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("B", 1.0),
];

/// Reads `64GiB`, `1.5 GB` or `4096B` as a number of bytes. A number without a unit is none but 0: who types 64
/// hardly ever means bytes.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let suffix = text[digits.len()..].trim();
    let Some(number) = digits.parse::<f64>().ok().filter(|number| *number >= 0.0) else { return Err(no_amount(text)) };
    if suffix.is_empty() && number > 0.0 {
        return Err(format!("`{text}` has no unit: did you mean {text}GiB? {text}B if not"));
    }
    match SUFFIXES.iter().find(|(name, _)| *name == suffix).map(|(_, scale)| number * scale) {
        _ if number == 0.0 && suffix.is_empty() => Ok(0),
        Some(bytes) if bytes > 0.0 && bytes < 1.0 => Err(format!("`{text}` is less than a byte")),
        Some(bytes) if bytes < 1e19 => Ok(round_to_u64(bytes)),
        _ => Err(misspelt(digits, suffix).unwrap_or_else(|| no_amount(text))),
    }
}

/// A unit but for its capitals. Nobody guesses between bits and bytes, and 10^6 and 2^20.
fn misspelt(digits: &str, suffix: &str) -> Option<String> {
    let (name, _) = SUFFIXES.iter().find(|(name, _)| name.eq_ignore_ascii_case(suffix) && *name != suffix)?;
    Some(format!("`{suffix}` is not a unit of memory: did you mean {digits}{name}?"))
}

fn no_amount(text: &str) -> String {
    format!("`{text}` is not an amount of memory")
}

/// Writes a number of bytes with the largest binary unit that keeps it at or above one.
pub fn format_bytes(bytes: u64) -> String {
    let units = ["TiB", "GiB", "MiB", "KiB"];
    let scales = [1u64 << 40, 1 << 30, 1 << 20, 1 << 10];
    for (unit, scale) in units.iter().zip(scales) {
        if bytes >= scale {
            let amount = bytes as f64 / scale as f64;
            return if bytes.is_multiple_of(scale) {
                format!("{amount:.0}{unit}")
            } else {
                format!("{amount:.1}{unit}")
            };
        }
    }
    format!("{bytes}B")
}

/// Nearest whole number of a non-negative finite quantity; what lies outside saturates.
pub fn round_to_u64(quantity: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturation is the meaning")]
    let whole = quantity.round() as u64;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimal_and_binary_units_differ() {
        assert_eq!(parse_bytes("1GB"), Ok(1_000_000_000));
        assert_eq!(parse_bytes("1 GiB"), Ok(1 << 30));
        assert_eq!(parse_bytes("1.5KiB"), Ok(1536));
        assert!(parse_bytes("64 gigs").unwrap_err().contains("not an amount"));
        assert!(parse_bytes("-1GB").is_err());
    }

    #[test]
    fn a_unit_with_other_capitals_is_named_and_not_guessed() {
        assert_eq!(parse_bytes("200Mb"), Err("`Mb` is not a unit of memory: did you mean 200MB?".to_owned()));
        assert_eq!(parse_bytes("64gib"), Err("`gib` is not a unit of memory: did you mean 64GiB?".to_owned()));
        assert_eq!(parse_bytes("64Gx"), Err("`64Gx` is not an amount of memory".to_owned()));
    }

    #[test]
    fn a_number_without_a_unit_is_no_amount() {
        for text in ["64", " 64 ", "0.75", "4294967296", "1e3"] {
            let told = parse_bytes(text).unwrap_err();
            assert!(told.contains(&format!("did you mean {}GiB?", text.trim())), "{told}");
        }
        assert_eq!((parse_bytes("0"), parse_bytes("64B"), parse_bytes("0.75GiB")), (Ok(0), Ok(64), Ok(805_306_368)));
        assert!(parse_bytes("0.5B").unwrap_err().contains("less than a byte"));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_to_a_tenth_of_its_unit(bytes in 0u64..1 << 50) {
            let back = parse_bytes(&format_bytes(bytes)).unwrap();
            prop_assert!(back.abs_diff(bytes) as f64 <= 0.051 * bytes.max(20) as f64);
        }

        #[test]
        fn any_text_is_answered(text in ".*") {
            let _ = parse_bytes(&text);
        }
    }
}
