//! The kernel's records, parsed: `include/uapi/linux/perf_event.h`, "enum `perf_event_type`".
//!
//! Every field is read with a bound check; a record that is shorter than its kind needs is dropped.

/// Registers of a sample: AX BX CX DX SI DI BP SP IP FLAGS R8..R15.
pub const REGISTERS: usize = 18;

/// What the samples of a ring carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Where the thread was, with its registers.
    Clock {
        /// A group of counters was read too: the leader and the instructions.
        group: bool,
    },
    /// Which address it had no page for.
    Faults,
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    /// CPU.
    pub cpu: u32,
    /// User instructions of this thread on this CPU so far; 0 where they are not counted.
    pub instructions: u64,
    /// Registers of user space.
    pub registers: [u64; REGISTERS],
    /// Taken in the kernel.
    pub kernel: bool,
}

/// One page fault of user space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Process.
    pub pid: u32,
    /// `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    /// Address that was read or written.
    pub address: u64,
}

/// One record of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The event overflowed.
    Sample(Sample),
    /// A page was missing.
    Fault(Fault),
    /// Memory was mapped.
    Mmap {
        /// Process.
        pid: u32,
        /// `CLOCK_MONOTONIC`, ns.
        time_ns: u64,
        /// First address.
        start: u64,
        /// Bytes.
        bytes: u64,
        /// Offset in the file, bytes.
        file_offset: u64,
        /// Whether code can run there.
        executable: bool,
        /// Path, `//anon`, `[heap]`, `[stack]`, `[vdso]`.
        path: String,
    },
    /// A process began to run another program.
    Exec {
        /// Process.
        pid: u32,
        /// `CLOCK_MONOTONIC`, ns.
        time_ns: u64,
        /// First 15 bytes of the program's name.
        name: String,
    },
    /// A process (not only a thread) was forked.
    Fork {
        /// Process.
        pid: u32,
        /// Its parent.
        parent: u32,
        /// `CLOCK_MONOTONIC`, ns.
        time_ns: u64,
    },
    /// The main thread of a process ended.
    Exit {
        /// Process.
        pid: u32,
        /// `CLOCK_MONOTONIC`, ns.
        time_ns: u64,
    },
    /// The ring was full.
    Lost(u64),
    /// The kernel held samples back because they took too long.
    Throttled,
}

const MMAP2: u32 = 10;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MISC_CPUMODE: u16 = 7;
const MISC_KERNEL: u16 = 1;
const MISC_COMM_EXEC: u16 = 1 << 13;
const PROT_EXEC: u32 = 4;
const HEADER: usize = 8;

/// All records in `bytes`; stops at the first whose length is impossible.
pub fn parse(bytes: &[u8], layout: Layout) -> Vec<Record> {
    let mut records = Vec::new();
    let mut rest = bytes;
    while let Some(header) = rest.get(..HEADER) {
        let mut fields = Fields(header);
        let (Some(kind), Some(misc), Some(length)) = (fields.u32(), fields.u16(), fields.u16()) else { break };
        let Some(body) = rest.get(HEADER..usize::from(length)) else { break };
        records.extend(one(kind, misc, body, layout));
        rest = &rest[usize::from(length)..];
    }
    records
}

fn one(kind: u32, misc: u16, body: &[u8], layout: Layout) -> Option<Record> {
    let mut fields = Fields(body);
    match kind {
        SAMPLE => match layout {
            Layout::Clock { group } => sample(&mut fields, misc, group).map(Record::Sample),
            Layout::Faults => fault(&mut fields).map(Record::Fault),
        },
        MMAP2 => mmap(&mut fields, body),
        COMM if misc & MISC_COMM_EXEC != 0 => {
            let (pid, _tid) = (fields.u32()?, fields.u32()?);
            Some(Record::Exec { pid, time_ns: trailer_time(body)?, name: fields.text() })
        }
        FORK | EXIT => {
            let (pid, parent, tid, _) = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
            let time_ns = fields.u64()?;
            match kind {
                FORK if pid != parent => Some(Record::Fork { pid, parent, time_ns }),
                EXIT if pid == tid => Some(Record::Exit { pid, time_ns }),
                _ => None,
            }
        }
        LOST => {
            fields.u64()?;
            fields.u64().map(Record::Lost)
        }
        THROTTLE => Some(Record::Throttled),
        _ => None,
    }
}

fn fault(fields: &mut Fields) -> Option<Fault> {
    let (pid, _tid) = (fields.u32()?, fields.u32()?);
    Some(Fault { pid, time_ns: fields.u64()?, address: fields.u64()? })
}

fn sample(fields: &mut Fields, misc: u16, group: bool) -> Option<Sample> {
    let _ip = fields.u64()?;
    let (pid, tid) = (fields.u32()?, fields.u32()?);
    let time_ns = fields.u64()?;
    let (cpu, _) = (fields.u32()?, fields.u32()?);
    let instructions = if group { group_instructions(fields)? } else { 0 };
    let registers = if fields.u64()? == 0 { None } else { registers(fields) }?;
    Some(Sample { pid, tid, time_ns, cpu, instructions, registers, kernel: misc & MISC_CPUMODE == MISC_KERNEL })
}

