//! The host's interleave weights, set for one run and put back afterwards: by the run, or, where that was
//! killed, by the next one or by `doctor` (see [`SavedWeights`]).
//!
//! The kernel has one weight a node for the whole machine (`weighted_interleave_nid` of
//! `mm/mempolicy.c`). A change affects pages that anybody allocates from then on, so it is made only
//! when asked for, and only where the plan has one ratio.

use std::collections::BTreeMap;

use tierloom_linux::memory;
use tierloom_linux::root::Root;
use tierloom_wire::Turn;

use crate::error::RunError;
use crate::rules::{Compiled, Place};
use crate::saved_weights::SavedWeights;

/// The host has other weights while this lives.
#[derive(Debug)]
pub(super) struct HostWeights<'a> {
    root: &'a Root,
    before: SavedWeights,
}

/// The one ratio of a plan, as weights of nodes; `None` where it weighs nothing.
///
/// # Errors
/// [`RunError::SeveralWeights`].
pub(super) fn ratio_of(compiled: &Compiled) -> Result<Option<BTreeMap<u32, u32>>, RunError> {
    let mut found: Option<(&str, BTreeMap<u32, u32>)> = None;
    for rule in &compiled.rules {
        let Place::Weighted(turns) = &rule.place else { continue };
        let weights = weights_of(turns);
        match &found {
            Some((object, known)) if *known != weights => {
                let (first, second) = ((*object).to_owned(), rule.object.clone());
                return Err(RunError::SeveralWeights { first, second });
            }
            _ => found = Some((&rule.object, weights)),
        }
    }
    Ok(found.map(|(_, weights)| weights))
}

fn weights_of(turns: &[Turn]) -> BTreeMap<u32, u32> {
    turns.iter().map(|turn| (turn.node, turn.units)).collect()
}

impl<'a> HostWeights<'a> {
    /// Sets them.
    ///
    /// # Errors
    /// [`RunError::HostWeights`]: not root, or a kernel before 6.9; [`RunError::HostWeightsTaken`].
    pub(super) fn set(root: &'a Root, weights: &BTreeMap<u32, u32>) -> Result<Self, RunError> {
        if let Some(SavedWeights { pid, .. }) = SavedWeights::read(root) {
            return Err(RunError::HostWeightsTaken { pid });
        }
        let refused = |source| RunError::HostWeights { source };
        let before = SavedWeights::now(root, weights.keys().copied());
        before.save(root).map_err(refused)?;
        // Made first: what was set before a refusal is put back.
        let host = Self { root, before };
        for (node, weight) in weights {
            memory::set_host_weight(root, *node, *weight).map_err(refused)?;
        }
        Ok(host)
    }
}

impl Drop for HostWeights<'_> {
    fn drop(&mut self) {
        self.before.put_back(self.root).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use tierloom_model::Warning;

    use crate::saved_weights::put_back_left;

    /// As `/proc/PID/stat` has it; the time of the start is the 22nd field.
    const OWN_STAT: &str = "7 (a (b) c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";

    fn host(name: &str) -> (std::path::PathBuf, Root) {
        let folder = std::env::temp_dir().join(format!("tierloom-host-{name}-{}", std::process::id()));
        let weights = folder.join("sys/kernel/mm/mempolicy/weighted_interleave");
        fs::create_dir_all(&weights).unwrap();
        fs::create_dir_all(folder.join("run")).unwrap();
        let stat = folder.join(format!("proc/{}/stat", std::process::id()));
        fs::create_dir_all(stat.parent().unwrap()).unwrap();
        fs::write(stat, OWN_STAT).unwrap();
        for (file, text) in [("node0", "5"), ("node1", "2"), ("auto", "true")] {
            fs::write(weights.join(file), text).unwrap();
        }
        let root = Root::at(&folder);
        (folder, root)
    }

    #[test]
    fn weights_are_set_and_put_back() {
        let (folder, root) = host("set");
        let set = HostWeights::set(&root, &BTreeMap::from([(0, 3), (1, 1)])).unwrap();
        assert_eq!(memory::host_weights(&root), BTreeMap::from([(0, 3), (1, 1)]));
        drop(set);
        assert_eq!(memory::host_weights(&root), BTreeMap::from([(0, 5), (1, 2)]));
        assert_eq!(memory::weights_are_automatic(&root), Some(true));
        assert_eq!((SavedWeights::read(&root), put_back_left(&root)), (None, None));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_a_killed_run_left_is_found_and_put_back() {
        let (folder, root) = host("killed");
        let wanted = BTreeMap::from([(0, 3), (1, 1)]);
        std::mem::forget(HostWeights::set(&root, &wanted).unwrap());
        assert_eq!((memory::host_weights(&root), SavedWeights::left(&root)), (wanted.clone(), None), "it runs");
        let second = HostWeights::set(&root, &wanted).unwrap_err();
        assert!(matches!(second, RunError::HostWeightsTaken { pid } if pid == std::process::id()), "{second}");
        // Another process has its number now.
        let stat = folder.join(format!("proc/{}/stat", std::process::id()));
        fs::write(&stat, OWN_STAT.replace("4711", "4712")).unwrap();
        assert!(matches!(put_back_left(&root), Some(Warning::WeightsPutBack { .. })));
        assert_eq!(memory::host_weights(&root), BTreeMap::from([(0, 5), (1, 2)]));
        assert_eq!(memory::weights_are_automatic(&root), Some(true));
        assert_eq!(put_back_left(&root), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_put_back_says_who_can() {
        let (folder, root) = host("refused");
        std::mem::forget(HostWeights::set(&root, &BTreeMap::from([(0, 3)])).unwrap());
        fs::remove_dir_all(folder.join("proc")).unwrap();
        fs::remove_dir_all(folder.join("sys")).unwrap();
        assert!(matches!(put_back_left(&root), Some(Warning::WeightsLeft { .. })));
        assert!(SavedWeights::left(&root).is_some(), "it stays on file");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_may_not_be_written_is_said() {
        let root = Root::at("/nowhere");
        let refused = HostWeights::set(&root, &BTreeMap::from([(0, 3)])).unwrap_err();
        assert!(refused.to_string().contains("hint:"), "{refused}");
    }
}
