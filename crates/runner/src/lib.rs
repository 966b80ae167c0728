//! Runs a program with its memory placed by a plan, and says what became of every rule.
//!
//! The plan is compiled into rules of the wire before the program starts; the preload library asks
//! the kernel for a place whenever a rule's memory is handed out, and reports the kernel's answer and
//! where the pages are. What this machine cannot do is known before the start and said in the report:
//! nothing is tried half, so a rule that names a node which is not there is left out as a whole.
//!
//! | file | step |
//! |---|---|
//! | `request` | what is asked |
//! | `rules` | a plan in the words of the wire |
//! | `ablation` | what can be always in the cache, and how |
//! | `run_loop` | the run while it runs: looks, phases, libraries that come later |
//! | `live_objects` | which objects are there |
//! | `move_pages` | pages of the program, asked about and moved from outside |
//! | `new_plan` | a new plan for what is there |
//! | `control_socket` | how somebody else brings a new plan |
//! | `host_weights` | the host's interleave weights, set for a run |
//! | `saved_weights` | what they were, for when the run is killed |
//! | `report` | what became of every rule |

mod ablation;
mod control_socket;
pub mod error;
mod host_weights;
mod live_objects;
mod move_pages;
mod new_plan;
mod report;
mod request;
mod rules;
mod run_loop;
mod saved_weights;

use std::collections::BTreeMap;
use std::time::Instant;

use tierloom_linux::memory;
use tierloom_linux::root::Root;
use tierloom_linux::spawn::{self, Ended, Running};
use tierloom_model::Plan;
use tierloom_recording::Exit;
use tierloom_wire::Facts;

use control_socket::Control;
pub use error::RunError;
use host_weights::{HostWeights, ratio_of};
pub use new_plan::{Applied, AppliedRule};
use report::Doubts;
pub use report::{PhaseReport, PlaceReport, Residency, RuleReport, Snapshot};
pub use request::PlaceRequest;
use run_loop::Session;
pub use saved_weights::SavedWeights;
use tierloom_launch::DEFAULT_MIN_BYTES;
use tierloom_launch::channel::PreloadChannel;
use tierloom_launch::program::{self, Program};
pub use tierloom_wire::{How, TOO_LITTLE_MEMORY, TOO_MANY_MAPPINGS};

/// How often the records are taken out.
const TICK_MS: i32 = 20;
/// Room for the rules of any later plan, words: some thousand objects.
const LEAST_RULE_WORDS: u64 = 1 << 17;
/// Counters of `/proc/vmstat` that tell of placement and migration.
const COUNTERS: [&str; 5] = ["numa_", "pgpromote_", "pgdemote_", "pgmigrate_", "thp_migration_"];

/// Runs the program to its end; `watcher` gets a snapshot whenever one is due.
///
/// # Errors
/// The program cannot be started, and where the host's weights are to be set and cannot be. A rule that
/// cannot be applied is no error: see the report.
pub fn run(request: &PlaceRequest, watcher: &mut dyn FnMut(&Snapshot)) -> Result<PlaceReport, RunError> {
    let program = Program::find(&request.command)?;
    let preload = program::existing(&request.preload)?;
    let nodes = request.root.online_nodes();
    let mut session = Session::new(request, &nodes, program.path().to_owned());
    let put_back = saved_weights::put_back_left(&request.root);
    let _weights = set_host_weights(request, &mut session)?;
    let room = (session.compiled.words.len() as u64).max(LEAST_RULE_WORDS);
    let mut channel = PreloadChannel::create(DEFAULT_MIN_BYTES, room, &request.root)?;
    channel.tell(&facts(request));
    channel.publish(&session.compiled.words);
    // A new plan would ablate arrays that the program uses already.
    let mut control = (!request.ablate).then(|| Control::open(channel.name())).flatten();
    let variables = program::environment(&request.variables, Some(preload), channel.path());
    let before = memory::vmstat(&request.root, &COUNTERS);
    let held = spawn::hold(&request.command, &variables)?;
    session.begin();
    let running = held.release().map_err(|refused| program.not_executable(refused))?;
    let (ended, cut_off) = attend(&running, &mut session, &mut channel, control.as_mut(), watcher)?;
    let wall_s = session.elapsed_s();
    session.end();
    let counters = moved_counters(&before, &memory::vmstat(&request.root, &COUNTERS));
    let mut report = reported(request, session, (&ended, cut_off, wall_s), &channel, counters);
    report.warnings.extend(put_back);
    Ok(report)
}

