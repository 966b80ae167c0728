//! What one instruction does to registers and memory, in the terms the analysis needs.
//!
//! Stands between the decoder (iced-x86) and everything else: a [`Step`] is an instruction with its
//! memory operands and the registers that it writes, worked out once per static instruction.
//! Promise: stack traffic of push, pop, call and return is not a memory operand here.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, OpKind, Register};

/// Number of general-purpose registers; they are numbered as in the instruction encoding (AX CX DX
/// BX SP BP SI DI R8…R15).
pub const GENERAL: usize = 16;
/// Number of AX.
pub const ACCUMULATOR: usize = 0;
/// Number of the stack pointer.
pub const STACK_POINTER: usize = 4;
/// A general-purpose register, 0 to 15.
pub type Gpr = usize;

/// Set of general-purpose registers, one bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegisterSet(pub u16);

impl RegisterSet {
    /// Registers that a call leaves as they were (System V ABI for x86-64, table 3.4).
    pub const CALLEE_SAVED: Self = Self(1 << 3 | 1 << 5 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 15);
    /// All there are.
    pub const ALL: Self = Self(u16::MAX);

    /// One register.
    pub fn of(register: Gpr) -> Self {
        Self(1 << register)
    }

    /// Whether a register is one of them.
    pub fn contains(self, register: Gpr) -> bool {
        self.0 >> register & 1 == 1
    }

    /// Adds a register.
    pub fn insert(&mut self, register: Gpr) {
        self.0 |= 1 << register;
    }

    /// Registers of either.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are not among the others.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// The registers, by number.
    pub fn iter(mut self) -> impl Iterator<Item = Gpr> {
        std::iter::from_fn(move || {
            let first = (self.0 != 0).then(|| self.0.trailing_zeros() as Gpr)?;
            self = self.without(Self::of(first));
            Some(first)
        })
    }
}

/// How wide one element of a memory operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// The instruction says so.
    Bytes(u32),
    /// A plain vector move, which serves any element type.
    Any,
}

/// A memory operand that the program's data may lie under.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "independent properties, each a column of the encoding")]
pub struct Operand {
    /// Register that is added.
    pub base: Option<Gpr>,
    /// Register that is added `scale` times.
    pub index: Option<Gpr>,
    /// 1, 2, 4 or 8.
    pub scale: u64,
    /// Constant that is added, modulo 2^64.
    pub displacement: u64,
    /// The instruction reads there.
    pub read: bool,
    /// The instruction writes there.
    pub write: bool,
    /// Bytes of one access; for gathers those of all lanes together.
    pub bytes: u32,
    /// How wide an element is.
    pub element: Element,
    /// An index in a vector register: one address a lane.
    pub gather: bool,
    /// A repeated string instruction: as many accesses as its counter says.
    pub string: bool,
}

impl Operand {
    /// Registers that the address is made of.
    pub fn registers(&self) -> RegisterSet {
        let mut set = RegisterSet::default();
        self.base.into_iter().chain(self.index).for_each(|register| set.insert(register));
        set
    }
}

/// One instruction with what it does.
#[derive(Debug, Clone)]
pub struct Step {
    /// The instruction itself.
    pub code: Instruction,
    /// Its operands in memory.
    pub operands: Vec<Operand>,
    /// Registers that it writes.
    pub written: RegisterSet,
}

impl Step {
    /// What an instruction reads and writes.
    pub fn new(code: Instruction, factory: &mut InstructionInfoFactory) -> Self {
        let info = factory.info(&code);
        let mut written = RegisterSet::default();
        for used in info.used_registers().iter().filter(|used| writes(used.access())) {
            if let Some(register) = gpr(used.register()) {
                written.insert(register);
            }
        }
        let touches = !matches!(code.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) && !is_prefetch(&code);
        let operands = if touches { operands(&code, info.used_memory()) } else { Vec::new() };
        Self { code, operands, written }
    }

    /// Registers whose value after the step is not what it was before, calls included.
    pub fn clobbered(&self) -> RegisterSet {
        let kept = RegisterSet::CALLEE_SAVED.union(RegisterSet::of(STACK_POINTER));
        if self.is_call() { RegisterSet::ALL.without(kept) } else { self.written }
    }

