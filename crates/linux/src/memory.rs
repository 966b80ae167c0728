//! Memory as the kernel deals it out: whose pages lie where, by which weights, and how much there may be.
//!
//! | file | what it asks and sets |
//! |---|---|
//! | `numa_pages` | pages of other processes, and what is in them; what the kernel counts about all |
//! | `interleave_weights` | the host's weights of weighted interleave |
//! | `limits` | how much a process may take |

mod interleave_weights;
mod limits;
mod numa_pages;

pub use interleave_weights::{host_weights, set_host_weight, set_weights_automatic, weights_are_automatic};
pub use limits::{automatic_huge_bytes, headroom_bytes, most_mappings};
pub use numa_pages::{locate_pages, move_pages, read_words, vmstat};

#[cfg(test)]
pub(crate) mod recorded {
    //! A recorded machine that a test writes file by file.

    use std::fs;
    use std::path::PathBuf;

    use crate::root::Root;

    /// Files below a folder of their own, gone with it.
    pub(crate) struct Recorded(PathBuf);

    impl Recorded {
        pub(crate) fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("tierloom-{name}-{}", std::process::id())))
        }

        pub(crate) fn put(&self, path: &str, text: &str) {
            let file = self.0.join(path.trim_start_matches('/'));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }

        pub(crate) fn root(&self) -> Root {
            Root::at(&self.0)
        }
    }

    impl Drop for Recorded {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }
}
