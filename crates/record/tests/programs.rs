//! Real programs under the recorder: unharmed, and seen.

#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tierloom_analysis::analyse;
use tierloom_binary::Files;
use tierloom_fixtures::programs::{compiled, library};
use tierloom_launch::LaunchError;
use tierloom_model::{Access, ObjectKind, Warning};
use tierloom_record::{Backend, RecordError, RecordRequest, file, record};
use tierloom_recording::{AllocationEvent, Calibration, Change, Event, Exit, Recording, Source};

fn request(backend: Backend, command: &[&str]) -> RecordRequest {
    let command = command.iter().map(OsString::from).collect();
    // The calibration has a test of its own and takes half a second.
    let calibration = Some(Calibration::UNKNOWN);
    RecordRequest { backend, calibration, ..RecordRequest::new(command, Some(library().to_owned())) }
}

fn recorded(backend: Backend, command: &[&str]) -> Recording {
    record(&request(backend, command), &mut |_| ()).unwrap()
}

/// Standard output of a shell command by itself and under the recorder.
fn outputs(command: &str) -> [String; 2] {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let plain = Command::new("sh").args(["-c", command]).stderr(Stdio::inherit()).output().unwrap();
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let file = env::temp_dir().join(format!("tierloom-output-{}-{number}", std::process::id()));
    let redirected = format!("{{ {command}\n}} | cat > {}", file.display());
    recorded(Backend::Auto, &["sh", "-c", &redirected]);
    let seen = fs::read_to_string(&file).unwrap();
    fs::remove_file(file).unwrap();
    [String::from_utf8(plain.stdout).unwrap(), seen]
}

fn allocations(recording: &Recording) -> Vec<(u64, u64, u32, u32)> {
    let alloc = |allocation: &tierloom_recording::Allocation| match allocation.event {
        AllocationEvent::Alloc { address, bytes, stack, source: Source::Heap } => {
            Some((address, bytes, stack, allocation.pid))
        }
        _ => None,
    };
    recording.allocations.iter().filter_map(alloc).collect()
}

#[test]
fn exit_codes_and_signals_are_the_programs_own() {
    for backend in [Backend::Auto, Backend::Ptrace, Backend::None] {
        assert_eq!(recorded(backend, &["true"]).exit, Some(Exit::Code(0)));
        assert_eq!(recorded(backend, &["sh", "-c", "exit 7"]).exit, Some(Exit::Code(7)));
        assert_eq!(recorded(backend, &["sh", "-c", "kill -SEGV $$"]).exit, Some(Exit::Signal(11)));
    }
}

#[test]
fn an_awkward_program_notices_nothing() {
    let program = compiled("awkward", &["-ldl"]);
    let [plain, seen] = outputs(program.to_str().unwrap());
    assert_eq!(plain, "0 failuresend\n");
    assert_eq!(seen, plain);
    for backend in [Backend::Ptrace, Backend::None] {
        let recording = recorded(backend, &[program.to_str().unwrap()]);
        assert_eq!(recording.exit, Some(Exit::Code(0)));
    }
    fs::remove_file(program).unwrap();
}

#[test]
fn programs_of_others_print_the_same() {
    let commands = [
        "printf 'no newline'; echo error >&2",
        "seq 1 200000 | gzip -9 | gzip -dc | sort -rn | head -3",
        "awk 'BEGIN { for (i = 0; i < 200000; i++) s = s \"x\"; print length(s) }'",
        "env -i /bin/sh -c 'echo without an environment'",
        "python3 -c 'print(len(bytearray(10**7)), sum(range(10**6)))' 2> /dev/null || echo no python",
    ];
    for command in commands {
        let [plain, seen] = outputs(command);
        assert_eq!(plain, seen, "{command}");
    }
}

#[test]
fn objects_have_places_sizes_and_ends() {
    let program = compiled("objects", &[]);
    let recording = recorded(Backend::Auto, &[program.to_str().unwrap(), "30"]);
    fs::remove_file(program).unwrap();
    assert_eq!(recording.exit, Some(Exit::Code(5)));
    let all = allocations(&recording);
    let sizes: Vec<u64> = all.iter().map(|(_, bytes, ..)| *bytes).collect();
    assert_eq!(sizes, [1 << 20, 2 << 20, 1 << 20, 2 << 20, 1 << 20, 2 << 20, 3 << 20]);
    let stacks: BTreeSet<&[u64]> = all.iter().map(|(_, _, stack, _)| &*recording.stacks[*stack as usize]).collect();
    assert_eq!(stacks.len(), 3, "one stack for each place");
    assert!(stacks.iter().all(|frames| frames.len() >= 3), "{stacks:x?}");
    let frees = recording.allocations.iter().filter(|one| matches!(one.event, AllocationEvent::Free { .. })).count();
    assert_eq!(frees, 6, "the child leaves its block to the kernel");
    assert_eq!(all.iter().filter(|(.., pid)| *pid == recording.pid).count(), 6);
    assert!(recording.allocations.is_sorted_by_key(|allocation| allocation.time_ns));
}

