//! Skid of this machine: how far behind a waiting load its samples fall, and how surely.
//!
//! The analysis blames the instruction before the sampled one. That is right on processors that take
//! an interrupt when the waiting instruction retires (97 % of samples on Zen 3); others have to be
//! measured, so every recording carries the measurement of its own machine. It takes longer than many a program
//! that is profiled, and comes out the same until the machine is started anew, so it is noted (`skid_note`).

use tierloom_linux::root::Root;
use tierloom_linux::skid::{Skid, measure, measure_by_ptrace};

use crate::error::RecordError;
use crate::skid_note::SkidNote;
use tierloom_recording::{Calibration, Event};

/// 500 samples put the purity within 2 points of what many would give (binomial, 95 %).
const SAMPLES: u32 = 500;
/// 5000 samples a second: the measurement takes a tenth of a second, and the loop does not mind.
const PERIOD_NS: u64 = 200_000;
/// By `ptrace` a sample costs more: 150 of them, 4 points.
const SLOW_SAMPLES: u32 = 150;
/// Memory must be much larger than the last-level cache; this is where it is not known.
const USUAL_BYTES: u64 = 256 << 20;
const MOST_BYTES: u64 = 1 << 30;

/// The skid of this machine for samples of this kind, measured unless it is noted; where it cannot be measured it is
/// unknown, which the recording says.
pub fn of_this_machine(event: Event, root: &Root) -> Calibration {
    let note = SkidNote::of_user(event, root);
    if let Some(noted) = note.as_ref().and_then(SkidNote::read) {
        return noted;
    }
    let measured = match event {
        Event::CpuClock => calibrate(root),
        Event::Ptrace => calibrate_ptrace(root),
        Event::MemoryAccess | Event::None => return Calibration::UNKNOWN,
    };
    let measured = measured.unwrap_or(Calibration::UNKNOWN);
    if let Some(note) = note {
        note.write(&measured);
    }
    measured
}

/// Measures the skid of the kernel's CPU-clock samples; takes less than a second.
///
/// # Errors
/// The kernel refuses samples ([`RecordError::PerfRefused`]) or memory.
pub fn calibrate(root: &Root) -> Result<Calibration, RecordError> {
    let bytes = usize::try_from(working_set(root)).unwrap_or(usize::MAX);
    let skid = measure(bytes, root.sample_period_ns(PERIOD_NS), SAMPLES)
        .map_err(|source| RecordError::PerfRefused { source })?;
    Ok(judge(&skid))
}

/// Measures the skid of samples by `ptrace`; takes a fraction of a second.
///
/// # Errors
/// [`RecordError::Kernel`]: no memory or process is left, or the kernel lets nobody trace.
pub fn calibrate_ptrace(root: &Root) -> Result<Calibration, RecordError> {
    let bytes = usize::try_from(working_set(root)).unwrap_or(usize::MAX);
    Ok(judge(&measure_by_ptrace(bytes, PERIOD_NS, SLOW_SAMPLES)?))
}

/// Four times the last-level cache, so that at most a quarter of the loads hit it by chance.
fn working_set(root: &Root) -> u64 {
    let largest = (0..=4).filter_map(|index| cache_bytes(root, index)).max();
    let wanted = largest.map_or(USUAL_BYTES, |cache| cache.saturating_mul(4));
    wanted.clamp(64 << 20, MOST_BYTES).next_power_of_two()
}

fn cache_bytes(root: &Root, index: u32) -> Option<u64> {
    let text = root.text(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size"))?;
    let kib: u64 = text.strip_suffix('K')?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The most frequent distance, and its share.
fn judge(skid: &Skid) -> Calibration {
    let samples = skid.behind.iter().sum::<u32>() + skid.elsewhere;
    let most = (0_u32..).zip(skid.behind).max_by_key(|(offset, count)| (*count, std::cmp::Reverse(*offset)));
    match most {
        Some((offset, count)) if count > 0 => {
            Calibration { offset, purity: f64::from(count) / f64::from(samples), samples }
        }
        _ => Calibration::UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_distance_counts() {
        let mut skid = Skid::default();
        assert_eq!(judge(&skid), Calibration::UNKNOWN);
        skid.behind[1] = 97;
        skid.behind[2] = 1;
        skid.elsewhere = 2;
        assert_eq!(judge(&skid), Calibration { offset: 1, purity: 0.97, samples: 100 });
    }

    #[test]
    fn the_working_set_follows_the_cache() {
        let folder = std::env::temp_dir().join(format!("tierloom-cache-{}", std::process::id()));
        let cache = folder.join("sys/devices/system/cpu/cpu0/cache/index3");
        std::fs::create_dir_all(&cache).unwrap();
        assert_eq!(working_set(&Root::at(&folder)), USUAL_BYTES);
        std::fs::write(cache.join("size"), "98304K\n").unwrap();
        assert_eq!(working_set(&Root::at(&folder)), 512 << 20);
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// What judges the machine: `make live`.
    mod live {
        use super::*;

        /// Where the kernel gives samples, this machine's are where the analysis looks for them, or the
        /// calibration says that they are not.
        #[test]
        #[ignore = "live"]
        fn this_machine_can_be_measured() {
            match calibrate(&Root::default()) {
                Ok(calibration) => {
                    assert!(calibration.samples > 0, "{calibration:?}");
                    assert!((0.0..=1.0).contains(&calibration.purity), "{calibration:?}");
                }
                Err(error) => assert!(matches!(error, RecordError::PerfRefused { .. }), "{error}"),
            }
        }
    }
}
