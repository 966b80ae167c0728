//! Which functions run in parallel regions: in what the threads of a team share out among themselves, or what each of them does.

use std::collections::BTreeSet;

use crate::call_graph::sites::{CallIndex, CallKind};

/// Functions between a region and what it leads to that are looked at: of what more lead to nothing is said.
const MOST: usize = 200;

/// Whether a function runs in parallel regions of OpenMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InTeams {
    /// Every way from the program's entry to it leads through one.
    Always,
    /// None does.
    Never,
    /// Some may.
    Unknown,
}

impl InTeams {
    /// Of the function that starts at an address; `around` is the start of the function that an address is in.
    pub(crate) fn of(index: &CallIndex, entry: u64, around: impl Fn(u64) -> Option<u64>, start: u64) -> Self {
        let (mut open, mut met) = (vec![start], BTreeSet::from([start]));
        let (mut from_region, mut from_entry) = (false, false);
        while let Some(start) = open.pop() {
            from_entry |= start == entry;
            if start != entry && !index.is_complete(start) || met.len() > MOST {
                return Self::Unknown;
            }
            // What nobody runs leads nowhere.
            for site in index.sites(start) {
                if site.run == CallKind::Team {
                    from_region = true;
                    continue;
                }
                let Some(caller) = around(site.address) else { return Self::Unknown };
                if met.insert(caller) {
                    open.push(caller);
                }
            }
        }
        match (from_region, from_entry) {
            (true, false) => Self::Always,
            (false, true) => Self::Never,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_graph::sites::Site;

    const ENTRY: u64 = 0x1000;
    const MAIN: u64 = 0x2000;
    const BODY: u64 = 0x3000;
    const LEAF: u64 = 0x4000;
    const SHARED: u64 = 0x5000;
    const UNUSED: u64 = 0x6000;
    const ESCAPED: u64 = 0x7000;

    #[test]
    fn what_only_regions_lead_to_is_always_in_them() {
        let site = |caller: u64, run| Site { address: caller + 8, run };
        let call = |caller| site(caller, CallKind::Call);
        let sites = [
            (MAIN, vec![site(ENTRY, CallKind::Once)]),
            (BODY, vec![site(MAIN, CallKind::Team)]),
            (LEAF, vec![call(BODY), call(LEAF), call(UNUSED)]),
            (SHARED, vec![call(BODY), call(MAIN)]),
            (ESCAPED, vec![call(BODY)]),
        ];
        let index = CallIndex::made(sites, [ESCAPED]);
        let of = |start| InTeams::of(&index, ENTRY, |address| Some(address & !0xfff), start);
        assert_eq!([BODY, LEAF].map(of), [InTeams::Always; 2]);
        assert_eq!([ENTRY, MAIN].map(of), [InTeams::Never; 2]);
        assert_eq!([SHARED, UNUSED, ESCAPED].map(of), [InTeams::Unknown; 3]);
    }
}
