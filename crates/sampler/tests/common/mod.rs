//! What the tests with real programs share: the preload library and a compiler.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder of this build: `target/PROFILE`.
fn build_folder() -> PathBuf {
    let test = env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().to_owned()
}

/// The preload library of this build, built if it is not there or out of date.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        if let Some(given) = env::var_os("TIERLOOM_PRELOAD") {
            return given.into();
        }
        let folder = build_folder();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "tierloom-preload", "--target-dir"]);
        cargo.arg(folder.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success(), "the preload library can be built");
        folder.join("libtierloom_preload.so")
    })
}

/// Compiles a program of `tests/programs`.
pub(crate) fn compiled(name: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c");
    let program = build_folder().join(format!("{name}-{}{}", std::process::id(), options.concat()));
    let mut compiler = Command::new("gcc");
    compiler.args(["-O2", "-w", "-pthread", "-o"]).arg(&program).arg(source).args(options);
    assert!(compiler.status().unwrap().success(), "{name} can be compiled");
    program
}
