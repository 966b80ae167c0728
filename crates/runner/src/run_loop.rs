//! One run under a plan, while it runs: records are taken, new plans applied, phases begun, libraries
//! that come later noticed, and pages looked at now and then, for those who watch and for programs
//! that end without a word.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use tierloom_linux::clock::monotonic_ns;
use tierloom_linux::maps::mapped_ranges;
use tierloom_linux::memory;
use tierloom_linux::root::Root;
use tierloom_model::Plan;
use tierloom_wire::{BLOCKS_WORDS, Blocks, Event, Record};

use crate::control_socket::Request;
use crate::live_objects::Live;
use crate::move_pages::{Kernel, MemoryCalls, Target, look};
use crate::new_plan::{Applied, AppliedRule, Names, move_process};
use crate::report::{PhaseReport, Residency, RuleReport, Snapshot, note};
use crate::request::PlaceRequest;
use crate::rules::{Compiled, Context, modules_of};
use tierloom_launch::channel::PreloadChannel;

/// Pages of an object that are asked about while the program runs.
const LOOKED_PAGES: u64 = 512;
/// Objects that are looked at: more would hold up the program's own calls for memory.
const LOOKED_OBJECTS: usize = 4096;
/// Looks without a watcher come after 1, 2, 4 … seconds, at most so far apart.
const LONGEST_PAUSE_S: f64 = 30.0;
/// Time between two searches for libraries that were loaded, s.
const SEARCH_S: f64 = 0.1;
/// What a page costs to move before anything was moved in this run, s: 12 µs for a synchronous
/// promotion of 4 KiB (Liu et al., "Tiered Memory Management Beyond Hotness", OSDI 2025).
const PAGE_MOVE_S: f64 = 12e-6;

/// The run.
pub(super) struct Session<'a> {
    request: &'a PlaceRequest,
    nodes: &'a [u32],
    program: PathBuf,
    host_weights: Option<BTreeMap<u32, u32>>,
    plan: Plan,
    node_of: BTreeMap<String, u32>,
    mapped: BTreeMap<String, PathBuf>,
    searched: BTreeSet<(u32, String)>,
    pub(super) compiled: Compiled,
    pub(super) rules: Vec<RuleReport>,
    pub(super) phases: Vec<PhaseReport>,
    live: Live,
    names: Names,
    start_ns: u64,
    next_look_s: f64,
    pause_s: f64,
    next_search_s: f64,
    moved: (u64, f64),
}

impl<'a> Session<'a> {
    /// A run that is about to start.
    pub(super) fn new(request: &'a PlaceRequest, nodes: &'a [u32], program: PathBuf) -> Self {
        let compiled = Compiled { words: Vec::new(), rules: Vec::new() };
        let mut session = Self {
            request,
            nodes,
            program,
            host_weights: None,
            plan: request.plan.clone(),
            node_of: request.nodes.clone(),
            mapped: named_files(&request.command),
            searched: BTreeSet::new(),
            compiled,
            rules: Vec::new(),
            phases: Vec::new(),
            live: Live::default(),
            names: Names::default(),
            start_ns: monotonic_ns(),
            next_look_s: request.watch_s.unwrap_or(1.0),
            pause_s: request.watch_s.unwrap_or(1.0),
            next_search_s: 0.0,
            moved: (0, 0.0),
        };
        session.compiled = session.compile();
        session.rules = RuleReport::of(&session.compiled);
        session
    }

    /// The host has these weights now.
    pub(super) fn host_has(&mut self, weights: BTreeMap<u32, u32>) {
        self.host_weights = Some(weights);
        self.compiled = self.compile();
    }

    fn compile(&self) -> Compiled {
        let context = Context {
            nodes: self.nodes,
            node_of: &self.node_of,
            program: &self.program,
            options: self.request.options,
            host_weights: self.host_weights.as_ref(),
            ablate_within: self.request.ablate.then(|| self.request.mappings()),
            mapped: &self.mapped,
        };
        Compiled::new(&self.plan, &context)
    }

    /// Seconds since the start.
    pub(super) fn elapsed_s(&self) -> f64 {
        monotonic_ns().saturating_sub(self.start_ns) as f64 * 1e-9
    }

    /// Whether it has run for longer than it may.
    pub(super) fn is_late(&self) -> bool {
        self.request.most_s.is_some_and(|most_s| self.elapsed_s() > most_s)
    }

