//! The records: what they say, and their words.
//!
//! Every record begins with three words: its kind and length with the process, the stamp, and the
//! thread with a small number whose meaning depends on the kind. The rest depends on the kind.

/// Longest stack that is kept, frames; the outermost are cut off.
pub const MAX_FRAMES: usize = 64;
/// Longest record, words.
pub const MAX_RECORD_WORDS: usize = HEAD_WORDS + MAX_FRAMES;
/// Longest path of a module, words of eight bytes.
pub const MAX_PATH_WORDS: usize = MAX_FRAMES - 3;
/// The id of a stack that could not be told.
pub const NO_STACK: u32 = u32::MAX;

const HEAD_WORDS: usize = 3;
/// Words of an [`Event::Resident`] before its nodes.
const RESIDENT_WORDS: usize = 5;

/// When something happened, by the clock of the shared file: ticks of the processor's time-stamp counter where
/// [`Region::wants_ticks`](crate::Region::wants_ticks), else `CLOCK_MONOTONIC`, ns. Only the recorder knows both
/// clocks and makes ns of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Stamp(pub u64);

/// One record: who, when, what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record<'a> {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// When.
    pub stamp: Stamp,
    /// What happened.
    pub event: Event<'a>,
}

/// What handed memory out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `malloc` and its family.
    Heap,
    /// `mmap` without a file.
    Anonymous,
    /// `mmap` of a file; which one, the mapping of the same address and time names.
    File,
    /// `mmap` of addresses that nothing may be read from or written to yet: no memory so far.
    Reserved,
}

impl Source {
    #[inline]
    fn kind(self) -> u16 {
        match self {
            Source::Heap => kind::ALLOC_HEAP,
            Source::Anonymous => kind::ALLOC_ANONYMOUS,
            Source::File => kind::ALLOC_FILE,
            Source::Reserved => kind::ALLOC_RESERVED,
        }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event<'a> {
    /// The library came up in a process.
    Start,
    /// What a plan places from the start of a process is placed.
    Ready {
        /// Where its table of [`Blocks`](crate::Blocks) is; 0 = it has none.
        blocks: u64,
    },
    /// A process was forked off this parent.
    Fork {
        /// Process id of the parent.
        parent: u32,
    },
    /// A range was handed out.
    Alloc {
        /// First address.
        address: u64,
        /// Bytes asked for.
        bytes: u64,
        /// Id of the call stack, or [`NO_STACK`].
        stack: u32,
        /// By what.
        source: Source,
    },
    /// A range that an `Alloc` named is about to be given back.
    Free {
        /// First address.
        address: u64,
    },
    /// A range of addresses is about to be unmapped.
    Unmap {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
    },
    /// What may be done with a range of addresses changed.
    Protect {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// It may be read or written now.
        accessible: bool,
    },
    /// A call stack got an id.
    Stack {
        /// The id.
        id: u32,
        /// Return addresses, innermost first.
        frames: &'a [u64],
    },
    /// A file is mapped: told at the start, where the kernel does not.
    Module {
        /// First address.
        start: u64,
        /// Bytes.
        bytes: u64,
        /// Offset of `start` in the file, bytes.
        file_offset: u64,
        /// Whether code can run there.
        executable: bool,
        /// Path, as [`pack_path`] packs it.
        path: &'a [u64],
    },
    /// A rule of the plan was applied to a range.
    Placed {
        /// Position of the rule.
        rule: u32,
        /// First address.
        address: u64,
        /// Bytes that the policy was asked for; whole pages.
        bytes: u64,
        /// The kernel's answer: 0, or why not; [`TOO_MANY_MAPPINGS`] and [`TOO_LITTLE_MEMORY`] are our own.
        errno: u32,
        /// By which means.
        how: How,
        /// Binary logarithm of the unit by which its pages are dealt out; 0 = any of the policy's
        /// nodes will do.
        shift: u32,
    },
    /// Where the pages of a placed range are, shortly before it is given back or the process ends.
    Resident {
        /// Position of the rule.
        rule: u32,
        /// First address that was placed.
        address: u64,
        /// What was seen.
        pages: Pages,
        /// How many on which node, each as [`pack_node_pages`] packs it.
        nodes: &'a [u64],
    },
}

/// Not asked of the kernel: the mappings that placing it takes are the program's to have. No error
/// number of the kernel's is above 4095 (`MAX_ERRNO` of `include/linux/err.h`).
pub const TOO_MANY_MAPPINGS: u32 = 4096;
/// Not asked of the kernel: the pages would have to come in at once, and there is no memory for that.
pub const TOO_LITTLE_MEMORY: u32 = 4097;

/// By which means a range got its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// One policy of the kernel's for the whole range.
    Policy,
    /// A policy for each stripe.
    Stripes,
    /// Pages made to come in, stripe by stripe, under the thread's policy.
    Populate,
    /// Pages that were there moved, one by one.
    Move,
    /// Pages locked as they come.
    Hold,
    /// The same memory mapped over and over.
    Alias,
}

