//! Work that may break a promise of ours costs its answer, not the process that asked for it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::error::SamplerError;

/// Does the work; a panic is an error that names the recording, which is still there.
///
/// # Errors
/// Those of the work, and [`SamplerError::Analysis`].
pub fn guarded<T>(recording: Option<&Path>, work: impl FnOnce() -> Result<T, SamplerError>) -> Result<T, SamplerError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let recording = recording.map_or_else(|| "what was recorded".to_owned(), |path| path.display().to_string());
        Err(SamplerError::Analysis { recording, reason: reason_of(&*panic) })
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
    fn a_panic_is_an_error_that_names_the_recording() {
        let broken = || -> Result<(), SamplerError> { panic!("a count of {}", -1) };
        let error = guarded(Some(Path::new("a.profile/run.recording")), broken).unwrap_err().to_string();
        assert!(
            error.starts_with("the analysis of a.profile/run.recording failed: a count of -1\n  hint: "),
            "{error}"
        );
        assert!(matches!(guarded(None, || Ok(3)), Ok(3)));
    }
}
