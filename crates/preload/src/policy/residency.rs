//! Where an object's pages really are, asked before they go: `move_pages(2)` without targets.
//!
//! A small object is asked about page by page. Of a large one, one page of each of as many equal parts
//! is ([`sampled_page`]).

use tierloom_wire::{Law, MAX_RESIDENT_NODES, PAGE_BYTES, Pages, pack_node_pages, sampled_page};

use super::kernel;

/// Pages asked about when an object is given back: a fifth of a millisecond, where giving back as
/// many costs as much.
pub(super) const AT_RELEASE: u64 = 1024;
/// Pages of one object asked about when the process ends.
pub(super) const AT_EXIT: u64 = 16384;
/// Pages of one call.
const CHUNK: usize = 128;

/// Which node a page was meant for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Meant<'a> {
    /// One for every page.
    Law(Law<'a>),
    /// Any of a mask.
    Any(u64),
}

impl Meant<'_> {
    fn is(&self, address: u64, node: u32) -> bool {
        match self {
            Meant::Law(law) => law.node(address) == node,
            Meant::Any(mask) => mask & 1_u64.checked_shl(node).unwrap_or(0) != 0,
        }
    }
}

/// What was found.
pub(super) struct Found {
    pub(super) pages: Pages,
    counts: [u64; MAX_RESIDENT_NODES],
}

impl Found {
    /// Pages by node, as the wire packs them; returns how many nodes.
    pub(super) fn pack(&self, into: &mut [u64; MAX_RESIDENT_NODES]) -> usize {
        let mut length = 0;
        for (node, count) in (0_u16..).zip(self.counts).filter(|(_, count)| *count > 0) {
            into[length] = pack_node_pages(node, count);
            length += 1;
        }
        length
    }
}

/// Asks about at most `most` pages of a range.
pub(super) fn look(start: u64, bytes: u64, meant: Meant, most: u64) -> Found {
    let all = bytes / PAGE_BYTES;
    let parts = all.min(most);
    let mut found = Found { pages: Pages { bytes, ..Pages::default() }, counts: [0; MAX_RESIDENT_NODES] };
    let mut chunk = [0_u64; CHUNK];
    let mut count = 0;
    for part in 0..parts {
        chunk[count] = start + sampled_page(part, parts, all) * PAGE_BYTES;
        count += 1;
        if count == CHUNK || part + 1 == parts {
            tally(&chunk[..count], meant, &mut found);
            count = 0;
        }
    }
    found
}

fn tally(pages: &[u64], meant: Meant, found: &mut Found) {
    let mut status = [0_i32; CHUNK];
    if kernel::move_pages(pages, None, &mut status[..pages.len()]) != 0 {
        return;
    }
    for (address, status) in pages.iter().zip(status) {
        found.pages.looked += 1;
        let Ok(node) = u32::try_from(status) else {
            found.pages.absent += 1;
            continue;
        };
        found.pages.elsewhere += u64::from(!meant.is(*address, node));
        if let Some(count) = found.counts.get_mut(node as usize) {
            *count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_this_process_are_found() {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), 1 << 20, access, kind, -1, 0) } as u64;
        kernel::populate(start, 512 << 10);
        let found = look(start, 1 << 20, Meant::Any(u64::MAX), AT_EXIT);
        assert_eq!((found.pages.looked, found.pages.absent, found.pages.elsewhere), (256, 128, 0));
        let mut packed = [0; MAX_RESIDENT_NODES];
        let nodes = found.pack(&mut packed);
        assert_eq!(packed[..nodes].iter().map(|word| tierloom_wire::unpack_node_pages(*word).1).sum::<u64>(), 128);
        assert_eq!(look(start, 512 << 10, Meant::Any(0), AT_EXIT).pages.elsewhere, 128);
    }
}