    /// Where `/proc` is.
    pub(super) fn root(&self) -> &Root {
        &self.request.root
    }

    /// The program goes now.
    pub(super) fn begin(&mut self) {
        self.start_ns = monotonic_ns();
    }

    /// Takes one record of the library's, and its time.
    pub(super) fn take(&mut self, time_ns: u64, record: &Record) {
        let again = match record.event {
            // An array that is placed anew because the rules were looked at again.
            Event::Placed { rule, address, errno: 0, how, .. } if how.is_place() => {
                let known = usize::try_from(rule).ok().and_then(|rule| self.rules.get(rule));
                self.live.is_placed(record.pid, address, rule) && known.is_some_and(|known| !known.is_unplaced())
            }
            _ => false,
        };
        if !again {
            note(&mut self.rules, &record.event);
        }
        self.live.take(record.pid, time_ns, &record.event);
    }

    /// What is due: a phase, a search for libraries, a look.
    pub(super) fn tick(&mut self, channel: &PreloadChannel, watcher: &mut dyn FnMut(&Snapshot)) {
        let now_s = self.elapsed_s();
        self.begin_phases(channel, now_s);
        // What is ablated nobody moves, and an array that the program uses already has lost what it held.
        if now_s >= self.next_search_s && !self.request.ablate {
            self.next_search_s = now_s + SEARCH_S;
            self.search_libraries(channel);
        }
        if now_s >= self.next_look_s {
            self.move_awaited_arrays();
            self.look(&mut Kernel);
            if self.request.watch_s.is_some() {
                watcher(&self.snapshot(now_s));
            } else {
                self.pause_s = (self.pause_s * 2.0).min(LONGEST_PAUSE_S);
            }
            self.next_look_s = now_s + self.pause_s;
        }
    }

    /// Applies another plan to a process, or to all of them.
    pub(super) fn answer(&mut self, channel: &PreloadChannel, request: &Request) -> Result<Applied, String> {
        let plan = Plan::from_toml(&request.plan, "plan").map_err(|error| error.to_string())?;
        if !self.live.processes().contains(&request.pid) {
            let known: Vec<String> = self.live.processes().iter().map(ToString::to_string).collect();
            return Err(format!("the run has no process {}; it has {}", request.pid, known.join(", ")));
        }
        self.node_of.clone_from(&request.nodes);
        let began = Instant::now();
        let rules = self.put_in_force(channel, plan)?;
        Ok(Applied { rules, took_s: began.elapsed().as_secs_f64() })
    }

    /// Puts a plan's rules in force for what is handed out from now on, and moves what is there.
    fn put_in_force(&mut self, channel: &PreloadChannel, plan: Plan) -> Result<Vec<AppliedRule>, String> {
        let before = std::mem::replace(&mut self.plan, plan);
        let compiled = self.compile();
        if !channel.publish(&compiled.words) {
            self.plan = before;
            return Err("the plan has more rules than there is room for".to_owned());
        }
        self.compiled = compiled;
        self.rules = RuleReport::of(&self.compiled);
        self.live.forget_rules();
        let processes: Vec<u32> = self.live.processes().iter().copied().collect();
        let mut total: Vec<AppliedRule> = Vec::new();
        for pid in processes {
            self.read_blocks(pid);
            let told = self.move_objects(&mut Kernel, pid);
            total = if total.is_empty() { told } else { sum(total, &told) };
        }
        for (report, told) in self.rules.iter_mut().zip(&total) {
            report.take_moved(told);
        }
        Ok(total)
    }

    /// Blocks that a process kept to itself because no rule meant them: the new ones may.
    fn read_blocks(&mut self, pid: u32) {
        let words = self.live.table(pid).and_then(|table| memory::read_words(pid, table, BLOCKS_WORDS).ok());
        let words: Vec<AtomicU64> = words.unwrap_or_default().into_iter().map(AtomicU64::new).collect();
        if let Some(blocks) = Blocks::new(&words) {
            self.live.take_blocks(pid, monotonic_ns(), blocks.iter());
        }
    }