    /// How long it keeps a processor busy, in usual instructions: divisions and roots block their unit for
    /// about 5 cycles, while others retire at 4 a cycle (Fog, *Instruction tables*: Zen 2 to 4, Ice Lake).
    pub fn work(&self) -> f64 {
        use Mnemonic::{
            Div, Divpd, Divps, Divsd, Divss, Idiv, Sqrtpd, Sqrtps, Sqrtsd, Sqrtss, Vdivpd, Vdivps, Vdivsd, Vdivss,
            Vsqrtpd, Vsqrtps, Vsqrtsd, Vsqrtss,
        };
        match self.code.mnemonic() {
            Div | Idiv | Divpd | Divps | Divsd | Divss | Sqrtpd | Sqrtps | Sqrtsd | Sqrtss | Vdivpd | Vdivps
            | Vdivsd | Vdivss | Vsqrtpd | Vsqrtps | Vsqrtsd | Vsqrtss => 20.0,
            _ => 1.0,
        }
    }

    /// Whether it is a call, direct or not.
    pub fn is_call(&self) -> bool {
        matches!(self.code.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
    }
}

/// Number of a general-purpose register of any width.
pub fn gpr(register: Register) -> Option<Gpr> {
    register.is_gpr().then(|| register.full_register().number())
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite | OpAccess::ReadCondWrite)
}

fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::ReadWrite | OpAccess::CondRead | OpAccess::ReadCondWrite)
}

fn is_prefetch(code: &Instruction) -> bool {
    use Mnemonic::{Prefetch, Prefetchnta, Prefetcht0, Prefetcht1, Prefetcht2, Prefetchw, Prefetchwt1};
    let mnemonic = code.mnemonic();
    matches!(mnemonic, Prefetch | Prefetchnta | Prefetcht0 | Prefetcht1 | Prefetcht2 | Prefetchw | Prefetchwt1)
}

fn operands(code: &Instruction, used: &[iced_x86::UsedMemory]) -> Vec<Operand> {
    let explicit = (0..code.op_count()).any(|k| code.op_kind(k) == OpKind::Memory);
    let string = code.is_string_instruction();
    if !explicit && !string || thread_local(code) {
        return Vec::new();
    }
    let data = used.iter().filter(|memory| string || memory.base() == code.memory_base() || !explicit);
    let mut found: Vec<Operand> = Vec::new();
    for memory in data {
        // Push, pop and call add their stack slot to the list: it is based on RSP and not explicit.
        if gpr(memory.base()) == Some(STACK_POINTER) && code.memory_base() != Register::RSP {
            continue;
        }
        let operand = operand(code, memory, string);
        match found.iter_mut().find(|known| (known.base, known.index) == (operand.base, operand.index)) {
            Some(known) => {
                known.read |= operand.read;
                known.write |= operand.write;
                known.bytes = known.bytes.max(operand.bytes);
            }
            None => found.push(operand),
        }
    }
    found
}

fn thread_local(code: &Instruction) -> bool {
    matches!(code.segment_prefix(), Register::FS | Register::GS)
}

fn operand(code: &Instruction, memory: &iced_x86::UsedMemory, string: bool) -> Operand {
    let size = memory.memory_size();
    let gather = code.is_vsib();
    let relative = matches!(memory.base(), Register::RIP | Register::EIP);
    let lane = u32::try_from(size.element_size().max(1)).unwrap_or(8);
    let (bytes, element) = if gather {
        (lane * lanes(code), Element::Bytes(lane))
    } else {
        (u32::try_from(size.size()).unwrap_or(8), element(code, size))
    };
    Operand {
        base: if relative { None } else { gpr(memory.base()) },
        index: gpr(memory.index()),
        scale: u64::from(memory.scale()),
        displacement: memory.displacement(),
        read: reads(memory.access()),
        write: writes(memory.access()),
        bytes,
        element,
        gather,
        string,
    }
}

/// Lanes of a gather or scatter: as many as fit both the data and the indices.
fn lanes(code: &Instruction) -> u32 {
    let lane = u32::try_from(code.memory_size().element_size().max(1)).unwrap_or(8);
    let data = (0..code.op_count()).filter(|&k| code.op_kind(k) == OpKind::Register).map(|k| code.op_register(k));
    let width = data.filter(|r| r.is_vector_register()).map(Register::size).min().unwrap_or(16);
    let index_lane = if code.is_vsib64() { 8 } else { 4 };
    let by_index = u32::try_from(code.memory_index().size()).unwrap_or(16) / index_lane;
    (u32::try_from(width).unwrap_or(16) / lane).min(by_index).max(1)
}

