//! What is recorded and counted of programs, and their code: `.recording`, `perf.data`, `callgrind.out`, ELF.

use tierloom_analysis::analyse;
use tierloom_binary::Files;
use tierloom_recording::{Recording, register};

use crate::scratch::Scratch;

/// A recording by the real `perf` of a program that runs for a moment: what the code of any other is put into.
const RECORDED: &[u8] = include_bytes!("../../../fuzz/corpus/perf_data/clock");
/// Samples per file: few, so that code is decoded more than it is counted.
const SAMPLES: usize = 8;

pub(crate) fn recording(bytes: &[u8]) {
    if let Ok(recording) = Recording::from_bytes(bytes) {
        let again = Recording::from_bytes(&recording.to_bytes());
        assert!(again.is_ok(), "what was read cannot be read again: {again:?}");
    }
}

/// A recording is not analysed: that reads the files that a recording names, which may be any.
pub(crate) fn perf_data(bytes: &[u8]) {
    let file = Scratch::new("perf.data", bytes);
    let _ = tierloom_perfdata::read(&file.0, None);
}

pub(crate) fn callgrind(bytes: &[u8]) {
    let file = Scratch::new("callgrind.out", bytes);
    let _ = tierloom_callgrind::read(std::slice::from_ref(&file.0));
}

/// The bytes are a program's file; samples fall on places of it that its first bytes choose.
pub(crate) fn code(bytes: &[u8]) {
    let file = Scratch::new("program", bytes);
    let base = Scratch::new("base.data", RECORDED);
    let Ok(mut recording) = tierloom_perfdata::read(&base.0, None) else { return };
    let path = file.0.display().to_string();
    let Some(mapping) = recording.mappings.iter().find(|mapping| mapping.executable).cloned() else { return };
    recording.mappings.retain(|other| other.start == mapping.start && other.pid == mapping.pid);
    for each in &mut recording.mappings {
        each.path.clone_from(&path);
        (each.file_offset, each.bytes) = (0, bytes.len().max(1) as u64);
    }
    recording.samples.truncate(SAMPLES);
    for (at, sample) in recording.samples.iter_mut().enumerate() {
        let place = bytes.len() * (2 * at + 1) / (2 * SAMPLES);
        sample.registers[register::IP] = mapping.start + place as u64;
    }
    let _ = analyse(&recording, &Files);
}
