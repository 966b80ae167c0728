//! Runs a program by a plan whose memories are this machine's nodes in order, and prints what became of it:
//! `cargo run --example run -- LIBRARY PLAN.toml COMMAND...`.

#![allow(clippy::print_stderr)]

use std::path::PathBuf;

use tierloom_model::Plan;
use tierloom_runner::{PlaceRequest, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let usage = "usage: run LIBRARY PLAN.toml COMMAND...";
    let preload = words.next().map(PathBuf::from).ok_or(usage)?;
    let file = words.next().map(PathBuf::from).ok_or(usage)?;
    let plan = Plan::from_toml(&std::fs::read_to_string(&file)?, &file.to_string_lossy())?;
    let nodes = plan.nodes.iter().cloned().zip(0..).collect();
    let request = PlaceRequest { nodes, ..PlaceRequest::new(words.collect(), plan, preload) };
    let report = run(&request, &mut |_| ())?;
    eprintln!("{:?}, {:.3} s CPU, nodes {:?}", report.exit, report.cpu_s, report.nodes);
    for rule in &report.rules {
        let left_out = rule.left_out.as_deref().unwrap_or("");
        eprintln!(
            "{}: {} ranges, {} bytes, refused {:?} {left_out}",
            rule.object, rule.ranges, rule.bytes, rule.refused
        );
    }
    for warning in &report.warnings {
        eprintln!("warning: {warning}");
    }
    Ok(())
}
