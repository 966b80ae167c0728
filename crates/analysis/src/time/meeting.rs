//! CPU time in which threads only wait for each other.

use tierloom_binary::elf::Binary;

use crate::attribution::{AttributedSample, Observed};
use crate::time::shares::of_user;

/// Libraries that keep threads of OpenMP running while they wait at barriers, for tasks and for the next loop: GCC's,
/// LLVM's and Intel's, by the start of their names. What else they do takes next to no time.
const RUNTIMES: [&str; 3] = ["libgomp.so", "libomp.so", "libiomp5.so"];

/// The part of a phase's user time, 0 to 1, in which threads waited running.
pub(crate) fn spun(observed: &Observed, modules: &[Binary], seen: &[AttributedSample]) -> f64 {
    let is_waiting = |seen: &&AttributedSample| {
        seen.at.is_some_and(|(function, _)| {
            let name = modules[observed.code.functions[function].module].name();
            RUNTIMES.iter().any(|runtime| name.starts_with(runtime))
        })
    };
    of_user(seen).filter(is_waiting).count() as f64 / of_user(seen).count().max(1) as f64
}