impl How {
    const ALL: [Self; 6] = [Self::Policy, Self::Stripes, Self::Populate, Self::Move, Self::Hold, Self::Alias];

    fn number(self) -> u64 {
        self as u64
    }

    /// Whether a range has its place by this, rather than something beside it.
    pub fn is_place(self) -> bool {
        matches!(self, Self::Policy | Self::Stripes | Self::Populate | Self::Alias)
    }

    fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|how| how.number() == number)
    }
}

/// What was seen of a range's pages. All but `bytes` count pages that were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pages {
    /// Bytes of the range.
    pub bytes: u64,
    /// Pages that were looked at: all of them, or one of each of as many equal parts.
    pub looked: u64,
    /// Never touched, or not there any more.
    pub absent: u64,
    /// On another node than the plan's.
    pub elsewhere: u64,
}

/// So many pages (below 2^48) on this node, in one word.
pub fn pack_node_pages(node: u16, pages: u64) -> u64 {
    u64::from(node) << 48 | (pages & ((1 << 48) - 1))
}

/// The node and the pages of a word of [`pack_node_pages`].
pub fn unpack_node_pages(word: u64) -> (u32, u64) {
    (u32::from(low16(word >> 48)), word & ((1 << 48) - 1))
}

/// Nodes that one [`Event::Resident`] can name.
pub const MAX_RESIDENT_NODES: usize = 32;

pub(crate) mod kind {
    pub(crate) const START: u16 = 1;
    pub(crate) const FORK: u16 = 2;
    pub(crate) const ALLOC_HEAP: u16 = 3;
    pub(crate) const ALLOC_ANONYMOUS: u16 = 4;
    pub(crate) const ALLOC_FILE: u16 = 5;
    pub(crate) const FREE: u16 = 6;
    pub(crate) const UNMAP: u16 = 7;
    pub(crate) const STACK: u16 = 8;
    pub(crate) const PLACED: u16 = 10;
    pub(crate) const MODULE: u16 = 11;
    pub(crate) const RESIDENT: u16 = 12;
    pub(crate) const READY: u16 = 13;
    pub(crate) const ALLOC_RESERVED: u16 = 14;
    pub(crate) const PROTECT: u16 = 15;
}

/// First word without the process: kind in the low 16 bits, length above.
pub(crate) fn tag(kind: u16, words: usize) -> u64 {
    // No record is longer than MAX_RECORD_WORDS.
    #[allow(clippy::cast_possible_truncation)]
    let length = words as u16;
    u64::from(kind) | (u64::from(length) << 16)
}

/// Length of the record that begins with this word.
pub(crate) fn length(first: u64) -> u16 {
    low16(first >> 16)
}

#[allow(clippy::cast_possible_truncation)]
fn low16(word: u64) -> u16 {
    word as u16
}

#[allow(clippy::cast_possible_truncation)]
fn low32(word: u64) -> u32 {
    word as u32
}

/// Packs a path into words, eight bytes each, and returns how many it took; a longer path is cut.
pub fn pack_path(path: &[u8], into: &mut [u64; MAX_PATH_WORDS]) -> usize {
    let path = &path[..path.len().min(MAX_PATH_WORDS * 8)];
    for (word, bytes) in into.iter_mut().zip(path.chunks(8)) {
        *word = bytes.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte));
    }
    path.len().div_ceil(8)
}

/// The bytes of a packed path.
pub fn unpack_path(words: &[u64]) -> impl Iterator<Item = u8> + '_ {
    words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0)
}

