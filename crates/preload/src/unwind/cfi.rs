//! Call frame information: how a compiler says, for every instruction, where the caller's registers are.
//!
//! A *row* holds for one instruction: a rule for the canonical frame address (CFA: the stack pointer before
//! the call), and one for each register. Rows are kept as a program that builds one from the one before;
//! it is run up to the instruction in question (DWARF 5, 6.4; Linux Standard Base 5.0, 10.6 "Exception
//! Frames"; what is not in either, as GCC's `unwind-dw2.c` reads it). Everything here looks at the tables of
//! loaded files only, never at the stack.

use std::ffi::c_void;
use std::ptr;
use std::slice;

use super::bytes::Bytes;

/// Registers that are followed, by their DWARF numbers (psABI x86-64, figure 3.36): the sixteen of integers,
/// and the return address.
pub(super) const REGISTERS: usize = 17;
pub(super) const RBX: usize = 3;
pub(super) const RBP: usize = 6;
pub(super) const RSP: usize = 7;
pub(super) const RETURN_ADDRESS: usize = 16;

/// Rows that may wait for `DW_CFA_restore_state` at once; compilers need one, at most two.
const REMEMBERED: usize = 3;

/// What holds for a register in the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// What it holds here.
    Same,
    /// Nobody knows; of the return address: there is no caller.
    Undefined,
    /// In memory, at this distance from the CFA.
    At(i32),
    /// It is the CFA and this many bytes.
    Offset(i32),
    /// In this register.
    In(u8),
    /// In memory, at the address that an expression gives.
    AtExpression(Expression),
    /// What an expression gives.
    Expression(Expression),
}

/// What the canonical frame address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cfa {
    /// A register, and this many bytes.
    Register(u8, i32),
    /// What an expression gives.
    Expression(Expression),
}

/// A DWARF expression: where in the table it is, bytes from the beginning of its [`Frame`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expression {
    start: u32,
    length: u32,
}

/// Where the registers of the caller are, at one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) cfa: Cfa,
    pub(super) rules: [Rule; REGISTERS],
}

/// The entry of one function (FDE), with what it shares with others (CIE).
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    /// From the beginning of the shared part to the end of the entry; expressions lie in it.
    table: &'a [u8],
    function: u64,
    code_unit: u64,
    data_unit: i64,
    shared: &'a [u8],
    own: &'a [u8],
    /// Was called by a signal: its caller did not call it, but was interrupted.
    pub(super) by_signal: bool,
}

/// `struct dwarf_eh_bases` of libgcc.
#[repr(C)]
struct Bases {
    text: *const c_void,
    data: *const c_void,
    function: *const c_void,
}

unsafe extern "C" {
    /// libgcc's look-up of a function's entry: in what just-in-time compilers registered, then by
    /// `_dl_find_object`, which takes no lock (glibc 2.35), or by `dl_iterate_phdr` where there is none. It reads
    /// tables, and nothing of the stack.
    fn _Unwind_Find_FDE(address: *const c_void, bases: *mut Bases) -> *const u8;
}

/// The entry of the function that holds this address; `None` where no table has it, or none that we read.
pub(super) fn find(address: u64) -> Option<Frame<'static>> {
    let mut bases = Bases { text: ptr::null(), data: ptr::null(), function: ptr::null() };
    // SAFETY: `bases` outlives the call; any address may be asked for.
    let entry = unsafe { _Unwind_Find_FDE(address as *const c_void, &raw mut bases) };
    if entry.is_null() {
        return None;
    }
    // SAFETY: libgcc found an entry: a length, the distance back to what it shares, and as many bytes as the length
    // says. The shared part lies before it in the same section, and both stay while the code is there.
    unsafe {
        let (length, back) = (entry.cast::<u32>().read_unaligned(), entry.add(4).cast::<u32>().read_unaligned());
        let shared = entry.add(4).sub(back as usize);
        let table = slice::from_raw_parts(shared, back as usize + length as usize);
        Frame::parse(table, back as usize - 4, bases.function as u64)
    }
}

