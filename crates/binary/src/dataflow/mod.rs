//! Where values come from and how they change from round to round.

pub mod induction;
pub mod spills;
