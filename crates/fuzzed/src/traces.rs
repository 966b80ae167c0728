//! Traces of accesses: text of other tools, and packed records.

use tierloom_expander::{RECORD_BYTES, Trace};
use tierloom_tiering::trace::{Format, Parser};

/// The first byte chooses the format and where the text is cut in two.
pub(crate) fn text(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let format = if choice % 2 == 0 { Format::Lackey } else { Format::Drmemtrace };
    let (first, second) = rest.split_at(rest.len() * usize::from(*choice) / 256);
    let mut parser = Parser::new(format, "fuzzed.txt");
    let mut found = Vec::new();
    let read = parser.feed(first, &mut found).and_then(|()| parser.feed(second, &mut found));
    if read.and_then(|()| parser.finish(&mut found)).is_ok() {
        assert!(found.len() <= 2 * rest.len(), "accesses out of nothing");
    }
}

pub(crate) fn records(bytes: &[u8]) {
    if let Ok(trace) = Trace::from_bytes(bytes) {
        assert!(bytes.len() >= RECORD_BYTES, "a trace of nothing");
        let _ = trace.lines();
    }
}
