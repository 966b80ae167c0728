//! The exact evaluator: page by page, visit by visit.
//!
//! A run goes in windows of some milliseconds (`drive.rs`, `window.rs`). Within a window, visits read the flags of
//! their page and fault where the entry is protected (`visit.rs`); at its end the clock moves by the window's time
//! (computing, and waits at the loaded latency of the nodes that served it) and by what its events cost, and the
//! kernel's own threads get as much time: the scanner, kswapd (`lists.rs`), the policy's sampler.

mod drive;
mod lists;
mod page_state;
mod pages;
mod random;
mod ranks;
mod source;
mod state;
mod visit;
mod window;

pub(crate) use drive::run;
pub use pages::BYTES_PER_PAGE;
pub(crate) use state::Exact;
pub(crate) use window::PerVisit;