/// Whether an executable mapping covers an address in this process or one that it was forked from.
fn is_code(recording: &Recording, pid: u32, address: u64) -> bool {
    let covers = |pid: u32| {
        let ours = recording.mappings.iter().filter(move |mapping| mapping.pid == pid && mapping.executable);
        ours.into_iter().any(|mapping| (mapping.start..mapping.start + mapping.bytes).contains(&address))
    };
    let parent = recording.processes.iter().find_map(|process| match process.change {
        Change::Fork { parent } if process.pid == pid => Some(parent),
        _ => None,
    });
    covers(pid) || parent.is_some_and(covers)
}

fn all_frames_are_code(recording: &Recording) -> bool {
    let mut frames = allocations(recording)
        .into_iter()
        .flat_map(|(_, _, stack, pid)| recording.stacks[stack as usize].iter().map(move |frame| (pid, *frame)));
    frames.all(|(pid, frame)| is_code(recording, pid, frame))
}

#[test]
fn a_killed_program_leaves_what_it_did() {
    let program = compiled("objects", &["-DKILLED"]);
    let recording = recorded(Backend::None, &[program.to_str().unwrap(), "1", "killed"]);
    fs::remove_file(program).unwrap();
    assert_eq!(recording.exit, Some(Exit::Signal(9)));
    assert_eq!(allocations(&recording).len(), 7);
}

#[test]
fn an_exec_is_followed() {
    let program = compiled("objects", &["-DEXEC"]);
    let recording = recorded(Backend::Auto, &["sh", "-c", &format!("exec {} 1", program.display())]);
    fs::remove_file(program).unwrap();
    assert_eq!(recording.exit, Some(Exit::Code(5)));
    assert_eq!(allocations(&recording).len(), 7);
}

#[test]
fn a_static_program_is_sampled_and_said_to_be_blind() {
    let program = compiled("objects", &["-static"]);
    let recording = recorded(Backend::Auto, &[program.to_str().unwrap(), "100"]);
    fs::remove_file(program).unwrap();
    assert_eq!(recording.exit, Some(Exit::Code(5)));
    assert_eq!(recording.allocations, []);
    let is_static = |warning: &Warning| matches!(warning, Warning::StaticProgram { .. });
    assert!(recording.warnings.iter().any(is_static), "{:?}", recording.warnings);
    assert!(recording.event != Event::CpuClock || !recording.samples.is_empty());
}

#[test]
fn what_cannot_run_says_why() {
    let refused = |command: &[&str]| record(&request(Backend::Auto, command), &mut |_| ()).unwrap_err();
    assert!(matches!(refused(&["no-such-program"]), RecordError::Launch(LaunchError::NotFound { .. })));
    assert!(matches!(refused(&["/etc/passwd"]), RecordError::Launch(LaunchError::NotExecutable { .. })));
    assert!(matches!(refused(&["/"]), RecordError::Launch(LaunchError::NotExecutable { .. })));
    assert!(matches!(refused(&[]), RecordError::Launch(LaunchError::NoCommand)));
    let fast = RecordRequest { hz: Some(0), ..request(Backend::Auto, &["true"]) };
    assert!(matches!(record(&fast, &mut |_| ()).unwrap_err(), RecordError::Rate { hz: 0 }));
    let blind = RecordRequest { preload: Some("/no/such.so".into()), ..request(Backend::Auto, &["true"]) };
    assert!(matches!(record(&blind, &mut |_| ()).unwrap_err(), RecordError::Launch(LaunchError::NoPreload { .. })));
}

#[test]
fn a_recording_survives_its_file() {
    let recording = recorded(Backend::Auto, &["sh", "-c", "gzip -c /bin/sh | wc -c > /dev/null"]);
    let path = env::temp_dir().join(format!("tierloom-{}.recording", std::process::id()));
    file::save(&recording, &path).unwrap();
    assert_eq!(file::load(&path).unwrap(), recording);
    fs::remove_file(path).unwrap();
}

