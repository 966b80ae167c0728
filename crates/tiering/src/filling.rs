//! How memory fills before the first phase: regions in pieces, and memory that is given back before the run.
//!
//! A kernel sees pages, not regions. Where several regions are initialised side by side, they share what is left of
//! a node; and what a program builds with and frees leaves a hole in fast memory for whatever is touched next.
//! Nothing migrates meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tierloom_model::units::PAGE_BYTES;

use crate::counters::Counters;
use crate::error::Result;
use crate::layout::{Dealer, full};
use crate::nodes::Nodes;
use crate::vma::VmaPolicy;
use crate::workload::{Region, Workload};

/// How far the shares of a region may be from all of it.
const ROUNDING: f64 = 1e-6;

/// One step of filling, in the order of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Fill {
    /// The next pages of a region are touched for the first time.
    Touch {
        /// Name of the region.
        region: String,
        /// Share of its pages.
        #[serde(default = "whole", skip_serializing_if = "is_whole")]
        share: f64,
    },
    /// Memory that is there only until it is freed; no phase knows it.
    Take(Region),
    /// All of what was taken under this name is given back.
    Free(String),
}

fn whole() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_whole(share: &f64) -> bool {
    *share >= 1.0
}

/// The same with pages and policies.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Pages of a region, from and up to.
    Touch(usize, u64, u64),
    Take(String, VmaPolicy, f64),
    Free(String),
}

/// What is wrong with a workload's filling and what to do, if anything.
pub(crate) fn check(workload: &Workload) -> Result<(), (String, String)> {
    let mut followed = Followed::new(workload);
    for (index, fill) in workload.filling.iter().enumerate() {
        let wrong =
            |problem| (format!("filling[{index}]: {problem}"), "touch regions, take and free other memory".into());
        followed.follow(fill).map_err(wrong)?;
    }
    match followed.odd().filter(|_| !workload.filling.is_empty()) {
        Some((name, sum)) => Err((
            format!("filling: {sum} of region `{name}` is touched"),
            "touch all of every region, in shares with sum 1".to_owned(),
        )),
        None => Ok(()),
    }
}

/// What a filling has done so far, while it is checked.
struct Followed<'a> {
    /// Shares of the regions that are touched.
    shares: BTreeMap<&'a str, f64>,
    taken: BTreeSet<&'a str>,
}

impl<'a> Followed<'a> {
    fn new(workload: &'a Workload) -> Self {
        let shares = workload.regions.iter().map(|region| (region.name.as_str(), 0.0)).collect();
        Self { shares, taken: BTreeSet::new() }
    }

    /// Goes along with one step, or says why it cannot be.
    fn follow(&mut self, fill: &'a Fill) -> Result<(), String> {
        match fill {
            Fill::Touch { region, share } => self.touch(region, *share),
            Fill::Take(region) => self.take(region),
            Fill::Free(name) if self.taken.remove(name.as_str()) => Ok(()),
            Fill::Free(name) => Err(format!("`{name}` is not taken when it is freed")),
        }
    }

    fn touch(&mut self, region: &str, share: f64) -> Result<(), String> {
        if !(share > 0.0 && share <= 1.0) {
            return Err(format!("{share} is no share"));
        }
        *self.shares.get_mut(region).ok_or_else(|| format!("there is no region `{region}`"))? += share;
        Ok(())
    }

    fn take(&mut self, region: &'a Region) -> Result<(), String> {
        let is_new = region.size_bytes > 0 && self.taken.insert(&region.name);
        if is_new { Ok(()) } else { Err(format!("`{}` has no bytes or is taken twice", region.name)) }
    }

    /// A region that is not touched as a whole.
    fn odd(&self) -> Option<(&str, f64)> {
        self.shares.iter().map(|(name, sum)| (*name, *sum)).find(|(_, sum)| (sum - 1.0).abs() > ROUNDING)
    }
}

