//! A plan applied to a real program: the kernel has the policies that the plan asked for.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use tierloom_fixtures::programs::{compiled, library};
use tierloom_model::{Action, Plan, PlanTag, Predicted, Rule, RuleOptions, Selector, Warning};
use tierloom_record::{Backend, RecordRequest, record};
use tierloom_recording::{AllocationEvent, Calibration, Exit};
use tierloom_runner::{How, PlaceReport, PlaceRequest, run};

const BYTES: u64 = 4 << 20;

fn plan(rules: Vec<(Selector, Action)>) -> Plan {
    let options = RuleOptions::default();
    let rule = |(select, place)| Rule { object: format!("{select:?}"), size_bytes: BYTES, select, place, options };
    Plan {
        kind: PlanTag::Plan,
        version: 1,
        machine: "m".to_owned(),
        profile: "p".to_owned(),
        policy: "x".to_owned(),
        nodes: vec!["dram".to_owned(), "cxl".to_owned()],
        memories: Vec::new(),
        predicted: Predicted { time_s: 1.0, low_s: 1.0, high_s: 1.0, threads: 1, bytes: vec![0, 0] },
        default: Action::FirstTouch,
        rules: rules.into_iter().map(rule).collect(),
        phases: Vec::new(),
    }
}

/// Runs the program under a plan; its report, and what it printed.
fn placed(program: &Path, rules: Vec<(Selector, Action)>) -> (PlaceReport, String) {
    printed_by(program, rules, false)
}

fn printed_by(program: &Path, rules: Vec<(Selector, Action)>, ablate: bool) -> (PlaceReport, String) {
    let output = env::temp_dir().join(format!("tierloom-placed-{}-{}-{ablate}", std::process::id(), rules.len()));
    let command = format!("{} > {}", program.display(), output.display());
    let command = ["sh", "-c", &command].map(OsString::from).to_vec();
    let nodes = [("dram", 0), ("cxl", 1)].map(|(name, node)| (name.to_owned(), node)).into();
    let request = PlaceRequest { nodes, ablate, ..PlaceRequest::new(command, plan(rules), library().to_owned()) };
    let report = run(&request, &mut |_| ()).unwrap();
    let printed = fs::read_to_string(&output).unwrap();
    fs::remove_file(output).unwrap();
    (report, printed)
}

/// Stacks of the program's two allocations, as a plan writes them. It is not position-independent,
/// so its addresses are those of the file.
fn stacks(program: &Path) -> Vec<Selector> {
    let command = vec![program.as_os_str().to_owned()];
    let calibration = Some(Calibration::UNKNOWN);
    let request = RecordRequest {
        backend: Backend::None,
        calibration,
        ..RecordRequest::new(command, Some(library().to_owned()))
    };
    let recording = record(&request, &mut |_| ()).unwrap();
    let module = program.file_name().unwrap().to_string_lossy();
    let stack = |event| match event {
        AllocationEvent::Alloc { bytes: BYTES, stack, .. } => {
            let frames = recording.stacks[stack as usize].iter().take(1);
            Some(Selector::Stack(frames.map(|frame| format!("{module}@+{frame:#x}")).collect()))
        }
        _ => None,
    };
    recording.allocations.iter().filter_map(|allocation| stack(allocation.event)).collect()
}

