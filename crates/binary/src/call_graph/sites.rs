//! Who runs a function: an index of all places of a module that call it, jump to it as their last
//! act, or hand it to a runtime that runs it.
//!
//! Where every way into a function is known, so is the number of times it runs: `rooted` functions
//! are those that can be reached from the program's entry in such ways only, and the entry runs once
//! for each process. Functions whose address is kept anywhere else may be called by anyone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::arch::{self, ARGUMENTS, CALLEE_SAVED};
use crate::elf::Binary;
use crate::instruction::{Flow, GENERAL, Gpr, Outline, Setting};

/// How a place runs a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// It calls it, and goes on when it has returned.
    Call,
    /// The last act of the function around: its own caller is returned to.
    Jump,
    /// A runtime is asked to run it once.
    Once,
    /// A runtime is asked to run it in every thread of the team.
    Team,
}

/// Runtimes by the start of the name: which argument is the function, and how it is run. The C
/// library's start of a program, POSIX threads, and the parallel regions of the OpenMP runtimes of GNU
/// and LLVM.
const RUNTIMES: [(&str, usize, CallKind); 4] = [
    ("__libc_start_main", 0, CallKind::Once),
    ("pthread_create", 2, CallKind::Once),
    ("GOMP_parallel", 0, CallKind::Team),
    ("__kmpc_fork_call", 2, CallKind::Team),
];

/// A place that runs a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// Address of the instruction.
    pub address: u64,
    /// How it runs it.
    pub run: CallKind,
}

/// All places of a module by the start of the function that they run.
#[derive(Debug, Default)]
pub struct CallIndex {
    sites: BTreeMap<u64, Vec<Site>>,
    /// Functions whose address went elsewhere than to a known runtime.
    escaped: BTreeSet<u64>,
}

impl CallIndex {
    /// All places of a module, by looking through its code once.
    pub fn of(module: &Binary) -> Self {
        let mut scan =
            Scan { module, starts: module.function_ranges().map(|range| range.start).collect(), ..Scan::empty(module) };
        for range in module.function_ranges() {
            scan.held = [None; GENERAL];
            let Some(bytes) = module.code(&range) else { continue };
            arch::outlines(bytes, range.start).for_each(|outline| scan.take(&outline, &range));
        }
        scan.index()
    }

    /// Of these places and functions whose address went elsewhere.
    #[cfg(test)]
    pub(crate) fn made(
        sites: impl IntoIterator<Item = (u64, Vec<Site>)>,
        escaped: impl IntoIterator<Item = u64>,
    ) -> Self {
        Self { sites: sites.into_iter().collect(), escaped: escaped.into_iter().collect() }
    }

    /// Places that run the function that starts at an address.
    pub fn sites(&self, start: u64) -> &[Site] {
        self.sites.get(&start).map_or(&[], Vec::as_slice)
    }

    /// Whether the places are all: the address is kept nowhere.
    pub fn is_complete(&self, start: u64) -> bool {
        !self.escaped.contains(&start)
    }
}

struct Scan<'a> {
    module: &'a Binary,
    starts: BTreeSet<u64>,
    sites: BTreeMap<u64, Vec<Site>>,
    /// By function: how often its address was taken.
    taken: BTreeMap<u64, usize>,
    /// Addresses of functions in registers, by the order of the code.
    held: [Option<u64>; GENERAL],
}

impl<'a> Scan<'a> {
    fn empty(module: &'a Binary) -> Self {
        Self { module, starts: BTreeSet::new(), sites: BTreeMap::new(), taken: BTreeMap::new(), held: [None; GENERAL] }
    }

    fn take(&mut self, outline: &Outline, around: &Range<u64>) {
        match outline.flow {
            Flow::Call(target) => {
                self.site(target, outline.address, CallKind::Call);
                self.hand_over(self.module.import_behind(target), outline.address);
            }
            Flow::IndirectCall { slot } => {
                self.hand_over(slot.and_then(|slot| self.module.import(slot)), outline.address);
            }
            Flow::Jump(target) | Flow::Branch { target, .. } => {
                if !around.contains(&target) && self.starts.contains(&target) {
                    self.site(target, outline.address, CallKind::Jump);
                }
            }
            _ => outline.setting.into_iter().for_each(|(register, setting)| self.hold(register, setting)),
        }
    }

    fn site(&mut self, target: u64, address: u64, run: CallKind) {
        self.sites.entry(target).or_default().push(Site { address, run });
    }

    /// A call of an imported function: is it given one of ours to run?
    fn hand_over(&mut self, import: Option<&str>, address: u64) {
        let runtime = import.and_then(|name| RUNTIMES.iter().find(|(start, ..)| name.starts_with(start)));
        if let Some((_, argument, run)) = runtime
            && let Some(function) = self.held[ARGUMENTS[*argument].index()]
        {
            self.site(function, address, *run);
        }
        Gpr::all().filter(|one| !CALLEE_SAVED.contains(*one)).for_each(|lost| self.held[lost.index()] = None);
    }

    /// Follows addresses of functions through registers.
    fn hold(&mut self, target: Gpr, setting: Setting) {
        self.held[target.index()] = match setting {
            Setting::Constant(value) if self.starts.contains(&value) => {
                *self.taken.entry(value).or_default() += 1;
                Some(value)
            }
            Setting::Copy(source) => self.held[source.index()],
            Setting::Constant(_) | Setting::Other => None,
        };
    }

    fn index(mut self) -> CallIndex {
        let mut escaped: BTreeSet<u64> = self.module.kept_addresses().intersection(&self.starts).copied().collect();
        for (function, times) in self.taken {
            let handed =
                self.sites.get(&function).map_or(0, |sites| sites.iter().filter(|s| s.run >= CallKind::Once).count());
            if handed < times {
                escaped.insert(function);
            }
        }
        for sites in self.sites.values_mut() {
            sites.sort_unstable();
            sites.dedup();
        }
        CallIndex { sites: self.sites, escaped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_asked_to_run_main_once() {
        let module = Binary::read(std::env::current_exe().unwrap().to_str().unwrap());
        let index = CallIndex::of(&module);
        let named = |start: &u64| module.function_name(*start) == Some("main");
        let main = module.function_ranges().map(|range| range.start).find(named).unwrap();
        assert_eq!(index.sites(main).iter().map(|site| site.run).collect::<Vec<_>>(), vec![CallKind::Once]);
        assert!(index.is_complete(main), "its address goes nowhere else");
        let entry = module.function_at(module.entry).unwrap();
        assert!(entry.contains(&index.sites(main)[0].address));
    }
}
