//! STREAM in ordinary memory and in a pool: what App-Direct access and durability cost.
//!
//! Threads are held on their CPUs, each works on the same part of the arrays all the time, and a kernel's
//! time is from the moment when all may start until all are done, with what makes its output durable
//! inside. The results are checked element by element at the end.

mod kernels;
mod setup;
mod team;

use tierloom_linux::cpus;
use tierloom_linux::pages::Pages;

use crate::backend::Backend;
use crate::directory::Entry;
use crate::error::PmemError;
pub use kernels::Kernel;
pub use setup::{Persist, Setup, Times};
use team::{Ground, Start};

/// STREAM in ordinary memory: of one node, or wherever the first CPU's is.
///
/// # Errors
/// A CPU is not allowed, there is no memory, or the results are wrong.
pub fn volatile(setup: &Setup, node: Option<u32>) -> Result<Times, PmemError> {
    let [mut a, mut b, mut c] = memory(setup, node)?;
    let starts = [&mut a, &mut b, &mut c].map(|pages| Start(pages.as_mut_slice().as_mut_ptr().cast()));
    team::measure(setup, starts, None)
}

/// Memory of the first CPU's node unless another is named: pages go to the node of whoever touches them.
fn memory(setup: &Setup, node: Option<u32>) -> Result<[Pages; 3], PmemError> {
    let bytes = setup.elements * size_of::<f64>();
    let make = || -> Result<[Pages; 3], PmemError> {
        cpus::run_on(&setup.cpus[..setup.cpus.len().min(1)])?;
        let pages = || Pages::ordinary(bytes, node);
        Ok([pages()?, pages()?, pages()?])
    };
    std::thread::scope(|scope| scope.spawn(make).join()).unwrap_or_else(|_| Err(PmemError::Lost))
}

/// STREAM on three arrays of a pool, at these offsets of its file.
///
/// # Errors
/// A CPU is not allowed, the arrays are too small, a transaction does not fit, or the results are wrong.
pub fn in_pool(setup: &Setup, pool: &mut dyn Backend, offsets: [u64; 3]) -> Result<Times, PmemError> {
    let bytes = (setup.elements * size_of::<f64>()) as u64;
    let known = pool.entries();
    for offset in offsets {
        let fits = |entry: &Entry| entry.offset == offset && entry.bytes >= bytes && offset.is_multiple_of(DOUBLE);
        if !known.iter().any(fits) {
            let what = format!("the pool has no array of {bytes} bytes at {offset}");
            return Err(PmemError::Request { what, hint: "make its three arrays first" });
        }
    }
    let base = pool.start();
    // SAFETY: each offset is that of an array of the pool, which is mapped as a whole.
    let starts = offsets.map(|offset| Start(unsafe { base.add(usize::try_from(offset).unwrap_or(0)) }.cast()));
    team::measure(setup, starts, Some(Ground { pool, offsets, bytes }))
}

/// Bytes of a double.
const DOUBLE: u64 = 8;

#[cfg(test)]
#[expect(clippy::cast_ptr_alignment, reason = "arrays start at pages")]
mod tests {
    use super::*;
    use crate::backend::Kind;
    use crate::files::{create, open};

    fn setup(persist: Persist) -> Setup {
        let cpus = cpus::allowed_cpus().unwrap();
        Setup { elements: 5001, cpus: vec![cpus[0], *cpus.last().unwrap()], rounds: 3, persist }
    }

    #[test]
    fn every_counted_round_has_a_time() {
        let times = volatile(&setup(Persist::None), Some(0)).unwrap();
        assert!(times.iter().all(|times| times.len() == 2 && times.iter().all(|seconds| *seconds > 0.0)));
    }

    #[test]
    fn results_are_in_the_pool_whatever_is_done_about_durability() {
        for persist in [Persist::None, Persist::Flush, Persist::Transaction] {
            let path = std::env::temp_dir().join(format!("tierloom-stream-{}-{persist:?}", std::process::id()));
            let mut pool = create(Kind::Native, &path, 1 << 20, None, 1).unwrap();
            let offsets = ["a", "b", "c"].map(|name| pool.allocate(name, "<f8", 5001 * 8, 0).unwrap().offset);
            assert!(in_pool(&setup(persist), pool.as_mut(), offsets).unwrap().iter().all(|times| times.len() == 2));
            drop(pool);
            let pool = open(&path).unwrap();
            // SAFETY: the array is there, checked when it was made.
            let first = unsafe { pool.start().add(usize::try_from(offsets[0]).unwrap()).cast::<f64>().read() };
            assert!((first - 15.0_f64.powi(3)).abs() < 1e-9, "a is 15 times itself a round");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn what_goes_wrong_in_a_team_stops_it_and_is_told() {
        let path = std::env::temp_dir().join(format!("tierloom-stream-{}-small", std::process::id()));
        let mut pool = create(Kind::Native, &path, 1 << 20, Some(16 << 10), 1).unwrap();
        let offsets = ["a", "b", "c"].map(|name| pool.allocate(name, "<f8", 5001 * 8, 0).unwrap().offset);
        let error = in_pool(&setup(Persist::Transaction), pool.as_mut(), offsets).unwrap_err();
        assert!(matches!(error, PmemError::LogFull { .. }), "{error}");
        assert!(!pool.in_transaction());
        assert!(in_pool(&setup(Persist::None), pool.as_mut(), [0; 3]).unwrap_err().to_string().contains("no array"));
        drop(pool);
        std::fs::remove_file(&path).unwrap();
        let nowhere = Setup { cpus: vec![1023], ..setup(Persist::None) };
        assert!(matches!(volatile(&nowhere, None), Err(PmemError::Kernel { .. })));
    }
}
