//! Variables in scope at an address of code, and where each of them is kept: DWARF 5, 2.6 (locations), 3.3 (functions
//! and what is inlined in them) and 4.1 (variables).
//!
//! Only places that hold a value as it is are told: a register, or memory at a distance from the frame, from a register
//! or from the load address. What is computed is in none of them.

use std::ops::Range;

use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, EntriesTreeNode, Operation, UnitOffset, UnitRef,
};

use super::dwarf::Reader;
use super::units::Units;
use crate::arch::numbered_by_dwarf;
use crate::elf::FrameAddress;
use crate::instruction::{GENERAL, Gpr};

/// Bytes of a variable whose type has no size of its own: what is looked for is an address.
const POINTER_BYTES: u64 = 8;
/// Blocks within each other that are looked into: Rust begins one behind each declaration.
const BLOCKS: usize = 256;
/// Names for types, one of another, that are looked through: compilers write a handful, and a broken file a circle.
const TYPE_NAMES: usize = 16;

/// A variable or a parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// As its author wrote it.
    pub name: String,
    /// How many functions out of those around the address are around its own: 0 in the one that stands in memory.
    pub depth: usize,
    /// Whether it is what a method of C++ is called on.
    pub is_this: bool,
    /// What it is.
    pub(super) kind: Option<Kind>,
    places: Vec<(Range<u64>, Place)>,
}

/// A type, by its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// Any entry of its unit, if that is not the one of the code.
    pub(super) unit: Option<DebugInfoOffset>,
    pub(super) entry: UnitOffset,
}

/// A place that can hold a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Register(Gpr),
    Memory { base: Base, offset: i64, bytes: u64 },
}

/// What a distance is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// The canonical frame address (DWARF 5, 6.4).
    Frame,
    Register(Gpr),
    /// The load address.
    Module,
}

impl Variable {
    /// Whether it is in a register before the instruction at an address.
    pub fn is_in(&self, address: u64, register: Gpr) -> bool {
        self.at(address).any(|place| *place == Place::Register(register))
    }

    /// Which byte of it is at a distance from a register, before the instruction at an address.
    pub fn byte_at(&self, address: u64, (register, distance): (Gpr, i64), frame: Option<FrameAddress>) -> Option<u64> {
        self.at(address).find_map(|place| match *place {
            Place::Memory { base: Base::Register(base), offset, bytes } if base == register => {
                within(distance, offset, bytes)
            }
            Place::Memory { base: Base::Frame, offset, bytes } => frame
                .filter(|frame| frame.register == register)
                .and_then(|frame| within(distance, frame.offset.wrapping_add(offset), bytes)),
            _ => None,
        })
    }

    /// Which byte of it is at a distance from the frame, before the instruction at an address.
    ///
    /// # Arguments
    /// * `registers` - how far from the frame each register points, where it does.
    pub fn byte_in_frame(&self, address: u64, distance: i64, registers: &[Option<i64>; GENERAL]) -> Option<u64> {
        self.at(address).find_map(|place| {
            let Place::Memory { base, offset, bytes } = *place else { return None };
            let from = match base {
                Base::Frame => 0,
                Base::Register(register) => registers[register.index()]?,
                Base::Module => return None,
            };
            within(distance, from.wrapping_add(offset), bytes)
        })
    }

    /// Which byte of it is at an address of the module.
    pub fn static_byte(&self, address: u64) -> Option<u64> {
        self.places.iter().find_map(|(_, place)| match *place {
            Place::Memory { base: Base::Module, offset, bytes } => within(address.cast_signed(), offset, bytes),
            _ => None,
        })
    }

    fn at(&self, address: u64) -> impl Iterator<Item = &Place> {
        self.places.iter().filter(move |(range, _)| range.contains(&address)).map(|(_, place)| place)
    }
}

fn within(distance: i64, start: i64, bytes: u64) -> Option<u64> {
    distance.checked_sub(start).and_then(|inside| u64::try_from(inside).ok()).filter(|inside| *inside < bytes)
}

/// Variables of a function and of what is inlined there around an address of it, in the order of their declaration.
///
/// # Arguments
/// * `function` - its entry.
pub(super) fn in_scope(unit: UnitRef<'_, Reader>, units: &Units, function: UnitOffset, address: u64) -> Vec<Variable> {
    let mut found = Vec::new();
    // A broken entry ends the answer; what came before it stays good.
    let _ = unit.entries_tree(Some(function)).and_then(|mut tree| {
        let root = tree.root()?;
        let scopes = Scopes { unit, units, address, frame_base: frame_base(unit, root.entry()) };
        let whole = Scope { depth: 0, nesting: 0, code: std::iter::once(0..u64::MAX).collect() };
        scopes.collect(root, &whole, &mut found)
    });
    found
}

