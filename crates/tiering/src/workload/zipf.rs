//! Zipf's law in closed form: rank `r`, from 0, in proportion to `∫ x^-θ dx` from `r + 1` to `r + 2`.

/// Visits of one rank: the integral from `rank + 1` on, without taking nearly equal numbers from each other.
pub(crate) fn mass(theta: f64, rank: u64) -> f64 {
    let (start, power) = (rank as f64 + 1.0, 1.0 - theta);
    let growth = start.recip().ln_1p();
    if power.abs() < 1e-9 { growth } else { start.powf(power) * (power * growth).exp_m1() / power }
}

/// Share of visits that the first `upto` of `pages` ranks take.
pub(crate) fn zipf_share(theta: f64, upto: f64, pages: f64) -> f64 {
    integral(theta, upto) / integral(theta, pages)
}

/// `∫ x^-θ dx` from 1 to `upto + 1`.
pub(crate) fn integral(theta: f64, upto: f64) -> f64 {
    let end = upto + 1.0;
    if (theta - 1.0).abs() < 1e-9 { end.ln() } else { (end.powf(1.0 - theta) - 1.0) / (1.0 - theta) }
}
