//! `none`: pages stay where they were put.

use super::contract::Policy;

/// `numa_balancing=0`.
#[derive(Debug, Clone, Copy)]
pub(super) struct None;

impl Policy for None {
    fn name(&self) -> &'static str {
        "none"
    }

    fn about(&self) -> &'static str {
        "pages stay where they were put (numa_balancing=0)"
    }
}
