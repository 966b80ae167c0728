//! Records a program, analyses the recording and writes the profile; says where each object's numbers
//! stand. `cargo run --release --example analyse -- LIBRARY OUT.json COMMAND...`, or with a saved
//! recording in the place of the library and without a command; files of code may lie beside it.
//!
//! `HZ=…` samples at another rate, `BACKEND=ptrace` by halting threads, `AHEAD=0.02` looks ahead of halted threads for so much of the time, `SAVE=…` keeps the recording, `LLC=…` is the last-level
//! cache, bytes.

#![allow(clippy::print_stderr)]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use tierloom_analysis::analyse;
use tierloom_binary::search::Search;
use tierloom_record::{Backend, RecordRequest, file, record};
use tierloom_recording::Recording;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let usage = "usage: analyse LIBRARY|RECORDING OUT.json [COMMAND...]";
    let source = words.next().map(PathBuf::from).ok_or(usage)?;
    let out = words.next().map(PathBuf::from).ok_or(usage)?;
    let command: Vec<OsString> = words.collect();
    let recording = if command.is_empty() { file::load(&source)? } else { run(source.clone(), command)? };
    let folder = source.parent().map(PathBuf::from);
    let begun = Instant::now();
    let binaries = Search::new(&recording.binaries, folder.as_slice());
    let (profile, _) = analyse(&recording, &binaries);
    eprintln!("{} samples, analysed in {:.2} s", recording.samples.len(), begun.elapsed().as_secs_f64());
    let ahead: u64 = recording.lookaheads.iter().map(|ahead| ahead.instructions).sum();
    eprintln!("{ahead} instructions in {} looks ahead", recording.lookaheads.len());
    for warning in profile.sampling.iter().flat_map(|sampling| &sampling.warnings) {
        eprintln!("warning: {warning}");
    }
    std::fs::write(out, profile.to_json())?;
    Ok(())
}

fn run(library: PathBuf, command: Vec<OsString>) -> Result<Recording, Box<dyn std::error::Error>> {
    let mut request = RecordRequest::new(command, Some(library));
    request.windows = std::env::var_os("WINDOWS").is_some();
    request.ahead = std::env::var("AHEAD").ok().and_then(|text| text.parse().ok());
    request.llc_bytes = std::env::var("LLC").ok().and_then(|text| text.parse().ok());
    request.hz = std::env::var("HZ").ok().and_then(|text| text.parse().ok());
    if std::env::var("BACKEND").as_deref() == Ok("ptrace") {
        request.backend = Backend::Ptrace;
    }
    let recording = record(&request, &mut |_| ())?;
    if let Some(path) = std::env::var_os("SAVE") {
        file::save(&recording, path.as_ref())?;
    }
    Ok(recording)
}
