//! A profile as it would be behind another last-level cache than that of its run.
//!
//! What came from memory is what the run's cache let through. What another one lets through follows from the lines touched
//! and the object's miss-ratio curve, which takes touches to be independent of each other. Programs come back to what they
//! have just touched: a sort or a blocked loop finds most of it in any cache. How much of the touches that is, the run
//! tells where its own cache was full: its lines over those that independent touches would have fetched. So the likely
//! traffic is that part of the curve's. The fewest lines are those of the run, the most all that independent touches would
//! fetch; which of them takes the least time is another question, as below. No lines are more than the caches of a core let
//! through (`beyond_core`).
//!
//! Lines that the run found in caches took it time, which is among what it computed. Where they come from memory here, that
//! time goes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tierloom_model::{Access, Machine, Object, Phase, Profile, Touched, Within, share_let_through};

use crate::beyond_core::{LastLevel, MEMORY_TO_CACHE, is_core_known, set_beyond_core};
use crate::doubt::lines_within;

/// Which of the lines that another cache may let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lines {
    /// No more than it must.
    Fewest,
    /// As the curve says, but for what the run knows better.
    Likely,
    /// All that independent touches would fetch.
    Most,
}

/// Whether a profile says what another cache would let through: the same, for objects without a curve.
pub(crate) fn is_known(profile: &Profile) -> bool {
    profile.phases.iter().flat_map(|phase| &phase.accesses).any(|access| access.touched.is_some())
}

/// The last-level cache that a run's cores reach: on the machine of the profile's own run that run's, whatever its file says.
pub(crate) fn cache_of(machine: &Machine, profile: &Profile, sockets: impl Iterator<Item = usize>) -> u64 {
    let caches = sockets.map(|socket| machine.sockets[socket].llc_per_core_bytes.value);
    caches.min().filter(|_| !ran_here(machine, profile)).unwrap_or(profile.program.llc_bytes)
}

/// Whether the profile's own run was on this machine.
pub(crate) fn ran_here(machine: &Machine, profile: &Profile) -> bool {
    machine.host.is_some() && machine.host == profile.program.host
}

/// Phases of a profile behind a last-level cache of so many bytes.
pub(crate) fn behind(profile: &Profile, cache_bytes: u64, lines: Lines) -> Cow<'_, [Phase]> {
    if cache_bytes == profile.program.llc_bytes || !is_known(profile) {
        return Cow::Borrowed(&profile.phases);
    }
    let changes = changes(profile, cache_bytes);
    let mut phases = profile.phases.clone();
    if !is_core_known(profile) {
        set_beyond_core(&mut phases, profile, LastLevel::ASSUMED);
    }
    for phase in &mut phases {
        let accesses = std::mem::take(&mut phase.accesses);
        for access in accesses {
            let known = changes.get(access.object.as_str()).zip(access.touched);
            match known {
                Some((change, touched)) if change.there < change.here => {
                    let more = change.more(&access, &touched, lines);
                    phase.compute_s -= more.spared_s;
                    phase.accesses.extend([access, more.access]);
                }
                Some((change, touched)) => {
                    let (fewer, kept_s) = change.fewer(access, &touched, lines);
                    phase.compute_s += kept_s;
                    phase.accesses.push(fewer);
                }
                None => phase.accesses.push(access),
            }
        }
        phase.compute_s = phase.compute_s.max(0.0);
    }
    Cow::Owned(phases)
}

/// How an object's touches fare behind the cache of the run, there, and the other one, here.
#[derive(Debug, Clone, Copy)]
struct Change<'p> {
    object: &'p Object,
    /// Shares of independent touches that come from memory.
    there: f64,
    here: f64,
    /// What the run fetched, over what independent touches would have.
    independent: f64,
}

/// Lines from memory that the cache of the run had.
struct More {
    access: Access,
    /// CPU time that they took there.
    spared_s: f64,
}