#[test]
fn what_is_on_disk_is_the_recording_and_names_its_builds() {
    for backend in [Backend::Auto, Backend::Ptrace, Backend::None] {
        // A file each: a program that another test holds before its start has every open file of this process, locked ones too.
        let name = format!("tierloom-kept-{}-{backend:?}.recording", std::process::id());
        let path = env::temp_dir().join(name);
        let kept =
            RecordRequest { journal: Some(path.clone()), keep: true, ..request(backend, &["sort", "/etc/services"]) };
        let recording = record(&kept, &mut |_| ()).unwrap();
        assert_eq!(file::load(&path).unwrap(), recording);
        let sort = recording.binaries.iter().find(|(path, _)| path.ends_with("/sort"));
        let (file, build) = sort.unwrap();
        assert_eq!(tierloom_binary::build_id::build_of(file.as_ref()).as_ref(), Some(build));
        assert!(recording.binaries.keys().any(|path| path.contains("libc.so")), "{:?}", recording.binaries);
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_program_that_removes_itself_is_named_all_the_same() {
    let program = env::temp_dir().join(format!("tierloom-gone-{}", std::process::id()));
    fs::copy("/bin/sh", &program).unwrap();
    let path = program.to_str().unwrap();
    let recording = recorded(Backend::Auto, &[path, "-c", &format!("rm {path}; sleep 0.1; :")]);
    assert!(!program.exists());
    let build = recording.binaries.get(path);
    assert_eq!(build, tierloom_binary::build_id::build_of("/bin/sh".as_ref()).as_ref());
}

/// What judges the machine: `make live`.
mod live {
    use super::*;

    #[test]
    #[ignore = "live"]
    fn addresses_that_are_only_reserved_are_no_memory() {
        let program = compiled("reserved", &[]);
        let recording = recorded(Backend::Auto, &[program.to_str().unwrap()]);
        fs::remove_file(program).unwrap();
        assert_eq!(recording.exit, Some(Exit::Code(0)));
        let (profile, _) = analyse(&recording, &Files);
        let mapped = profile.objects.iter().filter(|object| object.kind == ObjectKind::Mmap);
        let sizes: BTreeSet<u64> = mapped.map(|object| object.size_bytes).collect();
        let [put, grown] = sizes.into_iter().collect::<Vec<u64>>()[..] else { panic!("two that have memory") };
        // The larger one shrinks again before anybody can look: one page fault in so many tells.
        assert!(put == 8 << 20 && (grown as f64 / f64::from(40 << 20) - 1.0).abs() < 0.02, "{put} {grown}");
    }

    #[test]
    #[ignore = "live"]
    fn a_counter_that_most_rounds_go_past_counts_what_it_counts() {
        let program = compiled("sparse", &[]);
        let recording = recorded(Backend::Auto, &[program.to_str().unwrap()]);
        let (marks, found) = marks_and_found(&recording);
        fs::remove_file(program).unwrap();
        assert!((marks - 1.0).abs() < 0.2, "{marks} of all marks");
        assert!((found - 1.0).abs() < 0.5, "{found} of all that are found");
    }

    /// Of the program `sparse`, how much of what it reads and writes its profile has: 300 rounds over 4 Mi bytes, one in 17
    /// of which is written down.
    fn marks_and_found(recording: &Recording) -> (f64, f64) {
        let (profile, _) = analyse(recording, &Files);
        let of = |mib: u64| profile.objects.iter().find(|object| object.addresses() >> 20 == mib).unwrap();
        let accesses = || profile.phases.iter().flat_map(|phase| &phase.accesses);
        let sum = |mib, count: fn(&Access) -> f64| {
            accesses().filter(|access| access.object == of(mib).name).map(count).sum::<f64>()
        };
        let expected = 300.0 * f64::from(1 << 22);
        (sum(4, |access| access.reads) / expected, 17.0 * sum(16, |access| access.writes) / expected)
    }

    #[test]
    #[ignore = "live"]
    fn what_a_halted_thread_is_about_to_do_is_what_its_data_say() {
        // Another file than that of the test above, which may run beside this one.
        let program = compiled("sparse", &["-g"]);
        let words = [program.to_str().unwrap()];
        for backend in [Backend::Auto, Backend::Ptrace] {
            let asked = RecordRequest { ahead: Some(0.1), ..request(backend, &words) };
            let recording = record(&asked, &mut |_| ()).unwrap();
            assert_eq!(recording.exit, Some(Exit::Code(0)));
            let mut branches: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
            for branch in recording.lookaheads.iter().flat_map(|ahead| &ahead.branches) {
                let known = branches.entry(branch.address).or_default();
                *known = (known.0 + branch.taken, known.1 + branch.passed);
            }
            let rarer = |(taken, passed): &(u64, u64)| *taken.min(passed) as f64 / (taken + passed) as f64;
            let often = branches.values().filter(|(taken, passed)| taken + passed > 2_000);
            let shares: Vec<f64> = often.map(rarer).collect();
            assert!(shares.iter().any(|share| (17.0 * share - 1.0).abs() < 0.2), "{backend:?}: {shares:?}");
            let (marks, found) = marks_and_found(&recording);
            assert!(
                (found / marks - 1.0).abs() < 0.1,
                "{backend:?}: {marks} of all marks, {found} of all that are found"
            );
        }
        fs::remove_file(program).unwrap();
    }

    #[test]
    #[ignore = "live"]
    fn samples_fall_on_code_and_follow_children() {
        let program = compiled("objects", &["-g"]);
        for (backend, rounds) in [(Backend::Auto, "300"), (Backend::Ptrace, "3000")] {
            let recording = recorded(backend, &[program.to_str().unwrap(), rounds]);
            assert!(recording.samples.len() > 10, "{backend:?}: {} samples", recording.samples.len());
            let placed = recording.samples.iter().filter(|sample| is_code(&recording, sample.pid, sample.ip())).count();
            assert!(placed * 100 >= recording.samples.len() * 95, "{backend:?}: {placed} on code");
            let processes: BTreeSet<u32> = recording.samples.iter().map(|sample| sample.pid).collect();
            assert_eq!(processes.len(), 2, "{backend:?}: the program and its child");
            assert!(all_frames_are_code(&recording), "{backend:?}");
        }
        fs::remove_file(program).unwrap();
    }
}
