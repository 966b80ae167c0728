//! The library that goes into the user's process (`LD_PRELOAD`): tells the recorder which memory the
//! program asks for, and places memory by a plan.
//!
//! It never replaces the allocator and never stands between a pointer and its owner: every call goes
//! on to the next library in line, unchanged; what it records it has copied on the way. It opens one
//! file when the process starts and after that makes no system call for a record, takes no lock, and
//! allocates nothing: hooks run in signal handlers, in forked children, before `main` and after it.
//!
//! | file | step |
//! |---|---|
//! | `entries` | the functions that the program calls, in assembly: small blocks go straight on |
//! | `hooks` | what is done for the others: `heap`, `maps`, and threads and libraries |
//! | `real`, `symbols` | the same functions of the next library, and how they are found |
//! | `tracked` | which pointers are recorded, so that their `free` is |
//! | `stack`, `generation` | who called: an id for the whole call stack, and when it is out of date |
//! | `unwind`, `bounds` | the frames of a stack, and how far it may be read |
//! | `thread`, `forked` | what each thread keeps, and how a child knows that it was forked |
//! | `settings` | what the recorder wants |
//! | `report`, `lane`, `recorder` | the way to the recorder, and whether it is there |
//! | `leave` | how a process ends while somebody halts its threads |
//! | `modules` | which files are mapped, where the kernel does not tell |
//! | `policy` | a plan applied |
//! | `mapped` | tables that not every program needs |
//!
//! Only `x86_64` Linux so far: the entries are in assembly, and samples are only decoded for it.

#![allow(unsafe_code)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("tierloom-preload runs on x86-64 Linux only; build the other crates with `--exclude tierloom-preload`");

mod bounds;
mod entries;
mod forked;
mod generation;
mod hooks;
mod lane;
mod leave;
mod mapped;
mod modules;
mod policy;
mod real;
mod recorder;
mod report;
mod settings;
mod stack;
mod symbols;
mod thread;
mod tracked;
mod unwind;

use tierloom_wire::Event;

/// Runs when the loader has relocated everything and before the program's `main`.
#[cfg_attr(not(test), used, unsafe(link_section = ".init_array"))]
#[cfg_attr(test, allow(dead_code))]
static START: extern "C" fn() = start;

/// Runs when the program has returned from `main` or called `exit`, after its own last functions.
#[cfg_attr(not(test), used, unsafe(link_section = ".fini_array"))]
#[cfg_attr(test, allow(dead_code))]
static FINISH: extern "C" fn() = policy::finish;

extern "C" fn start() {
    real::resolve();
    bounds::learn_main();
    unwind::warm_up();
    if report::attach().is_some() {
        modules::announce();
        modules::found::prepare();
        policy::start();
        report::send(report::now(), Event::Ready { blocks: policy::table_of_blocks() });
        leave::watch();
    }
}
