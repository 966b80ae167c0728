//! Executions that callgrind counted, on their way to the analysis: files read, and held against what was recorded.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tierloom_analysis::{of_other_builds, samples_by_file};
use tierloom_binary::search::Found;
use tierloom_callgrind::CallgrindError;
use tierloom_model::Warning;
use tierloom_recording::{Change, InstructionCounts, Recording};

use crate::code_files::CodeFiles;

/// What files of callgrind's hold together; each is a process, or a part of one.
pub(crate) fn read(paths: &[PathBuf]) -> Result<InstructionCounts, CallgrindError> {
    let mut all = InstructionCounts::default();
    for path in paths {
        all.add(tierloom_callgrind::read(path)?);
    }
    Ok(all)
}

/// Why these are not counts of the program that was recorded.
pub(crate) fn refusal(recording: &Recording, counts: &InstructionCounts, files: &CodeFiles) -> Option<String> {
    let samples = samples_by_file(recording);
    let own = samples.iter().max_by_key(|(_, samples)| **samples).map(|(path, _)| path);
    if let Some(own) = own.filter(|own| !counts.files.contains_key(*own)) {
        let counted = counts.commands.join(", ");
        return Some(format!("{own} was recorded, and not counted (`{counted}` was)\nhint: {COUNT_AGAIN}"));
    }
    let rebuilt = |path: &&String| matches!(files.search.found().get(*path), Some(Found::Rebuilt { .. }));
    let rebuilt = counts.files.keys().filter(rebuilt).cloned();
    let others = rebuilt.chain(of_other_builds(recording, counts, &files.search)).next();
    others.map(|path| format!("{path}: another build was counted than was recorded\nhint: {COUNT_AGAIN}"))
}

const COUNT_AGAIN: &str =
    "count the build that was recorded, at its own path: valgrind --tool=callgrind --dump-instr=yes";

/// What a reader must know of them.
pub(crate) fn warnings(recording: &Recording, counts: &InstructionCounts) -> Vec<Warning> {
    let recorded = recording.command.join(" ");
    let name = |command: &str| command.rsplit('/').next().unwrap_or_default().to_owned();
    let is_same = counts.commands.iter().any(|command| name(command) == name(&recorded));
    let other = counts.commands.first().filter(|_| !is_same && !recorded.is_empty());
    let other = other.map(|counted| Warning::OtherCommandCounted { counted: counted.clone() });
    other.into_iter().chain(forks(recording).filter(|_| counts.commands.len() > 1)).collect()
}

/// Processes that began as a copy of their parent, and stayed that: callgrind copies its counts, too.
fn forks(recording: &Recording) -> Option<Warning> {
    let of = |wanted: fn(&Change) -> bool| -> BTreeSet<u32> {
        recording.processes.iter().filter(|process| wanted(&process.change)).map(|process| process.pid).collect()
    };
    let forked = of(|change| matches!(change, Change::Fork { .. }));
    let processes = forked.difference(&of(|change| matches!(change, Change::Exec { .. }))).count();
    (processes > 0).then_some(Warning::ForksCounted { processes })
}
