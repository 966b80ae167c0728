//! Where copies write addresses down: the last some ten thousand that operands had, and whose they were.
//!
//! ```text
//! word 0   how many were written down since it was last set
//! words    addresses, at their number modulo the entries
//! halves   numbers of the operands, likewise
//! ```
//! It lies in the first 2 GiB of all addresses, where an index alone reaches it, so that code of all areas shares it.

use std::collections::BTreeMap;

use iced_x86::{Code, Instruction, MemoryOperand, Mnemonic, OpKind, Register};

use crate::area::TABLE_BELOW;

const WORD: u64 = 8;
const HALF: u64 = 4;
/// Room before the entries: a line, which the count has for itself.
const COUNT_BYTES: u64 = 64;
/// As many as 16 bits tell apart: an instruction that changes no flag takes the rest away.
const ENTRIES: u64 = 1 << 16;
/// Bytes of a log.
pub const LOG_BYTES: u64 = COUNT_BYTES + ENTRIES * (WORD + HALF);
/// Addresses that are kept of an operand, from the whole of its time in the log. Assumed: a hundred windows tell a share
/// of 10 % to a point.
const KEPT: usize = 16;

/// A log, by its first address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Log {
    start: u64,
}

/// Which operand of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Which {
    /// The one that it names.
    Named,
    /// What a string instruction reads.
    Source,
    /// Where a string instruction writes, or what it compares with.
    Destination,
    /// No operand: how often it is repeated at most.
    Rounds,
}

/// An operand in the code of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoggedOperand {
    /// Address of its instruction.
    pub instruction: u64,
    /// Which of its operands.
    pub which: Which,
}

/// What a log says of an operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The operand.
    pub operand: LoggedOperand,
    /// How often it was executed.
    pub executions: u64,
    /// Some of its addresses, evenly from first to last.
    pub addresses: Vec<u64>,
}

impl Log {
    /// At an address, [`LOG_BYTES`] long; `None` where no displacement reaches it.
    pub fn new(start: u64) -> Option<Self> {
        (start + LOG_BYTES <= TABLE_BELOW).then_some(Self { start })
    }

    /// Where the count is.
    pub fn count(self) -> u64 {
        self.start
    }

    pub(crate) fn addresses(self) -> u64 {
        self.start + COUNT_BYTES
    }

    pub(crate) fn numbers(self) -> u64 {
        self.addresses() + ENTRIES * WORD
    }

    /// First addresses and lengths in bytes of what is to be read when so many were written down.
    pub fn filled(self, count: u64) -> [(u64, u64); 2] {
        // The first one has number 1; beyond the entries they begin anew.
        let entries = (count + 1).min(ENTRIES);
        [(self.addresses(), entries * WORD), (self.numbers(), entries * HALF)]
    }

    /// What it says, given what [`Log::filled`] names and the operands by number.
    pub(crate) fn touched(count: u64, addresses: &[u8], numbers: &[u8], operands: &[LoggedOperand]) -> Vec<Touched> {
        let first = (count + 1).saturating_sub(ENTRIES).max(1);
        let mut found: BTreeMap<LoggedOperand, Vec<u64>> = BTreeMap::new();
        for entry in first..=count {
            let at = usize::try_from(entry % ENTRIES).unwrap_or(0);
            let (Some(address), Some(number)) = (addresses.chunks_exact(8).nth(at), numbers.chunks_exact(4).nth(at))
            else {
                continue;
            };
            let number = u32::from_le_bytes(number.try_into().unwrap_or_default());
            let Some(operand) = operands.get(number as usize) else { continue };
            found.entry(*operand).or_default().push(u64::from_le_bytes(address.try_into().unwrap_or_default()));
        }
        found
            .into_iter()
            .map(|(operand, all)| Touched { operand, executions: all.len() as u64, addresses: some(&all) })
            .collect()
    }
}

/// Some of many, evenly from first to last.
fn some(all: &[u64]) -> Vec<u64> {
    let kept = all.len().min(KEPT);
    (0..kept).map(|position| all[position * all.len() / kept]).collect()
}

/// Operands whose address only a run tells, and an instruction for each that loads it into `rdx`. What is relative to
/// the instruction, on the stack or of the thread's own is not among them.
pub(crate) fn operands(instruction: &Instruction) -> Vec<(Which, Instruction)> {
    if matches!(instruction.segment_prefix(), Register::FS | Register::GS) {
        return Vec::new();
    }
    if instruction.is_string_instruction() {
        let operands = (0..instruction.op_count()).filter_map(|operand| of_string(instruction.op_kind(operand)));
        let is_repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        let rounds = is_repeated.then(|| load_address(MemoryOperand::with_base(Register::RCX))).flatten();
        return operands.chain(rounds.map(|rounds| (Which::Rounds, rounds))).collect();
    }
    named(instruction).into_iter().map(|address| (Which::Named, address)).collect()
}

fn of_string(kind: OpKind) -> Option<(Which, Instruction)> {
    let (which, register) = match kind {
        OpKind::MemorySegRSI => (Which::Source, Register::RSI),
        OpKind::MemoryESRDI => (Which::Destination, Register::RDI),
        _ => return None,
    };
    Some((which, load_address(MemoryOperand::with_base(register))?))
}

