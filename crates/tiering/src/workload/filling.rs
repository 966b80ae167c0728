//! How memory fills before the first phase: regions in pieces, and memory that is given back before the run.
//!
//! A kernel sees pages, not regions. Where several regions are initialised side by side, they share what is left of
//! a node; and what a program builds with and frees leaves a hole in fast memory for whatever is touched next.
//! Nothing migrates meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use super::description::{Fill, Region, Workload};
use crate::error::Flaw;

/// How far the shares of a region may be from all of it.
pub(crate) const ROUNDING: f64 = 1e-6;

/// What is wrong with a workload's filling, if anything.
pub(super) fn check(workload: &Workload) -> Result<(), Flaw> {
    let mut followed = Followed::new(workload);
    for (index, fill) in workload.filling.iter().enumerate() {
        let wrong = |problem: String| Flaw::new(problem, "touch regions, take and free other memory");
        followed.follow(fill).map_err(|problem| wrong(problem).within(&format!("filling[{index}]: ")))?;
    }
    match followed.odd().filter(|_| !workload.filling.is_empty()) {
        Some((name, sum)) => Err(Flaw::new(
            format!("filling: {sum} of region `{name}` is touched"),
            "touch all of every region, in shares with sum 1",
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

#[cfg(test)]
pub(crate) mod tests {
    use tierloom_model::units::PAGE_BYTES;

    use super::*;

    /// Two regions of 100 pages each, `a` and `b`, that are filled so.
    pub(crate) fn workload(filling: Vec<Fill>) -> Workload {
        let region = |name: &str| Region {
            name: name.to_owned(),
            size_bytes: 100 * PAGE_BYTES,
            locked: false,
            source: String::new(),
        };
        Workload { regions: vec![region("a"), region("b")], filling, ..Workload::of_one_region() }
    }

    /// A piece of a region.
    pub(crate) fn touch(region: &str, share: f64) -> Fill {
        Fill::Touch { region: region.to_owned(), share }
    }

    #[test]
    fn pieces_that_make_the_whole_are_a_filling() {
        assert_eq!(check(&workload(vec![touch("b", 0.25), touch("a", 1.0), touch("b", 0.75)])), Ok(()));
    }

    #[test]
    fn what_is_left_out_or_freed_too_early_is_said() {
        let wrong = |filling: Vec<Fill>| check(&workload(filling)).err().map(|flaw| flaw.problem);
        assert!(wrong(vec![touch("a", 1.0), touch("b", 0.5)]).is_some_and(|problem| problem.contains("`b`")));
        assert!(wrong(vec![Fill::Free("c".to_owned())]).is_some_and(|problem| problem.contains("`c`")));
        assert!(wrong(vec![touch("z", 1.0)]).is_some_and(|problem| problem.contains("no region `z`")));
        assert!(wrong(vec![touch("a", 1.5)]).is_some_and(|problem| problem.contains("1.5 is no share")));
        let take = |name: &str| Fill::Take(Region { name: name.to_owned(), ..workload(Vec::new()).regions[0].clone() });
        assert!(wrong(vec![take("c"), take("c")]).is_some_and(|problem| problem.contains("taken twice")));
    }
}
