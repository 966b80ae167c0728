//! Machine code without running it: functions, lines, instructions, control flow, and what loops do.
//!
//! It knows nothing of samples, objects or profiles, and stands alone.

pub mod arch;
pub mod assignment;
pub mod build_id;
pub mod call_graph;
pub mod cfg;
pub mod code;
pub mod dataflow;
pub mod debug_info;
pub mod demangle;
pub mod elf;
mod files;
pub mod image;
mod index;
pub mod instruction;
pub mod search;
mod x86;

use debug_info::DebugInfo;
use elf::Binary;
pub use files::Files;

/// Where the files of code are; whoever works with them need not know.
pub trait Binaries {
    /// What is known of the file of a path, in the build that ran; nothing where it is not to be had.
    fn open(&self, path: &str, build_id: Option<&str>) -> Binary;

    /// Its source lines; read when this is called, for debug information can be a hundred times the code.
    fn debug_info(&self, module: &Binary) -> DebugInfo;
}
