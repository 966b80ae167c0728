//! Our frames against libgcc's, after every single instruction of programs: prologues, epilogues, linkage
//! tables, callbacks, exceptions, and in each of them a signal's frame.

use std::cell::UnsafeCell;
use std::ffi::{CString, c_int, c_void};
use std::process::Command;

use proptest::prelude::*;

use super::cfi::{RETURN_ADDRESS, RSP};
use super::*;

unsafe extern "C" {
    fn _Unwind_Backtrace(step: extern "C" fn(*mut c_void, *mut c_void) -> c_int, state: *mut c_void) -> c_int;
    fn _Unwind_GetIP(frame: *mut c_void) -> u64;
    fn _Unwind_GetCFA(frame: *mut c_void) -> u64;
}

/// What libgcc says; it knows no entry, so it says the same of frames above this address.
struct Theirs {
    entry: u64,
    frames: Frames,
}

extern "C" fn step(frame: *mut c_void, theirs: *mut c_void) -> c_int {
    // SAFETY: `theirs_from` passed a `Theirs`; the frame lives during this call.
    let (theirs, address, pointer) =
        unsafe { (&mut *theirs.cast::<Theirs>(), _Unwind_GetIP(frame), _Unwind_GetCFA(frame)) };
    let goes_on = pointer <= theirs.entry || theirs.frames.push(address);
    if goes_on { 0 } else { 5 }
}

fn theirs_from(entry: u64) -> Frames {
    let mut theirs = Theirs { entry, frames: Frames::none() };
    // SAFETY: `step` gets back the pointer, which outlives the call.
    unsafe { _Unwind_Backtrace(step, (&raw mut theirs).cast()) };
    theirs.frames
}

/// What the handler has seen: instructions, and the first stack that the two do not agree on.
#[derive(Default)]
struct Seen {
    /// The first frame of the thread.
    root: u64,
    /// Stacks that do not lead there: the tables are wrong (GCC's are, for an instruction behind `leave` in a
    /// function that aligns its stack), and libgcc would fault.
    astray: u64,
    instructions: u64,
    differing: u64,
    first: Option<(Vec<u64>, Vec<u64>)>,
}

struct Shared(UnsafeCell<Option<Seen>>);
// SAFETY: only the thread that steps, and its handler, use it: tests that step hold a lock.
unsafe impl Sync for Shared {}
static SEEN: Shared = Shared(UnsafeCell::new(None));
static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

extern "C" fn on_step(_signal: c_int, _info: *mut libc::siginfo_t, _context: *mut c_void) {
    let here = 0_u64;
    let entry = &raw const here;
    // SAFETY: see `Shared`; the thread itself looks only when it no longer steps.
    let Some(seen) = (unsafe { &mut *SEEN.0.get() }) else { return };
    seen.instructions += 1;
    // Every third will do.
    if !seen.instructions.is_multiple_of(3) {
        return;
    }
    with_frames(entry, 0, |ours| {
        if ours.last() != Some(&seen.root) {
            seen.astray += 1;
            return;
        }
        let theirs = theirs_from(entry as u64);
        if ours != theirs.as_slice() {
            seen.differing += 1;
            seen.first.get_or_insert_with(|| (ours.to_vec(), theirs.as_slice().to_vec()));
        }
    });
}

/// Compares both after every instruction of `work`.
fn compared(work: impl FnOnce()) -> Seen {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    warm_up();
    let root = *theirs_from(0).as_slice().last().unwrap();
    // SAFETY: the handler has the type that SA_SIGINFO asks for; the trap flag (bit 8) traps after every
    // instruction until it is cleared.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_step as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGTRAP, &raw const action, std::ptr::null_mut());
        *SEEN.0.get() = Some(Seen { root, ..Seen::default() });
        std::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq");
        work();
        std::arch::asm!("pushfq", "and qword ptr [rsp], 0xfffffffffffffeff", "popfq");
        (*SEEN.0.get()).take().unwrap_or_default()
    }
}

fn agree(seen: &Seen, at_least: u64) {
    let Seen { instructions, differing, first, astray, .. } = seen;
    assert!(*instructions > at_least && astray * 100 < *instructions, "{instructions}, {astray} astray");
    assert_eq!((*differing, first), (0, &None));
}

extern "C" fn compare(a: *const c_void, b: *const c_void) -> c_int {
    // SAFETY: `qsort` passes pointers to elements.
    unsafe { *a.cast::<c_int>() - *b.cast::<c_int>() }
}