/// `PERF_FORMAT_GROUP`: the number of values, then the leader's and its siblings'.
fn group_instructions(fields: &mut Fields) -> Option<u64> {
    let values = fields.u64()?;
    let mut last = 0;
    for position in 0..values {
        let value = fields.u64()?;
        last = if position == 1 { value } else { last };
    }
    Some(last)
}

fn registers(fields: &mut Fields) -> Option<[u64; REGISTERS]> {
    let mut registers = [0; REGISTERS];
    for register in &mut registers {
        *register = fields.u64()?;
    }
    Some(registers)
}

fn mmap(fields: &mut Fields, body: &[u8]) -> Option<Record> {
    let (pid, _tid) = (fields.u32()?, fields.u32()?);
    let (start, bytes, file_offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
    for _device_and_inode in 0..3 {
        fields.u64()?;
    }
    let (protection, _flags) = (fields.u32()?, fields.u32()?);
    let path = fields.text();
    let executable = protection & PROT_EXEC != 0;
    Some(Record::Mmap { pid, time_ns: trailer_time(body)?, start, bytes, file_offset, executable, path })
}

/// `sample_id_all`: thread, time and CPU close every record that is not a sample, 8 bytes each.
fn trailer_time(body: &[u8]) -> Option<u64> {
    Fields(body.get(body.len().checked_sub(16)?..)?).u64()
}

/// Reads fields from the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    /// Text up to the first zero byte.
    fn text(&self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Layout = Layout::Clock { group: false };

    fn framed(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(HEADER + body.len()).unwrap();
        [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &length.to_ne_bytes(), body].concat()
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn pair(low: u32, high: u32) -> u64 {
        u64::from(low) | (u64::from(high) << 32)
    }

    #[test]
    fn a_sample_with_and_without_counters() {
        let registers: Vec<u64> = (100..118).collect();
        let plain = [&[42, pair(7, 8), 99, pair(3, 0), 2][..], &registers].concat();
        let grouped = [&[42, pair(7, 8), 99, pair(3, 0), 2, 1000, 5555, 2][..], &registers].concat();
        for (body, layout, instructions) in [(plain, PLAIN, 0), (grouped, Layout::Clock { group: true }, 5555)] {
            let parsed = parse(&framed(SAMPLE, 2, &words(&body)), layout);
            let [Record::Sample(sample)] = parsed.as_slice() else { panic!("{parsed:?}") };
            assert_eq!((sample.pid, sample.tid, sample.time_ns, sample.cpu), (7, 8, 99, 3));
            assert_eq!(sample.instructions, instructions);
            assert_eq!((sample.registers[0], sample.registers[17], sample.kernel), (100, 117, false));
        }
    }

    #[test]
    fn a_sample_without_user_registers_is_dropped() {
        let body = words(&[42, pair(7, 8), 99, pair(3, 0), 0]);
        assert_eq!(parse(&framed(SAMPLE, 2, &body), PLAIN), []);
    }

    #[test]
    fn a_mapping_has_its_path_and_time() {
        let mut body = words(&[pair(7, 8), 0x1000, 0x2000, 0x3000, 0, 0, 0, pair(5, 2)]);
        body.extend(b"/bin/true\0\0\0\0\0\0\0");
        body.extend(words(&[pair(7, 8), 77, 0]));
        let expected = Record::Mmap {
            pid: 7,
            time_ns: 77,
            start: 0x1000,
            bytes: 0x2000,
            file_offset: 0x3000,
            executable: true,
            path: "/bin/true".to_owned(),
        };
        assert_eq!(parse(&framed(MMAP2, 2, &body), PLAIN), [expected]);
    }

    #[test]
    fn a_fault_names_its_address() {
        let parsed = parse(&framed(SAMPLE, 2, &words(&[pair(7, 8), 99, 0x7000_1000])), Layout::Faults);
        assert_eq!(parsed, [Record::Fault(Fault { pid: 7, time_ns: 99, address: 0x7000_1000 })]);
    }

    #[test]
    fn threads_are_not_processes() {
        let fork = |pid, parent| framed(FORK, 0, &words(&[pair(pid, parent), pair(9, 9), 5, 0, 0, 0]));
        assert_eq!(parse(&fork(7, 7), PLAIN), []);
        assert_eq!(parse(&fork(8, 7), PLAIN), [Record::Fork { pid: 8, parent: 7, time_ns: 5 }]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..600), group: bool) {
            parse(&bytes, Layout::Clock { group });
            parse(&bytes, Layout::Faults);
        }

        #[test]
        fn any_body_of_a_known_kind_is_survived(kind in 0_u32..20, misc: u16, body in prop::collection::vec(any::<u8>(), 0..300)) {
            let bytes = [framed(kind, misc, &body), framed(THROTTLE, 0, &[])].concat();
            let records = parse(&bytes, PLAIN);
            prop_assert_eq!(records.last(), Some(&Record::Throttled));
        }
    }
}
