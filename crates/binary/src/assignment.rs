//! The variable that an allocation was assigned to: the result is followed out of the allocator, from caller to
//! caller, until one of them stores it at a fixed address that has a name, or in a variable of its own.
//!
//! A function that returns what it keeps in a variable allocates for its caller, and so does one that is inlined. So of
//! several local variables the outermost function's is the answer, and of one function's the first. One at a fixed
//! address comes before all of them.

use crate::arch::{Holder, Kept, kept};
use crate::code::CodePlace;
use crate::debug_info::variables::Variable;
use crate::elf::Binary;

/// Functions that return their first argument: what an allocation is often handed to first.
const PASS_ON: [&str; 5] = ["memset", "memcpy", "memmove", "__memset_chk", "__memcpy_chk"];

/// What takes an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assigned<'m> {
    /// A variable at a fixed address, by its symbol.
    Static(&'m str),
    /// A variable that the source declares, by the name that it has there.
    Declared(String),
}

/// The variable that takes what a chain of calls returned.
///
/// # Arguments
/// * `returns` - return addresses of the calls, innermost first.
/// * `declared` - variables in scope at a call, by its return address, that may give the name.
pub fn assigned<'m>(
    modules: &'m [Binary],
    returns: &[CodePlace],
    declared: &dyn Fn(CodePlace) -> Vec<Variable>,
) -> Option<Assigned<'m>> {
    let mut local = None;
    for place in returns {
        let Some(module) = place.module.map(|module| &modules[module]) else { break };
        let call = Call { module, address: place.address, variables: declared(*place) };
        let (kept, holder) = call.follow();
        local = holder.map(|variable| Assigned::Declared(variable.name.clone())).or(local);
        match kept {
            Some(Kept::Static(address)) => return call.at_fixed(address).or(local),
            Some(Kept::Returned) => {}
            None => break,
        }
    }
    local
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
    /// Where the result goes, and which variable holds it.
    fn follow(&self) -> (Option<Kept>, Option<&Variable>) {
        let Some(code) = self.code() else { return (None, None) };
        let passes_on = |entry| self.module.import_behind(entry).is_some_and(|name| PASS_ON.contains(&name));
        let mut found: Option<&Variable> = None;
        let mut seen = |at: u64, holder: Holder| {
            let nearer = self.variables.iter().filter(|other| found.is_none_or(|known| other.depth < known.depth));
            // Of those of one function, the first.
            found = nearer.filter(|variable| self.holds(variable, at, holder)).min_by_key(|v| v.depth).or(found);
        };
        let kept = kept(code, self.address, &passes_on, &mut seen);
        (kept, found)
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
    fn at_fixed(&self, address: u64) -> Option<Assigned<'m>> {
        let declared = self.variables.iter().find(|variable| variable.is_static_at(address));
        declared
            .map(|variable| Assigned::Declared(variable.name.clone()))
            .or_else(|| self.module.variable_name(address).map(Assigned::Static))
    }
}
