//! Who runs a function: an index of all places of a module that call it, jump to it as their last
//! act, or hand it to a runtime that runs it.
//!
//! Where every way into a function is known, so is the number of times it runs: `rooted` functions
//! are those that can be reached from the program's entry in such ways only, and the entry runs once
//! for each process. Functions whose address is kept anywhere else may be called by anyone.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::elf::Module;
use crate::x86::instruction::{GENERAL, Gpr, RegisterSet, gpr};

/// How a place runs a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Run {
    /// It calls it, and goes on when it has returned.
    Call,
    /// The last act of the function around: its own caller is returned to.
    Jump,
    /// A runtime is asked to run it once.
    Once,
    /// A runtime is asked to run it in every thread of the team.
    Team,
}

/// Runtimes by the start of the name: the register that holds the function, and how it is run. The C
/// library's start of a program, POSIX threads, and the parallel regions of the OpenMP runtimes of GNU
/// and LLVM.
const RUNTIMES: [(&str, Gpr, Run); 4] = [
    ("__libc_start_main", 7, Run::Once),
    ("pthread_create", 2, Run::Once),
    ("GOMP_parallel", 7, Run::Team),
    ("__kmpc_fork_call", 2, Run::Team),
];

/// A place that runs a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// Address of the instruction.
    pub address: u64,
    /// How it runs it.
    pub run: Run,
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
    pub fn of(module: &Module) -> Self {
        let mut scan =
            Scan { module, starts: module.function_ranges().map(|range| range.start).collect(), ..Scan::empty(module) };
        for range in module.function_ranges() {
            scan.held = [None; GENERAL];
            let Some(bytes) = module.code(&range) else { continue };
            for code in &mut Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE) {
                scan.take(&code, range.start..range.end);
            }
        }
        scan.index()
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
    module: &'a Module,
    starts: BTreeSet<u64>,
    sites: BTreeMap<u64, Vec<Site>>,
    /// By function: how often its address was taken.
    taken: BTreeMap<u64, usize>,
    /// Addresses of functions in registers, by the order of the code.
    held: [Option<u64>; GENERAL],
}

impl<'a> Scan<'a> {
    fn empty(module: &'a Module) -> Self {
        Self { module, starts: BTreeSet::new(), sites: BTreeMap::new(), taken: BTreeMap::new(), held: [None; GENERAL] }
    }

    fn take(&mut self, code: &Instruction, around: std::ops::Range<u64>) {
        match code.flow_control() {
            FlowControl::Call => {
                self.site(code.near_branch_target(), code.ip(), Run::Call);
                self.hand_over(self.module.import_behind(code.near_branch_target()), code.ip());
            }
            FlowControl::IndirectCall => {
                let slot = code.is_ip_rel_memory_operand().then(|| code.memory_displacement64());
                self.hand_over(slot.and_then(|slot| self.module.import(slot)), code.ip());
            }
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                let target = code.near_branch_target();
                if !around.contains(&target) && self.starts.contains(&target) {
                    self.site(target, code.ip(), Run::Jump);
                }
            }
            _ => self.hold(code),
        }
    }

    fn site(&mut self, target: u64, address: u64, run: Run) {
        self.sites.entry(target).or_default().push(Site { address, run });
    }

    /// A call of an imported function: is it given one of ours to run?
    fn hand_over(&mut self, import: Option<&str>, address: u64) {
        let runtime = import.and_then(|name| RUNTIMES.iter().find(|(start, ..)| name.starts_with(start)));
        if let Some((_, register, run)) = runtime
            && let Some(function) = self.held[*register]
        {
            self.site(function, address, *run);
        }
        let kept = RegisterSet::CALLEE_SAVED;
        (0..GENERAL).filter(|register| !kept.contains(*register)).for_each(|register| self.held[register] = None);
    }

    /// Follows addresses of functions through registers.
    fn hold(&mut self, code: &Instruction) {
        if code.op_count() == 0 || code.op0_kind() != OpKind::Register {
            return;
        }
        let Some(target) = gpr(code.op0_register()) else { return };
        let value = match code.mnemonic() {
            Mnemonic::Lea if code.memory_base() == Register::RIP => Some(code.memory_displacement64()),
            Mnemonic::Mov if code.op1_kind() == OpKind::Register => {
                self.held[target] = gpr(code.op1_register()).and_then(|source| self.held[source]);
                return;
            }
            Mnemonic::Mov => code.try_immediate(1).ok(),
            Mnemonic::Cmp | Mnemonic::Test => return,
            _ => None,
        };
        self.held[target] = value.filter(|address| self.starts.contains(address));
        if let Some(function) = self.held[target] {
            *self.taken.entry(function).or_default() += 1;
        }
    }

    fn index(mut self) -> CallIndex {
        let mut escaped: BTreeSet<u64> = self.module.kept_addresses().intersection(&self.starts).copied().collect();
        for (function, times) in self.taken {
            let handed =
                self.sites.get(&function).map_or(0, |sites| sites.iter().filter(|s| s.run >= Run::Once).count());
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
        let module = Module::read(std::env::current_exe().unwrap().to_str().unwrap());
        let index = CallIndex::of(&module);
        let named = |start: &u64| module.function_name(*start) == Some("main");
        let main = module.function_ranges().map(|range| range.start).find(named).unwrap();
        assert_eq!(index.sites(main).iter().map(|site| site.run).collect::<Vec<_>>(), vec![Run::Once]);
        assert!(index.is_complete(main), "its address goes nowhere else");
        let entry = module.function_at(module.entry).unwrap();
        assert!(entry.contains(&index.sites(main)[0].address));
    }
}