/// Stays with the program until it ends; whether that was because its time was over.
fn attend(
    running: &Running,
    session: &mut Session,
    channel: &mut PreloadChannel,
    mut control: Option<&mut Control>,
    watcher: &mut dyn FnMut(&Snapshot),
) -> Result<(Ended, bool), RunError> {
    let mut cut_off = false;
    loop {
        let waited: Vec<_> = control.iter().flat_map(|control| control.descriptors()).collect();
        running.wait(&waited, TICK_MS);
        let ended = running.ended()?;
        channel.drain(ended.is_some(), |time_ns, record| session.take(time_ns, record));
        if let Some(ended) = ended {
            return Ok((ended, cut_off));
        }
        if let Some(control) = &mut control {
            control.serve(Instant::now(), |request| session.answer(channel, &request));
        }
        session.tick(channel, watcher);
        if !cut_off && session.is_late() {
            cut_off = true;
            running.kill(session.root());
        }
    }
}

fn set_host_weights<'a>(request: &'a PlaceRequest, session: &mut Session) -> Result<Option<HostWeights<'a>>, RunError> {
    let Some(ratio) = (if request.set_host_weights { ratio_of(&session.compiled)? } else { None }) else {
        return Ok(None);
    };
    let weights = HostWeights::set(&request.root, &ratio)?;
    session.host_has(ratio);
    Ok(Some(weights))
}

fn reported(
    request: &PlaceRequest,
    session: Session,
    (ended, cut_off, wall_s): (&Ended, bool, f64),
    channel: &PreloadChannel,
    counters: BTreeMap<String, i64>,
) -> PlaceReport {
    let nodes = request.root.online_nodes();
    let doubts = Doubts {
        rules: &session.rules,
        nodes: &nodes,
        planned_nodes: request.nodes.len(),
        attached: channel.attached(),
        lost: channel.lost_events(),
    };
    let mut warnings = doubts.warnings();
    for consequence in session.compiled.rules.iter().flat_map(rules::CompiledRule::consequences) {
        if !warnings.contains(&consequence) {
            warnings.push(consequence);
        }
    }
    let cpu_s = ended.user_s + ended.system_s;
    let Session { rules, phases, .. } = session;
    let exit = Exit::of(ended.code, ended.signal);
    PlaceReport { exit, cut_off, cpu_s, wall_s, nodes, rules, phases, counters, warnings }
}

/// By how much counters moved; those that did not are left out.
fn moved_counters(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> BTreeMap<String, i64> {
    let change = |(name, after): (&String, &u64)| {
        let moved = after.wrapping_sub(*before.get(name)?).cast_signed();
        (moved != 0).then(|| (name.clone(), moved))
    };
    after.iter().filter_map(change).collect()
}

/// Applies a plan to a program that runs under [`run`] in another process: what is there is moved,
/// what comes later goes by the new rules.
///
/// # Errors
/// [`RunError::NotPlaced`]: no such program, or one that nobody answers for.
pub fn apply(root: &Root, pid: u32, plan: &Plan, nodes: &BTreeMap<String, u32>) -> Result<Applied, RunError> {
    let request = control_socket::Request { pid, plan: plan.to_toml(), nodes: nodes.clone() };
    control_socket::ask(root, &request)?.map_err(|problem| RunError::NotPlaced {
        pid,
        problem,
        hint: "give the id of the program itself, and a plan for this machine",
    })
}

/// What the library must know of this machine.
fn facts(request: &PlaceRequest) -> Facts {
    Facts {
        huge_bytes: memory::automatic_huge_bytes(&request.root),
        stripes: request.mappings(),
        // The other half is the program's own.
        eager_bytes: memory::headroom_bytes(&request.root) / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_counters_that_moved_are_told() {
        let counters =
            |values: [u64; 2]| ["a", "b"].map(str::to_owned).into_iter().zip(values).collect::<BTreeMap<_, _>>();
        let moved = moved_counters(&counters([5, 7]), &counters([5, 9]));
        assert_eq!(moved, BTreeMap::from([("b".to_owned(), 2)]));
    }
}
