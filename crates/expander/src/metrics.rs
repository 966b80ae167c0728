//! What is counted while a run goes on: latencies, and the time series.

use crate::histogram::Histogram;
use crate::outcome::{Latency, Step};
use crate::time::{Ps, from_ns, to_s};

/// State of the system at the end of a step.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sample {
    pub(crate) ingress: u32,
    pub(crate) dev_load: u32,
    pub(crate) collecting: bool,
    pub(crate) stack: u32,
    pub(crate) link_bytes: [f64; 2],
    /// Bytes that a direction of all links could carry in a picosecond.
    pub(crate) link_bytes_per_ps: f64,
}

/// Counters of a run.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) loads: Histogram,
    pub(crate) stores: Histogram,
    pub(crate) stores_in_collection: Histogram,
    pub(crate) llc_hits: u64,
    pub(crate) store_served: u64,
    timeline: Option<Timeline>,
}

#[derive(Debug)]
struct Timeline {
    width: Ps,
    end: Ps,
    loads: Histogram,
    stores: Histogram,
    bytes: [f64; 2],
    steps: Vec<Step>,
}

impl Metrics {
    pub(crate) fn new(timeline_ns: Option<f64>) -> Self {
        let timeline = timeline_ns.map(|ns| Timeline {
            width: from_ns(ns),
            end: from_ns(ns),
            loads: Histogram::new(),
            stores: Histogram::new(),
            bytes: [0.0; 2],
            steps: Vec::new(),
        });
        let new = Histogram::new;
        Self { loads: new(), stores: new(), stores_in_collection: new(), llc_hits: 0, store_served: 0, timeline }
    }

    /// A load that left the last-level cache is answered.
    pub(crate) fn load(&mut self, span: Ps) {
        self.loads.add(span);
        if let Some(timeline) = &mut self.timeline {
            timeline.loads.add(span);
        }
    }

    /// A line written back is released.
    pub(crate) fn store(&mut self, span: Ps, collecting: bool) {
        self.stores.add(span);
        if collecting {
            self.stores_in_collection.add(span);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.stores.add(span);
        }
    }

    /// Whether a step of the time series has ended by `now`.
    pub(crate) fn is_due(&self, now: Ps) -> bool {
        self.timeline.as_ref().is_some_and(|timeline| now >= timeline.end)
    }

    /// Ends the steps that lie before `now`.
    pub(crate) fn sample(&mut self, now: Ps, sample: Sample) {
        let Some(timeline) = &mut self.timeline else { return };
        while now >= timeline.end {
            timeline.close(sample);
        }
    }

    /// The time series.
    pub(crate) fn steps(self) -> Vec<Step> {
        self.timeline.map(|timeline| timeline.steps).unwrap_or_default()
    }
}

impl Timeline {
    fn close(&mut self, sample: Sample) {
        let pair = |histogram: &Histogram| [histogram.percentile_ns(0.5), histogram.percentile_ns(0.99)];
        let capacity = sample.link_bytes_per_ps * self.width as f64;
        let share = |at: usize| {
            let bytes = sample.link_bytes[at] - self.bytes[at];
            if capacity > 0.0 { (bytes / capacity).min(1.0) } else { 0.0 }
        };
        self.steps.push(Step {
            time_s: to_s(self.end),
            load_ns: pair(&self.loads),
            store_ns: pair(&self.stores),
            ingress: sample.ingress,
            dev_load: sample.dev_load,
            collecting: sample.collecting,
            stack: sample.stack,
            link_use: [share(0), share(1)],
        });
        self.bytes = sample.link_bytes;
        self.end += self.width;
        self.loads.clear();
        self.stores.clear();
    }
}

/// A histogram as it is reported.
pub(crate) fn latency(histogram: &Histogram) -> Latency {
    Latency {
        count: histogram.count(),
        mean_ns: histogram.mean_ns(),
        p50_ns: histogram.percentile_ns(0.5),
        p99_ns: histogram.percentile_ns(0.99),
        p999_ns: histogram.percentile_ns(0.999),
    }
}
