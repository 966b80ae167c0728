//! Where values come from and how they change from round to round.

pub mod dependence;
pub mod induction;
pub mod modular;
pub mod spills;
pub mod state;
mod stores;
pub mod trip_count;
pub mod update;