#[test]
fn the_kernel_gets_the_policies_of_the_plan() {
    if !Path::new("/proc/self/numa_maps").exists() {
        eprintln!("SKIPPED: this kernel has no NUMA policies");
        return;
    }
    let program = compiled("placed", &["-no-pie"]);
    let name = program.file_name().unwrap().to_string_lossy().into_owned();
    let stacks = stacks(&program);
    let [heap, mapped] = stacks.as_slice() else { panic!("{stacks:?}") };
    let dram = || vec!["dram".to_owned()];
    let rules = vec![
        (heap.clone(), Action::Bind(dram())),
        (mapped.clone(), Action::Interleave(dram())),
        (Selector::Symbol(format!("{name}:still")), Action::Prefer("dram".to_owned())),
    ];
    let (report, printed) = placed(&program, rules);
    fs::remove_file(program).unwrap();
    assert_eq!(report.exit, Exit::Code(0));
    assert_eq!(printed, "heap bind:0\nmapped interleave:0\nstill prefer:0\n");
    assert!(report.rules.iter().all(tierloom_runner::RuleReport::held), "{:#?}", report.rules);
    let bytes: Vec<u64> = report.rules[..3].iter().map(|rule| rule.bytes).collect();
    assert!(bytes.iter().all(|bytes| (BYTES - 8192..=BYTES).contains(bytes)), "{bytes:?}");
}

#[test]
fn what_the_machine_cannot_do_is_said_and_the_program_runs() {
    let program = compiled("placed", &["-no-pie", "-g"]);
    let rules = vec![
        (Selector::SizeAtLeast(1 << 20), Action::Bind(vec!["cxl".to_owned()])),
        (Selector::Symbol("none:x".to_owned()), Action::Bind(vec!["dram".to_owned()])),
    ];
    let (report, printed) = placed(&program, rules);
    fs::remove_file(program).unwrap();
    assert_eq!(report.exit, Exit::Code(0));
    if report.nodes == [0] {
        assert!(printed.contains("heap default"), "{printed}");
        assert!(report.rules[0].left_out.as_ref().unwrap().contains("node 1 (`cxl`)"), "{:?}", report.rules);
        assert!(
            report.warnings.iter().any(|warning| matches!(warning, Warning::OneNode { .. })),
            "{:?}",
            report.warnings
        );
    }
    assert!(report.rules[1].left_out.is_some());
}

#[test]
fn pages_of_what_is_ablated_repeat_and_blocks_come_and_go() {
    let program = compiled("ablated", &["-no-pie"]);
    let name = program.file_name().unwrap().to_string_lossy().into_owned();
    let rules = vec![
        (Selector::SizeAtLeast(2 << 20), Action::FirstTouch),
        (Selector::Symbol(format!("{name}:zeroes")), Action::FirstTouch),
        (Selector::Symbol(format!("{name}:values")), Action::FirstTouch),
        (Selector::File("/data".to_owned()), Action::FirstTouch),
    ];
    let (report, printed) = printed_by(&program, rules, true);
    fs::remove_file(program).unwrap();
    assert_eq!(report.exit, Exit::Code(0), "{printed}");
    let is_itself: Vec<&str> = printed.lines().filter(|line| !line.ends_with(" repeats")).collect();
    assert_eq!(is_itself, ["values is itself"], "{printed}");
    assert_eq!(printed.lines().count(), 2 + 2 * 3 * 5 + 2, "{printed}");
    assert!(report.rules[..2].iter().all(tierloom_runner::RuleReport::held), "{:#?}", report.rules);
    assert!(report.rules[0].how.keys().eq([&How::Alias]), "{:?}", report.rules[0].how);
    assert!(report.rules[2].left_out.as_ref().unwrap().contains(".data"));
    assert!(report.rules[3].left_out.as_ref().unwrap().contains("mapped file"));
}

#[test]
fn a_run_whose_time_is_over_is_ended() {
    let command = ["sh", "-c", "while :; do :; done"].map(OsString::from).to_vec();
    let request = PlaceRequest::new(command, plan(Vec::new()), library().to_owned());
    let ended = run(&PlaceRequest { most_s: Some(0.05), ..request.clone() }, &mut |_| ()).unwrap();
    assert!(ended.cut_off && ended.exit == Exit::Signal(9), "{:?}", ended.exit);
    let command = ["true"].map(OsString::from).to_vec();
    let ended = run(&PlaceRequest { most_s: Some(1e6), command, ..request }, &mut |_| ()).unwrap();
    assert!(!ended.cut_off && ended.exit == Exit::Code(0));
}