#[test]
fn frames_are_those_of_libgcc_in_code_of_rust_and_libc() {
    let mut numbers: Vec<c_int> = (0..40).map(|number| number * 7 % 41).collect();
    let seen = compared(|| {
        let mut words: Vec<String> = (0..8).map(|number| format!("{:>5.2}", f64::from(number * 5 % 8))).collect();
        words.sort_by(|a, b| b.cmp(a));
        std::hint::black_box(words);
        // SAFETY: elements, how many, their size, and what compares them.
        unsafe { libc::qsort(numbers.as_mut_ptr().cast(), numbers.len(), 4, Some(compare)) };
    });
    agree(&seen, 10_000);
}

/// The functions of `calls.cpp`, compiled in one way.
struct Compiled {
    calls: extern "C" fn(c_int) -> c_int,
    any_calls: extern "C" fn(u32, c_int, extern "C" fn()) -> c_int,
}

/// With and without frame pointers, with frames of variable size and of another alignment, with exceptions.
const WAYS: [&[&str]; 5] = [
    &["-O0"],
    &["-O1", "-fno-omit-frame-pointer"],
    &["-O2"],
    &["-O3", "-mavx2", "-fno-inline"],
    &["-Os", "-fomit-frame-pointer", "-fstack-protector-all"],
];

/// `None` where there is no C++ compiler.
fn compiled(way: &[&str], name: &str) -> Option<Compiled> {
    let folder = std::env::temp_dir().join(format!("tierloom-unwind-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, library) = (folder.join("calls.cpp"), folder.join("calls.so"));
    std::fs::write(&source, include_str!("calls.cpp")).unwrap();
    let mut words = Command::new("c++");
    words.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).args(way);
    assert!(words.status().ok()?.success(), "{way:?}");
    let path = CString::new(library.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: the library that was just built, whose functions have these types; it is never closed.
    let compiled = unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        let function = |name: &std::ffi::CStr| libc::dlsym(library, name.as_ptr());
        Compiled {
            calls: std::mem::transmute::<*mut c_void, extern "C" fn(c_int) -> c_int>(function(c"calls")),
            any_calls: std::mem::transmute::<*mut c_void, extern "C" fn(u32, c_int, extern "C" fn()) -> c_int>(
                function(c"any_calls"),
            ),
        }
    };
    std::fs::remove_dir_all(&folder).unwrap();
    Some(compiled)
}

#[test]
fn frames_are_those_of_libgcc_in_code_of_cpp() {
    for (number, way) in WAYS.iter().enumerate() {
        let Some(Compiled { calls, .. }) = compiled(way, &format!("steps{number}")) else { return };
        let expected = calls(1);
        let mut result = 0;
        let seen = compared(|| result = calls(1));
        assert_eq!(result, expected, "{way:?}");
        agree(&seen, 5_000);
    }
}

thread_local! {
    /// Stacks that were looked at, and those that the two do not agree on.
    static LOOKED: std::cell::Cell<(u64, u64)> = const { std::cell::Cell::new((0, 0)) };
}

extern "C" fn look() {
    let here = 0_u64;
    let entry = &raw const here;
    let theirs = theirs_from(entry as u64);
    let same = with_frames(entry, 0, |ours| ours == theirs.as_slice());
    let (looked, differing) = LOOKED.get();
    LOOKED.set((looked + 1, differing + u64::from(!same)));
}

/// Random trees of calls: nothing of a stack is taken from another one that looks like it.
#[test]
fn frames_of_any_calls_are_those_of_libgcc() {
    warm_up();
    let Some(compiled): Option<Vec<_>> =
        WAYS.iter().enumerate().map(|(number, way)| compiled(way, &format!("any{number}"))).collect()
    else {
        return;
    };
    proptest!(ProptestConfig::with_cases(400), |(seed: u32, depth in 1..20, way in 0..WAYS.len())| {
        LOOKED.set((0, 0));
        (compiled[way].any_calls)(seed, depth, look);
        let (looked, differing) = LOOKED.get();
        prop_assert!(looked > 0);
        prop_assert_eq!(differing, 0);
    });
}

/// A stack that ends with a page that cannot be read, and no mark: frames of ours, and no more.
#[test]
fn a_stack_without_an_end_is_walked_to_its_end() {
    warm_up();
    let pages = 4 * 4096;
    // SAFETY: new pages; the last one becomes unreadable.
    let top = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = libc::mmap(std::ptr::null_mut(), pages, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        libc::mprotect(start.add(pages - 4096), 4096, libc::PROT_NONE);
        start as u64 + pages as u64 - 4096
    };
    let mut registers = Registers([0; REGISTERS]);
    registers.0[RETURN_ADDRESS] = walk as *const () as u64 + 1;
    for below in (8..72).step_by(8) {
        registers.0[RSP] = top - below + 8;
        let mut frames = Frames::none();
        walk(&registers, top - below, 0, &mut frames);
        assert!(!frames.as_slice().is_empty() && frames.as_slice()[0] == registers.address());
    }
}
