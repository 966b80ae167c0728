//! How memory fills, page by page: the steps of a workload's filling, and what is taken on the way.

use std::collections::BTreeMap;

use tierloom_model::units::PAGE_BYTES;

use crate::error::Result;
use crate::kernel::counters::Counters;
use crate::kernel::first_touch::{Dealer, full};
use crate::kernel::nodes::Nodes;
use crate::kernel::vma::VmaPolicy;
use crate::workload::filling::ROUNDING;
use crate::workload::{Fill, Workload};

/// One step of filling, with pages and policies.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Pages of a region, from and up to.
    Touch(usize, u64, u64),
    Take(String, VmaPolicy, f64),
    Free(String),
}

/// The steps of a workload whose regions have so many pages; a policy that all regions share holds for what is
/// taken meanwhile, too.
pub(crate) fn steps(workload: &Workload, pages: &[u64], policies: &[VmaPolicy]) -> Vec<Step> {
    if workload.filling.is_empty() {
        return pages.iter().enumerate().map(|(region, pages)| Step::Touch(region, 0, *pages)).collect();
    }
    let one = policies.first().filter(|first| policies.iter().all(|policy| policy == *first));
    let (indices, mut dealt) = (workload.region_indices(), vec![0.0; pages.len()]);
    let mut step = |fill: &Fill| match fill {
        Fill::Touch { region, share } => {
            let region = *indices.get(region.as_str())?;
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
    use crate::workload::filling::tests::{touch, workload};

    #[test]
    fn without_a_word_regions_fill_one_after_the_other() {
        let found = steps(&workload(Vec::new()), &[100, 100], &[VmaPolicy::Default, VmaPolicy::Default]);
        assert_eq!(found, [Step::Touch(0, 0, 100), Step::Touch(1, 0, 100)]);
    }

    #[test]
    fn pieces_follow_each_other_and_make_the_whole() {
        let filling = vec![touch("b", 0.25), touch("a", 1.0), touch("b", 0.75)];
        let found = steps(&workload(filling), &[100, 100], &[VmaPolicy::Default, VmaPolicy::Default]);
        assert_eq!(found, [Step::Touch(1, 0, 25), Step::Touch(0, 0, 100), Step::Touch(1, 25, 100)]);
    }
}
