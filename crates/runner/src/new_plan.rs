//! A new plan for a program that runs: which of its objects go where, and their pages moved there.
//!
//! The library takes the new rules for what is handed out from now on. What is there already is moved
//! from outside, page by page where the law wants it: the kernel's own way, `mbind` with
//! `MPOL_MF_MOVE`, leaves every page alone that is on any node of an interleave.

use std::collections::{BTreeMap, BTreeSet};
use tierloom_model::units::PAGE_BYTES;

use serde::{Deserialize, Serialize};
use tierloom_linux::maps::MappedRange;
use tierloom_wire::{NO_STACK, RuleFrame, hash, stack_holds};

use crate::live_objects::{Live, Object, Placed};
use crate::move_pages::{MemoryCalls, Moved, Target, move_range};
use crate::rules::{Compiled, Place, Wanted, bytes_of_hex};
use tierloom_binary::elf::Binary;

/// What became of a plan that was applied to a running program.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Applied {
    /// One for each rule of the plan; its default is the last.
    pub rules: Vec<AppliedRule>,
    /// How long moving took, s.
    pub took_s: f64,
}

/// What became of one rule.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AppliedRule {
    /// The object's name in the plan, or `default`.
    pub object: String,
    /// Objects that it selects and that are there.
    pub objects: u64,
    /// Bytes of theirs that are there.
    pub present_bytes: u64,
    /// Bytes that had to move and did.
    pub moved_bytes: u64,
    /// Bytes that had to and did not, by error number; 0: the kernel gave none.
    pub stuck_bytes: BTreeMap<i32, u64>,
    /// Why it cannot be applied on this machine.
    pub left_out: Option<String>,
}

impl Applied {
    /// Bytes moved in all.
    pub fn moved_bytes(&self) -> u64 {
        self.rules.iter().map(|rule| rule.moved_bytes).sum()
    }
}

/// Names addresses of a process by module and offset, as plans do.
#[derive(Debug, Default)]
pub(super) struct Names {
    modules: BTreeMap<String, Named>,
}

#[derive(Debug)]
struct Named {
    module: Binary,
    build: u64,
}

impl Names {
    fn module(&mut self, path: &str) -> &Named {
        self.modules.entry(path.to_owned()).or_insert_with(|| {
            let module = Binary::read(path);
            let build = bytes_of_hex(&module.build_id).ok().filter(|id| !id.is_empty()).map_or(0, |id| hash(&id));
            Named { module, build }
        })
    }

    /// The frame of a return address; the default one where no file is mapped.
    fn frame(&mut self, maps: &[MappedRange], address: u64) -> RuleFrame {
        let Some(range) = range_of(maps, address) else { return RuleFrame::default() };
        let named = self.module(&range.path);
        match named.module.address_of_offset(address - range.start + range.file_offset) {
            Some(offset) => RuleFrame { module: hash(named.module.name().as_bytes()), build: named.build, offset },
            None => RuleFrame::default(),
        }
    }

    /// Where an array of a module is in a process.
    fn array(&mut self, maps: &[MappedRange], module: u64, build: u64, offset: u64) -> Option<u64> {
        let files: BTreeSet<&str> = maps
            .iter()
            .filter(|range| range.executable && range.path.starts_with('/'))
            .map(|range| range.path.as_str())
            .collect();
        files.into_iter().find_map(|path| {
            let named = self.module(path);
            let own = (hash(named.module.name().as_bytes()), named.build);
            if !tierloom_wire::is_same_file(own, (module, build)) {
                return None;
            }
            let first = maps.iter().find(|range| range.path == path)?;
            let base = first.start.wrapping_sub(named.module.address_of_offset(first.file_offset)?);
            Some(base.wrapping_add(offset))
        })
    }
}

fn range_of(maps: &[MappedRange], address: u64) -> Option<&MappedRange> {
    let end = maps.partition_point(|range| range.start <= address);
    maps[..end].last().filter(|range| address < range.start + range.bytes)
}

/// Position of the rule that an object falls under.
fn rule_for(compiled: &Compiled, object: &Object, frames: &[RuleFrame], file: Option<u64>) -> Option<usize> {
    compiled.rules.iter().position(|rule| match &rule.wanted {
        Wanted::Stack(wanted) => stack_holds(frames, wanted),
        Wanted::SizeAtLeast(least) => object.stack != NO_STACK && object.bytes >= *least,
        Wanted::File(path) => file == Some(*path),
        Wanted::Everything => object.stack != NO_STACK,
        Wanted::Static { .. } | Wanted::Nothing => false,
    })
}

/// One range to be moved by a rule.
struct Order {
    rule: usize,
    address: u64,
    start: u64,
    bytes: u64,
}

/// Moves all objects of a process to where a plan wants them.
pub(super) fn move_process(
    calls: &mut dyn MemoryCalls,
    names: &mut Names,
    live: &mut Live,
    compiled: &Compiled,
    (pid, maps, huge_bytes): (u32, &[MappedRange], u64),
) -> Vec<AppliedRule> {
    let mut told: Vec<AppliedRule> = compiled
        .rules
        .iter()
        .map(|rule| AppliedRule {
            object: rule.object.clone(),
            left_out: rule.left_out.clone(),
            ..AppliedRule::default()
        })
        .collect();
    for order in orders(names, live, compiled, pid, maps) {
        let rule = &compiled.rules[order.rule];
        let unit = unit_of(rule.unit(), &order, huge_bytes);
        let target = Target { pid, start: order.start, bytes: order.bytes, place: &rule.place, unit };
        let Ok(moved) = move_range(calls, &target) else { continue };
        count(&mut told[order.rule], &moved);
        let rule = u32::try_from(order.rule).unwrap_or(u32::MAX);
        let placed = Placed { rule, start: order.start, bytes: order.bytes, unit, told: false };
        live.replaced(pid, order.address, placed);
    }
    told
}

