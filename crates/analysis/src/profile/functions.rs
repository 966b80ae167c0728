//! Functions by their names: which of them say for what they allocate, and what they are called in short.

/// Functions that allocate for others, by the start of their demangled names.
const WRAPPERS: [&str; 31] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "posix_memalign",
    "memalign",
    "valloc",
    "pvalloc",
    "operator new",
    "mmap",
    "std::",
    "__gnu_cxx::",
    "void std::",
    "void* std::",
    "alloc::",
    "__rust_",
    "__rdl_",
    "core::",
    "hashbrown::",
    "_mm_malloc",
    "PyMem_",
    "PyObject_Malloc",
    "PyDataMem_",
    "_PyObject_Malloc",
    "_PyObject_Realloc",
    "_PyMem_",
    "_gfortran_",
    "xmalloc",
    "xcalloc",
    "xrealloc",
];
/// Functions of the C library that start a program or a thread: everything is called by them.
const STARTERS: [&str; 7] =
    ["__libc_start_main", "__libc_start_call_main", "_start", "start_thread", "clone", "__clone", "__clone3"];
/// Longest function name within an object's name.
const LONGEST_NAME: usize = 60;

/// Whether a function says for what it allocates.
pub(crate) fn is_own(function: &str) -> bool {
    if let Some(Method { implementer, interface, .. }) = Method::of(function) {
        // Whoever implements what is another's for a type that is another's is one of those two.
        return is_own_path(implementer) || interface.is_some_and(is_own_path);
    }
    // Templates have the type of their result in front.
    let bare = shortened(function);
    let passes_on = |prefix: &&str| function.starts_with(*prefix) || bare.starts_with(*prefix);
    !STARTERS.contains(&function) && !WRAPPERS.iter().any(passes_on)
}

/// Whether it is a function of Python's interpreter, by the names that it keeps to itself: `PyObject_Call`, `_PyEval_Vector`.
pub(crate) fn is_interpreters(function: &str) -> bool {
    let bare = function.strip_prefix('_').unwrap_or(function);
    let kind = bare.split_once('_').and_then(|(first, _)| first.strip_prefix("Py"));
    !function.contains("::") && kind.is_some_and(|kind| kind.chars().next().is_none_or(char::is_uppercase))
}

/// A method as Rust names it: `<implementer as interface>::name`.
struct Method<'f> {
    implementer: &'f str,
    interface: Option<&'f str>,
    name: &'f str,
}

impl<'f> Method<'f> {
    fn of(function: &'f str) -> Option<Self> {
        let inner = function.strip_prefix('<')?;
        let mut depth = 1;
        // The arrow of a function's type closes nothing.
        let mut before = ' ';
        let closes = |character: char| {
            depth += i32::from(character == '<') - i32::from(character == '>' && before != '-');
            before = character;
            depth == 0
        };
        let (within, name) = inner.split_at(inner.find(closes)?);
        let (implementer, interface) = match within.split_once(" as ") {
            Some((implementer, interface)) => (implementer, Some(interface)),
            None => (within, None),
        };
        Some(Self { implementer, interface, name: &name[1..] }).filter(|method| method.name.starts_with("::"))
    }
}

/// Whether a type or a trait of Rust is neither of its language nor of its standard library.
fn is_own_path(path: &str) -> bool {
    let path = path.trim_start_matches(['&', '*', '[', '(']).trim_start_matches("mut ").trim_start_matches("dyn ");
    path.contains("::") && !WRAPPERS.iter().any(|prefix| path.starts_with(prefix))
}

/// Without parameters and template arguments, and not longer than a table column bears.
pub(crate) fn shortened(function: &str) -> String {
    if let Some(Method { implementer, name, .. }) = Method::of(function) {
        return shortened(&format!("{}{name}", implementer.trim_start_matches(['&', '*', '['])));
    }
    let mut depth = 0;
    let mut short = String::new();
    for character in function.trim_end_matches(" const").chars() {
        match character {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            '(' if depth == 0 && !short.is_empty() => break,
            _ if depth == 0 => short.push(character),
            _ => {}
        }
    }
    let short = short.rsplit(' ').next().unwrap_or(&short);
    let short = if short.is_empty() { function } else { short };
    short.chars().take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short() {
        assert_eq!(shortened("void fill<double, 3>(double*, int)"), "fill");
        assert_eq!(shortened("mesh::Grid<double>::resize(unsigned long)"), "mesh::Grid::resize");
        assert_eq!(shortened("<app::Grid<f64> as core::clone::Clone>::clone"), "app::Grid::clone");
        assert_eq!(shortened("<app::Grid>::new"), "app::Grid::new");
    }

    #[test]
    fn pythons_interpreter_keeps_names_to_itself() {
        for function in ["PyObject_Vectorcall", "_PyEval_EvalFrameDefault", "Py_BytesMain", "_Py_HandlePending"] {
            assert!(is_interpreters(function), "{function}");
        }
        for function in ["Pyramid_build", "PyGrid", "mesh::PyGrid_make", "_start", "array_empty", "__Pyx_PyObject_Call"]
        {
            assert!(!is_interpreters(function), "{function}");
        }
    }

    #[test]
    fn methods_of_the_standard_library_pass_on_and_those_of_the_program_do_not() {
        assert!(!is_own("<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem"));
        assert!(!is_own("<alloc::vec::Vec<T,A> as core::clone::Clone>::clone"));
        assert!(!is_own("<core::iter::adapters::map::Map<I,F> as core::iter::traits::iterator::Iterator>::fold"));
        assert!(is_own("<app::Grid as core::clone::Clone>::clone"));
        assert!(is_own("<alloc::vec::Vec<f64> as app::Fill>::fill"));
        assert!(is_own("<app::Grid>::new") && is_own("app::main") && !is_own("alloc::alloc::alloc"));
    }
}
