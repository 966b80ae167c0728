//! What a memory does under load.
//!
//! This engine stands between the nouns and everything that asks "how slow does this memory get":
//! it compiles a path's [`Load`](tierloom_model::Load) into a [`PathLoad`], puts the paths of one
//! socket together into a [`Fabric`] where they share memories and links, finds the
//! [`operating_point`] of a closed loop and the time of some [`Work`] ([`fixed_point`]), and fits forms to published points ([`fit_curve`],
//! [`fit_peak`]). It knows nothing of programs, objects or policies; its input is traffic.
//!
//! Promises: latency never falls when traffic grows, nothing carries more than its peak, and the
//! same input gives the same output, bit for bit.

mod error;
mod fabric;
mod fit;
mod fixed_point;
mod gradient;
mod least_squares;
mod minimise;
mod operating_point;
mod path;
mod peak;
mod root;
mod shape;
mod spline;
mod window;
mod work;

pub use error::ContentionError;
pub use fabric::{Fabric, Flow, Station};
pub use fit::{CurveFit, FitError, PeakFit, fit_curve, fit_peak};
pub use fixed_point::fixed_point;
pub use gradient::gradient;
pub use operating_point::{OperatingPoint, operating_point};
pub use path::{PathLoad, Slice};
pub use peak::peak_gb_s;
pub use root::{Bracket, increasing_root};
pub use shape::excess_ns;
pub use window::held_up_s;
pub use work::{Traffic, Work};
