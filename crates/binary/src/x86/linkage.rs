//! How x86-64 programs come to what the loader puts in place.

use object::elf::{R_X86_64_RELATIVE, RelocationType};

/// Relocation of an own address: the load address is added.
pub const OWN_ADDRESS: RelocationType = R_X86_64_RELATIVE;

/// The slot that a stub of the linkage table takes an imported function's address from; `stub` is its code.
pub fn linkage_slot(stub: &[u8], address: u64) -> Option<u64> {
    const MARK: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa]; // endbr64
    let skipped = if stub.starts_with(&MARK) { MARK.len() } else { 0 };
    let prefixed = usize::from(*stub.get(skipped)? == 0xf2); // bnd
    let jump = stub.get(skipped + prefixed..skipped + prefixed + 6)?;
    let distance = i32::from_le_bytes(jump.strip_prefix(&[0xff, 0x25])?.try_into().ok()?);
    let next = address + u64::try_from(skipped + prefixed + 6).ok()?;
    Some(next.wrapping_add_signed(i64::from(distance)))
}

/// What a call names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callee {
    /// The function, or the stub that leads to it.
    Function(u64),
    /// The slot that the loader fills with its address.
    Slot(u64),
}

/// What the call at the end of some code names; `back` is where it returns to.
pub fn callee(code: &[u8], back: u64) -> Option<Callee> {
    let (before, distance) = code.split_last_chunk::<4>()?;
    let named = back.wrapping_add_signed(i64::from(i32::from_le_bytes(*distance)));
    match before {
        [.., 0xff, 0x15] => Some(Callee::Slot(named)),
        [.., 0xe8] => Some(Callee::Function(named)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_names_a_function_or_a_slot() {
        assert_eq!(callee(&[0x90, 0xe8, 0xf0, 0xff, 0xff, 0xff], 0x1000), Some(Callee::Function(0xff0)));
        assert_eq!(callee(&[0xff, 0x15, 0x10, 0, 0, 0], 0x1000), Some(Callee::Slot(0x1010)));
        assert_eq!(callee(&[0xff, 0xd0], 0x1000), None);
    }

    #[test]
    fn a_stub_names_its_slot_with_and_without_a_mark() {
        let jump = [0xff, 0x25, 0x10, 0, 0, 0]; // jmp [rip+16]
        let marked = [&[0xf3, 0x0f, 0x1e, 0xfa, 0xf2][..], &jump].concat();
        assert_eq!(linkage_slot(&jump, 0x1000), Some(0x1016));
        assert_eq!(linkage_slot(&marked, 0x1000), Some(0x101b));
        assert_eq!(linkage_slot(&[0x90; 16], 0x1000), None);
        assert_eq!(linkage_slot(&jump[..5], 0x1000), None);
    }
}
