//! Parts of the program in which windows are alike, and the CPU time of each.

use std::collections::BTreeMap;

use tierloom_binary::cfg::{BlockId, LoopId};
use tierloom_binary::code::FunctionId;
use tierloom_recording::Outcome;

use crate::attribution::Observed;
use crate::attribution::windows::CountedWindow;

/// A part of the program in which windows are alike: a function's outermost loop, or what is outside of its loops.
/// `None` is code that is not known.
pub(crate) type Stratum = Option<(FunctionId, Option<LoopId>)>;

/// CPU time of the run that windows tell of: without that of the kernel for page faults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTime {
    pub(crate) ns: f64,
    /// The share of the kernel, for system calls.
    pub(crate) system: f64,
}

/// Time in a stratum.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Spent {
    pub(crate) ns: f64,
    /// Samples that tell it.
    pub(crate) samples: f64,
}

/// CPU time by stratum, ns: the program's own by samples, which are many. The kernel's goes to strata at which more windows
/// were to begin than samples show time for: there it touches pages for the first time. Where there are hardly any samples,
/// by those moments alone.
pub(crate) fn times(observed: &Observed, windows: &[&CountedWindow], time: CpuTime) -> BTreeMap<Stratum, Spent> {
    /// Standard deviations of the number of moments that chance does not explain.
    const BY_FAR: f64 = 2.0;
    let moments = moments(observed, windows);
    let shown = shared_out(time.ns, moments.iter().map(|(stratum, (stands_for, _))| (*stratum, *stands_for)));
    if observed.seen.len() <= windows.len() {
        return shown.into_iter().map(|(stratum, ns)| (stratum, Spent { ns, samples: 0.0 })).collect();
    }
    let kernel_ns = time.ns * time.system.min(1.0);
    let mut samples: BTreeMap<Stratum, f64> = BTreeMap::new();
    for seen in &observed.seen {
        *samples.entry(stratum_at(observed, seen.at)).or_default() += 1.0;
    }
    let mut times = shared_out(time.ns - kernel_ns, samples.iter().map(|(stratum, count)| (*stratum, *count)));
    let excess = |(stratum, (_, count)): (&Stratum, &(f64, f64))| {
        let lacking_ns = shown[stratum] - times.get(stratum).copied().unwrap_or(0.0);
        (*stratum, if lacking_ns > BY_FAR * shown[stratum] / count.sqrt() { lacking_ns } else { 0.0 })
    };
    let excess: BTreeMap<Stratum, f64> = moments.iter().map(excess).collect();
    let all: f64 = excess.values().sum();
    for (stratum, lacking_ns) in excess.into_iter().filter(|(_, lacking_ns)| *lacking_ns > 0.0) {
        *times.entry(stratum).or_default() += lacking_ns * (kernel_ns / all).min(1.0);
    }
    let spent = |(stratum, ns)| (stratum, Spent { ns, samples: samples.get(&stratum).copied().unwrap_or(0.0) });
    times.into_iter().map(spent).collect()
}

/// Moments at which windows were to begin, by stratum: what they stand for, without page faults, and how many.
fn moments(observed: &Observed, windows: &[&CountedWindow]) -> BTreeMap<Stratum, (f64, f64)> {
    let mut moments: BTreeMap<Stratum, (f64, f64)> = BTreeMap::new();
    let mut durations: BTreeMap<Stratum, (f64, f64)> = BTreeMap::new();
    for window in windows.iter().filter(|window| window.outcome != Outcome::InCall) {
        let stratum = stratum_at(observed, window.entered);
        let sum = moments.entry(stratum).or_default();
        *sum = (sum.0 + window.stands_for_ns, sum.1 + 1.0);
        let lasted = durations.entry(stratum).or_default();
        *lasted = (lasted.0 + window.duration_ns, lasted.1 + window.with_faults_ns);
    }
    for (stratum, (own_ns, with_faults_ns)) in
        durations.into_iter().filter(|(_, (_, with_faults_ns))| *with_faults_ns > 0.0)
    {
        moments.entry(stratum).or_default().0 *= own_ns / with_faults_ns;
    }
    moments
}

/// A time, by stratum as all these weigh.
fn shared_out(time_ns: f64, weights: impl Iterator<Item = (Stratum, f64)>) -> BTreeMap<Stratum, f64> {
    let mut by_stratum: BTreeMap<Stratum, f64> = BTreeMap::new();
    for (stratum, weight) in weights {
        *by_stratum.entry(stratum).or_default() += weight;
    }
    let all: f64 = by_stratum.values().sum();
    by_stratum.into_iter().map(|(stratum, weight)| (stratum, time_ns * weight / all)).collect()
}

/// Where a sample or a window was.
pub(crate) fn stratum_at(observed: &Observed, at: Option<(FunctionId, usize)>) -> Stratum {
    let (id, instruction) = at?;
    let block = observed.code.functions[id].function.block_of(instruction);
    Some((id, outermost(observed, id, block)))
}

/// The outermost loop around a block.
pub(crate) fn outermost(observed: &Observed, id: FunctionId, block: BlockId) -> Option<LoopId> {
    observed.code.functions[id].function.loops_around(block).last()
}

/// Instructions that a window ran, by stratum.
pub(crate) fn instructions(observed: &Observed, window: &CountedWindow) -> BTreeMap<Stratum, f64> {
    let mut by_stratum: BTreeMap<Stratum, f64> = BTreeMap::new();
    for ((id, block), count) in &window.executions {
        let instructions = count * observed.code.functions[*id].function.blocks[*block].len() as f64;
        *by_stratum.entry(Some((*id, outermost(observed, *id, *block)))).or_default() += instructions;
    }
    by_stratum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shared_out_whole() {
        let [one, other] = [1, 2].map(|function| Some((FunctionId::new(function), None)));
        let by_stratum = shared_out(60.0, [(one, 1.0), (other, 3.0), (one, 2.0)].into_iter());
        assert_eq!(by_stratum, BTreeMap::from([(one, 30.0), (other, 30.0)]));
        assert!(shared_out(60.0, std::iter::empty()).is_empty());
    }
}
