//! A note of this machine's skid, so that it is measured once and not before every program.
//!
//! It lies in the user's folder for caches and holds for the processor and the start of the system that it names:
//! a new kernel and another host come with a new start. A measurement that found samples too blurred to tell an
//! instruction is not noted: it is made again, so what disturbed one run cannot stay. Where there is no such folder,
//! or it cannot be written, the skid is measured every time.

use std::fs;
use std::path::{Path, PathBuf};

use tierloom_linux::root::Root;
use tierloom_recording::{Calibration, Event};

use crate::processor::processor;

/// Where the note is, and which machine it has to be of.
#[derive(Debug)]
pub(super) struct SkidNote {
    file: PathBuf,
    machine: String,
}

impl SkidNote {
    /// For samples of this kind. There is none of a machine that is read from a folder, nor where the kernel does not
    /// tell one start from the next.
    pub(super) fn of_user(event: Event, root: &Root) -> Option<Self> {
        let own = *root == Root::default();
        own.then(|| Self::at(&user_caches()?.join("tierloom"), event, root)).flatten()
    }

    fn at(folder: &Path, event: Event, root: &Root) -> Option<Self> {
        let kind = match event {
            Event::CpuClock => "cpu-clock",
            Event::Ptrace => "ptrace",
            Event::MemoryAccess | Event::None => return None,
        };
        let start = root.text("/proc/sys/kernel/random/boot_id").filter(|start| !start.is_empty())?;
        let machine = format!("{start} {}", processor(root).name);
        Some(Self { file: folder.join(format!("skid-{kind}")), machine })
    }

    /// What was measured since the machine was started.
    pub(super) fn read(&self) -> Option<Calibration> {
        let text = fs::read_to_string(&self.file).ok()?;
        let figures = text.strip_prefix(&self.machine)?.strip_prefix('\n')?.strip_suffix('\n')?;
        let [offset, purity, samples] = figures.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let noted =
            Calibration { offset: offset.parse().ok()?, purity: purity.parse().ok()?, samples: samples.parse().ok()? };
        is_worth_a_note(&noted).then_some(noted)
    }

    /// Notes what was measured now. Several recorders may do so at once: a note is one of them, whole.
    pub(super) fn write(&self, measured: &Calibration) {
        let Some(folder) = self.file.parent().filter(|_| is_worth_a_note(measured)) else { return };
        let Calibration { offset, purity, samples } = measured;
        let text = format!("{}\n{offset} {purity} {samples}\n", self.machine);
        let beside = self.file.with_extension(std::process::id().to_string());
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&beside, text));
        if written.and_then(|()| fs::rename(&beside, &self.file)).is_err() {
            fs::remove_file(&beside).ok();
        }
    }
}

/// Measured, and sharp: what a note says keeps nobody from finding that out.
fn is_worth_a_note(calibration: &Calibration) -> bool {
    calibration.samples > 0 && calibration.purity <= 1.0 && calibration.tells_instruction()
}

/// As the XDG base directory specification has it: a relative path there counts for nothing.
fn user_caches() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")).filter(|path| path.is_absolute()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARP: Calibration = Calibration { offset: 1, purity: 0.933_593_75, samples: 256 };

    /// A machine of this start, in a folder of this test.
    fn machine(folder: &Path, start: &str) -> Root {
        let random = folder.join("proc/sys/kernel/random");
        fs::create_dir_all(&random).unwrap();
        fs::write(random.join("boot_id"), start).unwrap();
        Root::at(folder)
    }

    fn folder(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tierloom-skid-{test}-{}", std::process::id()))
    }

    #[test]
    fn a_note_holds_until_the_machine_is_started_anew() {
        let folder = folder("noted");
        let note = |start| SkidNote::at(&folder.join("cache"), Event::CpuClock, &machine(&folder, start)).unwrap();
        assert_eq!(note("1-2").read(), None);
        note("1-2").write(&SHARP);
        assert_eq!(note("1-2").read(), Some(SHARP));
        assert_eq!(note("1-3").read(), None, "another start");
        let halted = SkidNote::at(&folder.join("cache"), Event::Ptrace, &machine(&folder, "1-2")).unwrap();
        assert_eq!(halted.read(), None, "samples of another kind");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_blurred_or_damaged_is_measured_again() {
        let folder = folder("blurred");
        let note = SkidNote::at(&folder, Event::CpuClock, &machine(&folder, "5")).unwrap();
        note.write(&Calibration { purity: 0.5, ..SHARP });
        note.write(&Calibration::UNKNOWN);
        assert_eq!(note.read(), None);
        for figures in ["1 0.9", "1 0.9 20 3", "1 7.0 20", "1 NaN 20", "1 0.9 0", "1 0.9 20"] {
            fs::write(&note.file, format!("{}\n{figures}", note.machine)).unwrap();
            assert_eq!(note.read(), None, "{figures}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_machine_in_a_folder_leaves_no_note() {
        let folder = folder("elsewhere");
        assert!(SkidNote::of_user(Event::CpuClock, &machine(&folder, "5")).is_none());
        assert!(SkidNote::at(&folder, Event::MemoryAccess, &machine(&folder, "5")).is_none());
        assert!(SkidNote::at(&folder, Event::CpuClock, &machine(&folder, "")).is_none());
        fs::remove_dir_all(folder).unwrap();
    }
}
