//! Work that may break a promise of ours costs its answer, not the process that asked for it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Does the work; a panic is a sentence that names the recording, which is still there.
pub(crate) fn guarded<T>(recording: Option<&Path>, work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let recording = recording.map_or_else(|| "what was recorded".to_owned(), |path| path.display().to_string());
        let reason = reason_of(&*panic);
        format!(
            "the analysis of {recording} failed: {reason}\nhint: this is a fault of tierloom, please report it; nothing is \
             lost, the recording stays"
        )
    })
}

fn reason_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it does not say why".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_sentence_that_names_the_recording() {
        let broken = || panic!("a count of {}", -1);
        let error = guarded(Some(Path::new("a.profile/run.recording")), broken).unwrap_err();
        assert!(error.starts_with("the analysis of a.profile/run.recording failed: a count of -1\nhint: "), "{error}");
        assert!(matches!(guarded(None, || 3), Ok(3)));
    }
}