/// The function that is looked through.
struct Scopes<'u> {
    unit: UnitRef<'u, Reader>,
    units: &'u Units,
    address: u64,
    frame_base: Option<Base>,
}

/// A function or a block.
struct Scope {
    /// How many functions are around it.
    depth: usize,
    /// How many functions and blocks are.
    nesting: usize,
    /// Its code.
    code: Vec<Range<u64>>,
}

impl Scopes<'_> {
    /// Of blocks also those that the address is not in: Rust begins one behind each declaration.
    fn collect(
        &self,
        node: EntriesTreeNode<'_, '_, Reader>,
        scope: &Scope,
        found: &mut Vec<Variable>,
    ) -> gimli::Result<()> {
        let mut entries = node.children();
        while let Some(node) = entries.next()? {
            let inner = |functions| Scope {
                depth: scope.depth + functions,
                nesting: scope.nesting + 1,
                code: self.ranges(node.entry()),
            };
            match node.entry().tag() {
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    found.extend(self.variable(node.entry(), scope));
                }
                gimli::DW_TAG_lexical_block if scope.nesting < BLOCKS => {
                    let block = inner(0);
                    self.collect(node, &block, found)?;
                }
                gimli::DW_TAG_inlined_subroutine if scope.nesting < BLOCKS => {
                    let inlined = inner(1);
                    if inlined.code.iter().any(|range| range.contains(&self.address)) {
                        self.collect(node, &inlined, found)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn ranges(&self, scope: &DebuggingInformationEntry<Reader>) -> Vec<Range<u64>> {
        let Ok(mut ranges) = self.unit.die_ranges(scope) else { return Vec::new() };
        std::iter::from_fn(|| ranges.next().ok().flatten()).map(|range| range.begin..range.end).collect()
    }

    /// Of what the compiler made only `this`.
    fn variable(&self, entry: &DebuggingInformationEntry<Reader>, scope: &Scope) -> Option<Variable> {
        let location = entry.attr_value(gimli::DW_AT_location)?;
        let place = |bytes| self.places(location, bytes, &scope.code);
        let depth = scope.depth;
        match declaration(entry) {
            None => declared(self.unit, None, entry, depth, place),
            Some(Declaration::Here(entry)) => declared(self.unit, None, &self.unit.entry(entry).ok()?, depth, place),
            Some(Declaration::Elsewhere(entry)) => {
                let (unit, offset) = self.units.around(self.unit, entry)?;
                let unit = unit.unit_ref(self.unit.dwarf);
                declared(unit, Some(entry), &unit.entry(offset).ok()?, depth, place)
            }
        }
    }

    /// Where it is, and while which code runs. What is said once is so in all of its block.
    fn places(&self, location: AttributeValue<Reader>, bytes: u64, block: &[Range<u64>]) -> Vec<(Range<u64>, Place)> {
        if let Some(expression) = location.exprloc_value() {
            let pieces = self.pieces(expression, bytes);
            return pieces.iter().flat_map(|place| block.iter().map(|range| (range.clone(), *place))).collect();
        }
        let mut places = Vec::new();
        let Ok(Some(mut list)) = self.unit.attr_locations(location) else { return places };
        while let Ok(Some(entry)) = list.next() {
            let range = entry.range.begin..entry.range.end;
            places.extend(self.pieces(entry.data, bytes).into_iter().map(|place| (range.clone(), place)));
        }
        places
    }

    /// Where the parts of a variable are: one place, or a place before each `DW_OP_piece` (DWARF 5, 2.6.1.2).
    fn pieces(&self, expression: gimli::Expression<Reader>, bytes: u64) -> Vec<Place> {
        let mut pieces = Vec::new();
        let mut part = Vec::new();
        let mut operations = expression.operations(self.unit.encoding());
        loop {
            match operations.next() {
                Ok(Some(Operation::Piece { size_in_bits, .. })) => {
                    pieces.extend(self.place(&std::mem::take(&mut part), size_in_bits / 8));
                }
                Ok(Some(operation)) => part.push(operation),
                Ok(None) => break,
                Err(_) => return Vec::new(),
            }
        }
        pieces.extend(self.place(&part, bytes));
        pieces
    }

    fn place(&self, operations: &[Operation<Reader>], bytes: u64) -> Option<Place> {
        match *operations {
            [Operation::Register { register }] => numbered_by_dwarf(register.0).map(Place::Register),
            [Operation::RegisterOffset { register, offset: 0, .. }, Operation::StackValue] => {
                numbered_by_dwarf(register.0).map(Place::Register)
            }
            [Operation::RegisterOffset { register, offset, .. }] => {
                Some(Place::Memory { base: Base::Register(numbered_by_dwarf(register.0)?), offset, bytes })
            }
            [Operation::FrameOffset { offset }] => Some(Place::Memory { base: self.frame_base?, offset, bytes }),
            [Operation::Address { address }] => Some(at_fixed(address, bytes)),
            [Operation::AddressIndex { index }] => Some(at_fixed(self.unit.address(index).ok()?, bytes)),
            _ => None,
        }
    }
}

fn at_fixed(address: u64, bytes: u64) -> Place {
    Place::Memory { base: Base::Module, offset: address.cast_signed(), bytes }
}

/// What distances in the frame of a function are from (`DW_AT_frame_base`).
fn frame_base(unit: UnitRef<'_, Reader>, function: &DebuggingInformationEntry<Reader>) -> Option<Base> {
    let expression = function.attr_value(gimli::DW_AT_frame_base)?.exprloc_value()?;
    let mut operations = expression.operations(unit.encoding());
    let only = operations.next().ok()??;
    if operations.next().ok()?.is_some() {
        return None;
    }
    match only {
        Operation::CallFrameCFA => Some(Base::Frame),
        Operation::Register { register } => numbered_by_dwarf(register.0).map(Base::Register),
        _ => None,
    }
}

/// Where a variable's name and type are.
enum Declaration {
    Here(UnitOffset),
    Elsewhere(DebugInfoOffset),
}

/// A variable, by the entry that says what it is.
fn declared(
    unit: UnitRef<'_, Reader>,
    elsewhere: Option<DebugInfoOffset>,
    described: &DebuggingInformationEntry<Reader>,
    depth: usize,
    places: impl FnOnce(u64) -> Vec<(Range<u64>, Place)>,
) -> Option<Variable> {
    let name = unit.attr_string(described.attr_value(gimli::DW_AT_name)?).ok()?;
    let name = gimli::Reader::to_string_lossy(&name).ok()?.into_owned();
    let is_artificial = described.attr_value(gimli::DW_AT_artificial).is_some();
    if is_artificial && name != "this" {
        return None;
    }
    if type_of(described).is_some_and(|kind| is_number(unit, kind)) {
        return None;
    }
    let bytes = bytes(unit, described).unwrap_or(POINTER_BYTES);
    let kind = type_of(described).map(|entry| Kind { unit: elsewhere, entry });
    Some(Variable { name, depth, is_this: is_artificial, kind, places: places(bytes) })
}

/// Whether a type is a number's: it has no allocation, though the null of one that failed may be its zero.
fn is_number(unit: UnitRef<'_, Reader>, kind: UnitOffset) -> bool {
    let tag = named(unit, kind).and_then(|kind| Some(unit.entry(kind).ok()?.tag()));
    matches!(tag, Some(gimli::DW_TAG_base_type | gimli::DW_TAG_enumeration_type))
}

/// The entry that says what an inlined or cloned variable is.
fn declaration(entry: &DebuggingInformationEntry<Reader>) -> Option<Declaration> {
    match entry.attr_value(gimli::DW_AT_abstract_origin)? {
        AttributeValue::UnitRef(offset) => Some(Declaration::Here(offset)),
        AttributeValue::DebugInfoRef(offset) => Some(Declaration::Elsewhere(offset)),
        _ => None,
    }
}

/// Bytes of a variable's type, where it has a size.
pub(super) fn bytes(unit: UnitRef<'_, Reader>, variable: &DebuggingInformationEntry<Reader>) -> Option<u64> {
    let mut entry = unit.entry(type_of(variable)?).ok()?;
    for _ in 0..TYPE_NAMES {
        if let Some(size) = entry.attr_value(gimli::DW_AT_byte_size) {
            return size.udata_value();
        }
        entry = unit.entry(type_of(&entry)?).ok()?;
    }
    None
}

/// What names of a type, and what qualifies it, stand for.
pub(super) fn named(unit: UnitRef<'_, Reader>, mut kind: UnitOffset) -> Option<UnitOffset> {
    let names =
        [gimli::DW_TAG_typedef, gimli::DW_TAG_const_type, gimli::DW_TAG_volatile_type, gimli::DW_TAG_restrict_type];
    for _ in 0..TYPE_NAMES {
        let entry = unit.entry(kind).ok()?;
        if !names.contains(&entry.tag()) {
            return Some(kind);
        }
        kind = type_of(&entry)?;
    }
    None
}

pub(super) fn type_of(entry: &DebuggingInformationEntry<Reader>) -> Option<UnitOffset> {
    match entry.attr_value(gimli::DW_AT_type)? {
        AttributeValue::UnitRef(offset) => Some(offset),
        _ => None,
    }
}