/// By name, the objects to which the size of the cache makes a difference.
fn changes<'p>(profile: &'p Profile, cache_bytes: u64) -> BTreeMap<&'p str, Change<'p>> {
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for access in profile.phases.iter().flat_map(|phase| &phase.accesses) {
        let sum = sums.entry(access.object.as_str()).or_default();
        sum.0 += access.dram_read_bytes;
        sum.1 += access.touched.map_or(0.0, |touched| touched.bytes);
    }
    let change = |object: &'p Object| {
        let there = share_let_through(&object.miss_curve, profile.program.llc_bytes)?;
        let here = share_let_through(&object.miss_curve, cache_bytes)?;
        let (fetched, touched) = sums.get(object.name.as_str()).copied()?;
        let independent = if touched * there > 0.0 { (fetched / (touched * there)).min(1.0) } else { 1.0 };
        Some(Change { object, there, here, independent })
    };
    let by_name = profile.objects.iter().filter_map(|object| Some((object.name.as_str(), change(object)?)));
    by_name.filter(|(_, change)| (change.here - change.there).abs() > 0.0).collect()
}

impl Change<'_> {
    /// What a smaller cache lets through beside the lines of the run.
    fn more(self, access: &Access, touched: &Touched, lines: Lines) -> More {
        let part = match lines {
            Lines::Fewest => 0.0,
            Lines::Likely => self.independent.min(touched.beyond_core.map_or(1.0, |part| part.likely)),
            Lines::Most => touched.beyond_core.map_or(1.0, |part| part.high.min(1.0)),
        };
        let had = (touched.bytes - access.dram_read_bytes).max(0.0);
        let bytes = (touched.bytes * (self.here - self.there) * part).min(had);
        let spared_s = if had > 0.0 { touched.cache_wait_s * bytes / had } else { 0.0 };
        // A line that comes once goes back once at most: those that a phase writes back may have come in another one.
        let written = if access.dram_read_bytes > 0.0 { access.dram_write_bytes / access.dram_read_bytes } else { 0.0 };
        let written = written.min(1.0);
        let missing = (self.here - self.there) / (1.0 - self.there).max(f64::MIN_POSITIVE);
        let access = Access {
            reads: 0.0,
            writes: 0.0,
            read_bytes: 0.0,
            write_bytes: 0.0,
            dram_read_bytes: bytes,
            dram_write_bytes: bytes * written,
            mlp: access.mlp + (touched.mlp - access.mlp) * missing.min(1.0),
            touched: None,
            // Nobody saw how the program waits for these.
            wait_s: None,
            wait_factor: None,
            traffic_within: Some(self.within(access, touched, part)),
            ..access.clone()
        };
        More { access, spared_s }
    }

    /// How far those lines may be off, of which it lets this part of independent touches through: as far as the touches,
    /// but they are no more than were waited for.
    fn within(self, access: &Access, touched: &Touched, part: f64) -> Within {
        let of_touches = lines_within(access, self.object);
        let most = touched.beyond_core.filter(|_| part > 0.0).map(|known| known.high);
        let of_waiting = most.map_or(f64::INFINITY, |most| (most / part).max(1.0));
        Within { high: of_touches.high.min(of_waiting), ..of_touches }
    }

    /// What a larger cache lets through, and the CPU time that the lines take that it has.
    fn fewer(self, access: Access, touched: &Touched, lines: Lines) -> (Access, f64) {
        let all = access.dram_read_bytes;
        let likely = all * self.here / self.there;
        let bytes = match lines {
            Lines::Fewest => (all - touched.bytes * (self.there - self.here)).clamp(0.0, likely),
            Lines::Likely | Lines::Most => likely,
        };
        let part = if all > 0.0 { bytes / all } else { 1.0 };
        let wait_s = access.wait_s.map(|wait_s| wait_s * part);
        let kept_s = access.wait_s.unwrap_or(0.0) * (1.0 - part) / MEMORY_TO_CACHE;
        let touched = Touched { filled_bytes: touched.filled_bytes.min(bytes), ..*touched };
        let fewer = Access {
            dram_read_bytes: bytes,
            dram_write_bytes: access.dram_write_bytes * part,
            touched: Some(touched),
            wait_s,
            ..access
        };
        (fewer, kept_s)
    }
}
