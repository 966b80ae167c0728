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

#[cfg(test)]
mod tests {
    use super::*;

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
