//! Cohorts: pages that nothing tells apart but chance.
//!
//! A region is cut into chunks of the size that the scanner protects at once, and where a stream's
//! part begins; within a chunk, pages of one class are visited equally often. A cohort counts its pages by node,
//! protected or not, in fractions: the expected state of all runs at once.

use tierloom_contention::Work;
use tierloom_model::Socket;

use crate::engine::layout::Layout;
use crate::workload::demand::{private_share, work_of};
use crate::workload::zipf::zipf_share;
use crate::workload::{Phase, Spread, Stream, Workload};

/// Most pages of a cohort: what the scanner protects at once (256 MB).
pub(crate) const CHUNK: u64 = 65_536;
/// Classes that a scattered skew is cut into, each half as many pages as the one before.
const CLASSES: usize = 12;

/// Where a cohort's pages are in the address space.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Place {
    pub(crate) region: usize,
    /// First page of its chunk in the region.
    pub(crate) first: u64,
    /// Pages of its chunk, those of other classes included.
    pub(crate) chunk: u64,
    /// Class, and its share of the chunk's pages.
    pub(crate) class: usize,
    pub(crate) share: f64,
}

/// How a cohort is visited in one phase; per page, over the whole phase.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rate {
    /// Visits that come one after the other (sweeps), and at random.
    pub(crate) swept: f64,
    pub(crate) random: f64,
    pub(crate) work: Work,
    /// Share of its faults that meet the thread that faulted before.
    pub(crate) private: f64,
}

/// All cohorts of a workload.
#[derive(Debug, Clone)]
pub(crate) struct Cohorts {
    pub(crate) places: Vec<Place>,
    /// First cohort of each region, and one past the last.
    pub(crate) by_region: Vec<usize>,
    /// Shares of each region's pages by class.
    classes: Vec<Vec<f64>>,
}

impl Place {
    pub(crate) fn pages(&self) -> f64 {
        self.chunk as f64 * self.share
    }
}

impl Rate {
    pub(crate) fn visits(&self) -> f64 {
        self.swept + self.random
    }
}

impl Cohorts {
    pub(crate) fn new(workload: &Workload, layout: &Layout, chunk: u64) -> Self {
        let mut places = Vec::new();
        let mut by_region = vec![0];
        let streams = workload.streams_by_region();
        let all_classes: Vec<Vec<f64>> = streams.iter().map(|streams| classes_of(streams)).collect();
        for (region, placed) in layout.regions.iter().enumerate() {
            let classes = &all_classes[region];
            let mut edges = edges_of(&streams[region], placed.pages);
            edges.extend((0..placed.pages).step_by(usize::try_from(chunk.max(1)).unwrap_or(usize::MAX)));
            edges.sort_unstable();
            edges.dedup();
            for (index, first) in edges.iter().enumerate() {
                let last = edges.get(index + 1).copied().unwrap_or(placed.pages);
                for (class, share) in classes.iter().enumerate() {
                    places.push(Place { region, first: *first, chunk: last - first, class, share: *share });
                }
            }
            by_region.push(places.len());
        }
        Self { places, by_region, classes: all_classes }
    }

    /// Rates of every cohort in a phase, per page over the whole phase.
    pub(crate) fn rates(&self, workload: &Workload, layout: &Layout, phase: &Phase, socket: &Socket) -> Vec<Rate> {
        let mut rates = vec![Rate::default(); self.places.len()];
        let indices = workload.region_indices();
        for stream in &phase.streams {
            let Some(region) = indices.get(stream.region.as_str()).copied() else { continue };
            let pages = layout.regions[region].pages as f64;
            let part = [stream.part[0] * pages, stream.part[1] * pages];
            let (whole, private) = (work_of(stream, phase, socket), private_share(stream, phase.threads));
            let cohorts = self.by_region[region]..self.by_region[region + 1];
            for cohort in cohorts {
                let place = &self.places[cohort];
                let share = share_of(&stream.spread, place, part, &self.classes[region]);
                if share <= 0.0 {
                    continue;
                }
                let (per_page, rate) = (share / place.pages(), &mut rates[cohort]);
                let visits = stream.visits * per_page;
                let before = rate.visits();
                rate.private = (rate.private * before + private * visits) / (before + visits).max(f64::MIN_POSITIVE);
                if matches!(stream.spread, Spread::Sweep) {
                    rate.swept += visits;
                } else {
                    rate.random += visits;
                }
                rate.work += whole * per_page;
            }
        }
        rates
    }
}

/// Shares of a region's pages by class: those of its first skewed, scattered stream; one class without.
fn classes_of(streams: &[(&Phase, &Stream)]) -> Vec<f64> {
    for (_, stream) in streams {
        match &stream.spread {
            Spread::Bins(shares) => return vec![1.0 / shares.len() as f64; shares.len()],
            Spread::Scattered(_) => return halving(),
            Spread::Sweep | Spread::Uniform | Spread::Zipf(_) => {}
        }
    }
    vec![1.0]
}

/// `2^-11, 2^-11, 2^-10, … 1/2`: hottest first.
fn halving() -> Vec<f64> {
    let mut shares: Vec<f64> = (1..CLASSES).rev().map(|power| 0.5f64.powi(i32::try_from(power).unwrap_or(0))).collect();
    shares.insert(0, shares[0]);
    shares
}

/// Pages of a region at which a stream's part or a step of its skew begins.
fn edges_of(streams: &[(&Phase, &Stream)], pages: u64) -> Vec<u64> {
    let page = |share: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of the region")]
        let page = (share * pages as f64).round() as u64;
        page
    };
    let mut edges = vec![0];
    for (_, stream) in streams {
        let [from, to] = stream.part;
        edges.extend([page(from), page(to)]);
        if matches!(stream.spread, Spread::Zipf(_)) {
            edges.extend(
                (1..CLASSES).map(|power| page(from + (to - from) * 0.5f64.powi(i32::try_from(power).unwrap_or(0)))),
            );
        }
    }
    edges.retain(|edge| *edge < pages);
    edges
}

/// Share of a stream's visits that fall on a cohort.
fn share_of(spread: &Spread, place: &Place, part: [f64; 2], classes: &[f64]) -> f64 {
    let (first, last) = (place.first as f64, (place.first + place.chunk) as f64);
    let (low, high) = (first.max(part[0].round()), last.min(part[1].round()));
    if high <= low {
        return 0.0;
    }
    let span = (part[1].round() - part[0].round()).max(1.0);
    let here = (high - low) / span;
    let upto = |class: usize| classes[..class].iter().sum::<f64>();
    match spread {
        Spread::Sweep | Spread::Uniform => here * place.share,
        Spread::Zipf(theta) => {
            let cumulative = |page: f64| zipf_share(*theta, page - part[0].round(), span);
            (cumulative(high) - cumulative(low)) * place.share
        }
        Spread::Scattered(theta) => {
            let cumulative = |share: f64| zipf_share(*theta, share * span, span);
            here * (cumulative(upto(place.class + 1)) - cumulative(upto(place.class)))
        }
        Spread::Bins(shares) => {
            let density = |share: f64| bins_share(shares, share);
            here * (density(upto(place.class + 1)) - density(upto(place.class)))
        }
    }
}

/// Share of visits that the hottest `share` of the pages take.
fn bins_share(shares: &[f64], share: f64) -> f64 {
    let at = share.clamp(0.0, 1.0) * shares.len() as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 64")]
    let whole = (at + 1e-9).floor() as usize;
    let sum: f64 = shares[..whole.min(shares.len())].iter().sum();
    sum + shares.get(whole).map_or(0.0, |next| next * (at - whole as f64).max(0.0))
}
