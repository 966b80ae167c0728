//! A profile as a workload: objects become regions, accesses become streams.

use std::collections::BTreeMap;

use tierloom_model::units::{PAGE_BYTES_F64, round_to_u64};
use tierloom_model::{Access, FORMAT_VERSION, Object, Pattern, Piece, Profile};

use super::description::{Fill, Phase, Region, Spread, Stream, Workload, WorkloadTag};

/// More lines than any core keeps in flight; engines cap it by the machine's. Assumed.
const MOST_LINES: f64 = 1e3;

impl Workload {
    /// What a profile says, for a run on `threads`.
    ///
    /// Regions stand in the order of first touch, and fill side by side where the profile's objects did. A stream visits a page once a sweep and random
    /// accesses visit one each, cache hits included, because a hint fault asks the page table and
    /// not the cache. Visits within an object fall on its pages as its hotness says, evenly when it
    /// is not known. A phase in which the profile saw one thread of several keeps one.
    pub fn from_profile(profile: &Profile, threads: u32) -> Self {
        let mut order: Vec<&Object> = profile.objects.iter().filter(|object| object.size_bytes > 0).collect();
        order.sort_by(|a, b| a.first_touch_s.total_cmp(&b.first_touch_s));
        let by_name: BTreeMap<&str, &Object> = order.iter().map(|object| (object.name.as_str(), *object)).collect();
        let phases = profile.phases.iter().map(|phase| {
            let threads = threads_of(profile, phase, threads);
            let of = |access: &Access| by_name.get(access.object.as_str()).map(|object| streams(object, access));
            let streams = phase.accesses.iter().filter_map(of).flatten();
            Phase {
                name: phase.name.clone(),
                threads,
                // It passes while pages are scanned and moved, whatever it is spent on.
                compute_s: phase.beside_memory_s(f64::from(threads)) * f64::from(threads),
                streams: streams.collect(),
            }
        });
        Self {
            kind: WorkloadTag::Workload,
            version: FORMAT_VERSION,
            name: profile.name.clone(),
            title: profile.program.command.join(" "),
            sources: profile.sources.clone(),
            threads,
            phases: phases.collect(),
            main_works: true,
            filled_by: 1,
            filling: filling(profile),
            regions: order.into_iter().map(region).collect(),
        }
    }
}

/// Threads of a phase when the program runs on `threads`, as the prediction of placements has it.
fn threads_of(profile: &Profile, phase: &tierloom_model::Phase, threads: u32) -> u32 {
    u32::try_from(round_to_u64(profile.threads_in(phase, f64::from(threads)).floor())).unwrap_or(threads)
}

/// Pieces of objects in the order in which they filled; nothing to say where none met another.
fn filling(profile: &Profile) -> Vec<Fill> {
    let pieces = profile.filling();
    let of = |piece: &Piece| &profile.objects[piece.object];
    if pieces.iter().all(|piece| piece.share >= 1.0 || of(piece).size_bytes == 0) {
        return Vec::new();
    }
    let some = pieces.iter().filter(|piece| of(piece).size_bytes > 0);
    some.map(|piece| Fill::Touch { region: of(piece).name.clone(), share: piece.share }).collect()
}

fn region(object: &Object) -> Region {
    Region { name: object.name.clone(), size_bytes: object.size_bytes, locked: false, source: String::new() }
}

/// An access as a stream, and beside it the part of its lines that the kernel brought, which the next access finds as it
/// finds prefetched ones.
fn streams(object: &Object, access: &Access) -> Vec<Stream> {
    let whole = stream(object, access);
    let filled = if whole.read_bytes > 0.0 { access.filled_bytes() / whole.read_bytes } else { 0.0 };
    if filled <= 0.0 {
        return vec![whole];
    }
    let brought = Stream {
        pattern: Pattern::Stream,
        mlp: MOST_LINES,
        shared: !matches!(access.pattern, Pattern::Stream | Pattern::Strided),
        ..whole.part_of(filled)
    };
    vec![whole.part_of(1.0 - filled), brought]
}

fn stream(object: &Object, access: &Access) -> Stream {
    let bytes = access.read_bytes + access.write_bytes;
    let dram_bytes = access.dram_read_bytes + access.dram_write_bytes;
    let (spread, visits) = match access.pattern {
        // A sweep reads or writes each byte of the page once; write-backs are not visits.
        Pattern::Stream => (Spread::Sweep, (access.read_bytes.max(access.dram_read_bytes)) / PAGE_BYTES_F64),
        Pattern::Strided => (Spread::Sweep, (bytes.max(dram_bytes) / PAGE_BYTES_F64).max(access.reads / 64.0)),
        Pattern::Random | Pattern::Chain => (Spread::Uniform, access.reads + access.writes),
    };
    let spread = if object.hotness.is_empty() { spread } else { Spread::Bins(object.hotness.clone()) };
    Stream {
        region: access.object.clone(),
        part: [0.0, 1.0],
        spread,
        pattern: access.pattern,
        visits,
        read_bytes: access.dram_read_bytes,
        write_bytes: access.dram_write_bytes,
        mlp: access.mlp,
        wait_factor: access.wait_factor.unwrap_or(1.0),
        shared: false,
        source: String::new(),
    }
}

impl Stream {
    /// So much of it, all else alike.
    fn part_of(&self, share: f64) -> Self {
        Self {
            visits: self.visits * share,
            read_bytes: self.read_bytes * share,
            write_bytes: self.write_bytes * share,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use tierloom_fixtures::{phase, profile};

    use super::*;

    #[test]
    fn what_a_phase_waits_for_beside_memory_passes_here_as_in_a_prediction() {
        let mut waiting = phase("p", 2, 4.0, Vec::new());
        (waiting.idle_s, waiting.meeting_s) = (Some(0.5), Some(1.0));
        let seen = profile(Vec::new(), vec![waiting]);
        let lasts_s = |threads: u32| {
            let Workload { phases, .. } = Workload::from_profile(&seen, threads);
            phases[0].compute_s / f64::from(phases[0].threads)
        };
        assert!((lasts_s(2) - 3.5).abs() < 1e-12 && (lasts_s(1) - 4.5).abs() < 1e-12);
    }
}
