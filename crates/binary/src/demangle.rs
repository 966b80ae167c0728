//! Names of functions as their authors wrote them.

/// A C++ or Rust name as its author wrote it; other names unchanged.
pub fn demangled(symbol: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return format!("{name:#}");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_stay_as_they_are() {
        assert_eq!(demangled("a"), "a");
        assert_eq!(demangled("_ZL1a"), "a");
    }
}
