//! DWARF expressions, as far as unwinding needs them (DWARF 5, 2.5 and 6.4.2): a stack of numbers, registers,
//! and memory. Linkers write them for procedure linkage tables, libc for frames of signals, compilers for
//! functions that align their stack.

use super::bytes::Bytes;
use super::memory::Memory;

/// Numbers that an expression may have at once; those that exist have four.
const DEPTH: usize = 8;

struct Numbers {
    stack: [u64; DEPTH],
    count: usize,
}

impl Numbers {
    fn push(&mut self, number: u64) -> Option<()> {
        *self.stack.get_mut(self.count)? = number;
        self.count += 1;
        Some(())
    }

    fn pop(&mut self) -> Option<u64> {
        self.count = self.count.checked_sub(1)?;
        Some(self.stack[self.count])
    }

    /// Replaces the two at the top by what comes of them.
    fn both(&mut self, work: impl Fn(u64, u64) -> u64) -> Option<()> {
        let (top, below) = (self.pop()?, self.pop()?);
        self.push(work(below, top))
    }
}

/// What an expression gives that begins with this number; `None` where it does what we do not know, or memory
/// cannot be read.
pub(super) fn evaluate(mut code: Bytes, begin: u64, registers: &[u64], memory: &mut Memory) -> Option<u64> {
    let mut numbers = Numbers { stack: [0; DEPTH], count: 0 };
    numbers.push(begin)?;
    while !code.is_empty() {
        let operation = code.byte()?;
        match operation {
            // DW_OP_deref
            0x06 => {
                let address = numbers.pop()?;
                numbers.push(memory.read(address)?)?;
            }
            // DW_OP_const1u … DW_OP_const8s: unsigned ones are even.
            0x08..=0x0f => {
                let length = 1 << ((operation - 0x08) / 2);
                let signed = !operation.is_multiple_of(2);
                numbers.push(if signed { code.fixed_signed(length)?.cast_unsigned() } else { code.fixed(length)? })?;
            }
            // DW_OP_constu, DW_OP_consts
            0x10 => numbers.push(code.unsigned()?)?,
            0x11 => numbers.push(code.signed()?.cast_unsigned())?,
            // DW_OP_and, DW_OP_minus, DW_OP_or, DW_OP_plus, DW_OP_shl
            0x1a => numbers.both(|a, b| a & b)?,
            0x1c => numbers.both(u64::wrapping_sub)?,
            0x21 => numbers.both(|a, b| a | b)?,
            0x22 => numbers.both(u64::wrapping_add)?,
            0x24 => numbers.both(|a, b| u32::try_from(b).ok().and_then(|b| a.checked_shl(b)).unwrap_or(0))?,
            // DW_OP_plus_uconst
            0x23 => {
                let (number, more) = (numbers.pop()?, code.unsigned()?);
                numbers.push(number.wrapping_add(more))?;
            }
            // DW_OP_ge
            0x2a => numbers.both(|a, b| u64::from(a.cast_signed() >= b.cast_signed()))?,
            // DW_OP_lit0 … 31
            0x30..=0x4f => numbers.push(u64::from(operation - 0x30))?,
            // DW_OP_breg0 … 31
            0x70..=0x8f => {
                let (register, offset) = (registers.get(usize::from(operation - 0x70))?, code.signed()?);
                numbers.push(register.wrapping_add_signed(offset))?;
            }
            _ => return None,
        }
    }
    numbers.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &[u8], registers: &[u64]) -> Option<u64> {
        evaluate(Bytes(code), 1000, registers, &mut Memory::none())
    }

    #[test]
    fn the_expression_of_a_linkage_table() {
        // As GNU ld writes it: breg7 8, breg16 0, lit15, and, lit11, ge, lit3, shl, plus.
        let code = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        let mut registers = [0; 17];
        registers[7] = 0x1000;
        for (offset, pushed) in [(0, 8), (10, 8), (11, 16), (15, 16)] {
            registers[16] = 0x400_000 + offset;
            assert_eq!(of(&code, &registers), Some(0x1000 + pushed));
        }
    }

    #[test]
    fn constants_have_the_signs_that_they_say() {
        assert_eq!(of(&[0x08, 0xff], &[]), Some(255));
        assert_eq!(of(&[0x09, 0xff, 0x22], &[]), Some(999));
        assert_eq!(of(&[0x0b, 0xfe, 0xff, 0x22], &[]), Some(998));
        assert_eq!(of(&[0x23, 24], &[]), Some(1024));
        assert_eq!(of(&[0x70, 0x78], &[100]), Some(92));
    }

    #[test]
    fn nonsense_has_no_value() {
        assert_eq!(of(&[0x22], &[]), None, "one number to add");
        assert_eq!(of(&[0x30; 9], &[]), None, "too many");
        assert_eq!(of(&[0x70, 0], &[]), None, "no such register");
        assert_eq!(of(&[0x06], &[]), None, "nothing may be read");
        assert_eq!(of(&[0xff], &[]), None, "no such operation");
    }
}
