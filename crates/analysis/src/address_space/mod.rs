//! What lies where at the time of a sample: the address spaces of all processes, replayed.
//!
//! Mappings, forks, execs and allocations of the recording are applied in time order, always up to
//! the sample in question. The world then says which code an instruction pointer names and which
//! object an address belongs to.

pub(crate) mod objects;
mod place;
pub(crate) mod ranges;
mod space;

use std::collections::BTreeMap;

use tierloom_model::units::round_to_u64;
use tierloom_model::{ObjectKind, is_on_disk};

use crate::address_space::objects::{Identity, ObjectId, Objects};
pub(crate) use crate::address_space::place::Place;
use crate::address_space::space::{AddressSpace, Loaded, Mapped, Owned};
use tierloom_binary::Binaries;
use tierloom_binary::code::CodePlace;
use tierloom_binary::elf::Binary;
use tierloom_recording::is_ours;
use tierloom_recording::{
    Allocation, AllocationEvent, Change, Fault, Mapping, Process, Recording, Resident, Source, Stretch,
};

/// Anonymous memory that nobody asked for in one large piece.
const SMALL_OBJECTS: &str = "[small objects]";

/// Everything that the recording says about memory, up to a moment.
pub(crate) struct AddressSpaces<'a> {
    recording: &'a Recording,
    pub(crate) binaries: &'a dyn Binaries,
    next_mapping: usize,
    next_process: usize,
    next_allocation: usize,
    spaces: BTreeMap<u32, AddressSpace>,
    paths: Vec<String>,
    path_ids: BTreeMap<String, usize>,
    /// By path; not ELF for data files.
    pub(crate) modules: Vec<Binary>,
    /// By path: code was mapped of it.
    holds_code: Vec<bool>,
    pub(crate) objects: Objects,
}

impl<'a> AddressSpaces<'a> {
    pub(crate) fn new(recording: &'a Recording, binaries: &'a dyn Binaries) -> Self {
        Self {
            recording,
            binaries,
            next_mapping: 0,
            next_process: 0,
            next_allocation: 0,
            spaces: BTreeMap::new(),
            paths: Vec::new(),
            path_ids: BTreeMap::new(),
            modules: Vec::new(),
            holds_code: Vec::new(),
            objects: Objects::default(),
        }
    }

    /// Applies everything that happened up to and including a moment.
    pub(crate) fn advance(&mut self, time_ns: u64) {
        let recording = self.recording;
        loop {
            let process = recording.processes.get(self.next_process).filter(|event| event.time_ns <= time_ns);
            let mapping = recording.mappings.get(self.next_mapping).filter(|event| event.time_ns <= time_ns);
            let allocation = recording.allocations.get(self.next_allocation).filter(|event| event.time_ns <= time_ns);
            let times = [process.map(|e| e.time_ns), mapping.map(|e| e.time_ns), allocation.map(|e| e.time_ns)];
            let Some(first) = times.into_iter().flatten().min() else { return };
            if let Some(event) = process.filter(|event| event.time_ns == first) {
                self.next_process += 1;
                self.change(event);
            } else if let Some(event) = mapping.filter(|event| event.time_ns == first) {
                self.next_mapping += 1;
                self.map(event);
            } else if let Some(event) = allocation {
                self.next_allocation += 1;
                self.allocate(event);
            }
        }
    }

    /// Binary and virtual address of an instruction pointer.
    pub(crate) fn code_at(&self, pid: u32, ip: u64) -> CodePlace {
        let found = self.spaces.get(&pid).and_then(|space| {
            let piece = space.mappings.get(ip)?;
            let module = &self.modules[piece.value.path];
            let address = module.address_of_offset(ip - piece.origin + piece.value.file_offset)?;
            Some(CodePlace { module: Some(piece.value.path), address })
        });
        found.unwrap_or(CodePlace { module: None, address: ip })
    }

    /// Start of the process's addresses minus the module's: adds up with virtual addresses.
    pub(crate) fn bias_at(&self, pid: u32, ip: u64) -> u64 {
        ip.wrapping_sub(self.code_at(pid, ip).address)
    }

    /// What a module's addresses in a process are more than those in its file.
    pub(crate) fn bias_of(&self, pid: u32, module: usize) -> Option<u64> {
        let mut loaded = self.spaces.get(&pid)?.modules.values();
        loaded.find_map(|(_, loaded)| (loaded.module == module).then_some(loaded.bias))
    }

