//! How often instructions ran in a run in which each was counted.

use std::collections::{BTreeMap, BTreeSet};

/// Executions of every instruction of a run, which need not be the one that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstructionCounts {
    /// What was counted of which process.
    pub parts: Vec<CountedPart>,
    /// By path of the file of code: executions by virtual address, as the file has it.
    pub files: BTreeMap<String, BTreeMap<u64, u64>>,
}

/// A process from one moment to another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CountedPart {
    /// Which process; 0 where nobody told.
    pub pid: u64,
    /// Its command line.
    pub command: String,
    /// Which of its parts, from 1 on.
    pub number: u64,
    /// Basic blocks that had run before it, those of the parent before a fork too.
    pub begin: u64,
}

impl InstructionCounts {
    /// Adds those of another process, or of another part of the run.
    pub fn add(&mut self, other: Self) {
        self.parts.extend(other.parts);
        for (path, executions) in other.files {
            let file = self.files.entry(path).or_default();
            for (address, count) in executions {
                let known = file.entry(address).or_default();
                *known = known.saturating_add(count);
            }
        }
    }

    /// Processes that hold again what another one did before it forked them, or that started the same command anew: who
    /// counts from the start of a command did both or neither.
    pub fn repeated(&self) -> usize {
        let from_start = self.parts.iter().filter(|part| part.begin == 0);
        let processes: BTreeSet<(&str, u64)> = from_start.map(|part| (&*part.command, part.pid)).collect();
        let commands: BTreeSet<&str> = processes.iter().map(|(command, _)| *command).collect();
        processes.len() - commands.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(path: &str, executions: &[(u64, u64)]) -> InstructionCounts {
        let file = executions.iter().copied().collect();
        let part = CountedPart { command: "app".to_owned(), number: 1, ..CountedPart::default() };
        InstructionCounts { parts: vec![part], files: BTreeMap::from([(path.to_owned(), file)]) }
    }

    #[test]
    fn processes_add_up_by_file_and_address() {
        let mut all = counts("/a", &[(1, 2), (3, 4)]);
        all.add(counts("/a", &[(3, 6), (5, 1)]));
        all.add(counts("/b", &[(1, 9)]));
        assert_eq!(all.files["/a"], BTreeMap::from([(1, 2), (3, 10), (5, 1)]));
        assert_eq!((all.files.len(), all.parts.len()), (2, 3));
    }

    #[test]
    fn who_begins_where_its_parent_was_dumped_repeats_nothing() {
        let repeated = |parts: &[(u64, &str, u64)]| {
            let part = |&(pid, command, begin): &(u64, &str, u64)| CountedPart {
                pid,
                command: command.to_owned(),
                number: 1,
                begin,
            };
            InstructionCounts { parts: parts.iter().map(part).collect(), files: BTreeMap::new() }.repeated()
        };
        assert_eq!(repeated(&[(1, "app", 0), (2, "app", 0), (3, "app", 0), (4, "other", 0)]), 2);
        assert_eq!(repeated(&[(1, "app", 0), (1, "app", 70), (2, "app", 70), (3, "other", 0)]), 0);
    }
}
