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

#[test]
fn the_recordings_of_the_corpus_are_of_the_version_that_is_read() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/recording");
    let read = |path: &Path| tierloom_recording::Recording::from_bytes(&std::fs::read(path).unwrap());
    let read = std::fs::read_dir(corpus).unwrap().filter(|file| read(&file.as_ref().unwrap().path()).is_ok());
    assert!(read.count() > 0, "make one with the example recording_of");
}