fn count(told: &mut AppliedRule, moved: &Moved) {
    told.objects += 1;
    told.present_bytes += moved.present;
    told.moved_bytes += moved.went;
    for (errno, bytes) in &moved.stuck {
        *told.stuck_bytes.entry(*errno).or_default() += bytes;
    }
}

/// The unit of an object that is there: a huge page is moved whole, so where the kernel gives them,
/// shares are dealt out in them.
fn unit_of(asked: u64, order: &Order, huge_bytes: u64) -> u64 {
    let holds_one = huge_bytes > 0
        && order.start.next_multiple_of(huge_bytes).saturating_add(huge_bytes) <= order.start + order.bytes;
    asked.max(if holds_one { huge_bytes } else { PAGE_BYTES })
}

fn orders(names: &mut Names, live: &Live, compiled: &Compiled, pid: u32, maps: &[MappedRange]) -> Vec<Order> {
    let mut orders = Vec::new();
    for object in live.of(pid) {
        let frames: Vec<RuleFrame> = live.frames(object.stack).iter().map(|frame| names.frame(maps, *frame)).collect();
        let file = range_of(maps, object.address).filter(|range| range.path.starts_with('/'));
        let file = file.map(|range| hash(range.path.as_bytes()));
        let Some(rule) = rule_for(compiled, object, &frames, file) else { continue };
        orders.extend(order(rule, object.address, object.bytes));
    }
    for (rule, compiled) in compiled.rules.iter().enumerate() {
        if let Wanted::Static { module, build, offset, bytes } = compiled.wanted
            && let Some(address) = names.array(maps, module, build, offset)
        {
            orders.extend(order(rule, address, bytes));
        }
    }
    orders.retain(|order| compiled.rules[order.rule].place != Place::FirstTouch);
    orders
}

/// The whole pages of an object.
fn order(rule: usize, address: u64, bytes: u64) -> Option<Order> {
    let start = address.next_multiple_of(PAGE_BYTES);
    let end = (address + bytes) / PAGE_BYTES * PAGE_BYTES;
    (end > start).then(|| Order { rule, address, start, bytes: end - start })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tierloom_model::{Action, Plan, RuleOptions};
    use tierloom_wire::{Event, Source};

    use super::*;
    use crate::move_pages::tests::Recorded;
    use crate::rules::Context;

    const PLAN: &str = r#"version = 1
machine = "m"
profile = "p"
policy = "x"
nodes = ["dram", "cxl"]
default = "first_touch"
[predicted]
time_s = 1.0
low_s = 1.0
high_s = 1.0
threads = 1
bytes = [0, 0]
[[rules]]
object = "large"
size_bytes = 1
select = { size_at_least = 1000000 }
place = { weighted = { dram = 1, cxl = 1 } }
[[rules]]
object = "middle"
size_bytes = 1
select = { size_at_least = 100000 }
place = { bind = ["cxl"] }
"#;

    fn compiled(default: Action) -> Compiled {
        let plan = Plan { default, ..Plan::from_toml(PLAN, "p.toml").unwrap() };
        let node_of = [("dram", 0), ("cxl", 1)].map(|(name, node)| (name.to_owned(), node)).into();
        let options = RuleOptions::default();
        let program = Path::new("/bin/sh");
        let mapped = BTreeMap::new();
        Compiled::new(
            &plan,
            &Context {
                nodes: &[0, 1],
                node_of: &node_of,
                program,
                options,
                host_weights: None,
                ablate_within: None,
                mapped: &mapped,
            },
        )
    }

    fn live(sizes: &[u64]) -> Live {
        let mut live = Live::default();
        for (at, bytes) in (1..).zip(sizes) {
            let event = Event::Alloc { address: at << 32, bytes: *bytes, stack: 5, source: Source::Heap };
            live.take(7, 1, &event);
        }
        live
    }

    fn moved(compiled: &Compiled, live: &mut Live) -> Vec<AppliedRule> {
        move_process(&mut Recorded::default(), &mut Names::default(), live, compiled, (7, &[], 0))
    }

    #[test]
    fn each_object_goes_by_its_first_rule() {
        let mut live = live(&[2 << 20, 1 << 17, 1 << 16]);
        let told = moved(&compiled(Action::FirstTouch), &mut live);
        let bytes: Vec<(u64, u64)> = told.iter().map(|rule| (rule.objects, rule.moved_bytes)).collect();
        assert_eq!(bytes, [(1, 1 << 20), (1, 1 << 17), (0, 0)]);
        assert!(live.is_placed(7, 1 << 32, 0) && live.is_placed(7, 2 << 32, 1) && !live.is_placed(7, 3 << 32, 2));
    }

    #[test]
    fn the_default_takes_the_rest() {
        let told = moved(&compiled(Action::Bind(vec!["cxl".to_owned()])), &mut live(&[1 << 16]));
        assert_eq!((told[2].objects, told[2].moved_bytes), (1, 1 << 16));
    }

    #[test]
    fn frames_of_this_program_have_the_names_that_the_library_gives() {
        let maps = tierloom_linux::maps::mapped_ranges(&tierloom_linux::root::Root::default(), std::process::id());
        let here = frames_of_this_program_have_the_names_that_the_library_gives as *const () as u64;
        let mut names = Names::default();
        let frame = names.frame(&maps, here);
        let program = std::env::current_exe().unwrap();
        assert_eq!(frame.module, hash(program.file_name().unwrap().as_encoded_bytes()));
        assert_eq!(names.array(&maps, frame.module, frame.build, frame.offset), Some(here));
        assert_eq!(names.frame(&maps, 1), RuleFrame::default());
    }
}
