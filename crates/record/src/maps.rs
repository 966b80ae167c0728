//! Mappings and processes where the kernel does not report them (no perf): the preload library tells
//! what is mapped at the start, and `/proc` is read again and again for what comes later, and for processes that
//! have no such library.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::maps::{MappedRange, mapped_ranges};
use tierloom_linux::root::Root;
use tierloom_linux::shared::name_of;
use tierloom_wire as wire;

use tierloom_recording::{Change, Mapping, Process};

/// Time between two looks, ns: reading a process's mappings holds up its own calls of `mmap`.
const BETWEEN_LOOKS_NS: u64 = 100_000_000;

/// Processes that are watched.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Name of the memory that processes share with us; nothing is watched without.
    shared: Option<String>,
    known: BTreeMap<u32, Watched>,
    last_look_ns: u64,
    mappings: Vec<Mapping>,
    processes: Vec<Process>,
}

/// One process: when it came up, and what was noted of it.
#[derive(Debug, Default, Clone)]
struct Watched {
    since_ns: u64,
    /// It was sampled, so it is the program's; of others only who shares memory with us is believed.
    sampled: bool,
    noted: BTreeSet<MappedRange>,
}

impl Watch {
    /// The program itself is known from its start.
    pub(super) fn new(shared: Option<&str>, pid: u32, start_ns: u64) -> Self {
        let mut watch = Self { shared: shared.map(str::to_owned), last_look_ns: start_ns, ..Self::default() };
        if shared.is_some() {
            watch.begin(pid, start_ns, true);
        }
        watch
    }

    /// A process that was sampled: perhaps nobody has told of it.
    pub(super) fn meet(&mut self, pid: u32) {
        if self.shared.is_some() && !self.known.get(&pid).is_some_and(|known| known.sampled) {
            match self.known.get_mut(&pid) {
                Some(known) => known.sampled = true,
                None => self.begin(pid, self.last_look_ns, true),
            }
            self.last_look_ns = 0;
        }
    }

    fn begin(&mut self, pid: u32, time_ns: u64, sampled: bool) {
        self.known.insert(pid, Watched { since_ns: time_ns, sampled, noted: BTreeSet::new() });
        self.processes.push(Process { time_ns, pid, change: Change::Exec { name: String::new() } });
    }

    /// A process came up or told about a file that it has mapped.
    pub(super) fn take_wire(&mut self, time_ns: u64, pid: u32, event: &wire::Event) {
        if self.shared.is_none() {
            return;
        }
        match *event {
            wire::Event::Start => self.begin(pid, time_ns, self.known.get(&pid).is_some_and(|known| known.sampled)),
            wire::Event::Fork { parent } => {
                let inherited = self.known.get(&parent).cloned().unwrap_or_default();
                self.known.insert(pid, Watched { since_ns: time_ns, ..inherited });
                self.processes.push(Process { time_ns, pid, change: Change::Fork { parent } });
            }
            wire::Event::Module { start, bytes, file_offset, executable, path } => {
                let path = String::from_utf8_lossy(&wire::unpack_path(path).collect::<Vec<u8>>()).into_owned();
                let range = MappedRange { start, bytes, file_offset, executable, path, ..MappedRange::default() };
                self.note(time_ns, pid, range);
            }
            _ => {}
        }
    }

    /// Reads the mappings of every known process. What is new came after the last look.
    pub(super) fn look(&mut self, root: &Root) {
        let now = monotonic_ns();
        if self.shared.is_none() || now < self.last_look_ns + BETWEEN_LOOKS_NS {
            return;
        }
        let since = std::mem::replace(&mut self.last_look_ns, now);
        let known: Vec<(u32, bool)> = self.known.iter().map(|(pid, known)| (*pid, known.sampled)).collect();
        for (pid, sampled) in known {
            let ranges = mapped_ranges(root, pid);
            if sampled || ranges.iter().any(|range| name_of(&range.path) == self.shared.as_deref()) {
                for range in ranges {
                    self.note(since, pid, range);
                }
            }
        }
    }

    fn note(&mut self, time_ns: u64, pid: u32, range: MappedRange) {
        let known = self.known.entry(pid).or_default();
        if known.noted.contains(&range) {
            return;
        }
        // What was there before the process became what it is came with it.
        let time_ns = time_ns.max(known.since_ns);
        let MappedRange { start, bytes, file_offset, executable, path, .. } = range.clone();
        let path = if path.is_empty() { "//anon".to_owned() } else { path };
        self.mappings.push(Mapping { time_ns, pid, start, bytes, file_offset, executable, path });
        known.noted.insert(range);
    }

    /// Moves everything into a recording.
    pub(super) fn hand_over(&mut self, mappings: &mut Vec<Mapping>, processes: &mut Vec<Process>) {
        mappings.append(&mut self.mappings);
        processes.append(&mut self.processes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(watch: &mut Watch) -> (Vec<Mapping>, Vec<Process>) {
        let (mut mappings, mut processes) = (Vec::new(), Vec::new());
        watch.hand_over(&mut mappings, &mut processes);
        (mappings, processes)
    }

    #[test]
    fn a_mapping_is_noted_once_and_inherited() {
        let mut path = [0; wire::MAX_PATH_WORDS];
        let words = wire::pack_path(b"/lib.so", &mut path);
        let path = &path[..words];
        let module = wire::Event::Module { start: 4096, bytes: 4096, file_offset: 0, executable: true, path };
        let mut watch = Watch::new(Some("tierloom-1-2"), 7, 0);
        watch.take_wire(1, 7, &wire::Event::Start);
        watch.take_wire(2, 7, &module);
        watch.take_wire(3, 7, &module);
        watch.take_wire(4, 8, &wire::Event::Fork { parent: 7 });
        watch.take_wire(5, 8, &module);
        let (mappings, processes) = seen(&mut watch);
        assert_eq!(mappings.len(), 1);
        assert_eq!((mappings[0].path.as_str(), mappings[0].time_ns), ("/lib.so", 2));
        assert_eq!(processes.len(), 3);
    }

    #[test]
    fn nothing_is_watched_where_the_kernel_reports() {
        let mut watch = Watch::new(None, 1, 0);
        watch.take_wire(1, std::process::id(), &wire::Event::Start);
        watch.look(&Root::default());
        assert_eq!(seen(&mut watch), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_look_finds_this_process() {
        let own = std::process::id();
        let mut watch = Watch::new(Some("tierloom-1-2"), 1, 0);
        watch.take_wire(1, own, &wire::Event::Start);
        watch.last_look_ns = 0;
        watch.look(&Root::default());
        assert!(watch.known[&own].noted.is_empty(), "it does not share the memory: another one by that id");
        watch.meet(own);
        watch.last_look_ns = 0;
        watch.look(&Root::default());
        let program = std::env::current_exe().unwrap();
        assert!(seen(&mut watch).0.iter().any(|mapping| mapping.path == program.to_string_lossy()));
    }
}