    /// Name of the executable mapping at an address that belongs to no file, e.g. `[vdso]`.
    pub(crate) fn mapping_path(&self, pid: u32, address: u64) -> Option<&str> {
        let piece = self.spaces.get(&pid)?.mappings.get(address)?;
        Some(&self.paths[piece.value.path])
    }

    /// Whether this is a file of code that is not here as it ran.
    pub(crate) fn is_lacking(&self, path: &str) -> bool {
        let noted = self.recording.binaries.contains_key(path);
        let is_code = |id: usize| noted || (is_on_disk(path) && self.holds_code[id]);
        self.path_ids.get(path).is_some_and(|id| is_code(*id) && !self.modules[*id].is_elf)
    }

    /// What a data address belongs to, for a thread with this stack pointer.
    pub(crate) fn locate(&mut self, pid: u32, address: u64, stack_pointer: u64) -> Place {
        self.first_touch(pid, address);
        let Some(space) = self.spaces.get(&pid) else { return Place::Nowhere };
        if let Some(piece) = space.allocations.get(address) {
            let same = space.allocations.get(stack_pointer).is_some_and(|other| other.origin == piece.origin);
            return if same { Place::Stack } else { Place::Object(piece.value.object, address - piece.origin) };
        }
        if let Some(piece) = space.statics.get(address) {
            return Place::Object(piece.value, address - piece.origin);
        }
        if near_stack(address, stack_pointer) {
            return Place::Stack;
        }
        self.locate_mapped(pid, address, stack_pointer)
    }

    /// Books a page fault of an allocation or a static array, and says which; other memory has no beginning to find.
    pub(crate) fn fault(&mut self, fault: &Fault) -> Option<ObjectId> {
        self.first_touch(fault.pid, fault.address);
        let space = self.spaces.get(&fault.pid)?;
        if let Some(piece) = space.allocations.get(fault.address) {
            // A child's first write copies a page that its parent filled.
            if piece.value.pid == fault.pid {
                self.objects.fault(piece.value.object, fault.time_ns, piece.value.new);
            }
            return Some(piece.value.object);
        }
        let object = space.statics.get(fault.address)?.value;
        self.objects.fault(object, fault.time_ns, true);
        Some(object)
    }

    /// Books which memory of all processes had pages at a moment.
    pub(crate) fn look(&mut self, seen: &[Resident]) {
        let Some(time_ns) = seen.first().map(|resident| resident.time_ns) else { return };
        let mut present: BTreeMap<ObjectId, f64> = BTreeMap::new();
        let mut rests: BTreeMap<Identity, f64> = BTreeMap::new();
        for Resident { pid, stretches, .. } in seen {
            for stretch in stretches {
                let rest = self.share_out(*pid, stretch, &mut present);
                if let Some(identity) = self.identity_of_rest(*pid, stretch) {
                    *rests.entry(identity).or_default() += rest;
                }
            }
        }
        for (identity, bytes) in rests {
            if let Some(owner) = self.owner_of_rest(identity, bytes) {
                *present.entry(owner).or_default() += bytes;
            }
        }
        let bytes = present.into_iter().map(|(id, bytes)| (id, round_to_u64(bytes))).collect();
        self.objects.look(time_ns, &bytes);
    }

    /// Gives allocations and static arrays their parts of a stretch with pages; what is left, bytes.
    fn share_out(&self, pid: u32, stretch: &Stretch, present: &mut BTreeMap<ObjectId, f64>) -> f64 {
        let Stretch { start, bytes, present_bytes } = *stretch;
        let full = present_bytes as f64 / bytes.max(1) as f64;
        let Some(space) = self.spaces.get(&pid) else { return 0.0 };
        let mut rest = present_bytes as f64;
        for (_, bytes, owned) in space.allocations.overlapping(start, bytes) {
            rest -= bytes as f64 * full;
            if owned.counts(pid) {
                *present.entry(owned.object).or_default() += bytes as f64 * full;
            }
        }
        for (_, bytes, object) in space.statics.overlapping(start, bytes) {
            rest -= bytes as f64 * full;
            *present.entry(*object).or_default() += bytes as f64 * full;
        }
        rest.max(0.0)
    }

