//! Knobs of policies, under the kernel's names.

use serde::{Deserialize, Serialize};

use crate::kernel::scanner::ScanKnobs;

/// A number that can be set, under the kernel's own name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Knob {
    /// Name.
    pub name: String,
    /// Value in use.
    pub value: f64,
    /// Where its default comes from.
    pub source: String,
}

/// A knob with its source.
pub(crate) fn knob(name: &str, value: f64, source: &str) -> Knob {
    Knob { name: name.to_owned(), value, source: source.to_owned() }
}

/// Knobs of the scanner, as every policy that scans has them.
pub(crate) fn scan_knobs(knobs: &ScanKnobs) -> Vec<Knob> {
    const SOURCE: &str = "Linux 6.12 kernel/sched/fair.c";
    vec![
        knob("scan_delay_ms", knobs.scan_delay_ms, SOURCE),
        knob("scan_period_min_ms", knobs.scan_period_min_ms, SOURCE),
        knob("scan_period_max_ms", knobs.scan_period_max_ms, SOURCE),
        knob("scan_size_mb", knobs.scan_size_mb, SOURCE),
    ]
}

/// Sets a knob of the scanner; false where it has none of this name.
pub(crate) fn set_scan_knob(knobs: &mut ScanKnobs, name: &str, value: f64) -> bool {
    let place = match name {
        "scan_delay_ms" => &mut knobs.scan_delay_ms,
        "scan_period_min_ms" => &mut knobs.scan_period_min_ms,
        "scan_period_max_ms" => &mut knobs.scan_period_max_ms,
        "scan_size_mb" => &mut knobs.scan_size_mb,
        _ => return false,
    };
    *place = value;
    true
}
