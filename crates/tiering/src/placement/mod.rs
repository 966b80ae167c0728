//! Where pages are put before the run: placements by name, and our own, searched.

mod frank_wolfe;
pub(crate) mod named;
pub(crate) mod tierloom;
