//! Names of functions as their authors wrote them.

/// A C++, Rust or Fortran name as its author wrote it; other names unchanged.
pub fn demangled(symbol: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return format!("{name:#}");
    }
    if let Some((module, name)) = of_fortran_module(symbol) {
        return format!("{module}::{name}");
    }
    // Without the prefix, a variable named `a` would be read as the type `signed char`.
    if !symbol.starts_with("_Z") {
        return symbol.to_owned();
    }
    cpp_demangle::Symbol::new(symbol)
        .ok()
        .and_then(|parsed| parsed.demangle().ok())
        .unwrap_or_else(|| symbol.to_owned())
}

/// Module and name of what a module of Fortran has, as gfortran makes one symbol of them.
fn of_fortran_module(symbol: &str) -> Option<(&str, &str)> {
    symbol.strip_prefix("__")?.split_once("_MOD_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_stay_as_they_are() {
        assert_eq!(demangled("a"), "a");
        assert_eq!(demangled("_ZL1a"), "a");
    }

    #[test]
    fn what_a_fortran_module_has_is_named_with_it() {
        assert_eq!(demangled("__cells_MOD_field"), "cells::field");
        assert_eq!(demangled("__cells_field"), "__cells_field");
    }
}
