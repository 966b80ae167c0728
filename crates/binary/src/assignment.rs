//! The variable that an allocation was assigned to: the result is followed out of the allocator, from caller to
//! caller, until one of them stores it at a fixed address that has a name, or in a variable of its own.
//!
//! A function that returns what it has in a variable allocates for its caller, and so does one that is inlined: all that
//! held it on its way are told, and whether the outermost kept it. One at a fixed address comes before all of them.

use crate::arch::{self, Callee, Carrier, Holder, Kept, callee, kept};
use crate::code::CodePlace;
use crate::debug_info::variables::Variable;
use crate::elf::Binary;

/// Functions that return their first argument: what an allocation is often handed to first.
const PASS_ON: [&str; 5] = ["memset", "memcpy", "memmove", "__memset_chk", "__memcpy_chk"];

/// Functions that put what they allocate where an argument points, and its position.
const THROUGH: [(&str, usize); 1] = [("posix_memalign", 0)];

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
    /// Whether it points to the structure that has the allocation.
    pub is_behind: bool,
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
    let mut carriers = Vec::new();
    for (number, place) in returns.iter().enumerate() {
        let Some(module) = place.module.map(|module| &modules[module]) else {
            found.is_kept = false;
            break;
        };
        let call = Call { module, place: *place, number, declared, variables: declared.variables(*place) };
        if carriers.is_empty() {
            carriers.push(call.allocated());
        }
        let (kept, locals) = call.follow(&carriers);
        // What was stored behind a pointer stays there, whoever else can tell where that is.
        let was_behind = found.locals.iter().any(|local| local.is_behind);
        found.is_kept = !locals.is_empty() || was_behind;
        found.locals.splice(..0, locals);
        match kept {
            Some(Kept::Static(address)) => {
                found.fixed = call.at_fixed(address);
                break;
            }
            Some(Kept::Handed(further)) => carriers = further,
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
    /// How the allocator hands out what it has.
    fn allocated(&self) -> Carrier {
        let name = match self.module.code_before(self.place.address).and_then(|code| callee(code, self.place.address)) {
            Some(Callee::Function(entry)) => self.module.import_behind(entry),
            Some(Callee::Slot(slot)) => self.module.import(slot),
            None => None,
        };
        let through = THROUGH.iter().find(|(function, _)| name == Some(function));
        through.map_or(Carrier::Result, |(_, position)| Carrier::Through(*position, 0))
    }

    /// Where what is handed over goes, and which variables hold it: the outermost function's first, of one function in
    /// order.
    fn follow(&self, carriers: &[Carrier]) -> (Option<Kept>, Vec<Local>) {
        let Some(call) = self.call() else { return (None, Vec::new()) };
        let passes_on = |entry| self.module.import_behind(entry).is_some_and(|name| PASS_ON.contains(&name));
        let mut found: Vec<Local> = Vec::new();
        let mut seen = |at: u64, holder: Holder<'_>| {
            for variable in &self.variables {
                let local = self.held(variable, at, holder);
                if !local.names.is_empty() && !found.contains(&local) {
                    found.push(local);
                }
            }
        };
        let kept = kept(&call, carriers, &passes_on, &mut seen);
        found.sort_by_key(|local| local.depth);
        (kept, found)
    }

    fn local(&self, variable: &Variable, is_behind: bool, names: Vec<String>) -> Local {
        Local { names, call: self.number, depth: variable.depth, is_behind }
    }

    fn call(&self) -> Option<arch::Call<'m>> {
        let function = self.module.function_at(self.place.address)?;
        let frame = self.module.unwind_row(self.place.address).map(|row| (row.frame.register, row.frame.offset));
        let code = self.module.code(&function)?;
        Some(arch::Call { code, start: function.start, back: self.place.address, frame })
    }

    /// A variable as the holder of the value in a place; without a name where it is not.
    fn held(&self, variable: &Variable, at: u64, holder: Holder<'_>) -> Local {
        let names = |is_behind, byte| {
            let names = self.declared.names(self.place, variable, is_behind, byte);
            self.local(variable, is_behind, names)
        };
        let within = match holder {
            Holder::Register(register) if variable.is_in(at, register) && !variable.is_this => {
                return self.local(variable, false, vec![variable.name.clone()]);
            }
            Holder::Register(_) => None,
            Holder::Memory(base, distance) => {
                variable.byte_at(at, (base, distance), self.module.unwind_row(at).map(|row| row.frame))
            }
            Holder::Frame(distance, registers) => variable.byte_in_frame(at, distance, registers),
        };
        let behind = match holder {
            Holder::Memory(base, distance) if variable.is_in(at, base) => u64::try_from(distance).ok(),
            _ => None,
        };
        match (within, behind) {
            (Some(byte), _) => names(false, byte),
            (None, Some(byte)) => names(true, byte),
            (None, None) => self.local(variable, false, Vec::new()),
        }
    }

    /// A variable at a fixed address: by what its function calls it, else by its symbol.
    fn at_fixed(&self, address: u64) -> Option<Fixed<'m>> {
        let declared = self.variables.iter().find_map(|variable| {
            let names = self.declared.names(self.place, variable, false, variable.static_byte(address)?);
            Some(Fixed::Declared(self.local(variable, false, names)))
        });
        declared.or_else(|| self.module.variable_name(address).map(Fixed::Symbol))
    }
}
