//! The variable that an allocation was assigned to: the result is followed out of the allocator, from caller to
//! caller, until one of them stores it at a fixed address that has a name, or in a variable of its own.
//!
//! A function that returns what it has in a variable allocates for its caller, and so does one that is inlined: all that
//! held it on its way are told, and whether the outermost kept it. One at a fixed address comes before all of them.

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
    /// By the names that it has in its function, as those of a local one.
    Declared(Local),
}

/// A function's variable that held the allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// As its author would write it: the variable, and with the member of it that has the allocation.
    pub names: Vec<String>,
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

/// What the source declares.
pub trait Declarations {
    /// Variables in scope at a call, by its return address, that may give the name.
    fn variables(&self, place: CodePlace) -> Vec<Variable>;

    /// What a byte of one of these is called: see [`DebugInfo::names`](crate::debug_info::DebugInfo::names).
    fn names(&self, place: CodePlace, variable: &Variable, is_behind: bool, byte: u64) -> Vec<String>;
}

/// Follows what a chain of calls returned.
///
/// # Arguments
/// * `returns` - return addresses of the calls, innermost first.
pub fn assigned<'m>(modules: &'m [Binary], returns: &[CodePlace], declared: &dyn Declarations) -> Assignment<'m> {
    let mut found = Assignment::default();
    for (number, place) in returns.iter().enumerate() {
        found.is_kept = false;
        let Some(module) = place.module.map(|module| &modules[module]) else { break };
        let call = Call { module, place: *place, number, declared, variables: declared.variables(*place) };
        let (kept, locals) = call.follow();
        found.is_kept = !locals.is_empty();
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
struct Call<'m, 'd> {
    module: &'m Binary,
    /// Where it returned to.
    place: CodePlace,
    /// Which one, from the innermost on.
    number: usize,
    declared: &'d dyn Declarations,
    /// In scope there.
    variables: Vec<Variable>,
}

impl<'m> Call<'m, '_> {
    /// Where the result goes, and which variables hold it: the outermost function's first, of one function in order.
    fn follow(&self) -> (Option<Kept>, Vec<Local>) {
        let Some(code) = self.code() else { return (None, Vec::new()) };
        let passes_on = |entry| self.module.import_behind(entry).is_some_and(|name| PASS_ON.contains(&name));
        let mut found: Vec<Local> = Vec::new();
        let mut seen = |at: u64, holder: Holder| {
            for variable in &self.variables {
                let local = self.local(variable, self.names(variable, at, holder));
                if !local.names.is_empty() && !found.contains(&local) {
                    found.push(local);
                }
            }
        };
        let kept = kept(code, self.place.address, &passes_on, &mut seen);
        found.sort_by_key(|local| local.depth);
        (kept, found)
    }

    fn local(&self, variable: &Variable, names: Vec<String>) -> Local {
        Local { names, call: self.number, depth: variable.depth }
    }

    fn code(&self) -> Option<&'m [u8]> {
        let function = self.module.function_at(self.place.address)?;
        self.module.code(&(self.place.address..function.end))
    }

    /// What the place that holds the value is called by a variable; nothing where it is none of that variable's.
    fn names(&self, variable: &Variable, at: u64, holder: Holder) -> Vec<String> {
        match holder {
            Holder::Register(register) if variable.is_in(at, register) && !variable.is_this => {
                vec![variable.name.clone()]
            }
            Holder::Memory(base, distance) => {
                if let Some(byte) = variable.byte_at(at, (base, distance), self.module.frame(at)) {
                    return self.declared.names(self.place, variable, false, byte);
                }
                let byte = u64::try_from(distance).ok().filter(|_| variable.is_in(at, base));
                byte.map(|byte| self.declared.names(self.place, variable, true, byte)).unwrap_or_default()
            }
            Holder::Register(_) => Vec::new(),
        }
    }

    /// A variable at a fixed address: by what its function calls it, else by its symbol.
    fn at_fixed(&self, address: u64) -> Option<Fixed<'m>> {
        let declared = self.variables.iter().find_map(|variable| {
            let names = self.declared.names(self.place, variable, false, variable.static_byte(address)?);
            Some(Fixed::Declared(self.local(variable, names)))
        });
        declared.or_else(|| self.module.variable_name(address).map(Fixed::Symbol))
    }
}