fn element(code: &Instruction, size: MemorySize) -> Element {
    use Mnemonic::{
        Lddqu, Movapd, Movaps, Movdqa, Movdqu, Movntdq, Movntpd, Movntps, Movupd, Movups, Pxor, Vmovapd, Vmovaps,
        Vmovdqa, Vmovdqu, Vmovntdq, Vmovntpd, Vmovntps, Vmovupd, Vmovups,
    };
    let plain = matches!(
        code.mnemonic(),
        Movups
            | Movaps
            | Movdqa
            | Movdqu
            | Movntdq
            | Movntps
            | Lddqu
            | Pxor
            | Vmovups
            | Vmovaps
            | Vmovdqa
            | Vmovdqu
            | Vmovntdq
            | Vmovntps
    );
    let double = matches!(code.mnemonic(), Movapd | Movupd | Movntpd | Vmovapd | Vmovupd | Vmovntpd);
    match (plain, double) {
        (true, _) => Element::Any,
        (_, true) => Element::Bytes(8),
        _ => Element::Bytes(u32::try_from(size.element_size().max(1)).unwrap_or(8)),
    }
}

/// What `xor r, r` or a copy of a constant leaves in its register.
pub fn constant(code: &Instruction) -> Option<u64> {
    match code.mnemonic() {
        Mnemonic::Xor | Mnemonic::Sub if code.op1_kind() == OpKind::Register => {
            (code.op0_register() == code.op1_register()).then_some(0)
        }
        Mnemonic::Mov => code.try_immediate(1).ok(),
        _ => None,
    }
}

/// Whether a conditional jump is taken under these RFLAGS; `None` for other instructions.
pub fn jump_taken(code: &Instruction, flags: u64) -> Option<bool> {
    use iced_x86::ConditionCode as Condition;
    if !code.is_jcc_short_or_near() {
        return None;
    }
    let bit = |position: u32| flags >> position & 1 == 1;
    let (carry, parity, zero, sign, overflow) = (bit(0), bit(2), bit(6), bit(7), bit(11));
    Some(match code.condition_code() {
        Condition::o => overflow,
        Condition::no => !overflow,
        Condition::b => carry,
        Condition::ae => !carry,
        Condition::e => zero,
        Condition::ne => !zero,
        Condition::be => carry || zero,
        Condition::a => !(carry || zero),
        Condition::s => sign,
        Condition::ns => !sign,
        Condition::p => parity,
        Condition::np => !parity,
        Condition::l => sign != overflow,
        Condition::ge => sign == overflow,
        Condition::le => zero || sign != overflow,
        Condition::g => !zero && sign == overflow,
        Condition::None => return None,
    })
}

/// Width of the elements that a packed arithmetic instruction works on.
pub fn packed_element(code: &Instruction) -> Option<u32> {
    let vector = (0..code.op_count()).any(|k| code.op_kind(k) == OpKind::Register && code.op_register(k).is_xmm());
    let wide = (0..code.op_count()).any(|k| {
        let register = if code.op_kind(k) == OpKind::Register { code.op_register(k) } else { Register::None };
        register.is_ymm() || register.is_zmm()
    });
    if !vector && !wide {
        return None;
    }
    let name = format!("{:?}", code.mnemonic());
    let arithmetic = name.trim_start_matches('V');
    let is = |prefixes: &[&str], suffix: &str| {
        prefixes.iter().any(|p| arithmetic.starts_with(p)) && arithmetic.ends_with(suffix)
    };
    if let Some(width) = widened(arithmetic) {
        return Some(width);
    }
    if is(&["Add", "Sub", "Mul", "Div", "Sqrt", "Max", "Min", "Fmadd", "Fnmadd", "Fmsub", "Fnmsub"], "pd") {
        Some(8)
    } else if is(&["Add", "Sub", "Mul", "Div", "Sqrt", "Max", "Min", "Fmadd", "Fnmadd", "Fmsub", "Fnmsub"], "ps") {
        Some(4)
    } else if is(&["Padd", "Psub", "Pcmpeq", "Pcmpgt", "Pmin", "Pmax", "Psll", "Psrl", "Pmull", "Pmulu"], "q") {
        Some(8)
    } else if is(&["Padd", "Psub", "Pcmpeq", "Pcmpgt", "Pmin", "Pmax", "Psll", "Psrl", "Psra", "Pmull"], "d") {
        Some(4)
    } else {
        None
    }
}

