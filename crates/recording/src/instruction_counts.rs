//! How often instructions ran in a run in which each was counted.

use std::collections::{BTreeMap, BTreeSet};

/// Executions of every instruction of a run, which need not be the one that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstructionCounts {
    /// What was counted of which process.
    pub parts: Vec<CountedPart>,
    /// By path of the file of code: executions by virtual address, as the file has it.
    pub files: BTreeMap<String, BTreeMap<u64, u64>>,
    /// The same of lines that instructions fetched; of those that fetched any.
    pub fetched: BTreeMap<String, BTreeMap<u64, Fetched>>,
    /// The caches that were simulated for it; `None` where none were.
    pub caches: Option<SimulatedCaches>,
}

/// Data caches with lines of 64 bytes, which all threads of a process share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulatedCaches {
    /// Size of the first level.
    pub first_bytes: u64,
    /// Size of the last level.
    pub last_bytes: u64,
}

/// Lines that an instruction fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fetched {
    /// By loads, and by what loads and stores back.
    pub by_loads: CacheLines,
    /// By stores.
    pub by_stores: CacheLines,
}

/// Lines that caches did not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheLines {
    /// The first level did not.
    pub into_first: u64,
    /// No level did: they came from memory.
    pub from_memory: u64,
}

impl Fetched {
    /// Both together.
    pub fn add(&mut self, other: Self) {
        for (own, other) in [(&mut self.by_loads, other.by_loads), (&mut self.by_stores, other.by_stores)] {
            own.into_first = own.into_first.saturating_add(other.into_first);
            own.from_memory = own.from_memory.saturating_add(other.from_memory);
        }
    }

    /// All lines from memory.
    pub fn from_memory(&self) -> u64 {
        self.by_loads.from_memory.saturating_add(self.by_stores.from_memory)
    }
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
        for (path, lines) in other.fetched {
            let file = self.fetched.entry(path).or_default();
            for (address, fetched) in lines {
                file.entry(address).or_default().add(fetched);
            }
        }
        self.caches = self.caches.or(other.caches);
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
        InstructionCounts {
            parts: vec![part],
            files: BTreeMap::from([(path.to_owned(), file)]),
            ..InstructionCounts::default()
        }
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
    fn lines_of_processes_add_up_too() {
        let fetched = |from_memory| {
            let lines = CacheLines { into_first: 2 * from_memory, from_memory };
            Fetched { by_loads: lines, by_stores: CacheLines::default() }
        };
        let with_lines = |from_memory| InstructionCounts {
            fetched: BTreeMap::from([("/a".to_owned(), BTreeMap::from([(1, fetched(from_memory))]))]),
            caches: Some(SimulatedCaches { first_bytes: 1 << 15, last_bytes: 1 << 20 }),
            ..InstructionCounts::default()
        };
        let mut all = with_lines(3);
        all.add(with_lines(4));
        assert_eq!(all.fetched["/a"], BTreeMap::from([(1, fetched(7))]));
        assert_eq!((all.fetched["/a"][&1].from_memory(), all.caches), (7, with_lines(0).caches));
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
            InstructionCounts { parts: parts.iter().map(part).collect(), ..InstructionCounts::default() }.repeated()
        };
        assert_eq!(repeated(&[(1, "app", 0), (2, "app", 0), (3, "app", 0), (4, "other", 0)]), 2);
        assert_eq!(repeated(&[(1, "app", 0), (1, "app", 70), (2, "app", 70), (3, "other", 0)]), 0);
    }
}