impl<'a> Frame<'a> {
    /// Reads the entry at `entry` of a table that begins with what it shares.
    fn parse(table: &'a [u8], entry: usize, function: u64) -> Option<Self> {
        let mut shared = Bytes(table);
        let length = shared.fixed(4)?;
        let mut shared = Bytes(shared.block(usize::try_from(length).ok()?)?);
        let (_id, version) = (shared.fixed(4)?, shared.byte()?);
        let ends = shared.0.iter().position(|byte| *byte == 0)?;
        let (letters, _end) = (shared.block(ends)?, shared.byte()?);
        let (code_unit, data_unit) = (shared.unsigned()?, shared.signed()?);
        let returns = if version == 1 { u64::from(shared.byte()?) } else { shared.unsigned()? };
        if returns != RETURN_ADDRESS as u64 || !(letters.is_empty() || letters[0] == b'z') {
            return None;
        }
        let mut data = Bytes(if letters.is_empty() { &[] } else { shared.counted()? });
        let (mut encoding, mut by_signal) = (0, false);
        for letter in letters.iter().skip(1) {
            match letter {
                b'R' => encoding = data.byte()?,
                b'P' => skip_pointer(&mut data)?,
                b'L' => drop(data.byte()?),
                b'S' => by_signal = true,
                _ => return None,
            }
        }
        let mut own = Bytes(table.get(entry..)?);
        own.block(8)?;
        for _ in ["first address", "bytes"] {
            own.block(pointer_bytes(encoding)?)?;
        }
        if !letters.is_empty() {
            own.counted()?;
        }
        Some(Self { table, function, code_unit, data_unit, shared: shared.0, own: own.0, by_signal })
    }

    /// The row that holds for the instruction at this address.
    pub(super) fn row(&self, address: u64) -> Option<Row> {
        let fresh = Row { cfa: Cfa::Register(0, 0), rules: [Rule::Same; REGISTERS] };
        let mut rows = Rows { frame: self, row: fresh, first: fresh, remembered: [fresh; REMEMBERED], depth: 0 };
        rows.run(self.shared, u64::MAX)?;
        rows.first = rows.row;
        rows.run(self.own, address.checked_sub(self.function)?)?;
        Some(rows.row)
    }

    /// The bytes of an expression of one of its rows.
    pub(super) fn expression(&self, expression: Expression) -> Bytes<'a> {
        let Expression { start, length } = expression;
        Bytes(self.table.get(start as usize..(start + length) as usize).unwrap_or_default())
    }

    fn place_of(&self, block: &[u8]) -> Option<Expression> {
        let start = u32::try_from(block.as_ptr() as usize - self.table.as_ptr() as usize).ok()?;
        Some(Expression { start, length: u32::try_from(block.len()).ok()? })
    }
}

/// Bytes of a pointer of this encoding (`DW_EH_PE_…`); `None` where they vary, which no compiler does.
fn pointer_bytes(encoding: u8) -> Option<usize> {
    match encoding & 0x0f {
        0x00 | 0x04 | 0x0c => Some(8),
        0x02 | 0x0a => Some(2),
        0x03 | 0x0b => Some(4),
        _ => None,
    }
}

fn skip_pointer(data: &mut Bytes) -> Option<()> {
    let encoding = data.byte()?;
    data.block(pointer_bytes(encoding)?).map(drop)
}

/// The program that makes rows, at work.
struct Rows<'f, 'a> {
    frame: &'f Frame<'a>,
    row: Row,
    /// The row that the shared part leaves: `DW_CFA_restore` goes back to its rules.
    first: Row,
    remembered: [Row; REMEMBERED],
    depth: usize,
}

impl Rows<'_, '_> {
    /// Runs instructions until those of rows behind this distance from the function's beginning.
    fn run(&mut self, program: &[u8], wanted: u64) -> Option<()> {
        let mut program = Bytes(program);
        let mut at = 0_u64;
        while !program.is_empty() && at <= wanted {
            let code = program.byte()?;
            let low = code & 0x3f;
            match code >> 6 {
                0 => at = at.checked_add(self.step(low, &mut program)?.checked_mul(self.frame.code_unit)?)?,
                1 => at = at.checked_add(u64::from(low).checked_mul(self.frame.code_unit)?)?,
                2 => {
                    let offset = self.data(program.unsigned()?.cast_signed())?;
                    self.set(u64::from(low), Rule::At(offset));
                }
                _ => self.restore(u64::from(low)),
            }
        }
        Some(())
    }

