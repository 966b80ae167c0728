//! What a reader must know of how samples were taken; what was lost the analysis tells.

use tierloom_model::Warning;
use tierloom_recording::{Event, Recording};

use crate::request::{Backend, RecordRequest};
use crate::samples::rate;

/// Of a recording that is done; `refused`: how often a thread that ran could not be sampled.
pub(super) fn about_sampling(recording: &Recording, request: &RecordRequest, refused: u64) -> Vec<Warning> {
    let hz = rate(request, recording.event);
    let slowed = request.hz.filter(|asked| *asked > hz).map(|asked| match recording.event {
        Event::Ptrace => Warning::SlowedByPtrace { hz, asked },
        _ => Warning::SlowedByKernel { hz, asked },
    });
    let unasked = request.backend == Backend::Auto && recording.event == Event::Ptrace;
    let by_ptrace = unasked.then_some(Warning::SampledByPtrace { hz });
    let not_sampled = (refused > 0).then_some(Warning::ThreadsNotSampled { times: refused });
    slowed.into_iter().chain(by_ptrace).chain(not_sampled).collect()
}
