//! The recording of a `perf.data` file, for the corpus: run it again when the format of recordings changes.
//!
//!     cargo run -p tierloom-fuzzed --example recording_of -- PERF.DATA OUT.recording

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, from, to] = &words[..] else { return Err("usage: recording_of PERF.DATA OUT.recording".into()) };
    std::fs::write(to, tierloom_perfdata::read(Path::new(from), None)?.to_bytes())?;
    Ok(())
}
