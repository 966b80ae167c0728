//! Every step of real programs, interpreted and done by the processor: both come to the same.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};

use tierloom_interpreter::{Bytes, Ended, Machine, Registers};
use tierloom_linux::ptrace::{self, Halt, Tracer, Why, read_bytes};

struct Process(u32);

impl Bytes for Process {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        read_bytes(self.0, address, into) == into.len()
    }
}

/// A program, ended whatever happens.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

/// General-purpose registers as the encoding numbers them.
fn general(r: &ptrace::Registers) -> [u64; 16] {
    [r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15]
}

fn machine(tracer: &Tracer, tid: u32) -> Machine<Process> {
    let registers = tracer.registers(tid).unwrap();
    let segments = [registers.fs_base, registers.gs_base];
    let held = Registers::new(general(&registers), registers.eflags, registers.rip, segments);
    let vectors = tracer.vectors(tid).unwrap();
    Machine::new(held.with_vectors(&vectors.registers, vectors.masks), Process(tid))
}

/// What was compared.
#[derive(Debug, Default)]
struct Compared {
    steps: u64,
    known: u64,
    all: u64,
    ended: BTreeMap<String, u64>,
}

/// Interprets up to so many instructions from here and has the processor do each, too.
fn compare(tracer: &Tracer, tid: u32, most: u64, compared: &mut Compared) -> Result<(), String> {
    const FLAGS: [u64; 5] = [1, 1 << 2, 1 << 6, 1 << 7, 1 << 11];
    let mut machine = machine(tracer, tid);
    for _ in 0..most {
        let before = machine.registers.clone();
        let address = before.ip;
        let mut bytes = [0; 15];
        let length = read_bytes(tid, address, &mut bytes);
        let step = match machine.step() {
            Ok(step) => step,
            Err(ended) => {
                *compared
                    .ended
                    .entry(format!("{ended:?} {:x?}", if ended == Ended::Outside { &[][..] } else { &bytes[..length] }))
                    .or_default() += 1;
                return Ok(());
            }
        };
        let done = loop {
            tracer.step(tid).map_err(|error| error.to_string())?;
            let halt = tracer.wait_for(tid);
            if halt.why == Why::Ended {
                return Ok(());
            }
            let now = tracer.registers(tid).map_err(|error| error.to_string())?;
            // A repeated string instruction halts after each round.
            if step.repeated.is_none() || now.rip != address {
                break now;
            }
        };
        let at = |what: String| format!("{what} after {:x?} at {address:#x}, before it {before:?}", &bytes[..length]);
        if done.rip != step.next {
            return Err(at(format!("goes to {:#x} and not to {:#x}", done.rip, step.next)));
        }
        for (number, value) in general(&done).into_iter().enumerate() {
            compared.all += 1;
            if let Some(known) = machine.registers.general(number) {
                compared.known += 1;
                if known != value {
                    return Err(at(format!("register {number} is {value:#x} and not {known:#x}")));
                }
            }
        }
        for mask in FLAGS {
            if let Some(known) = machine.registers.flags(mask)
                && known != done.eflags & mask
            {
                return Err(at(format!("flag {mask:#x} is {:#x}", done.eflags & mask)));
            }
        }
        if let Some(vectors) = tracer.vectors(tid) {
            for (number, mask) in vectors.masks.iter().enumerate() {
                let known = machine.registers.mask_of_vectors(number);
                if known.zip(*mask).is_some_and(|(known, mask)| known != mask) {
                    return Err(at(format!("mask {number} is {mask:x?} and not {known:x?}")));
                }
            }
            for (number, words) in vectors.registers.iter().enumerate() {
                let Some(words) = words else { continue };
                let known = machine.registers.vector(number);
                for (known, word) in known.iter().zip(words) {
                    compared.all += 1;
                    compared.known += u64::from(known.is_some());
                    if known.is_some_and(|known| known != *word) {
                        return Err(at(format!("vector {number} is {words:x?} and not {known:x?}")));
                    }
                }
            }
        }
        compared.steps += 1;
    }
    Ok(())
}

/// Goes through a program in stretches, each of which begins with what the processor holds then, until there are enough
/// steps.
fn through(words: &[&str], stretches: u32, most: u64, enough: u64) -> Compared {
    let command = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let program = Program(command);
    let (tid, tracer) = (program.0.id(), Tracer::new());
    let mut compared = Compared::default();
    tracer.hold(tid).unwrap();
    let mut halt = tracer.wait_for(tid);
    for _ in 0..stretches {
        if halt.why == Why::Ended || compared.steps >= enough {
            break;
        }
        if let Err(differs) = compare(&tracer, tid, most, &mut compared) {
            panic!("{words:?}, after {} steps: {differs}", compared.steps);
        }
        // Past what could not be interpreted, and some instructions on.
        for _ in 0..3 {
            if tracer.step(tid).is_err() {
                break;
            }
            halt = tracer.wait_for(tid);
        }
    }
    if halt.why != Why::Ended {
        tracer.let_go(Halt { tid, why: Why::Interrupted });
    }
    compared
}

/// Programs that every Debian has; they run until they are ended.
#[test]
fn programs_of_the_system() {
    let programs: [&[&str]; 2] = [
        &["sh", "-c", "i=0; while :; do i=$((i + 1)); done"],
        &["perl", "-e", "for (;;) { $seen{$_ % 1000} += sqrt($_) * 1.5 for 1..1e6 }"],
    ];
    for words in programs {
        let compared = through(words, 2_000, 400, 10_000);
        assert!(compared.steps >= 10_000, "{words:?}: {compared:?}");
        assert!(compared.known as f64 > 0.9 * compared.all as f64, "{words:?}: {compared:?}");
    }
}

/// Programs of the machine, with their own libraries: `TIERLOOM_INTERPRETED="gzip -c /bin/sh"`.
#[test]
#[ignore = "of the machine, by hand"]
fn a_program_of_choice() {
    let words = std::env::var("TIERLOOM_INTERPRETED").unwrap();
    let words: Vec<&str> = words.split(' ').collect();
    let compared = through(&words, 400, 2000, u64::MAX);
    println!("{} steps, {:.1} % known", compared.steps, 100.0 * compared.known as f64 / compared.all as f64);
    for (why, times) in &compared.ended {
        println!("{times:6} {why}");
    }
}
