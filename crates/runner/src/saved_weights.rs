//! The host's interleave weights as they were, on file while a run has others in force.
//!
//! A run that is killed cannot put them back: whoever finds the file of a process that has ended can. It lies
//! in `/run`, which is the machine's and forgotten at its next start, as the weights themselves are.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;

use serde::{Deserialize, Serialize};
use tierloom_linux::root::Root;
use tierloom_linux::{LinuxError, memory, threads};
use tierloom_model::Warning;

const FOLDER: &str = "/run/tierloom";
const FILE: &str = "/run/tierloom/host-weights.json";
/// Written first, then renamed: a file that is there is whole.
const DRAFT: &str = "/run/tierloom/host-weights.json.part";

/// What the host had, and who changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedWeights {
    /// The run that changed them.
    pub pid: u32,
    /// When that process started, in the kernel's ticks since the machine's start: ids come again.
    started: u64,
    /// Weight by node.
    pub weights: BTreeMap<u32, u32>,
    /// The kernel worked them out by itself.
    pub automatic: bool,
}

impl SavedWeights {
    /// Those of these nodes now, in the name of this process.
    pub(super) fn now(root: &Root, nodes: impl Iterator<Item = u32>) -> Self {
        let known = memory::host_weights(root);
        let pid = std::process::id();
        Self {
            pid,
            started: threads::started(root, pid).unwrap_or(0),
            weights: nodes.filter_map(|node| Some((node, *known.get(&node)?))).collect(),
            automatic: memory::weights_are_automatic(root) == Some(true),
        }
    }

    /// Those on file, if a run has changed the weights and not put them back.
    pub fn read(root: &Root) -> Option<Self> {
        serde_json::from_str(&root.text(FILE)?).ok()
    }

    /// Those on file of a run that has ended without putting them back.
    pub fn left(root: &Root) -> Option<Self> {
        Self::read(root).filter(|saved| threads::started(root, saved.pid).unwrap_or(0) != saved.started)
    }

    /// Puts them on file.
    ///
    /// # Errors
    /// `/run` cannot be written.
    pub(super) fn save(&self, root: &Root) -> Result<(), LinuxError> {
        let refused = |source| LinuxError::new("write", FILE, source);
        match fs::create_dir(root.path(FOLDER)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(refused(error)),
            _ => {}
        }
        let text = serde_json::to_string(self).map_err(|error| refused(error.into()))?;
        fs::write(root.path(DRAFT), text).and_then(|()| fs::rename(root.path(DRAFT), root.path(FILE))).map_err(refused)
    }

    /// Puts them in force again, and forgets that they were not.
    ///
    /// # Errors
    /// Not root.
    pub fn put_back(&self, root: &Root) -> Result<(), LinuxError> {
        for (node, weight) in &self.weights {
            memory::set_host_weight(root, *node, *weight)?;
        }
        // Writing a weight by hand switched this off.
        if self.automatic {
            memory::set_weights_automatic(root)?;
        }
        fs::remove_file(root.path(FILE)).map_err(|error| LinuxError::new("unlink", FILE, error))
    }
}

/// Puts back what a run that was killed left; what a reader of the next one must know of it.
pub(super) fn put_back_left(root: &Root) -> Option<Warning> {
    let left = SavedWeights::left(root)?;
    Some(match left.put_back(root) {
        Ok(()) => Warning::WeightsPutBack { pid: left.pid },
        Err(refused) => Warning::WeightsLeft { pid: left.pid, refusal: refused.to_string() },
    })
}
