//! The objects of the running program as the library tells of them: what is there now, who asked for
//! it, and by which rule it was placed.

use std::collections::{BTreeMap, BTreeSet};

use tierloom_wire::{Block, Event, NO_STACK, Pages};

/// An object that is there.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Object {
    /// Address and bytes as the program knows them.
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// Call stack of its allocation; [`NO_STACK`] for arrays of modules.
    pub(super) stack: u32,
    /// When it was handed out, ns.
    pub(super) since_ns: u64,
    /// How it was placed.
    pub(super) placed: Option<Placed>,
    /// What was last seen of its pages, and when, ns.
    pub(super) seen: Option<(u64, Pages, BTreeMap<u32, u64>)>,
}

/// How an object was placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) rule: u32,
    /// Whole pages.
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// Unit by which weights deal it out, bytes; 0 = any node of the place will do.
    pub(super) unit: u64,
    /// The library told where its pages were at its end.
    pub(super) told: bool,
}

/// All objects of all processes.
#[derive(Debug, Default)]
pub(super) struct Live {
    objects: BTreeMap<(u32, u64), Object>,
    stacks: BTreeMap<u32, Vec<u64>>,
    processes: BTreeSet<u32>,
    ready: BTreeSet<u32>,
    /// Where each process keeps the blocks that no rule means.
    tables: BTreeMap<u32, u64>,
}

impl Live {
    /// Takes what happened in a process. Events of several threads come in almost the order of time; a `Free`
    /// never takes what was handed out after it.
    pub(super) fn take(&mut self, pid: u32, time_ns: u64, event: &Event) {
        match *event {
            Event::Start => self.begin(pid),
            Event::Ready { blocks } => {
                self.ready.insert(pid);
                self.tables.insert(pid, blocks);
            }
            Event::Fork { parent } => self.fork(parent, pid),
            Event::Stack { id, frames } => drop(self.stacks.insert(id, frames.to_vec())),
            Event::Alloc { address, bytes, stack, .. } => {
                let object = Object { address, bytes, stack, since_ns: time_ns, placed: None, seen: None };
                self.objects.insert((pid, address), object);
            }
            Event::Free { address } => self.free(pid, address, time_ns),
            Event::Unmap { address, bytes } => self.unmap(pid, address, bytes, time_ns),
            Event::Placed { rule, address, bytes, errno: 0, how, shift } if bytes > 0 && how.is_place() => {
                let unit = if shift == 0 { 0 } else { 1 << shift };
                self.place(pid, time_ns, Placed { rule, start: address, bytes, unit, told: false });
            }
            Event::Resident { address, .. } => self.tell(pid, address),
            _ => {}
        }
    }

    /// A process is another program now, or a new one.
    fn begin(&mut self, pid: u32) {
        self.objects.retain(|(owner, _), _| *owner != pid);
        self.processes.insert(pid);
        self.ready.remove(&pid);
        self.tables.remove(&pid);
    }

    fn fork(&mut self, parent: u32, child: u32) {
        let inherited = self.of(parent).map(|object| ((child, object.address), object.clone())).collect::<Vec<_>>();
        self.objects.extend(inherited);
        self.processes.insert(child);
        self.ready.insert(child);
        if let Some(table) = self.tables.get(&parent) {
            self.tables.insert(child, *table);
        }
    }

    /// Where a process keeps the blocks that no rule means, if it does.
    pub(super) fn table(&self, pid: u32) -> Option<u64> {
        self.tables.get(&pid).copied().filter(|table| *table != 0)
    }

    /// Takes blocks that a process had kept to itself until now; it will tell when they go.
    pub(super) fn take_blocks(&mut self, pid: u32, now_ns: u64, blocks: impl Iterator<Item = Block>) {
        for Block { address, bytes, stack, .. } in blocks {
            let object = Object { address, bytes, stack, since_ns: now_ns, placed: None, seen: None };
            self.objects.insert((pid, address), object);
        }
    }

    fn free(&mut self, pid: u32, address: u64, time_ns: u64) {
        if self.objects.get(&(pid, address)).is_some_and(|object| object.since_ns <= time_ns) {
            self.objects.remove(&(pid, address));
        }
    }

    /// The library told where the pages of what it placed were.
    fn tell(&mut self, pid: u32, start: u64) {
        let last = self.objects.range_mut((pid, 0)..=(pid, start)).next_back();
        if let Some(placed) = last.and_then(|(_, object)| object.placed.as_mut()).filter(|placed| placed.start == start)
        {
            placed.told = true;
        }
    }

    fn unmap(&mut self, pid: u32, address: u64, bytes: u64, time_ns: u64) {
        let end = address.saturating_add(bytes);
        let gone: Vec<u64> = self
            .objects
            .range((pid, address)..(pid, end))
            .filter(|(_, object)| object.address + object.bytes <= end && object.since_ns <= time_ns)
            .map(|((_, address), _)| *address)
            .collect();
        for address in gone {
            self.objects.remove(&(pid, address));
        }
    }

    /// A range was placed: it lies in an object that was handed out, or is an array of a module.
    fn place(&mut self, pid: u32, time_ns: u64, placed: Placed) {
        let last = self.objects.range_mut((pid, 0)..=(pid, placed.start)).next_back();
        let end = placed.start + placed.bytes;
        match last {
            Some((_, object)) if object.address + object.bytes >= end => object.placed = Some(placed),
            _ => {
                let Placed { start, bytes, .. } = placed;
                let object = Object {
                    address: start,
                    bytes,
                    stack: NO_STACK,
                    since_ns: time_ns,
                    placed: Some(placed),
                    seen: None,
                };
                self.objects.insert((pid, start), object);
            }
        }
    }

