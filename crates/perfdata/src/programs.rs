//! Which program a file is of: one that `perf` ran, with all that it started, or one of many on the whole system.
//!
//! Processes that descend from one another belong to one program, as far as the file saw them fork; what `perf` tells
//! of processes that were there before has no time. Where the sampled processes have no ancestor in common, only the
//! reader can say which of them is meant.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_model::Warning;
use tierloom_recording::{Change, Mapping, Process};

use crate::error::Flaw;
use crate::mapping_objects::is_code_of;

/// As many characters of a name as the kernel keeps (`TASK_COMM_LEN`).
const NAME_CHARACTERS: usize = 15;
/// Programs that a sentence names.
const NAMED: usize = 8;

/// The program that a recording is of.
#[derive(Debug)]
pub(super) struct Program {
    /// Its first process.
    pub(super) pid: u32,
    members: BTreeSet<u32>,
    /// Whose mappings they began with.
    ancestors: BTreeSet<u32>,
    pub(super) warning: Option<Warning>,
}

impl Program {
    /// Whether this is one of its processes.
    pub(super) fn is_of(&self, pid: u32) -> bool {
        self.members.contains(&pid)
    }

    /// Whether this is one of its processes, or what one of them was forked from.
    pub(super) fn inherits_of(&self, pid: u32) -> bool {
        self.is_of(pid) || self.ancestors.contains(&pid)
    }
}

/// What a file says of its processes, all in the order of time.
pub(super) struct Processes<'a> {
    changes: &'a [Process],
    mappings: &'a [Mapping],
    /// Samples by process.
    sampled: &'a BTreeMap<u32, u64>,
    parents: BTreeMap<u32, u32>,
}

impl<'a> Processes<'a> {
    pub(super) fn new(changes: &'a [Process], mappings: &'a [Mapping], sampled: &'a BTreeMap<u32, u64>) -> Self {
        let forked = changes.iter().filter(|process| process.time_ns > 0).filter_map(|process| match process.change {
            Change::Fork { parent } => Some((process.pid, parent)),
            _ => None,
        });
        Self { changes, mappings, sampled, parents: forked.collect() }
    }

    /// The program that is meant: by process id or name, or the only one.
    pub(super) fn choose(&self, wanted: Option<&str>) -> Result<Program, Flaw> {
        let roots: BTreeSet<u32> = self.sampled.keys().map(|pid| self.root(*pid)).collect();
        match (wanted, roots.first()) {
            (Some(wanted), _) => self.named(wanted),
            (None, Some(root)) if roots.len() == 1 => Ok(self.program(&[*root], *root)),
            _ => Err(self.unclear("it holds samples of several programs", None)),
        }
    }

    fn named(&self, wanted: &str) -> Result<Program, Flaw> {
        let is_meant = |pid: &u32| wanted.parse() == Ok(*pid) || is_name(&self.name(*pid), wanted);
        let meant: Vec<u32> = self.sampled.keys().copied().filter(is_meant).collect();
        let first = meant.iter().copied().max_by_key(|pid| (self.sampled[pid], std::cmp::Reverse(*pid)));
        let Some(first) = first else {
            return Err(self.unclear("it holds samples of other programs", Some(wanted)));
        };
        let mut program = self.program(&meant, first);
        let others: Vec<u32> = self.sampled.keys().copied().filter(|pid| !program.is_of(*pid)).collect();
        let told = Warning::OtherPrograms { chosen: self.name(first), others: self.listed(&others) };
        program.warning = (!others.is_empty()).then_some(told);
        Ok(program)
    }

    fn program(&self, roots: &[u32], pid: u32) -> Program {
        let is_member = |pid: &u32| self.line(*pid).any(|ancestor| roots.contains(&ancestor));
        let members: BTreeSet<u32> =
            self.sampled.keys().chain(self.parents.keys()).chain(roots).copied().filter(is_member).collect();
        let ancestors = members.iter().flat_map(|pid| self.line(*pid)).collect();
        Program { pid, members, ancestors, warning: None }
    }

    fn unclear(&self, what: &str, wanted: Option<&str>) -> Flaw {
        let all: Vec<u32> = self.sampled.keys().copied().collect();
        let most = self.sampled.iter().max_by_key(|(pid, samples)| (**samples, std::cmp::Reverse(**pid)));
        let name = most.map_or_else(String::new, |(pid, _)| self.word(*pid));
        let not = wanted.map(|wanted| format!(", none of {wanted}")).unwrap_or_default();
        let problem = format!("{what}{not}: {}", self.listed(&all).join(", "));
        Flaw::new(problem, format!("choose one: tierloom profile --from {{file}} --process {name}"))
    }

    /// What to type for a process.
    fn word(&self, pid: u32) -> String {
        let name = self.name(pid);
        if name.contains(' ') { pid.to_string() } else { name }
    }

    /// Programs with their samples, most first.
    fn listed(&self, pids: &[u32]) -> Vec<String> {
        let mut samples: BTreeMap<String, u64> = BTreeMap::new();
        for pid in pids {
            *samples.entry(self.name(*pid)).or_default() += self.sampled[pid];
        }
        let mut listed: Vec<(String, u64)> = samples.into_iter().collect();
        listed.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
        let more = listed.len().saturating_sub(NAMED);
        let named = listed.into_iter().take(NAMED).map(|(name, samples)| format!("{name} ({samples} of the samples)"));
        named.chain((more > 0).then(|| format!("{more} more"))).collect()
    }

    /// What it last ran, else its file of code.
    fn name(&self, pid: u32) -> String {
        let exec = self.changes.iter().rev().find_map(|process| match &process.change {
            Change::Exec { name } if process.pid == pid => Some(name.clone()),
            _ => None,
        });
        let code = || self.mappings.iter().find(|mapping| is_code_of(mapping, pid));
        let file = || code().and_then(|mapping| mapping.path.rsplit('/').next().map(str::to_owned));
        let idle = || (pid == 0).then(|| "swapper".to_owned());
        exec.or_else(file).or_else(idle).unwrap_or_else(|| format!("process {pid}"))
    }

    /// The oldest ancestor that was seen to run.
    fn root(&self, pid: u32) -> u32 {
        let ran = |pid: &u32| self.sampled.contains_key(pid) || self.execs(*pid);
        self.line(pid).filter(ran).last().unwrap_or(pid)
    }

    fn execs(&self, pid: u32) -> bool {
        self.changes.iter().any(|process| process.pid == pid && matches!(process.change, Change::Exec { .. }))
    }

    /// A process and its ancestors, as far as they are known.
    fn line(&self, pid: u32) -> impl Iterator<Item = u32> {
        // A damaged file may have them go round.
        std::iter::successors(Some(pid), |pid| self.parents.get(pid).copied()).take(self.parents.len() + 1)
    }
}

fn is_name(name: &str, wanted: &str) -> bool {
    let cut: String = wanted.chars().take(NAME_CHARACTERS).collect();
    name == wanted || (wanted.len() > NAME_CHARACTERS && name == cut)
}
