//! What is asked of a run under a plan.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use tierloom_linux::memory;
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
    /// Rules say what to ablate: all pages of it are a few that repeat, so that it is always in the cache, and what the
    /// program computes with it means nothing. Where it would be placed does not matter then.
    pub ablate: bool,
    /// Seconds after which the program is killed, with what it started.
    pub most_s: Option<f64>,
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
            ablate: false,
            most_s: None,
            watch_s: None,
            root: Root::default(),
        }
    }

    /// Mappings of the kernel's that a process of the run may have for what is placed; the other half is its own.
    pub(super) fn mappings(&self) -> u64 {
        memory::most_mappings(&self.root) / 2
    }
}
