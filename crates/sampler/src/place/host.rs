//! The host's interleave weights, set for one run and put back afterwards, however the run ends.
//!
//! The kernel has one weight a node for the whole machine (`weighted_interleave_nid` of
//! `mm/mempolicy.c`). A change affects pages that anybody allocates from then on, so it is made only
//! when asked for, and only where the plan has one ratio.

use std::collections::BTreeMap;

use tierloom_linux::memory;
use tierloom_linux::root::Root;
use tierloom_wire::Turn;

use super::compile::{Compiled, Place};
use crate::error::SamplerError;

/// The host has other weights while this lives.
#[derive(Debug)]
pub(super) struct HostWeights<'a> {
    root: &'a Root,
    before: BTreeMap<u32, u32>,
    automatic: bool,
}

/// The one ratio of a plan, as weights of nodes; `None` where it weighs nothing.
///
/// # Errors
/// [`SamplerError::SeveralWeights`].
pub(super) fn ratio_of(compiled: &Compiled) -> Result<Option<BTreeMap<u32, u32>>, SamplerError> {
    let mut found: Option<(&str, BTreeMap<u32, u32>)> = None;
    for rule in &compiled.rules {
        let Place::Weighted(turns) = &rule.place else { continue };
        let weights = weights_of(turns);
        match &found {
            Some((object, known)) if *known != weights => {
                let (first, second) = ((*object).to_owned(), rule.object.clone());
                return Err(SamplerError::SeveralWeights { first, second });
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
    /// [`SamplerError::HostWeights`]: not root, or a kernel before 6.9.
    pub(super) fn set(root: &'a Root, weights: &BTreeMap<u32, u32>) -> Result<Self, SamplerError> {
        let known = memory::host_weights(root);
        let before = weights.keys().filter_map(|node| Some((*node, *known.get(node)?))).collect();
        let automatic = memory::weights_are_automatic(root) == Some(true);
        // Made first: what was set before a refusal is put back.
        let host = Self { root, before, automatic };
        for (node, weight) in weights {
            memory::set_host_weight(root, *node, *weight).map_err(|source| SamplerError::HostWeights { source })?;
        }
        Ok(host)
    }
}

impl Drop for HostWeights<'_> {
    fn drop(&mut self) {
        for (node, weight) in &self.before {
            memory::set_host_weight(self.root, *node, *weight).ok();
        }
        // Writing a weight by hand switched this off.
        if self.automatic {
            memory::set_weights_automatic(self.root).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn host(name: &str) -> (std::path::PathBuf, Root) {
        let folder = std::env::temp_dir().join(format!("tierloom-host-{name}-{}", std::process::id()));
        let weights = folder.join("sys/kernel/mm/mempolicy/weighted_interleave");
        fs::create_dir_all(&weights).unwrap();
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
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_may_not_be_written_is_said() {
        let root = Root::at("/nowhere");
        let refused = HostWeights::set(&root, &BTreeMap::from([(0, 3)])).unwrap_err();
        assert!(refused.to_string().contains("hint:"), "{refused}");
    }
}
