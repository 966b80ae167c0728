//! What a run of STREAM is asked, and what it answers.

/// What is done about durability in the timed part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persist {
    /// Nothing: loads and stores alone, as in the published runs.
    None,
    /// Every thread writes its part of the output back and waits for it.
    Flush,
    /// A kernel is a transaction over its output.
    Transaction,
}

/// What to run.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Doubles of each array.
    pub elements: usize,
    /// One thread on each of these, the first of which keeps the time.
    pub cpus: Vec<u32>,
    /// Times that all kernels run; the first does not count.
    pub rounds: usize,
    /// What is done about durability.
    pub persist: Persist,
}

/// Seconds of each counted round, by kernel in the order of [`super::Kernel::ALL`].
pub type Times = [Vec<f64>; 4];