    fn move_objects(&mut self, calls: &mut dyn MemoryCalls, pid: u32) -> Vec<AppliedRule> {
        let maps = mapped_ranges(&self.request.root, pid);
        let huge_bytes = memory::automatic_huge_bytes(&self.request.root);
        let began = Instant::now();
        let told = move_process(calls, &mut self.names, &mut self.live, &self.compiled, (pid, &maps, huge_bytes));
        self.moved.0 += told.iter().map(|rule| rule.moved_bytes).sum::<u64>();
        self.moved.1 += began.elapsed().as_secs_f64();
        told
    }

    /// Begins the phases whose time has come, where their gain pays for moving.
    fn begin_phases(&mut self, channel: &PreloadChannel, now_s: f64) {
        let planned = &self.request.plan.phases;
        while let Some(phase) = planned.get(self.phases.len()).filter(|phase| now_s >= phase.start_s) {
            let next = self.request.plan.at_phase(self.phases.len());
            let expected_s = self.expected_s(&phase.moves.iter().map(|moved| moved.object.as_str()).collect());
            let mut report = PhaseReport {
                name: phase.name.clone(),
                start_s: now_s,
                gain_s: phase.gain_s,
                expected_s,
                skipped: None,
                moved_bytes: 0,
                took_s: 0.0,
            };
            if expected_s >= phase.gain_s {
                report.skipped = Some("moving would take longer than the new places save".to_owned());
            } else {
                let began = Instant::now();
                match self.put_in_force(channel, next) {
                    Ok(told) => report.moved_bytes = told.iter().map(|rule| rule.moved_bytes).sum(),
                    Err(reason) => report.skipped = Some(reason),
                }
                report.took_s = began.elapsed().as_secs_f64();
            }
            self.phases.push(report);
        }
    }

    /// How long it takes to move the objects of these names, all pages: at the rate of what was moved
    /// in this run so far, or the published one.
    fn expected_s(&mut self, names: &BTreeSet<&str>) -> f64 {
        let rules: BTreeSet<usize> = (0..self.compiled.rules.len())
            .filter(|at| names.contains(self.compiled.rules[*at].object.as_str()))
            .collect();
        let is_meant = |rule: u32| usize::try_from(rule).is_ok_and(|rule| rules.contains(&rule));
        let placed = self.live.all_mut().filter_map(|(_, object)| object.placed);
        let bytes: u64 = placed.filter(|placed| is_meant(placed.rule)).map(|placed| placed.bytes).sum();
        match self.moved {
            (moved, seconds) if moved > 0 => bytes as f64 * seconds / moved as f64,
            _ => bytes as f64 / 4096.0 * PAGE_MOVE_S,
        }
    }

    /// Looks for modules with arrays of the plan that were loaded since; the library places them when
    /// it hears that the rules are to be looked at again.
    fn search_libraries(&mut self, channel: &PreloadChannel) {
        let wanted: BTreeSet<&str> = modules_of(&self.plan).filter(|module| self.is_unplaced(module)).collect();
        if wanted.is_empty() {
            return;
        }
        let mut found = Vec::new();
        for pid in self.live.ready() {
            for range in mapped_ranges(&self.request.root, *pid) {
                let name = range.path.rsplit('/').next().unwrap_or_default();
                if wanted.contains(name) && !self.searched.contains(&(*pid, name.to_owned())) {
                    found.push((*pid, name.to_owned(), PathBuf::from(&range.path)));
                }
            }
        }
        for (pid, name, path) in &found {
            self.mapped.insert(name.clone(), path.clone());
            self.searched.insert((*pid, name.clone()));
        }
        // What is there when a process starts the library has placed by itself.
        if found.iter().any(|(_, name, _)| self.is_unplaced(name)) {
            self.look_again(channel, found.iter().map(|(pid, ..)| *pid).collect());
        }
    }

    fn is_unplaced(&self, module: &str) -> bool {
        self.plan.rules.iter().zip(&self.rules).any(|(rule, report)| {
            let tierloom_model::Selector::Symbol(symbol) = &rule.select else { return false };
            symbol.split_once(':').is_some_and(|(own, _)| own == module) && report.is_unplaced()
        })
    }

    /// Arrays of libraries that came later and that the library has not placed yet, because the program
    /// has asked for no memory since: what was touched of them is moved again.
    fn move_awaited_arrays(&mut self) {
        let awaited: BTreeSet<u32> = {
            let wanted = |(_, module): &&(u32, String)| self.is_unplaced(module);
            self.searched.iter().filter(wanted).map(|(pid, _)| *pid).collect()
        };
        for pid in awaited {
            let told = self.move_objects(&mut Kernel, pid);
            for (report, told) in self.rules.iter_mut().zip(&told) {
                report.take_moved(told);
            }
        }
    }

