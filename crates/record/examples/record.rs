//! Records a program and prints what was seen:
//! `cargo run --example record -- LIBRARY auto|perf|ptrace|none COMMAND...`.

#![allow(clippy::print_stderr)]

use std::path::PathBuf;

use tierloom_record::{Backend, RecordRequest, record};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let library = words.next().map(PathBuf::from);
    let backend = match words.next().as_ref().and_then(|word| word.to_str()) {
        Some("perf") => Backend::Perf,
        Some("ptrace") => Backend::Ptrace,
        Some("none") => Backend::None,
        _ => Backend::Auto,
    };
    let request = RecordRequest { backend, ..RecordRequest::new(words.collect(), library) };
    let recording = record(&request, &mut |_| ())?;
    eprintln!("{:?}, {:.3} s CPU, {:.3} s wall", recording.exit, recording.cpu_s, recording.wall_s);
    eprintln!("{:?}, {} samples, {} lost", recording.event, recording.samples.len(), recording.lost);
    eprintln!("{} mappings, {} process events", recording.mappings.len(), recording.processes.len());
    eprintln!("{} allocation events, {} lost", recording.allocations.len(), recording.lost_allocations);
    eprintln!("{} stacks, {:?}", recording.stacks.len(), recording.calibration);
    for warning in &recording.warnings {
        eprintln!("warning: {warning}");
    }
    Ok(())
}
