//! Persistent pools: named arrays that come back after a crash, and transactions over them.
//!
//! A pool is one file, best on persistent memory (a DAX file or device), where stores are durable once
//! they have left the caches; on any other file `msync` makes them so. Everything that changes a pool
//! goes through [`Durable`]'s three steps (store, write back, fence) in an order that [`log`] explains,
//! so that a test can stand in for the medium and cut the power between any two of them.
//!
//! [`Backend`] is what a pool can do, whoever keeps it: [`Pool`], or libpmemobj where it is installed.
//! [`stream`] measures what keeping data in a pool costs.
//!
//! Reading order: `medium`, `layout`, `log`, `directory`, `sums`, `pool`, `read_only`, `check`, `look`; then `backend`,
//! `native`, `pmdk`, `files`, `stream`.

#![allow(unsafe_code)]

mod backend;
mod check;
mod device;
mod directory;
mod error;
mod files;
mod layout;
mod log;
mod look;
mod medium;
mod native;
pub mod pmdk;
mod pool;
mod read_only;
pub mod stream;
mod sums;

pub use backend::{Backend, Kind};
pub use check::{Problem, check, repair};
pub use device::{Device, WriteBack};
pub use directory::Entry;
pub use error::PmemError;
pub use files::{check_file, create, kind_of, look, open, repair_file};
pub use layout::LEAST_BYTES;
pub use look::Look;
pub use medium::{Durable, Medium};
pub use pool::{Pool, Usage};
pub use sums::CHUNK;
