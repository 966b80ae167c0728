//! What is asked of a run under a plan.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use tierloom_linux::root::Root;
use tierloom_model::{Plan, RuleOptions};

/// What to run, and where its memory goes.
#[derive(Debug, Clone)]
pub struct PlaceRequest {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Which memory goes where.
    pub plan: Plan,
    /// `libtierloom_preload.so`.
    pub preload: PathBuf,
    /// Environment variables to set beside the caller's own.
    pub variables: Vec<(OsString, OsString)>,
    /// Which node of this machine each memory is that the plan uses.
    pub nodes: BTreeMap<String, u32>,
    /// What is asked for every object, beside what the plan asks.
    pub options: RuleOptions,
    /// Set the host's interleave weights to the plan's while the program runs.
    pub set_host_weights: bool,
    /// Seconds between two snapshots for a watcher.
    pub watch_s: Option<f64>,
    /// Where `/sys` is.
    pub root: Root,
}

impl PlaceRequest {
    /// Runs a command by a plan and asks for nothing else.
    pub fn new(command: Vec<OsString>, plan: Plan, preload: PathBuf) -> Self {
        Self {
            command,
            plan,
            preload,
            variables: Vec::new(),
            nodes: BTreeMap::new(),
            options: RuleOptions::default(),
            set_host_weights: false,
            watch_s: None,
            root: Root::default(),
        }
    }
}
