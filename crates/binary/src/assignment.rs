//! The variable that an allocation was assigned to: the result is followed out of the allocator, from caller to
//! caller, until one of them stores it at a fixed address that has a name.

use crate::arch::{Kept, kept};
use crate::code::CodePlace;
use crate::elf::Binary;

/// Functions that return their first argument: what an allocation is often handed to first.
const PASS_ON: [&str; 5] = ["memset", "memcpy", "memmove", "__memset_chk", "__memcpy_chk"];

/// Name of the static variable that takes what a chain of calls returned.
///
/// # Arguments
/// * `returns` - return addresses of the calls, innermost first.
pub fn assigned<'m>(modules: &'m [Binary], returns: &[CodePlace]) -> Option<&'m str> {
    for place in returns {
        let module = &modules[place.module?];
        let function = module.function_at(place.address)?;
        let passes_on = |entry| module.import_behind(entry).is_some_and(|name| PASS_ON.contains(&name));
        match kept(module.code(&(place.address..function.end))?, place.address, &passes_on)? {
            Kept::Static(address) => return module.variable_name(address),
            Kept::Returned => {}
        }
    }
    None
}
