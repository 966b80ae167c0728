//! What threads share out among themselves by OpenMP, and the CPU time in which they only wait for each other.

use std::ops::Range;

use tierloom_binary::call_graph::teams::InTeams;
use tierloom_binary::code::FunctionId;
use tierloom_binary::elf::Binary;

use crate::attribution::{AttributedSample, Observed};
use crate::time::shares::of_user;

/// Libraries that keep threads of OpenMP running while they wait at barriers, for tasks and for the next loop: GCC's,
/// LLVM's and Intel's, by the start of their names. What else they do takes next to no time.
const RUNTIMES: [&str; 3] = ["libgomp.so", "libomp.so", "libiomp5.so"];

/// The part of a phase's user time, 0 to 1, in which threads waited running.
pub(crate) fn spun(observed: &Observed, modules: &[Binary], seen: &[AttributedSample]) -> f64 {
    let is_waiting =
        |seen: &&AttributedSample| seen.at.is_some_and(|(function, _)| is_runtime(observed, modules, function));
    of_user(seen).filter(is_waiting).count() as f64 / of_user(seen).count().max(1) as f64
}

/// The part of the user time of one thread's samples, 0 to 1, in which it was in a parallel region, of those of which that can
/// be told.
pub(crate) fn in_regions(observed: &Observed, modules: &[Binary], samples: Range<usize>) -> f64 {
    let told = samples.filter_map(|number| is_in_region(observed, modules, number));
    let (inside, all) = told.fold((0u32, 0u32), |(inside, all), is_inside| (inside + u32::from(is_inside), all + 1));
    f64::from(inside) / f64::from(all.max(1))
}

/// By the functions that a sample is in, innermost first: the first that only regions run, or none, tells. What the runtime
/// calls is in a region.
fn is_in_region(observed: &Observed, modules: &[Binary], number: usize) -> Option<bool> {
    let callers = observed.callers(number).unwrap_or(&[]).iter().map(|caller| caller.function);
    let own = observed.seen[number].at?.0;
    let told = |(depth, id)| match observed.in_teams.get(&id) {
        _ if depth > 0 && is_runtime(observed, modules, id) => Some(true),
        Some(InTeams::Always) => Some(true),
        Some(InTeams::Never) => Some(false),
        _ => None,
    };
    std::iter::once(own).chain(callers).enumerate().find_map(told)
}

fn is_runtime(observed: &Observed, modules: &[Binary], function: FunctionId) -> bool {
    let name = modules[observed.code.functions[function].module].name();
    RUNTIMES.iter().any(|runtime| name.starts_with(runtime))
}
