//! Executions that callgrind counted, held against what was recorded.

use std::collections::BTreeSet;

use tierloom_analysis::{of_other_builds, samples_by_file};
use tierloom_binary::search::Found;
use tierloom_model::Warning;
use tierloom_recording::{Change, InstructionCounts, Recording};

use crate::code_files::CodeFiles;

/// Why these are not counts of the program that was recorded.
pub(crate) fn refusal(recording: &Recording, counts: &InstructionCounts, files: &CodeFiles) -> Option<String> {
    let samples = samples_by_file(recording);
    let own = samples.iter().max_by_key(|(_, samples)| **samples).map(|(path, _)| path);
    if let Some(own) = own.filter(|own| !counts.files.contains_key(*own)) {
        let counted = commands(counts).join(", ");
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
    // As callgrind writes it.
    let recorded = recording.command.join(" ").replace('\\', r"\\").replace('\n', r"\n").trim_ascii().to_owned();
    let commands = commands(counts);
    let is_same = commands.iter().any(|command| without_folder(command) == without_folder(&recorded));
    let other = commands.first().filter(|_| !is_same && !recorded.is_empty());
    let other = other.map(|counted| Warning::OtherCommandCounted { counted: (*counted).to_owned() });
    other.into_iter().chain(forks(recording, counts)).collect()
}

/// A command line by the name of its program: two that differ in its folder alone do the same.
fn without_folder(command: &str) -> String {
    let (program, words) = command.split_once(' ').unwrap_or((command, ""));
    format!("{} {words}", program.rsplit('/').next().unwrap_or(program))
}

/// Each once, in order.
fn commands(counts: &InstructionCounts) -> Vec<&str> {
    let mut commands: Vec<&str> = counts.parts.iter().map(|part| &*part.command).collect();
    commands.sort_unstable();
    commands.dedup();
    commands
}

/// Processes that began as a copy of their parent, and stayed that: callgrind copies its counts, too, unless they were
/// written down before.
fn forks(recording: &Recording, counts: &InstructionCounts) -> Option<Warning> {
    let of = |wanted: fn(&Change) -> bool| -> BTreeSet<u32> {
        recording.processes.iter().filter(|process| wanted(&process.change)).map(|process| process.pid).collect()
    };
    let forked = of(|change| matches!(change, Change::Fork { .. }));
    let stayed = forked.difference(&of(|change| matches!(change, Change::Exec { .. }))).count();
    let processes = stayed.min(counts.repeated());
    (processes > 0).then_some(Warning::ForksCounted { processes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_same_from_another_folder_and_not_with_other_words() {
        assert_eq!(without_folder("./app a/b 10"), without_folder("/home/me/app a/b 10"));
        assert_ne!(without_folder("./app a/b 10"), without_folder("./app c/b 10"));
        assert_eq!(without_folder("app"), "app ");
    }
}