    /// What the memory of a stretch is that nobody asked for in one piece.
    fn identity_of_rest(&self, pid: u32, stretch: &Stretch) -> Option<Identity> {
        let space = self.spaces.get(&pid)?;
        if let Some(piece) = space.modules.get(stretch.start) {
            return Some(other_statics(&self.modules[piece.value.module]));
        }
        let path = space.mappings.get(stretch.start).map_or("", |piece| &self.paths[piece.value.path]);
        Some(match path {
            "" | "//anon" => Identity::Name(SMALL_OBJECTS.to_owned()),
            path if path.starts_with('[') => Identity::Name(path.to_owned()),
            path => Identity::File(path.to_owned()),
        })
    }

    /// Whose it is: a heap's, however many mappings it has, and else only that of who was seen to be touched.
    fn owner_of_rest(&mut self, identity: Identity, bytes: f64) -> Option<ObjectId> {
        let is_heap = matches!(&identity, Identity::Name(name) if matches!(name.as_str(), "[heap]" | SMALL_OBJECTS));
        if !is_heap || bytes < tierloom_binary::elf::STATIC_OBJECT_BYTES as f64 {
            return self.objects.known(&identity);
        }
        Some(self.lasting(identity, ObjectKind::Arena, round_to_u64(bytes), self.recording.start_ns))
    }

    fn locate_mapped(&mut self, pid: u32, address: u64, stack_pointer: u64) -> Place {
        let Some(space) = self.spaces.get(&pid) else { return Place::Nowhere };
        if let Some(piece) = space.modules.get(address) {
            let Loaded { module, bias, since_ns } = piece.value;
            if is_ours(&self.paths[module]) {
                return Place::Nowhere;
            }
            let module = &self.modules[module];
            let identity = other_statics(module);
            let (offset, bytes) =
                (module.other_statics.offset(address.wrapping_sub(bias)), module.other_statics.bytes());
            return Place::Object(self.loaded(identity, bytes, since_ns), offset);
        }
        let Some(piece) = space.mappings.get(address) else { return Place::Nowhere };
        let (path, holds_code) = (self.paths[piece.value.path].clone(), self.holds_code[piece.value.path]);
        let (start_ns, since_ns) = (self.recording.start_ns, piece.value.since_ns);
        let (offset, bytes) = (address - piece.origin, piece.end - piece.origin);
        let holds_stack = space.mappings.get(stack_pointer).is_some_and(|other| other.origin == piece.origin);
        match path.as_str() {
            "[stack]" => Place::Stack,
            _ if holds_stack => Place::Stack,
            "[heap]" => Place::Object(self.lasting(Identity::Name(path), ObjectKind::Arena, bytes, start_ns), offset),
            _ if is_ours(&path) => Place::Nowhere,
            // Its variables cannot be told apart where it is not here as it ran.
            _ if is_on_disk(&path) && holds_code => {
                let identity = other_statics(&self.modules[piece.value.path]);
                Place::Object(self.loaded(identity, bytes, since_ns), offset)
            }
            _ if path.starts_with('/') && !path.starts_with("//anon") => {
                Place::Object(self.lasting(Identity::File(path), ObjectKind::File, bytes, start_ns), offset)
            }
            _ if path.starts_with("[v") => Place::Nowhere,
            // Named by `prctl(PR_SET_VMA)`, or by the reader of perf.data for want of allocations.
            _ if path.starts_with("[anon:") => {
                Place::Object(self.lasting(Identity::Name(path), ObjectKind::Mmap, bytes, start_ns), offset)
            }
            _ => {
                let identity = Identity::Name(SMALL_OBJECTS.to_owned());
                Place::Object(self.lasting(identity, ObjectKind::Arena, bytes, start_ns), offset)
            }
        }
    }

    /// Small variables of a module, which the loader has touched by then: it looks names up in their tables and writes
    /// addresses into them.
    fn loaded(&mut self, identity: Identity, bytes: u64, since_ns: u64) -> ObjectId {
        let id = self.lasting(identity, ObjectKind::Arena, bytes, since_ns);
        self.objects.touch(id, since_ns);
        id
    }

    /// An object that is there from a moment to the end.
    fn lasting(&mut self, identity: Identity, kind: ObjectKind, bytes: u64, since_ns: u64) -> ObjectId {
        let id = self.objects.find(identity, kind, since_ns);
        let entry = &mut self.objects.entries[id];
        (entry.allocations, entry.is_lasting) = (1, true);
        entry.live_bytes = entry.live_bytes.max(bytes);
        entry.most_bytes = entry.most_bytes.max(bytes);
        id
    }

