//! What fuzzing feeds: one function a parser, over bytes that may be anything.
//!
//! The law of each: bytes are read or refused with words; no panic, no endless loop, no memory beyond what the
//! bytes can stand for. What was read can be written and read again. `fuzz/` calls these with bytes that it
//! makes up, the test of this crate with those that are kept in `fuzz/corpus`, found faults among them.

mod nouns;
mod pools;
mod programs;
mod regions;
mod scratch;
mod traces;

/// A parser, by the name of its target and of the folder of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 14] = [
    ("callgrind", programs::callgrind),
    ("code", programs::code),
    ("machine", nouns::machine),
    ("parameters", nouns::parameters),
    ("perf_data", programs::perf_data),
    ("plan", nouns::plan),
    ("pool", pools::pool),
    ("profile", nouns::profile),
    ("recording", programs::recording),
    ("region", regions::region),
    ("samples", nouns::samples),
    ("trace_records", traces::records),
    ("trace_text", traces::text),
    ("workload", nouns::workload),
];

/// Feeds one target.
///
/// # Panics
/// There is no such target, or a parser broke the law.
pub fn feed(target: &str, bytes: &[u8]) {
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    let Some((_, parse)) = found else { panic!("there is no target {target}") };
    parse(bytes);
}
