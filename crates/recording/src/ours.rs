//! What Tierloom itself puts into a program: its library and the memory that the two share.

/// File name of the preload library.
pub const PRELOAD_LIBRARY: &str = "libtierloom_preload.so";
/// Beginning of the names of shared memory; its maker's process id and a number in hexadecimal follow.
const SHARED: &str = "tierloom-";

/// Whether a mapping of this path is ours: memory in the program that is not the program's.
pub fn is_ours(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    let name = name.strip_prefix("memfd:").unwrap_or(name);
    name == PRELOAD_LIBRARY || name.strip_prefix(SHARED).and_then(|rest| rest.split_once('-')).is_some_and(is_given)
}

fn is_given((process, number): (&str, &str)) -> bool {
    let all = |text: &str, wanted: fn(&u8) -> bool| !text.is_empty() && text.as_bytes().iter().all(wanted);
    all(process, u8::is_ascii_digit) && all(number, u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_library_and_our_memory_are_ours() {
        for path in ["/a/libtierloom_preload.so", "/memfd:tierloom-12-ab1 (deleted)", "/dev/shm/tierloom-12-ab1"] {
            assert!(is_ours(path), "{path}");
        }
        for path in
            ["/a/tierloom-notes-1", "/memfd:tierloom-12 (deleted)", "[heap]", "", "/tierloom-x-1", "/tierloom-1-"]
        {
            assert!(!is_ours(path), "{path}");
        }
    }
}