/// The steps of a workload whose regions have so many pages; a policy that all regions share holds for what is
/// taken meanwhile, too.
pub(crate) fn steps(workload: &Workload, pages: &[u64], policies: &[VmaPolicy]) -> Vec<Step> {
    if workload.filling.is_empty() {
        return pages.iter().enumerate().map(|(region, pages)| Step::Touch(region, 0, *pages)).collect();
    }
    let one = policies.first().filter(|first| policies.iter().all(|policy| policy == *first));
    let mut dealt = vec![0.0; pages.len()];
    let mut step = |fill: &Fill| match fill {
        Fill::Touch { region, share } => {
            let region = workload.region_index(region)?;
            let at = |share: f64| page_of(share, pages[region]);
            let from = at(dealt[region]);
            dealt[region] += share;
            Some(Step::Touch(region, from, at(dealt[region])))
        }
        Fill::Take(region) => {
            let policy = one.cloned().unwrap_or(VmaPolicy::Default);
            Some(Step::Take(region.name.clone(), policy, region.size_bytes.div_ceil(PAGE_BYTES) as f64))
        }
        Fill::Free(name) => Some(Step::Free(name.clone())),
    };
    workload.filling.iter().filter_map(&mut step).collect()
}

fn page_of(share: f64, pages: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the region")]
    let page = (share * pages as f64).round() as u64;
    if share > 1.0 - ROUNDING { pages } else { page.min(pages) }
}

/// What is taken and was not freed yet, by name and node.
#[derive(Debug, Default)]
pub(crate) struct Taken(BTreeMap<String, Vec<f64>>);

impl Taken {
    /// Takes pages where a policy puts them.
    pub(crate) fn take(
        &mut self,
        (name, policy, pages): (&str, &VmaPolicy, f64),
        nodes: &Nodes,
        free: &mut [f64],
        counters: &mut Counters,
    ) -> Result<()> {
        let placed =
            Dealer::new(policy, nodes).many(pages, free, counters).map_err(|missing| full(name, missing, nodes))?;
        self.0.insert(name.to_owned(), placed);
        Ok(())
    }

    /// Gives them back.
    pub(crate) fn free(&mut self, name: &str, free: &mut [f64]) {
        let placed = self.0.remove(name).unwrap_or_default();
        free.iter_mut().zip(placed).for_each(|(room, pages)| *room += pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(filling: Vec<Fill>) -> Workload {
        let region = |name: &str| Region {
            name: name.to_owned(),
            size_bytes: 100 * PAGE_BYTES,
            locked: false,
            source: String::new(),
        };
        Workload { regions: vec![region("a"), region("b")], filling, ..Workload::of_one_region() }
    }

    fn touch(region: &str, share: f64) -> Fill {
        Fill::Touch { region: region.to_owned(), share }
    }

    #[test]
    fn without_a_word_regions_fill_one_after_the_other() {
        let found = steps(&workload(Vec::new()), &[100, 100], &[VmaPolicy::Default, VmaPolicy::Default]);
        assert_eq!(found, [Step::Touch(0, 0, 100), Step::Touch(1, 0, 100)]);
    }

    #[test]
    fn pieces_follow_each_other_and_make_the_whole() {
        let filling = vec![touch("b", 0.25), touch("a", 1.0), touch("b", 0.75)];
        let workload = workload(filling);
        assert!(check(&workload).is_ok());
        let found = steps(&workload, &[100, 100], &[VmaPolicy::Default, VmaPolicy::Default]);
        assert_eq!(found, [Step::Touch(1, 0, 25), Step::Touch(0, 0, 100), Step::Touch(1, 25, 100)]);
    }

    #[test]
    fn what_is_left_out_or_freed_too_early_is_said() {
        let wrong = |filling: Vec<Fill>| check(&workload(filling)).err().map(|(problem, _)| problem);
        assert!(wrong(vec![touch("a", 1.0), touch("b", 0.5)]).is_some_and(|problem| problem.contains("`b`")));
        assert!(wrong(vec![Fill::Free("c".to_owned())]).is_some_and(|problem| problem.contains("`c`")));
        assert!(wrong(vec![touch("z", 1.0)]).is_some_and(|problem| problem.contains("no region `z`")));
        assert!(wrong(vec![touch("a", 1.5)]).is_some_and(|problem| problem.contains("1.5 is no share")));
        let take = |name: &str| Fill::Take(Region { name: name.to_owned(), ..workload(Vec::new()).regions[0].clone() });
        assert!(wrong(vec![take("c"), take("c")]).is_some_and(|problem| problem.contains("taken twice")));
    }
}
