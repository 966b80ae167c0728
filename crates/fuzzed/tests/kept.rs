//! Every file of `fuzz/corpus` is read or refused: what fuzzing found once is never found again.

#![allow(clippy::unwrap_used, reason = "a wrong corpus should stop the test")]

use std::path::Path;

use tierloom_fuzzed::{TARGETS, feed};

#[test]
fn what_fuzzing_kept_is_read_or_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (target, _) in TARGETS {
        let files: Vec<_> = std::fs::read_dir(corpus.join(target)).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(!files.is_empty(), "{target} has no corpus");
        for file in files {
            let fed = std::panic::catch_unwind(|| feed(target, &std::fs::read(&file).unwrap()));
            assert!(fed.is_ok(), "{}", file.display());
        }
    }
}
