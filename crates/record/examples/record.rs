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
    let windows = std::env::var_os("NO_WINDOWS").is_none();
    let request = RecordRequest { backend, windows, ..RecordRequest::new(words.collect(), library) };
    let recording = record(&request, &mut |_| ())?;
    eprintln!("{:?}, {:.3} s CPU, {:.3} s wall", recording.exit, recording.cpu_s, recording.wall_s);
    eprintln!("{:?}, {} samples, {} lost", recording.event, recording.samples.len(), recording.lost);
    let good: Vec<_> = recording.windows.iter().filter(|window| window.duration_ns > 0).collect();
    let cut = good.iter().filter(|window| window.outcome == tierloom_recording::Outcome::Cut).count();
    let pace = |window: &&&tierloom_recording::Window| {
        let blocks: u64 = window.counts.iter().map(|count| count.executions).sum();
        blocks as f64 / window.duration_ns as f64
    };
    let mean = good.iter().map(|window| pace(&window)).sum::<f64>() / good.len().max(1) as f64;
    let time_ms = good.iter().map(|window| window.duration_ns).sum::<u64>() as f64 * 1e-6;
    eprintln!(
        "{} windows, {} counted ({cut} cut), {time_ms:.1} ms, {mean:.4} blocks a ns",
        recording.windows.len(),
        good.len()
    );
    eprintln!("{} mappings, {} process events", recording.mappings.len(), recording.processes.len());
    eprintln!("{} allocation events, {} lost", recording.allocations.len(), recording.lost_allocations);
    eprintln!("{} stacks, {:?}", recording.stacks.len(), recording.calibration);
    if let Some(path) = std::env::var_os("WINDOWS") {
        std::fs::write(path, text_of(&recording))?;
    }
    for warning in &recording.warnings {
        eprintln!("warning: {warning}");
    }
    Ok(())
}

/// Windows and mappings of code as lines.
fn text_of(recording: &tierloom_recording::Recording) -> String {
    let mut lines = vec![format!("C {} {}", recording.cpu_s, recording.system_s)];
    for mapping in recording.mappings.iter().filter(|mapping| mapping.executable) {
        let tierloom_recording::Mapping { start, bytes, file_offset, path, .. } = mapping;
        lines.push(format!("M {start:x} {bytes:x} {file_offset:x} {path}"));
    }
    for sample in &recording.samples {
        lines.push(format!("S {:x}", sample.ip()));
    }
    for window in &recording.windows {
        let counts =
            window.counts.iter().map(|count| format!("{:x}:{:x}:{}", count.start, count.bytes, count.executions));
        let counts: Vec<String> = counts.collect();
        let cut = u8::from(window.outcome == tierloom_recording::Outcome::Cut);
        lines.push(format!("W {} {:x} {} {cut} {}", window.tid, window.address, window.duration_ns, counts.join(" ")));
    }
    lines.join("\n")
}
