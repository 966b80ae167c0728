//! Members of structures by where they are: DWARF 5, 5.2 (pointers and names of types) and 5.7 (structures).

use gimli::{AttributeValue, UnitOffset, UnitRef};

use super::dwarf::Reader;
use super::variables::{Variable, bytes, named, type_of};

/// Structures within each other that are looked into.
const DEEPEST: usize = 8;

/// The members of a structure that a byte of it lies in.
pub(super) struct Members {
    /// The structure's name, if it has one.
    structure: Option<String>,
    /// Outer ones first. None is the implementation's own: a container has what its members have.
    names: Vec<String>,
    language: Language,
}

/// How a language writes members.
struct Language {
    of_structure: &'static str,
    of_pointer: &'static str,
}

impl Members {
    /// Those around a byte.
    ///
    /// # Arguments
    /// * `kind` - the structure's type, or where it `is_behind` a pointer that pointer's.
    pub(super) fn at(unit: UnitRef<'_, Reader>, kind: UnitOffset, is_behind: bool, byte: u64) -> Option<Self> {
        let language = language(unit)?;
        let kind = if is_behind { pointee(unit, kind)? } else { kind };
        let structure = unit.entry(named(unit, kind)?).ok()?.attr_value(gimli::DW_AT_name);
        let mut names = Vec::new();
        let (mut inner, mut is_in_structure) = (Some((kind, byte)), false);
        for _ in 0..DEEPEST {
            let Some(member) = inner.and_then(|(kind, byte)| member(unit, kind, byte)) else { break };
            is_in_structure = true;
            match member.name {
                // Such names are the implementation's (C11, 7.1.3; C++17, 5.10).
                Some(name) if name.starts_with('_') => break,
                Some(name) => names.push(name),
                // Without a name its members are those of the structure around it.
                None => {}
            }
            inner = member.kind.map(|kind| (kind, member.byte));
        }
        let structure = structure.and_then(|name| text(unit, name));
        is_in_structure.then_some(Self { structure, names, language })
    }

    /// As a part of a variable; none where that is the container of it.
    pub(super) fn within(&self, variable: &Variable) -> Option<String> {
        self.joined(&variable.name, self.language.of_structure)
    }

    /// As a part of what a variable points to; as one of its class, if the method's own object has it.
    pub(super) fn behind(&self, variable: &Variable) -> Option<String> {
        if variable.is_this {
            return self.joined(self.structure.as_ref()?, "::");
        }
        self.joined(&variable.name, self.language.of_pointer).or_else(|| Some(variable.name.clone()))
    }

    fn joined(&self, first: &str, separator: &str) -> Option<String> {
        let members = self.names.join(self.language.of_structure);
        (!members.is_empty()).then(|| format!("{first}{separator}{members}"))
    }
}

/// A member that a byte lies in.
struct Member {
    name: Option<String>,
    kind: Option<UnitOffset>,
    /// Which byte of it.
    byte: u64,
}

fn member(unit: UnitRef<'_, Reader>, kind: UnitOffset, byte: u64) -> Option<Member> {
    let mut tree = unit.entries_tree(Some(named(unit, kind)?)).ok()?;
    let root = tree.root().ok()?;
    if !matches!(root.entry().tag(), gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type) {
        return None;
    }
    let mut members = root.children();
    while let Ok(Some(node)) = members.next() {
        let entry = node.entry();
        if !matches!(entry.tag(), gimli::DW_TAG_member | gimli::DW_TAG_inheritance) {
            continue;
        }
        // What has no place belongs to the class, and is in none of its objects.
        let start = entry.attr_value(gimli::DW_AT_data_member_location).and_then(|at| at.udata_value());
        let Some(byte) = start.and_then(|start| byte.checked_sub(start)) else { continue };
        if byte < bytes(unit, entry).unwrap_or(0) {
            let name = entry.attr_value(gimli::DW_AT_name).and_then(|name| text(unit, name));
            return Some(Member { name, kind: type_of(entry), byte });
        }
    }
    None
}

/// What a pointer or a reference points to.
fn pointee(unit: UnitRef<'_, Reader>, kind: UnitOffset) -> Option<UnitOffset> {
    let pointer = unit.entry(named(unit, kind)?).ok()?;
    let points = [gimli::DW_TAG_pointer_type, gimli::DW_TAG_reference_type, gimli::DW_TAG_rvalue_reference_type];
    points.contains(&pointer.tag()).then(|| type_of(&pointer))?
}

/// The language of a unit, where it is known how that writes members and who names them.
fn language(unit: UnitRef<'_, Reader>) -> Option<Language> {
    let mut entries = unit.entries();
    let root = entries.next_dfs().ok()??;
    let AttributeValue::Language(language) = root.attr_value(gimli::DW_AT_language)? else { return None };
    match language {
        gimli::DW_LANG_Fortran77
        | gimli::DW_LANG_Fortran90
        | gimli::DW_LANG_Fortran95
        | gimli::DW_LANG_Fortran03
        | gimli::DW_LANG_Fortran08 => Some(Language { of_structure: "%", of_pointer: "%" }),
        gimli::DW_LANG_Rust => None,
        _ => Some(Language { of_structure: ".", of_pointer: "->" }),
    }
}

fn text(unit: UnitRef<'_, Reader>, value: AttributeValue<Reader>) -> Option<String> {
    let text = unit.attr_string(value).ok()?;
    Some(gimli::Reader::to_string_lossy(&text).ok()?.into_owned())
}