/// Of a gather it is the address that the lanes have in common.
fn named(instruction: &Instruction) -> Option<Instruction> {
    /// As many bytes for a displacement as it takes.
    const FITTING: u32 = 1;
    let is_data =
        !matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) && !instruction.is_ip_rel_memory_operand();
    let has_one = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    if !is_data || !has_one || instruction.memory_base() == Register::RSP {
        return None;
    }
    let index = if instruction.is_vsib() { Register::None } else { instruction.memory_index() };
    let base = instruction.memory_base();
    let is_wide = |register: Register| register == Register::None || register.is_gpr64();
    if base == Register::None && index == Register::None || !is_wide(base) || !is_wide(index) {
        return None;
    }
    let displacement = instruction.memory_displacement64().cast_signed();
    i32::try_from(displacement).ok()?;
    let scale = if index == Register::None { 1 } else { instruction.memory_index_scale() };
    load_address(MemoryOperand::new(base, index, scale, displacement, FITTING, false, Register::None))
}

fn load_address(operand: MemoryOperand) -> Option<Instruction> {
    Instruction::with2(Code::Lea_r64_m, Register::RDX, operand).ok()
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, Encoder};

    use super::*;

    fn decoded(bytes: &[u8]) -> Instruction {
        Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode()
    }

    fn which(bytes: &[u8]) -> Vec<Which> {
        operands(&decoded(bytes)).into_iter().map(|(which, _)| which).collect()
    }

    #[test]
    fn operands_that_only_a_run_tells_are_logged() {
        assert_eq!(which(&[0x48, 0x8b, 0x04, 0xc8]), [Which::Named], "mov rax, [rax+rcx*8]");
        assert_eq!(which(&[0xf3, 0x48, 0xa5]), [Which::Destination, Which::Source, Which::Rounds], "rep movsq");
        assert_eq!(which(&[0xff, 0x24, 0xc5, 0, 0, 0, 0]), [Which::Named], "jmp [rax*8+0]");
        assert_eq!(which(&[0x48, 0x8b, 0x05, 0, 0, 0, 0]), [], "mov rax, [rip+0]");
        assert_eq!(which(&[0x48, 0x8b, 0x44, 0x24, 8]), [], "mov rax, [rsp+8]");
        assert_eq!(which(&[0x48, 0x8d, 0x04, 0xc8]), [], "lea rax, [rax+rcx*8]");
        assert_eq!(which(&[0x64, 0x48, 0x8b, 0x00]), [], "mov rax, fs:[rax]");
        assert_eq!(which(&[0x50]), [], "push rax");
    }

    #[test]
    fn what_loads_an_address_can_be_encoded() {
        for bytes in [
            &[0x48, 0x8b, 0x04, 0xc8][..],               // mov rax, [rax+rcx*8]
            &[0x48, 0x8b, 0x00],                         // mov rax, [rax]
            &[0x48, 0x8b, 0x45, 0xf8],                   // mov rax, [rbp-8]
            &[0x49, 0x8b, 0x85, 0, 0x10, 0, 0],          // mov rax, [r13+0x1000]
            &[0xff, 0x24, 0xc5, 0, 0x10, 0, 0],          // jmp [rax*8+0x1000]
            &[0xf3, 0x48, 0xa5],                         // rep movsq
            &[0xc4, 0xe2, 0xed, 0x92, 0x44, 0xc8, 0x10], // vgatherdpd ymm0, [rax+xmm1*8+0x10], ymm2
            &[0x62, 0xf1, 0xfd, 0x48, 0x28, 0x40, 0x01], // vmovapd zmm0, [rax+0x40]
        ] {
            let operands = operands(&decoded(bytes));
            assert!(!operands.is_empty(), "{bytes:x?}");
            for (_, load) in operands {
                assert!(Encoder::new(64).encode(&load, 0x1000).is_ok(), "{bytes:x?}");
            }
        }
    }

    #[test]
    fn a_log_that_has_come_round_holds_the_last() {
        let operand = |instruction| LoggedOperand { instruction, which: Which::Named };
        let operands = [operand(1), operand(2)];
        let log = |count: u64| {
            let entries = usize::try_from(ENTRIES).unwrap();
            let [mut addresses, mut numbers] = [vec![0; 8 * entries], vec![0; 4 * entries]];
            for entry in 1..=count {
                let at = usize::try_from(entry % ENTRIES).unwrap();
                addresses[8 * at..8 * at + 8].copy_from_slice(&entry.to_le_bytes());
                numbers[4 * at..4 * at + 4].copy_from_slice(&u32::from(entry.is_multiple_of(4)).to_le_bytes());
            }
            Log::touched(count, &addresses, &numbers, &operands)
        };
        let few = log(8);
        assert_eq!((few[0].executions, few[1].executions), (6, 2));
        assert_eq!(few[1].addresses, [4, 8]);
        let many = log(ENTRIES + 100);
        assert_eq!(many[0].executions + many[1].executions, ENTRIES);
        assert_eq!((many[0].addresses[0], many[0].addresses.len()), (101, KEPT));
        assert_eq!(log(0), []);
    }
}
