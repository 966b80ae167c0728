//! The 51 published curves, with their sources in `published_curves.toml`.

#![allow(clippy::unwrap_used, dead_code, reason = "test data; each test uses its own part of it")]

use serde::Deserialize;
use tierloom_contention::PathLoad;
use tierloom_model::{Curve, Kind, Load, Origin};

#[derive(Deserialize)]
struct Published {
    curves: Vec<Entry>,
}

/// One published curve.
#[derive(Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) read_fraction: f64,
    /// `[GB/s, ns]`.
    pub(crate) points: Vec<[f64; 2]>,
}

pub(crate) fn published() -> Vec<Entry> {
    toml::from_str::<Published>(include_str!("../published_curves.toml")).unwrap().curves
}

impl Entry {
    /// The points that rise, which is what a machine file accepts: four of the curves end in one
    /// point a few ns below the one before.
    pub(crate) fn rising(&self) -> Vec<[f64; 2]> {
        let mut rising: Vec<[f64; 2]> = Vec::new();
        for point in &self.points {
            if rising.last().is_none_or(|last| point[0] > last[0] && point[1] >= last[1]) {
                rising.push(*point);
            }
        }
        rising
    }

    /// Highest bandwidth, GB/s.
    pub(crate) fn reach(&self) -> f64 {
        self.points.iter().map(|point| point[0]).fold(0.0, f64::max)
    }

    /// The noun that holds some of its points.
    pub(crate) fn curve(&self, points: Vec<[f64; 2]>) -> Curve {
        let origin = Origin { kind: Kind::Published, source: self.source.clone(), how: String::new() };
        Curve { read_fraction: self.read_fraction, points, origin }
    }

    /// The load that consists of some of its points.
    pub(crate) fn load(&self, points: Vec<[f64; 2]>) -> Load {
        Load::Points(vec![self.curve(points)])
    }

    /// The rising points, compiled.
    pub(crate) fn compiled(&self) -> PathLoad {
        let points = self.rising();
        let idle_ns = points[0][1];
        PathLoad::new(&self.load(points), idle_ns).unwrap()
    }
}
