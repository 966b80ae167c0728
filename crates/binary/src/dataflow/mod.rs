//! Where values come from and how they change from round to round.

pub mod dependence;
mod emulator;
pub mod forms;
pub mod induction;
pub mod left_alone;
pub mod modular;
pub mod one_way;
pub mod origins;
pub mod retry;
pub mod rounds;
mod slots;
pub mod spills;
pub mod state;
pub mod steady;
mod stores;
pub mod trip_count;
pub mod update;
pub mod way;
