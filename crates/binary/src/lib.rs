//! Machine code without running it: functions, lines, instructions, control flow, and what loops do.
//!
//! It knows nothing of samples, objects or profiles, and stands alone.

pub mod build_id;
pub mod call_graph;
pub mod cfg;
pub mod code;
pub mod dataflow;
pub mod debug_info;
pub mod demangle;
pub mod elf;
pub mod image;
pub mod search;
pub mod x86;

use debug_info::Lines;
use elf::Module;

/// Where the files of code are; whoever works with them need not know.
pub trait Binaries {
    /// What is known of the file of a path, in the build that ran; nothing where it is not to be had.
    fn open(&self, path: &str, build_id: Option<&str>) -> Module;

    /// The source lines of such a file.
    fn lines(&self, module: &Module) -> Lines;
}

/// The files of this machine, at their own paths.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files;

impl Binaries for Files {
    fn open(&self, path: &str, build_id: Option<&str>) -> Module {
        let module = Module::read(path);
        let another = build_id.is_some_and(|wanted| !module.build_id.is_empty() && module.build_id != wanted);
        if another { Module::default() } else { module }
    }

    fn lines(&self, module: &Module) -> Lines {
        Lines::read(&module.path)
    }
}
