//! What the caches of a core let through: no more than was waited for, one after the other, at the latency of the last level.
//!
//! That latency is the measured one of the run's machine, or an assumed one. What independent touches would have those caches
//! let through is held against it. (Not of streams, which prefetchers fetch in time.)

use std::collections::BTreeMap;

use tierloom_model::units::{LINE_BYTES_F64, NS};
use tierloom_model::{BeyondCore, Object, Phase, Profile, Socket, Touched, share_let_through};

/// Latency of memory against that of the last-level cache: about 100 ns against 15 to 25 ns on servers of 2020 to 2025.
/// Assumed.
pub(crate) const MEMORY_TO_CACHE: f64 = 5.0;
/// At most so many lines come from the last-level cache for one that is waited for: a core hides the latency of some, and may
/// have more in flight than their pattern says. Assumed.
const MOST_FOR_ONE: f64 = 2.0;

/// What a run waits for lines that its last-level cache has, and which touches ask for them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastLevel {
    /// What one core has before it.
    core_cache_bytes: u64,
    /// Its latency: the shortest that it may be, and the likely one.
    latency_ns: [f64; 2],
}

impl LastLevel {
    /// Where nobody measured it: servers of 2015 to 2025 have 256 KiB to 2 MiB per core, and answer after about 12 ns (a Zen
    /// alone) or more. Assumed.
    pub(crate) const ASSUMED: Self = Self { core_cache_bytes: 1 << 20, latency_ns: [12.0, 100.0 / MEMORY_TO_CACHE] };

    /// That of a measured machine.
    pub(crate) fn measured(socket: &Socket) -> Option<Self> {
        let (core, llc) = (socket.core_cache_bytes.as_ref()?, socket.llc_ns.as_ref()?);
        Some(Self { core_cache_bytes: core.value, latency_ns: [llc.value; 2] })
    }

    /// Its assumed latencies, in words.
    pub(crate) fn assumed_in_words() -> String {
        let [least, likely] = Self::ASSUMED.latency_ns;
        format!("{likely:.0} ns, {least:.0} at the least (assumed)")
    }
}

/// Whether a profile says what the caches of a core answered themselves, by a measured machine.
pub(crate) fn is_core_known(profile: &Profile) -> bool {
    let accesses = profile.phases.iter().flat_map(|phase| &phase.accesses);
    accesses.filter_map(|access| access.touched).any(|touched| touched.beyond_core.is_some())
}

/// Holds what independent touches would ask of the last-level cache of a profile's run against the time waited for it.
pub(crate) fn set_beyond_core(phases: &mut [Phase], profile: &Profile, last: LastLevel) {
    let Some(samples_per_s) = profile.sampling.as_ref().map(|sampling| sampling.hz) else { return };
    let let_through = |object: &Object| {
        let [core, beyond] = [last.core_cache_bytes, profile.program.llc_bytes]
            .map(|bytes| share_let_through(&object.miss_curve, bytes));
        Some((object.name.clone(), core? - beyond?))
    };
    let shares: BTreeMap<String, f64> = profile.objects.iter().filter_map(let_through).collect();
    let mut asked: BTreeMap<String, Asked> = BTreeMap::new();
    for (object, touched) in random(phases) {
        let Some(share) = shares.get(&object) else { continue };
        asked.entry(object).or_default().add(touched, touched.bytes * share, last, samples_per_s);
    }
    for (object, touched) in random(phases) {
        touched.beyond_core = asked.get(&object).and_then(Asked::part);
    }
}

/// What an object's random touches ask of the last-level cache, bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    /// If they were independent.
    independent: f64,
    /// By the time that was waited for them: the likely, and the most.
    waited: [f64; 2],
}

impl Asked {
    /// Of few samples it may have been more: this is the upper end of a Poisson count's 95 % interval.
    fn add(&mut self, touched: &Touched, independent: f64, last: LastLevel, samples_per_s: f64) {
        let seen = touched.cache_wait_s * samples_per_s;
        let [shortest, likely] = last.latency_ns;
        let bytes =
            |samples: f64, latency_ns: f64| samples / samples_per_s * touched.mlp * LINE_BYTES_F64 / (latency_ns * NS);
        self.independent += independent;
        self.waited[0] += bytes(seen, likely);
        self.waited[1] += MOST_FOR_ONE * bytes(seen.sqrt().mul_add(2.0, seen) + 3.0, shortest);
    }

    fn part(&self) -> Option<BeyondCore> {
        let [likely, high] = self.waited.map(|bytes| bytes / self.independent);
        (self.independent > 0.0).then_some(BeyondCore { likely, high })
    }
}

fn random(phases: &mut [Phase]) -> impl Iterator<Item = (String, &mut Touched)> {
    let accesses = phases.iter_mut().flat_map(|phase| &mut phase.accesses);
    accesses.filter(|access| access.pattern.is_random()).filter_map(|access| {
        let object = access.object.clone();
        Some((object, access.touched.as_mut()?))
    })
}