impl<'a> Record<'a> {
    /// Writes the record into `words` and returns those that it needs; a longer one is cut off.
    pub fn encode<'w>(&self, words: &'w mut [u64; MAX_RECORD_WORDS]) -> &'w [u64] {
        let (kind, small, body) = self.event.parts(words);
        let length = HEAD_WORDS + body;
        words[0] = tag(kind, length) | (u64::from(self.pid) << 32);
        words[1] = self.stamp.0;
        words[2] = u64::from(self.tid) | (u64::from(small) << 32);
        &words[..length]
    }

    /// When what the words of a record say happened, without reading the rest.
    pub fn stamp_of(words: &[u64]) -> Stamp {
        Stamp(words.get(1).copied().unwrap_or(0))
    }

    /// Reads a record; `None` where the words are none.
    pub fn decode(words: &'a [u64]) -> Option<Self> {
        let [first, stamp, third, body @ ..] = words else { return None };
        let event = Event::from_parts(low16(*first), low32(third >> 32), body)?;
        Some(Self { pid: low32(first >> 32), tid: low32(*third), stamp: Stamp(*stamp), event })
    }
}

impl<'a> Event<'a> {
    /// Whether a place of a lane can hold it.
    #[inline]
    pub fn is_brief(&self) -> bool {
        matches!(self, Event::Alloc { .. } | Event::Free { .. } | Event::Unmap { .. } | Event::Protect { .. })
    }

    /// Kind, small number and body of an event that a place of a lane can hold; see `from_parts`.
    #[inline]
    pub(crate) fn brief(&self) -> Option<(u16, u32, [u64; 2])> {
        match *self {
            Event::Alloc { address, bytes, stack, source } => Some((source.kind(), stack, [address, bytes])),
            Event::Free { address } => Some((kind::FREE, 0, [address, 0])),
            Event::Unmap { address, bytes } => Some((kind::UNMAP, 0, [address, bytes])),
            Event::Protect { address, bytes, accessible } => {
                Some((kind::PROTECT, u32::from(accessible), [address, bytes]))
            }
            _ => None,
        }
    }

    /// Kind, small number, and how many words of the body were written.
    fn parts(&self, words: &mut [u64]) -> (u16, u32, usize) {
        let room = words.len().min(MAX_RECORD_WORDS) - HEAD_WORDS;
        let mut put = |body: &[u64]| {
            let body = &body[..body.len().min(room)];
            words[HEAD_WORDS..HEAD_WORDS + body.len()].copy_from_slice(body);
            body.len()
        };
        match *self {
            Event::Start => (kind::START, 0, 0),
            Event::Ready { blocks } => (kind::READY, 0, put(&[blocks])),
            Event::Fork { parent } => (kind::FORK, parent, 0),
            Event::Alloc { address, bytes, stack, source } => (source.kind(), stack, put(&[address, bytes])),
            Event::Free { address } => (kind::FREE, 0, put(&[address])),
            Event::Unmap { address, bytes } => (kind::UNMAP, 0, put(&[address, bytes])),
            Event::Protect { address, bytes, accessible } => {
                (kind::PROTECT, u32::from(accessible), put(&[address, bytes]))
            }
            Event::Stack { id, frames } => (kind::STACK, id, put(frames)),
            Event::Module { start, bytes, file_offset, executable, path } => {
                let path = &path[..path.len().min(MAX_PATH_WORDS).min(room - 3)];
                words[HEAD_WORDS + 3..HEAD_WORDS + 3 + path.len()].copy_from_slice(path);
                words[HEAD_WORDS..HEAD_WORDS + 3].copy_from_slice(&[start, bytes, file_offset]);
                (kind::MODULE, u32::from(executable), 3 + path.len())
            }
            Event::Placed { rule, address, bytes, errno, how, shift } => {
                let outcome = u64::from(errno) | how.number() << 32 | u64::from(shift & 0xff) << 40;
                (kind::PLACED, rule, put(&[address, bytes, outcome]))
            }
            Event::Resident { rule, address, pages, nodes } => {
                let nodes = &nodes[..nodes.len().min(MAX_RESIDENT_NODES).min(room - RESIDENT_WORDS)];
                let Pages { bytes, looked, absent, elsewhere } = pages;
                words[HEAD_WORDS..HEAD_WORDS + RESIDENT_WORDS]
                    .copy_from_slice(&[address, bytes, looked, absent, elsewhere]);
                words[HEAD_WORDS + RESIDENT_WORDS..HEAD_WORDS + RESIDENT_WORDS + nodes.len()].copy_from_slice(nodes);
                (kind::RESIDENT, rule, RESIDENT_WORDS + nodes.len())
            }
        }
    }

