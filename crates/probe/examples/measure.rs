//! Measures this machine and prints the machine file, or with `--json` the raw report.

use std::error::Error;
use std::io::{Write, stdout};
use std::ops::ControlFlow;

use tierloom_probe::{Request, Scale, measure};

fn main() -> Result<(), Box<dyn Error>> {
    let flag = |name: &str| std::env::args().any(|argument| argument == name);
    let scale = if flag("--full") { Scale::FULL } else { Scale::QUICK };
    let request = Request { name: "here".to_owned(), date: "today".to_owned(), scale };
    let found = measure(&request, &mut |_| ControlFlow::Continue(()))?;
    let text = if flag("--json") { serde_json::to_string_pretty(&found.report)? } else { found.machine.to_toml() };
    writeln!(stdout(), "{text}")?;
    Ok(())
}
