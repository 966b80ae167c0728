//! Names: of functions, and of static arrays.

use std::collections::BTreeMap;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::image::Image;

/// A file as the crate `object` reads it.
pub(super) type ElfFile<'a> = object::File<'a, &'a Image>;

/// Static arrays from this size on are objects of their own.
pub const STATIC_OBJECT_BYTES: u64 = 32 * 1024;
/// A named range of virtual addresses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Symbol {
    /// First address, and one past the last.
    pub range: (u64, u64),
    /// As the symbol table has it.
    pub name: String,
}

pub(super) fn symbols(file: &ElfFile<'_>, kind: SymbolKind) -> Vec<Symbol> {
    let wanted = file.symbols().chain(file.dynamic_symbols()).filter(|s| s.kind() == kind && s.size() > 0);
    let named = wanted.filter_map(|symbol| {
        let name = symbol.name().ok()?.to_owned();
        Some(Symbol { range: (symbol.address(), symbol.address() + symbol.size()), name })
    });
    let mut all: Vec<Symbol> = named.collect();
    all.sort_unstable();
    all.dedup_by_key(|symbol| symbol.range);
    all
}

/// Functions that other modules may call, by name.
pub(super) fn exports(file: &ElfFile<'_>) -> BTreeMap<String, Vec<u64>> {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for symbol in file.dynamic_symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition()) {
        if let Ok(name) = symbol.name() {
            found.entry(name.to_owned()).or_default().push(symbol.address());
        }
    }
    found
}

/// The big ones of the variables; without any that are named, the data sections as they are.
pub(super) fn statics(file: &ElfFile<'_>, variables: &[Symbol]) -> Vec<Symbol> {
    if !variables.is_empty() {
        return variables.iter().filter(|s| s.range.1 - s.range.0 >= STATIC_OBJECT_BYTES).cloned().collect();
    }
    let sections = file.sections().filter(|section| {
        let named = matches!(section.name(), Ok(".data" | ".bss" | ".lbss" | ".ldata" | ".rodata"));
        named && section.size() >= STATIC_OBJECT_BYTES
    });
    let range = |section: &object::Section<'_, '_, &Image>| (section.address(), section.address() + section.size());
    let mut all: Vec<Symbol> =
        sections.map(|s| Symbol { range: range(&s), name: s.name().unwrap_or_default().to_owned() }).collect();
    all.sort_unstable();
    all
}