    fn from_parts(kind: u16, small: u32, body: &'a [u64]) -> Option<Self> {
        let alloc = |source| {
            let [address, bytes] = *body else { return None };
            Some(Event::Alloc { address, bytes, stack: small, source })
        };
        match (kind, body) {
            (kind::START, []) => Some(Event::Start),
            (kind::READY, [blocks]) => Some(Event::Ready { blocks: *blocks }),
            (kind::FORK, []) => Some(Event::Fork { parent: small }),
            (kind::ALLOC_HEAP, _) => alloc(Source::Heap),
            (kind::ALLOC_ANONYMOUS, _) => alloc(Source::Anonymous),
            (kind::ALLOC_FILE, _) => alloc(Source::File),
            (kind::ALLOC_RESERVED, _) => alloc(Source::Reserved),
            (kind::FREE, &[address]) => Some(Event::Free { address }),
            (kind::UNMAP, &[address, bytes]) => Some(Event::Unmap { address, bytes }),
            (kind::PROTECT, &[address, bytes]) => Some(Event::Protect { address, bytes, accessible: small != 0 }),
            (kind::STACK, frames) => Some(Event::Stack { id: small, frames }),
            (kind::MODULE, &[start, bytes, file_offset, ref path @ ..]) if path.len() <= MAX_PATH_WORDS => {
                Some(Event::Module { start, bytes, file_offset, executable: small != 0, path })
            }
            (kind::PLACED, &[address, bytes, outcome]) => {
                let how = How::from_number(outcome >> 32 & 0xff)?;
                // Only what is written is read back: the rest of the word is 0.
                let shift = u32::try_from(outcome >> 40).ok().filter(|shift| *shift <= 0xff)?;
                Some(Event::Placed { rule: small, address, bytes, errno: low32(outcome), how, shift })
            }
            (kind::RESIDENT, &[address, bytes, looked, absent, elsewhere, ref nodes @ ..])
                if nodes.len() <= MAX_RESIDENT_NODES =>
            {
                Some(Event::Resident { rule: small, address, pages: Pages { bytes, looked, absent, elsewhere }, nodes })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(event: Event) {
        let record = Record { pid: 7, tid: u32::MAX, stamp: Stamp(u64::MAX - 1), event };
        let mut words = [0; MAX_RECORD_WORDS];
        let encoded = record.encode(&mut words);
        assert_eq!(Record::decode(encoded), Some(record));
        assert_eq!(event.brief().is_some(), event.is_brief());
    }

    proptest! {
        #[test]
        fn every_event_reads_back(a: u64, b: u64, c: u32, d: u32, frames in prop::collection::vec(any::<u64>(), 0..=MAX_FRAMES)) {
            round_trip(Event::Start);
            round_trip(Event::Ready { blocks: a });
            round_trip(Event::Fork { parent: c });
            for source in [Source::Heap, Source::Anonymous, Source::File, Source::Reserved] {
                round_trip(Event::Alloc { address: a, bytes: b, stack: c, source });
            }
            round_trip(Event::Free { address: a });
            round_trip(Event::Unmap { address: a, bytes: b });
            round_trip(Event::Protect { address: a, bytes: b, accessible: d % 2 == 1 });
            round_trip(Event::Stack { id: c, frames: &frames });
            let path = &frames[..frames.len().min(MAX_PATH_WORDS)];
            round_trip(Event::Module { start: a, bytes: b, file_offset: !a, executable: c % 2 == 1, path });
            for how in How::ALL {
                round_trip(Event::Placed { rule: c, address: a, bytes: b, errno: d, how, shift: d % 64 });
            }
            let pages = Pages { bytes: b, looked: a, absent: !b, elsewhere: !a };
            round_trip(Event::Resident { rule: c, address: a, pages, nodes: &frames[..frames.len().min(MAX_RESIDENT_NODES)] });
        }

        #[test]
        fn pages_of_a_node_read_back(node: u16, pages in 0_u64..1 << 48) {
            prop_assert_eq!(unpack_node_pages(pack_node_pages(node, pages)), (u32::from(node), pages));
        }

        #[test]
        fn a_path_reads_back(path in prop::collection::vec(1_u8.., 0..=MAX_PATH_WORDS * 8)) {
            let mut words = [0; MAX_PATH_WORDS];
            let length = pack_path(&path, &mut words);
            prop_assert!(unpack_path(&words[..length]).eq(path));
        }

        #[test]
        fn any_words_are_a_record_or_none(words in prop::collection::vec(any::<u64>(), 0..MAX_RECORD_WORDS)) {
            if let Some(record) = Record::decode(&words) {
                let mut again = [0; MAX_RECORD_WORDS];
                prop_assert_eq!(Record::decode(record.encode(&mut again)), Some(record));
            }
        }
    }
}
