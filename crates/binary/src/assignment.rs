//! The variable that an allocation was assigned to: the result is followed out of the allocator, from caller to
//! caller, until one of them stores it at a fixed address that has a name, or in a variable of its own.
//!
//! A function that returns what it has in a variable allocates for its caller, and so does one that is inlined: all that
//! held it on its way are told, and whether the outermost kept it. One at a fixed address comes before all of them.

use std::collections::BTreeMap;

use crate::arch::{Holder, Kept, kept};
use crate::code::CodePlace;
use crate::debug_info::variables::Variable;
use crate::elf::Binary;

/// Functions that return their first argument: what an allocation is often handed to first.
const PASS_ON: [&str; 5] = ["memset", "memcpy", "memmove", "__memset_chk", "__memcpy_chk"];

/// A variable at a fixed address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fixed<'m> {
    /// By its symbol.
    Symbol(&'m str),
    /// By the name that it has in its function.
    Declared(String),
}

/// A function's variable that held the allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// As its author wrote it.
    pub name: String,
    /// Which of the calls returned to its function, from the innermost on.
    pub call: usize,
    /// How many functions there are around its own: 0 in the one that stands in memory.
    pub depth: usize,
}

/// What a chain of calls returned, and who took it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assignment<'m> {
    /// The variable at a fixed address that it was stored in.
    pub fixed: Option<Fixed<'m>>,
    /// Variables of functions that held it on its way, the outermost function's first; of one function the first.
    pub locals: Vec<Local>,
    /// Whether the outermost of them kept it: no function further out got it and had it elsewhere.
    pub is_kept: bool,
}

/// Follows what a chain of calls returned.
///
/// # Arguments
/// * `returns` - return addresses of the calls, innermost first.
/// * `declared` - variables in scope at a call, by its return address, that may give the name.
pub fn assigned<'m>(
    modules: &'m [Binary],
    returns: &[CodePlace],
    declared: &dyn Fn(CodePlace) -> Vec<Variable>,
) -> Assignment<'m> {
    let mut found = Assignment::default();
    for (number, place) in returns.iter().enumerate() {
        found.is_kept = false;
        let Some(module) = place.module.map(|module| &modules[module]) else { break };
        let call = Call { module, address: place.address, variables: declared(*place) };
        let (kept, holders) = call.follow();
        found.is_kept = !holders.is_empty();
        let locals = holders.iter().map(|v| Local { name: v.name.clone(), call: number, depth: v.depth });
        found.locals.splice(..0, locals);
        match kept {
            Some(Kept::Static(address)) => {
                found.fixed = call.at_fixed(address);
                break;
            }
            Some(Kept::Returned) => {}
            None => break,
        }
    }
    found
}

/// A call that has returned.
struct Call<'m> {
    module: &'m Binary,
    /// Where it returned to.
    address: u64,
    /// In scope there.
    variables: Vec<Variable>,
}

impl<'m> Call<'m> {
    /// Where the result goes, and which variables hold it: of each function the first, the outermost function's first.
    fn follow(&self) -> (Option<Kept>, Vec<&Variable>) {
        let Some(code) = self.code() else { return (None, Vec::new()) };
        let passes_on = |entry| self.module.import_behind(entry).is_some_and(|name| PASS_ON.contains(&name));
        let mut found: BTreeMap<usize, &Variable> = BTreeMap::new();
        let mut seen = |at: u64, holder: Holder| {
            for variable in &self.variables {
                if !found.contains_key(&variable.depth) && self.holds(variable, at, holder) {
                    found.insert(variable.depth, variable);
                }
            }
        };
        let kept = kept(code, self.address, &passes_on, &mut seen);
        (kept, found.into_values().collect())
    }

    fn code(&self) -> Option<&'m [u8]> {
        let function = self.module.function_at(self.address)?;
        self.module.code(&(self.address..function.end))
    }

    fn holds(&self, variable: &Variable, at: u64, holder: Holder) -> bool {
        match holder {
            Holder::Register(register) => variable.is_in(at, register),
            Holder::Stack(base, distance) => variable.is_at(at, (base, distance), self.module.frame(at)),
        }
    }

    /// A variable at a fixed address: by what its function calls it, else by its symbol.
    fn at_fixed(&self, address: u64) -> Option<Fixed<'m>> {
        let declared = self.variables.iter().find(|variable| variable.is_static_at(address));
        declared
            .map(|variable| Fixed::Declared(variable.name.clone()))
            .or_else(|| self.module.variable_name(address).map(Fixed::Symbol))
    }
}
