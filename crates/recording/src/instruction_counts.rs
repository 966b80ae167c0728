//! How often instructions ran in a run in which each was counted.

use std::collections::BTreeMap;

/// Executions of every instruction of a run, which need not be the one that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstructionCounts {
    /// Command lines of the processes that were counted.
    pub commands: Vec<String>,
    /// By path of the file of code: executions by virtual address, as the file has it.
    pub files: BTreeMap<String, BTreeMap<u64, u64>>,
}

impl InstructionCounts {
    /// Adds those of another process, or of another part of the run.
    pub fn add(&mut self, other: Self) {
        self.commands.extend(other.commands);
        for (path, executions) in other.files {
            let file = self.files.entry(path).or_default();
            for (address, count) in executions {
                let known = file.entry(address).or_default();
                *known = known.saturating_add(count);
            }
        }
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
        InstructionCounts { commands: vec!["app".to_owned()], files: BTreeMap::from([(path.to_owned(), file)]) }
    }

    #[test]
    fn processes_add_up_by_file_and_address() {
        let mut all = counts("/a", &[(1, 2), (3, 4)]);
        all.add(counts("/a", &[(3, 6), (5, 1)]));
        all.add(counts("/b", &[(1, 9)]));
        assert_eq!(all.files["/a"], BTreeMap::from([(1, 2), (3, 10), (5, 1)]));
        assert_eq!((all.files.len(), all.commands.len()), (2, 3));
    }
}
