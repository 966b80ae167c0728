//! How latency grows with load, as data: either points that somebody measured, or a fitted form.

use serde::{Deserialize, Serialize};

use crate::error::{Flaw, at_least, fraction, positive};
use crate::figure::Origin;

/// Loaded latency of one path, alone in use, by read fraction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Curves of measured points.
    Points(Vec<Curve>),
    /// A peak by read fraction and the shape of the rise towards it.
    Form(Form),
}

/// Latency against bandwidth at one read fraction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Share of reads in the traffic, 0 to 1 by bytes.
    pub read_fraction: f64,
    /// `[GB/s, ns]`, both growing; the last point is the highest bandwidth that was reached.
    pub points: Vec<[f64; 2]>,
    /// Where the points come from.
    pub origin: Origin,
}

/// A peak by read fraction and the shape of the rise towards it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// Highest bandwidth by read fraction.
    pub peak: Peak,
    /// Latency above the path's idle latency, by utilisation of the peak.
    pub shape: Shape,
    /// Where the parameters come from.
    pub origin: Origin,
}

/// Highest bandwidth by read fraction `r`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Peak {
    /// One bus for both directions (DDR): `1/B = r/read + (1-r)/write`.
    Half {
        /// Peak of all reads, GB/s.
        read_gb_s: f64,
        /// Peak of all writes, GB/s.
        write_gb_s: f64,
    },
    /// A lane for each direction (CXL):
    /// `B = [(r/read)^q + ((1-r)/write)^q + (1/combined)^q]^(-1/q)`.
    Full {
        /// Peak of all reads, GB/s.
        read_gb_s: f64,
        /// Peak of all writes, GB/s.
        write_gb_s: f64,
        /// What the device behind the lanes sustains in all, GB/s.
        combined_gb_s: f64,
        /// Sharpness of the corner between the three limits.
        sharpness: f64,
    },
}

/// Latency above idle at utilisation `u` of the peak, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Shape {
    /// `linear·u + wait·u^exponent/(1-u)`: nearly flat, then a wall, when `wait` is small.
    Knee {
        /// ns.
        linear_ns: f64,
        /// ns.
        wait_ns: f64,
        /// At least 1.
        exponent: f64,
    },
    /// `rise·u^exponent/(1-u)^wall`.
    Power {
        /// ns.
        rise_ns: f64,
        /// Above 0.
        exponent: f64,
        /// Above 0.
        wall: f64,
    },
}

impl Load {
    /// Origins of everything in here.
    pub(crate) fn origins(&self) -> Vec<&Origin> {
        match self {
            Load::Points(curves) => curves.iter().map(|curve| &curve.origin).collect(),
            Load::Form(form) => vec![&form.origin],
        }
    }

    pub(crate) fn check(&self) -> Result<(), Flaw> {
        match self {
            Load::Points(curves) => check_family(curves),
            Load::Form(form) => form.check().map_err(|flaw| flaw.within("form")),
        }
    }
}

fn check_family(curves: &[Curve]) -> Result<(), Flaw> {
    if curves.is_empty() {
        return Err(Flaw::new("points", "there is no curve", "give at least one curve with its read_fraction"));
    }
    for (index, curve) in curves.iter().enumerate() {
        curve.check().map_err(|flaw| flaw.within(&format!("points[{index}]")))?;
        if curves[..index].iter().any(|other| other.read_fraction >= curve.read_fraction) {
            let problem = format!("read_fraction {} does not come after the one before", curve.read_fraction);
            return Err(Flaw::new(format!("points[{index}]"), problem, "sort the curves by growing read_fraction"));
        }
    }
    Ok(())
}

impl Curve {
    /// Public data holds every one of these faults; a curve that has one is refused, not repaired.
    fn check(&self) -> Result<(), Flaw> {
        fraction("read_fraction", self.read_fraction)?;
        if self.points.len() < 2 {
            return Err(Flaw::new(
                "points",
                "a curve needs two points or more",
                "give [GB/s, ns] pairs from idle to peak",
            ));
        }
        for (index, [gb_s, ns]) in self.points.iter().enumerate() {
            let key = format!("points[{index}]");
            at_least(&format!("{key}[0] (GB/s)"), *gb_s, 0.0)?;
            positive(&format!("{key}[1] (ns)"), *ns)?;
            Self::check_unit(&key, *gb_s, *ns)?;
            if index > 0 {
                self.check_growth(index)?;
            }
        }
        Ok(())
    }

    fn check_unit(key: &str, gb_s: f64, ns: f64) -> Result<(), Flaw> {
        if gb_s > 20_000.0 {
            return Err(Flaw::new(
                key,
                format!("{gb_s} GB/s is beyond any memory"),
                "is the column in MB/s? divide by 1000",
            ));
        }
        if !(5.0..1e6).contains(&ns) {
            return Err(Flaw::new(
                key,
                format!("{ns} ns is no memory latency"),
                "is the column in cycles or µs? convert it to ns",
            ));
        }
        Ok(())
    }

    fn check_growth(&self, index: usize) -> Result<(), Flaw> {
        let ([gb_s_before, ns_before], [gb_s, ns]) = (self.points[index - 1], self.points[index]);
        let key = format!("points[{index}]");
        if gb_s <= gb_s_before {
            let problem = format!("bandwidth {gb_s} GB/s does not grow after {gb_s_before} GB/s");
            return Err(Flaw::new(key, problem, "sort by bandwidth and drop the points past the peak"));
        }
        if ns < ns_before {
            let problem = format!("latency {ns} ns falls below {ns_before} ns at more bandwidth");
            return Err(Flaw::new(key, problem, "drop or average the noisy points; a loaded-latency curve only rises"));
        }
        Ok(())
    }
}

impl Form {
    fn check(&self) -> Result<(), Flaw> {
        self.peak.check().map_err(|flaw| flaw.within("peak"))?;
        self.shape.check().map_err(|flaw| flaw.within("shape"))
    }
}

impl Peak {
    fn check(&self) -> Result<(), Flaw> {
        match *self {
            Peak::Half { read_gb_s, write_gb_s } => {
                positive("half.read_gb_s", read_gb_s)?;
                positive("half.write_gb_s", write_gb_s)
            }
            Peak::Full { read_gb_s, write_gb_s, combined_gb_s, sharpness } => {
                positive("full.read_gb_s", read_gb_s)?;
                positive("full.write_gb_s", write_gb_s)?;
                positive("full.combined_gb_s", combined_gb_s)?;
                at_least("full.sharpness", sharpness, 1.0)
            }
        }
    }
}

impl Shape {
    fn check(&self) -> Result<(), Flaw> {
        match *self {
            Shape::Knee { linear_ns, wait_ns, exponent } => {
                at_least("knee.linear_ns", linear_ns, 0.0)?;
                at_least("knee.wait_ns", wait_ns, 0.0)?;
                at_least("knee.exponent", exponent, 1.0)
            }
            Shape::Power { rise_ns, exponent, wall } => {
                at_least("power.rise_ns", rise_ns, 0.0)?;
                positive("power.exponent", exponent)?;
                positive("power.wall", wall)
            }
        }
    }
}
