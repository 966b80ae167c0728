//! What the loader writes before the program runs.

use std::collections::{BTreeMap, BTreeSet};

use object::{Object, ObjectSymbol, ObjectSymbolTable, RelocationFlags};

use crate::arch::OWN_ADDRESS;
use crate::elf::symbols::ElfFile;

/// What the loader writes: addresses of imported functions by slot, and own addresses.
pub(super) fn relocations(file: &ElfFile<'_>) -> (BTreeMap<u64, String>, BTreeSet<u64>) {
    let (mut imports, mut kept) = (BTreeMap::new(), BTreeSet::new());
    let names = file.dynamic_symbol_table();
    for (slot, relocation) in file.dynamic_relocations().into_iter().flatten() {
        match (relocation.flags(), relocation.target()) {
            (RelocationFlags::Elf { r_type: OWN_ADDRESS }, _) => {
                kept.insert(relocation.addend().cast_unsigned());
            }
            (RelocationFlags::Elf { .. }, object::RelocationTarget::Symbol(index)) => {
                let symbol = names.as_ref().and_then(|names| names.symbol_by_index(index).ok());
                let Some(symbol) = symbol else { continue };
                if symbol.is_undefined() {
                    imports.extend(symbol.name().ok().map(|name| (slot, name.to_owned())));
                } else {
                    kept.insert(symbol.address().wrapping_add_signed(relocation.addend()));
                }
            }
            _ => {}
        }
    }
    (imports, kept)
}