    fn map(&mut self, event: &Mapping) {
        let path = self.path_id(&event.path);
        self.holds_code[path] |= event.executable;
        let space = self.spaces.entry(event.pid).or_default();
        let mapped = Mapped { path, file_offset: event.file_offset, since_ns: event.time_ns };
        space.mappings.insert(event.start, event.bytes, mapped);
        if self.modules[path].is_elf {
            self.place_module(event, path);
        }
    }

    /// Puts the static arrays of a freshly mapped module in their places.
    fn place_module(&mut self, event: &Mapping, module: usize) {
        let Some(address) = self.modules[module].address_of_offset(event.file_offset) else { return };
        let bias = event.start.wrapping_sub(address);
        let space = self.spaces.entry(event.pid).or_default();
        if space.modules.get(event.start).is_some_and(|piece| piece.value.module == module) {
            return;
        }
        let end = bias.wrapping_add(self.modules[module].end_address());
        space.modules.insert(
            event.start,
            end.saturating_sub(event.start),
            Loaded { module, bias, since_ns: event.time_ns },
        );
        if is_ours(&event.path) {
            return;
        }
        for symbol in self.modules[module].statics.clone() {
            let identity = Identity::Symbol { module, name: symbol.name };
            let bytes = symbol.range.1 - symbol.range.0;
            let is_constant = self.modules[module].is_constant(symbol.range.0);
            let kind = if is_constant { ObjectKind::Constant } else { ObjectKind::Static };
            let object = self.lasting(identity, kind, bytes, event.time_ns);
            let space = self.spaces.entry(event.pid).or_default();
            space.statics.insert(bias.wrapping_add(symbol.range.0), bytes, object);
        }
    }

    fn path_id(&mut self, path: &str) -> usize {
        if let Some(id) = self.path_ids.get(path) {
            return *id;
        }
        let id = self.paths.len();
        let build_id = self.recording.binaries.get(path).map(String::as_str);
        self.modules.push(if is_on_disk(path) { self.binaries.open(path, build_id) } else { Binary::default() });
        self.paths.push(path.to_owned());
        self.holds_code.push(false);
        self.path_ids.insert(path.to_owned(), id);
        id
    }

    fn change(&mut self, event: &Process) {
        match &event.change {
            Change::Fork { parent } => {
                let space = self.spaces.get(parent).cloned().unwrap_or_default();
                self.spaces.insert(event.pid, space);
            }
            Change::Exec { .. } | Change::Exit => self.end(event.pid, event.time_ns),
        }
    }

    fn end(&mut self, pid: u32, time_ns: u64) {
        let Some(space) = self.spaces.remove(&pid) else { return };
        for (bytes, owned) in space.allocations.values().filter(|(_, owned)| owned.counts(pid)) {
            self.objects.lose(owned.object, bytes, time_ns);
        }
    }

    fn allocate(&mut self, event: &Allocation) {
        let gone = match event.event {
            AllocationEvent::Alloc { address, bytes, stack, source } => {
                let object = self.site(event, address, stack, source);
                let idle = source == Source::Reserved;
                let new = !idle && self.objects.gain(object, bytes);
                let space = self.spaces.entry(event.pid).or_default();
                space.allocations.insert(address, bytes, Owned { object, new, pid: event.pid, idle })
            }
            AllocationEvent::Free { address } => {
                let space = self.spaces.entry(event.pid).or_default();
                space.allocations.remove_at(address).into_iter().collect()
            }
            AllocationEvent::Unmap { address, bytes } => {
                let space = self.spaces.entry(event.pid).or_default();
                space.mappings.remove(address, bytes);
                space.allocations.remove(address, bytes)
            }
            AllocationEvent::Protect { address, bytes, accessible } => {
                return self.protect(event, (address, bytes), accessible);
            }
        };
        for (bytes, owned) in gone.into_iter().filter(|(_, owned)| owned.counts(event.pid)) {
            self.objects.lose(owned.object, bytes, event.time_ns);
        }
    }

