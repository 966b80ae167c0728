//! What a reader must know of how samples were taken.

use tierloom_recording::{Event, Recording};

use crate::request::{Backend, RecordRequest};
use crate::samples::rate;

/// Of a recording that is done; `refused`: how often a thread that ran could not be sampled.
pub(super) fn about_sampling(recording: &Recording, request: &RecordRequest, refused: u64) -> Vec<String> {
    /// Losing fewer samples than this does not move a share by more than its own spread.
    const NOTABLE_LOSS: f64 = 0.01;
    let mut warnings = Vec::new();
    let taken = recording.samples.len() as f64;
    let hz = rate(request, recording.event);
    if let Some(asked) = request.hz.filter(|asked| *asked > hz) {
        warnings.push(match recording.event {
            Event::Ptrace => format!("{hz} samples per second were taken, not {asked}: more by ptrace would slow the program"),
            _ => format!(
                "the kernel allows {hz} samples per second, not {asked}; raise kernel.perf_event_max_sample_rate for more"
            ),
        });
    }
    if recording.lost as f64 > NOTABLE_LOSS * taken {
        warnings.push(format!("{} samples were lost beside {taken}; lower the rate", recording.lost));
    }
    if recording.lost_allocations > 0 {
        let lost = recording.lost_allocations;
        warnings.push(format!("{lost} allocation events were lost; some objects may be missing: raise the threshold"));
    }
    if request.backend == Backend::Auto && recording.event == Event::Ptrace {
        warnings.push(format!(
            "perf_event_open is refused here, so samples were taken by ptrace: {hz} per second of CPU time, and page faults \
             are not seen; lower kernel.perf_event_paranoid, or let the container's seccomp profile allow perf_event_open"
        ));
    }
    if refused > 0 {
        warnings.push(format!(
            "{refused} times a thread that ran could not be sampled: a debugger or tracer had it, or its process has \
             other rights than ours"
        ));
    }
    warnings
}