    /// Whether this range is placed by this rule already.
    pub(super) fn is_placed(&self, pid: u32, start: u64, rule: u32) -> bool {
        let last = self.objects.range((pid, 0)..=(pid, start)).next_back();
        last.is_some_and(|(_, object)| object.placed.is_some_and(|placed| placed.start == start && placed.rule == rule))
    }

    /// Objects of a process.
    pub(super) fn of(&self, pid: u32) -> impl Iterator<Item = &Object> {
        self.objects.range((pid, 0)..=(pid, u64::MAX)).map(|(_, object)| object)
    }

    /// All objects, with their processes.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = (u32, &mut Object)> {
        self.objects.iter_mut().map(|((pid, _), object)| (*pid, object))
    }

    /// The frames of a stack, innermost first.
    pub(super) fn frames(&self, stack: u32) -> &[u64] {
        self.stacks.get(&stack).map_or(&[], Vec::as_slice)
    }

    /// Processes that the library came up in.
    pub(super) fn processes(&self) -> &BTreeSet<u32> {
        &self.processes
    }

    /// Those in which the library has placed all that was there when they started.
    pub(super) fn ready(&self) -> &BTreeSet<u32> {
        &self.ready
    }

    /// Forgets by which rules objects were placed: the rules have changed.
    pub(super) fn forget_rules(&mut self) {
        for object in self.objects.values_mut() {
            object.placed = None;
            object.seen = None;
        }
    }

    /// Notes by which rule an object that was moved is placed now.
    pub(super) fn replaced(&mut self, pid: u32, address: u64, placed: Placed) {
        if let Some(object) = self.objects.get_mut(&(pid, address)) {
            object.placed = Some(placed);
        } else {
            self.place(pid, 0, placed);
        }
    }
}

#[cfg(test)]
mod tests {
    use tierloom_wire::{How, Source};

    use super::*;

    fn told(live: &mut Live, pid: u32, time_ns: u64, event: Event) {
        live.take(pid, time_ns, &event);
    }

    fn alloc(address: u64, bytes: u64) -> Event<'static> {
        Event::Alloc { address, bytes, stack: 1, source: Source::Heap }
    }

    fn placed(address: u64, bytes: u64) -> Event<'static> {
        Event::Placed { rule: 3, address, bytes, errno: 0, how: How::Populate, shift: 12 }
    }

    fn addresses(live: &Live, pid: u32) -> Vec<u64> {
        live.of(pid).map(|object| object.address).collect()
    }

    #[test]
    fn objects_come_and_go_and_are_placed() {
        let mut live = Live::default();
        told(&mut live, 7, 1, Event::Start);
        told(&mut live, 7, 2, alloc(0x1010, 0x9000));
        told(&mut live, 7, 3, placed(0x2000, 0x8000));
        told(&mut live, 7, 4, placed(0x80_0000, 0x1000));
        assert_eq!(addresses(&live, 7), [0x1010, 0x80_0000]);
        let first = live.of(7).next().unwrap().placed.unwrap();
        assert_eq!((first.rule, first.start, first.unit, first.told), (3, 0x2000, 4096, false));
        assert!(live.is_placed(7, 0x2000, 3) && !live.is_placed(7, 0x2000, 4));
        let (pages, nodes) = (Pages::default(), &[][..]);
        for address in [0x2000, 0x80_0000] {
            told(&mut live, 7, 5, Event::Resident { rule: 3, address, pages, nodes });
        }
        assert!(live.of(7).all(|object| object.placed.is_some_and(|placed| placed.told)));
        told(&mut live, 7, 5, Event::Fork { parent: 7 });
        told(&mut live, 8, 5, Event::Fork { parent: 7 });
        told(&mut live, 7, 6, Event::Free { address: 0x1010 });
        assert_eq!((addresses(&live, 7).len(), addresses(&live, 8).len()), (1, 2));
        told(&mut live, 8, 7, Event::Start);
        assert!(addresses(&live, 8).is_empty());
    }

    #[test]
    fn a_process_is_ready_when_the_library_says_so() {
        let mut live = Live::default();
        told(&mut live, 7, 1, Event::Start);
        assert!(live.processes().contains(&7) && live.ready().is_empty());
        told(&mut live, 7, 2, Event::Ready { blocks: 0x5000 });
        assert_eq!(live.table(7), Some(0x5000));
        told(&mut live, 8, 3, Event::Fork { parent: 7 });
        assert_eq!((live.ready(), live.table(8)), (&BTreeSet::from([7, 8]), Some(0x5000)));
        told(&mut live, 8, 4, Event::Start);
        assert_eq!((live.ready(), live.table(8)), (&BTreeSet::from([7]), None));
        live.take_blocks(7, 5, std::iter::once(Block { address: 0x1000, bytes: 9, stack: 1, generation: 1 }));
        assert_eq!(addresses(&live, 7), [0x1000]);
    }

    #[test]
    fn a_late_word_of_an_end_takes_no_younger_object() {
        let mut live = Live::default();
        told(&mut live, 7, 20, alloc(0x1000, 0x9000));
        told(&mut live, 7, 10, Event::Free { address: 0x1000 });
        told(&mut live, 7, 10, Event::Unmap { address: 0, bytes: 1 << 30 });
        assert_eq!(addresses(&live, 7), [0x1000]);
        told(&mut live, 7, 30, Event::Unmap { address: 0x1000, bytes: 0x1000 });
        assert_eq!(addresses(&live, 7), [0x1000], "only a part of it");
        told(&mut live, 7, 30, Event::Unmap { address: 0, bytes: 1 << 30 });
        assert!(addresses(&live, 7).is_empty());
    }
}
