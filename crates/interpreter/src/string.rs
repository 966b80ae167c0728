//! String instructions, repeated or not.

use iced_x86::{Instruction, Mnemonic, Register};

use crate::alu::{ZERO, subtract};
use crate::bytes::Bytes;
use crate::ended::Ended;
use crate::machine::Machine;
use crate::operands::bytes_in_memory;

/// Rounds that are gone through one by one; longer ones end it. Assumed.
const MOST_ROUNDS: u64 = 1 << 14;
/// Strings are gone through upwards unless this flag is set.
const DOWNWARDS: u64 = 1 << 10;

/// What a string instruction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated {
    /// Where it began to read.
    pub source: Option<u64>,
    /// Where it began to write, or to compare with.
    pub destination: Option<u64>,
    /// How often it was done.
    pub rounds: u64,
}

impl<B: Bytes> Machine<B> {
    pub(crate) fn string(&mut self, code: &Instruction) -> Result<Repeated, Ended> {
        use Mnemonic::{Cmpsb, Cmpsd, Cmpsq, Cmpsw, Lodsb, Lodsd, Lodsq, Lodsw, Movsb, Movsd, Movsq, Movsw};
        use Mnemonic::{Scasb, Scasd, Scasq, Scasw, Stosb, Stosd, Stosq, Stosw};
        let bytes = bytes_in_memory(code);
        let (reads, writes, compares) = match code.mnemonic() {
            Movsb | Movsw | Movsd | Movsq => (true, true, false),
            Stosb | Stosw | Stosd | Stosq => (false, true, false),
            Lodsb | Lodsw | Lodsd | Lodsq => (true, false, false),
            Cmpsb | Cmpsw | Cmpsd | Cmpsq => (true, false, true),
            Scasb | Scasw | Scasd | Scasq => (false, false, true),
            _ => return Err(Ended::Outside),
        };
        let is_repeated = code.has_rep_prefix() || code.has_repne_prefix();
        let most = if is_repeated { self.word(Register::RCX)? } else { 1 };
        if most > MOST_ROUNDS || self.registers.flags.get(DOWNWARDS) != Some(0) {
            return Err(Ended::Outside);
        }
        let (source, destination) = (self.word(Register::RSI)?, self.word(Register::RDI)?);
        let accumulator = match bytes {
            1 => Register::AL,
            2 => Register::AX,
            4 => Register::EAX,
            _ => Register::RAX,
        };
        let mut rounds = 0;
        while rounds < most {
            let along = rounds * u64::from(bytes);
            let (from, to) = (source.wrapping_add(along), destination.wrapping_add(along));
            let value = if reads { self.memory.read(from, bytes)? } else { self.registers.read(accumulator) };
            rounds += 1;
            if writes {
                self.memory.write(to, bytes, value);
            } else if compares {
                let other = self.memory.read(to, bytes)?;
                let (value, other) = value.zip(other).ok_or(Ended::Unknown)?;
                let outcome = subtract(value, other, 0, 8 * bytes);
                self.set_flags(Some(outcome));
                let is_equal = outcome.flags & ZERO != 0;
                if is_repeated && is_equal == code.has_repne_prefix() {
                    break;
                }
            } else {
                self.registers.write(accumulator, value);
            }
        }
        let along = rounds * u64::from(bytes);
        if reads {
            self.registers.write(Register::RSI, Some(source.wrapping_add(along)));
        }
        if writes || compares {
            self.registers.write(Register::RDI, Some(destination.wrapping_add(along)));
        }
        if is_repeated {
            self.registers.write(Register::RCX, Some(most - rounds));
        }
        let place = |is: bool, address| is.then_some(address);
        let (source, destination) = (place(reads, source), place(writes || compares, destination));
        Ok(Repeated { source, destination, rounds })
    }

    fn word(&self, register: Register) -> Result<u64, Ended> {
        self.registers.read(register).ok_or(Ended::Unknown)
    }
}