    /// One instruction of those without a register in them; how far it goes on, code units.
    fn step(&mut self, code: u8, program: &mut Bytes) -> Option<u64> {
        match code {
            // DW_CFA_nop
            0x00 => {}
            // DW_CFA_advance_loc1, 2, 4
            0x02 => return program.fixed(1),
            0x03 => return program.fixed(2),
            0x04 => return program.fixed(4),
            // DW_CFA_remember_state, DW_CFA_restore_state
            0x0a => {
                *self.remembered.get_mut(self.depth)? = self.row;
                self.depth += 1;
            }
            0x0b => {
                self.depth = self.depth.checked_sub(1)?;
                self.row = self.remembered[self.depth];
            }
            0x0c..=0x0f | 0x12 | 0x13 => self.define_cfa(code, program)?,
            // DW_CFA_GNU_args_size
            0x2e => drop(program.unsigned()?),
            _ => self.define(code, program)?,
        }
        Some(0)
    }

    fn define_cfa(&mut self, code: u8, program: &mut Bytes) -> Option<()> {
        let now = self.row.cfa;
        self.row.cfa = match (code, now) {
            // DW_CFA_def_cfa, DW_CFA_def_cfa_sf
            (0x0c, _) => Cfa::Register(register(program)?, plain(program.unsigned()?.cast_signed())?),
            (0x12, _) => Cfa::Register(register(program)?, self.data(program.signed()?)?),
            // DW_CFA_def_cfa_register
            (0x0d, Cfa::Register(_, offset)) => Cfa::Register(register(program)?, offset),
            // DW_CFA_def_cfa_offset, DW_CFA_def_cfa_offset_sf
            (0x0e, Cfa::Register(register, _)) => Cfa::Register(register, plain(program.unsigned()?.cast_signed())?),
            (0x13, Cfa::Register(register, _)) => Cfa::Register(register, self.data(program.signed()?)?),
            // DW_CFA_def_cfa_expression
            (0x0f, _) => Cfa::Expression(self.frame.place_of(program.counted()?)?),
            _ => return None,
        };
        Some(())
    }

    fn define(&mut self, code: u8, program: &mut Bytes) -> Option<()> {
        let which = program.unsigned()?;
        let rule = match code {
            // DW_CFA_restore_extended
            0x06 => {
                self.restore(which);
                return Some(());
            }
            // DW_CFA_undefined, DW_CFA_same_value, DW_CFA_register
            0x07 => Rule::Undefined,
            0x08 => Rule::Same,
            0x09 => Rule::In(register(program)?),
            // DW_CFA_offset_extended, …_sf, DW_CFA_val_offset, …_sf
            0x05 => Rule::At(self.data(program.unsigned()?.cast_signed())?),
            0x11 => Rule::At(self.data(program.signed()?)?),
            0x14 => Rule::Offset(self.data(program.unsigned()?.cast_signed())?),
            0x15 => Rule::Offset(self.data(program.signed()?)?),
            // DW_CFA_expression, DW_CFA_val_expression
            0x10 => Rule::AtExpression(self.frame.place_of(program.counted()?)?),
            0x16 => Rule::Expression(self.frame.place_of(program.counted()?)?),
            _ => return None,
        };
        self.set(which, rule);
        Some(())
    }

    /// Registers that are not followed (of vectors) have rules, too.
    fn set(&mut self, register: u64, rule: Rule) {
        if let Some(place) = usize::try_from(register).ok().and_then(|at| self.row.rules.get_mut(at)) {
            *place = rule;
        }
    }

    fn restore(&mut self, register: u64) {
        let first = usize::try_from(register).ok().and_then(|at| self.first.rules.get(at)).copied();
        if let Some(rule) = first {
            self.set(register, rule);
        }
    }

    fn data(&self, factored: i64) -> Option<i32> {
        plain(factored.checked_mul(self.frame.data_unit)?)
    }
}

fn register(program: &mut Bytes) -> Option<u8> {
    let register = program.unsigned()?;
    (register < REGISTERS as u64).then_some(u8::try_from(register).ok()?)
}

fn plain(offset: i64) -> Option<i32> {
    i32::try_from(offset).ok()
}
