//! Shares of the CPU time: user space by samples, the kernel by its own books.
//!
//! Where the kernel takes samples for us they are of user space alone (`exclude_kernel`), and a halted thread is seldom
//! found in a call; but it tells how long it worked for the program (`getrusage(2)`).

use tierloom_model::Share;
use tierloom_recording::{InCopy, Recording};

use crate::attribution::{AttributedSample, Attribution, Rest};
use crate::confidence::share;

/// What a run's CPU time is shared out by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CpuShares {
    /// Samples of user space.
    user_samples: f64,
    /// Samples that all of the CPU time would have.
    samples: f64,
    /// The kernel's part, 0 to 1.
    kernel: f64,
}

impl CpuShares {
    /// Of the program's own `cpu_s`, which is without the recorder's library.
    pub(crate) fn of(recording: &Recording, cpu_s: f64, seen: &[AttributedSample]) -> Self {
        let (all, of_user) = (seen.len() as f64, of_user(seen).count() as f64);
        let told = (recording.system_s > 0.0).then(|| (recording.system_s / cpu_s.max(f64::MIN_POSITIVE)).min(1.0));
        let kernel = told.unwrap_or((all - of_user) / all.max(1.0));
        let due = cpu_s * 1e9 / recording.period_ns.max(1.0);
        Self { user_samples: of_user, samples: if of_user > 0.0 { all } else { due }, kernel }
    }

    /// The part of user space, 0 to 1.
    pub(crate) fn user(&self) -> f64 {
        1.0 - self.kernel
    }

    /// Samples of user space.
    pub(crate) fn user_samples(&self) -> f64 {
        self.user_samples
    }

    /// A share of the samples of user space as one of all time.
    pub(crate) fn of_all(&self, of_user: Share) -> Share {
        let Share { share, low, high } = of_user;
        Share { share: share * self.user(), low: low * self.user(), high: high * self.user() }
    }

    /// What no sample says anything of: user space, where it is so little that it has none.
    pub(crate) fn unseen(&self) -> Option<Share> {
        let is_unseen = self.kernel > 0.0 && self.user_samples == 0.0;
        is_unseen.then(|| Share { share: self.user(), low: 0.0, high: self.user() })
    }

    /// The kernel's, as sure as so many samples would make it.
    pub(crate) fn of_kernel(&self) -> Share {
        share(self.kernel * self.samples, self.samples)
    }
}

/// The samples of user space.
pub(crate) fn of_user(seen: &[AttributedSample]) -> impl Iterator<Item = &AttributedSample> {
    seen.iter().filter(|seen| seen.verdict != Attribution::Rest(Rest::Kernel))
}

/// The part of user space's time, 0 to 1, that went into what the recorder put there: its library, in which so many more
/// samples found their threads, and instructions that copies have beside the program's.
pub(crate) fn added(seen: &[AttributedSample], in_library: usize) -> f64 {
    let added = of_user(seen).filter(|seen| seen.copy == InCopy::Added).count() + in_library;
    added as f64 / (of_user(seen).count() + in_library).max(1) as f64
}

/// CPU time that went into the recorder's library, s.
pub(crate) fn library_s(recording: &Recording, seen: &[AttributedSample], in_library: usize) -> f64 {
    let user = of_user(seen).count() + in_library;
    (recording.cpu_s - recording.system_s).max(0.0) * in_library as f64 / user.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(system_s: f64) -> CpuShares {
        let recording = Recording { cpu_s: 2.0, system_s, period_ns: 1e6, ..Recording::default() };
        CpuShares::of(&recording, recording.cpu_s, &[])
    }

    #[test]
    fn a_run_without_samples_of_its_own_was_in_the_kernel() {
        let kernel = shares(1.9).of_kernel();
        assert!((kernel.share - 0.95).abs() < 1e-9 && kernel.low > 0.93 && kernel.high < 0.97, "{kernel:?}");
        assert!(shares(0.0).of_kernel().share.abs() < 1e-9);
        assert!((shares(1.9).unseen().unwrap().share - 0.05).abs() < 1e-9 && shares(0.0).unseen().is_none());
    }

    #[test]
    fn shares_of_user_space_become_shares_of_all() {
        let half = shares(1.0).of_all(Share { share: 0.5, low: 0.25, high: 0.75 });
        assert_eq!(half, Share { share: 0.25, low: 0.125, high: 0.375 });
    }
}