/// Width of the elements that a conversion starts from.
fn widened(mnemonic: &str) -> Option<u32> {
    const BY_SOURCE: [(&[&str], u32); 3] = [
        (&["Pmovzxdq", "Pmovsxdq", "Punpckldq", "Punpckhdq", "Cvtdq2pd", "Cvtps2pd", "Cvtdq2ps"], 4),
        (&["Pmovzxwd", "Pmovzxwq", "Pmovsxwd", "Pmovsxwq", "Punpcklwd", "Punpckhwd"], 2),
        (&["Pmovzxbw", "Pmovzxbd", "Pmovzxbq", "Pmovsxbw", "Pmovsxbd", "Pmovsxbq", "Punpcklbw", "Punpckhbw"], 1),
    ];
    BY_SOURCE.iter().find(|(names, _)| names.contains(&mnemonic)).map(|(_, width)| *width)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    /// Decodes hand-assembled bytes at address 0x1000.
    pub(crate) fn steps(bytes: &[u8]) -> Vec<Step> {
        let mut factory = InstructionInfoFactory::new();
        let decoder = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE);
        decoder.into_iter().map(|code| Step::new(code, &mut factory)).collect()
    }

    #[test]
    fn a_set_gives_its_registers_in_order_and_can_be_taken_apart() {
        let set = RegisterSet(1 << 15 | 1 << 4 | 1);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 4, 15]);
        assert_eq!(set.without(RegisterSet::of(4)), RegisterSet::of(0).union(RegisterSet::of(15)));
        assert_eq!(RegisterSet::ALL.iter().count(), GENERAL);
        assert_eq!(RegisterSet::default().iter().next(), None);
    }

    #[test]
    fn a_load_has_one_operand_and_writes_its_target() {
        let load = &steps(&[0x48, 0x8b, 0x04, 0xca])[0]; // mov rax, [rdx+rcx*8]
        let operand = load.operands[0];
        assert_eq!((operand.base, operand.index, operand.scale), (Some(2), Some(1), 8));
        assert_eq!((operand.read, operand.write, operand.bytes), (true, false, 8));
        assert_eq!(load.written, RegisterSet(1));
    }

    #[test]
    fn a_read_modify_write_reads_and_writes_once() {
        let update = &steps(&[0x83, 0x04, 0x87, 0x01])[0]; // add dword [rdi+rax*4], 1
        assert_eq!(update.operands.len(), 1);
        assert!(update.operands[0].read && update.operands[0].write);
    }

    #[test]
    fn stack_traffic_and_lea_are_no_operands() {
        for bytes in [&[0x55][..], &[0xe8, 0, 0, 0, 0], &[0xc3], &[0x48, 0x8d, 0x04, 0x17], &[0x0f, 0x18, 0x08]] {
            assert!(steps(bytes)[0].operands.is_empty(), "{bytes:x?}");
        }
    }

    #[test]
    fn vector_moves_serve_any_element_and_arithmetic_names_it() {
        let codes = steps(&[0x0f, 0x10, 0x07, 0x66, 0x0f, 0x58, 0x07, 0x66, 0x0f, 0xfe, 0xc1]);
        assert_eq!(codes[0].operands[0].element, Element::Any); // movups xmm0, [rdi]
        assert_eq!(codes[1].operands[0].element, Element::Bytes(8)); // addpd xmm0, [rdi]
        assert_eq!(packed_element(&codes[1].code), Some(8));
        assert_eq!(packed_element(&codes[2].code), Some(4)); // paddd xmm0, xmm1
    }

    #[test]
    fn conditions_follow_the_flags() {
        let jump = steps(&[0x74, 0x00])[0].code; // je
        assert_eq!(jump_taken(&jump, 1 << 6), Some(true));
        assert_eq!(jump_taken(&jump, 0), Some(false));
        assert_eq!(jump_taken(&steps(&[0x90])[0].code, 0), None);
    }
}