    fn look_again(&mut self, channel: &PreloadChannel, processes: BTreeSet<u32>) {
        self.compiled = self.compile();
        channel.publish_again(&self.compiled.words);
        for (report, rule) in self.rules.iter_mut().zip(&self.compiled.rules) {
            report.left_out.clone_from(&rule.left_out);
            report.asked = rule.place.shares();
        }
        for pid in processes {
            self.read_blocks(pid);
            let told = self.move_objects(&mut Kernel, pid);
            for (report, told) in self.rules.iter_mut().zip(&told) {
                report.take_moved(told);
            }
        }
    }

    /// Looks at the pages of the largest placed objects.
    pub(super) fn look(&mut self, calls: &mut dyn MemoryCalls) {
        let (now_ns, compiled) = (monotonic_ns(), &self.compiled);
        let mut objects: Vec<_> = self.live.all_mut().filter(|(_, object)| object.placed.is_some()).collect();
        objects.sort_by_key(|(pid, object)| (std::cmp::Reverse(object.bytes), *pid, object.address));
        for (pid, object) in objects.into_iter().take(LOOKED_OBJECTS) {
            let Some(placed) = object.placed else { continue };
            let Some(rule) = usize::try_from(placed.rule).ok().and_then(|rule| compiled.rules.get(rule)) else {
                continue;
            };
            let target =
                Target { pid, start: placed.start, bytes: placed.bytes, place: &rule.place, unit: placed.unit };
            if let Some((pages, by_node)) = look(calls, &target, LOOKED_PAGES) {
                object.seen = Some((now_ns, pages, by_node));
            }
        }
    }

    /// Where the objects that are there were last seen, rule by rule.
    fn snapshot(&mut self, now_s: f64) -> Snapshot {
        let mut rules = vec![Residency::default(); self.rules.len()];
        for (_, object) in self.live.all_mut() {
            if let (Some(placed), Some((_, pages, by_node))) = (object.placed, &object.seen)
                && let Some(residency) = usize::try_from(placed.rule).ok().and_then(|rule| rules.get_mut(rule))
            {
                residency.add(pages, by_node.iter().map(|(node, count)| (*node, *count)));
            }
        }
        let names = self.rules.iter().map(|rule| rule.object.clone());
        Snapshot { at_s: now_s, rules: names.zip(rules).collect() }
    }

    /// The program has ended: what it did not tell about counts as it was last seen.
    pub(super) fn end(&mut self) {
        let end_ns = monotonic_ns();
        let rules = &mut self.rules;
        for (_, object) in self.live.all_mut() {
            let Some(placed) = object.placed.filter(|placed| !placed.told) else { continue };
            let (Some((at_ns, pages, by_node)), Some(report)) =
                (&object.seen, usize::try_from(placed.rule).ok().and_then(|rule| rules.get_mut(rule)))
            else {
                continue;
            };
            report.residency.add(pages, by_node.iter().map(|(node, count)| (*node, *count)));
            let stale_s = end_ns.saturating_sub(*at_ns) as f64 * 1e-9;
            report.residency.stale_s = report.residency.stale_s.max(stale_s);
        }
    }
}

/// Files that a command names, by name without folder: a shell that starts the program is told where it is.
fn named_files(command: &[OsString]) -> BTreeMap<String, PathBuf> {
    let words = command.iter().filter_map(|word| word.to_str()).flat_map(str::split_whitespace);
    let paths = words.filter(|word| word.contains('/')).map(PathBuf::from).filter(|path| path.is_file());
    paths.filter_map(|path| Some((path.file_name()?.to_str()?.to_owned(), path))).collect()
}

fn sum(mut total: Vec<AppliedRule>, more: &[AppliedRule]) -> Vec<AppliedRule> {
    for (rule, more) in total.iter_mut().zip(more) {
        rule.objects += more.objects;
        rule.present_bytes += more.present_bytes;
        rule.moved_bytes += more.moved_bytes;
        for (errno, bytes) in &more.stuck_bytes {
            *rule.stuck_bytes.entry(*errno).or_default() += bytes;
        }
    }
    total
}