    /// Addresses become memory, or memory addresses alone.
    fn protect(&mut self, event: &Allocation, (address, bytes): (u64, u64), accessible: bool) {
        let Some(space) = self.spaces.get_mut(&event.pid) else { return };
        for (bytes, owned) in space.allocations.inside(address, bytes).filter(|(_, owned)| owned.idle == accessible) {
            owned.idle = !accessible;
            if owned.pid == event.pid && accessible {
                owned.new = self.objects.gain(owned.object, bytes);
            } else if owned.pid == event.pid {
                self.objects.lose(owned.object, bytes, event.time_ns);
            }
        }
    }

    /// Addresses that were touched are memory, even if nobody told us when they became it.
    fn first_touch(&mut self, pid: u32, address: u64) {
        let Some(space) = self.spaces.get_mut(&pid) else { return };
        if space.allocations.get(address).is_some_and(|piece| piece.value.idle)
            && let Some((bytes, owned)) = space.allocations.around(address)
        {
            owned.idle = false;
            if owned.pid == pid {
                owned.new = self.objects.gain(owned.object, bytes);
            }
        }
    }

    fn site(&mut self, event: &Allocation, address: u64, stack: u32, source: Source) -> ObjectId {
        let frames = self.recording.stacks.get(stack as usize).map_or(&[][..], Vec::as_slice);
        let stack = || frames.iter().map(|frame| self.code_at(event.pid, *frame)).collect();
        let file = self.mapping_path(event.pid, address).filter(|path| path.starts_with('/')).map(str::to_owned);
        let (identity, kind) = match (source, file) {
            (Source::File, Some(path)) => (Identity::File(path), ObjectKind::File),
            (Source::Heap, _) => (Identity::Stack(stack()), ObjectKind::Heap),
            _ => (Identity::Stack(stack()), ObjectKind::Mmap),
        };
        self.objects.find(identity, kind, event.time_ns)
    }
}

/// Variables of a module that are too small to tell apart.
fn other_statics(module: &Binary) -> Identity {
    Identity::Name(format!("{} [other statics]", module.name()))
}

/// Within what a frame can reach: the red zone below (System V ABI, 3.2.2) and frames above.
fn near_stack(address: u64, stack_pointer: u64) -> bool {
    const RED_ZONE_BYTES: u64 = 128;
    const FRAMES_BYTES: u64 = 32 * 1024;
    address.wrapping_sub(stack_pointer.wrapping_sub(RED_ZONE_BYTES)) < FRAMES_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code_files::NoBinaries;

    const START: u64 = 0x7f00_0000_0000;
    const BYTES: u64 = 64 << 20;

    fn mapping(time_ns: u64, path: &str, executable: bool) -> Mapping {
        Mapping { time_ns, pid: 1, start: START, bytes: BYTES, file_offset: 0, executable, path: path.to_owned() }
    }

    #[test]
    fn the_loader_touches_a_librarys_variables_when_it_maps_it() {
        let mappings = vec![mapping(30, "/lib/lib.so", true)];
        let recording = Recording { mappings, start_ns: 10, ..Recording::default() };
        let mut spaces = AddressSpaces::new(&recording, &NoBinaries);
        spaces.advance(90);
        spaces.locate(1, START + 4096, 0);
        let [variables] = spaces.objects.entries.as_raw_slice() else { panic!("one object") };
        assert_eq!((variables.first_ns, variables.first_page_ns()), (30, Some(30)));
    }

    #[test]
    fn a_mapped_file_has_the_pages_that_were_seen_of_it() {
        let at = |time_ns, event| Allocation { time_ns, pid: 1, tid: 1, event };
        let mapping = mapping(1, "/tmp/scratch", false);
        let mapped = AllocationEvent::Alloc { address: START, bytes: BYTES, stack: 0, source: Source::File };
        let recording = Recording { mappings: vec![mapping], allocations: vec![at(2, mapped)], ..Recording::default() };
        let mut spaces = AddressSpaces::new(&recording, &NoBinaries);
        for (time_ns, present_bytes) in [(10, 4096), (20, BYTES / 2), (30, BYTES / 2)] {
            spaces.advance(time_ns);
            let stretches = vec![Stretch { start: START, bytes: present_bytes, present_bytes }];
            spaces.look(&[Resident { time_ns, pid: 1, stretches }]);
        }
        spaces.objects.close(40);
        let [file] = spaces.objects.entries.as_raw_slice() else { panic!("one object") };
        assert_eq!((file.kind, file.memory_bytes), (ObjectKind::File, BYTES / 2));
    }
}
