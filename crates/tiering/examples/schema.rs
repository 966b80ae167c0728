//! The JSON schema of a workload's file. `python/tierloom/schema/workload.json` holds what this prints.

#![expect(clippy::print_stdout, reason = "what it is for")]

fn main() {
    println!("{}", tierloom_model::schemas_of::<tierloom_tiering::Workload>());
}
