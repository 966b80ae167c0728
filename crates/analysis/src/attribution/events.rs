//! What a recording has beside samples, in the order of time.

use tierloom_recording::{Fault, Lookahead, Recording, Resident, Window};

/// What was seen beside samples, each kind in the order of time, as far as nobody has looked at it.
pub(crate) struct Events<'r> {
    faults: &'r [Fault],
    windows: &'r [Window],
    lookaheads: &'r [Lookahead],
    residents: &'r [Resident],
}

/// The next of them.
pub(crate) enum Next<'r> {
    Fault(&'r Fault),
    Window(&'r Window),
    Lookahead(&'r Lookahead),
    /// Of all processes at a moment.
    Residents(&'r [Resident]),
}

impl<'r> Events<'r> {
    /// All of a recording.
    pub(crate) fn of(recording: &'r Recording) -> Self {
        let Recording { faults, windows, lookaheads, residents, .. } = recording;
        Self { faults, windows, lookaheads, residents }
    }

    /// The next one up to a moment, and when it was. In the order of time: what is looked at later may have been given
    /// back.
    pub(crate) fn next(&mut self, until_ns: u64) -> Option<(u64, Next<'r>)> {
        let fault = self.faults.first().map(|fault| fault.time_ns);
        let window = self.windows.first().map(|window| window.time_ns);
        let ahead = self.lookaheads.first().map(|ahead| ahead.time_ns);
        let look = self.residents.first().map(|resident| resident.time_ns);
        let first = [fault, window, ahead, look].into_iter().flatten().min().filter(|first| *first <= until_ns)?;
        let next = if fault == Some(first) {
            Next::Fault(self.faults.split_off_first()?)
        } else if window == Some(first) {
            Next::Window(self.windows.split_off_first()?)
        } else if ahead == Some(first) {
            Next::Lookahead(self.lookaheads.split_off_first()?)
        } else {
            let count = self.residents.iter().take_while(|resident| resident.time_ns == first).count();
            Next::Residents(self.residents.split_off(..count)?)
        };
        Some((first, next))
    }
}
