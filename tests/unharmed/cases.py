"""The table of small programs that are hard to watch: one idea a file in `cases/`, with variants by their words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unharmed.behaviour import hidden

SET_USER_ID = "SET-USER-ID"
"""Among the words: a copy of the program that runs with the rights of another user."""


OURS = hidden(
    (r"LD_PRELOAD=\S*libtierloom_preload\.so\n", ""),
    (r"TIERLOOM_REGION=\S+\n", ""),
    (r"ASAN_OPTIONS=verify_asan_link_order=0\n", ""),
)
"""What we add to the environment, and by what we come into the program's children; nothing else may be there."""


@dataclass(frozen=True)
class Case:
    """A program of `cases/`, and what it must do on its own for the case to mean anything."""

    source: str
    words: tuple[str, ...] = ()
    end: int = 0
    """How it ends, as a shell tells it."""
    says: str = ""
    """A part of its output."""
    flags: tuple[str, ...] = ()
    """For the compiler."""
    root: bool = False
    """Whether it takes root's rights."""
    heavy: bool = False
    """Too long for every test run."""
    visible: Callable[[bytes], bytes] = bytes
    """Takes away what differs by its nature."""

    @property
    def name(self) -> str:
        """Its file and variant."""
        words = (word for word in self.words if word != SET_USER_ID)
        return "-".join((self.source.rsplit(".", 1)[0], *words, *(flag.strip("-D") for flag in self.flags)))


def _variants(source: str, *words: str, end: int = 0, says: str = "") -> tuple[Case, ...]:
    return tuple(Case(source, (word,), end, says) for word in words)


STACKS = (
    *_variants("stack_overflow.c", "main", "thread", says="went on"),
    Case("stack_overflow.c", ("main",), says="went on", flags=("-DFRAME=5000",)),
    Case("stack_overflow.c", ("main",), says="went on", flags=("-DOTHER=8192",)),
    Case("stack_overflow.c", ("exit",), 3, "the stack is full"),
    Case("stack_overflow.c", ("die",), 139, "the stack is full"),
    *_variants("shrunk_stack.c", "alloca", "array", says="went on"),
    Case("endless_stack.c", says="went on"),
    *_variants("odd_frames.c", "silent", "wrong", "register", "undefined", says="went on"),
    *_variants("coroutines.c", "64", "16", "8", says="freed 800"),
    Case("unlimited_stack.c", says="failed 0"),
)
"""Stacks that are not what a walker of stacks expects."""

SIGNALS = (
    Case("default_signals.c", says="went on"),
    Case("profiling_timer.c", ("handler",), says=": 1\n"),
    *_variants("profiling_timer.c", "ignored", "blocked", "none", says=": 0\n"),
    Case("real_time_signals.c", says="wrong 0"),
    Case("signal_files.c", says="own 5, then pending 0"),
    Case("timer_jumps.c", says="jumps 30"),
    *_variants("own_faults.c", "trap", "barrier", "null", says="faults "),
    *_variants("clocks.c", "process", "thread", says="about 30: 1, none after: 1"),
    Case("clocks.c", ("callback",), says="ten came"),
    Case("clocks.c", ("used",), says="agree 1 1, sane 1"),
)
"""Signals, faults, clocks and timers of the program's own."""

WAITING = (
    *_variants(
        "short_counts.c",
        *("write", "writev", "send", "zero", "random", "waitall", "epoll", "sigtimedwait", "semtimedop", "receive"),
        says=": 0 cut",
    ),
    Case("timeouts.c", says="semtimedop: wrong 0, early 0"),
    Case("timeouts.c", ("quiet",), says="semtimedop: wrong 0, early 0"),
    Case("restarts.c", says="reads interrupted 0, waits interrupted 0, handled 10"),
    Case("child_states.c", says="ignored: 1"),
)
"""System calls that wait, and what a parent is told."""

TRACING = (
    Case("job_control.c", ("self",), says="stayed stopped 1"),
    *_variants("job_control.c", "child", "threads", says="stops 10, stays 10, returns 10"),
    Case("job_control.c", ("handler",), says="handled 1010"),
    Case("tracer.c", ("child",), says="calls 1, many steps 0, end 11"),
    Case("tracer.c", ("stepped",), says="many steps 1, end 11"),
    Case("tracer.c", ("asks",), says="seen 0 times"),
    Case("tracer.c", ("offers",), says="first 0"),
    *_variants("process_rights.c", "undumpable", "tracer", "parent", "name", "subreaper"),
    Case("set_user_id.c", ("exec", SET_USER_ID), 4, "rights of 65534", root=True),
    Case("set_user_id.c", ("thread", SET_USER_ID), 4, "rights of 65534", root=True),
    Case("set_user_id.c", ("fork", SET_USER_ID), 0, "rights of 65534", root=True),
)
"""What a tracer disturbs first: stops, tracers of the program's own, rights that come with a file."""

RIGHTS = (
    *_variants("seccomp.c", "strict", "strict-large", end=7, says="inside"),
    Case("seccomp.c", ("allowed",), 8, "inside"),
    Case("seccomp.c", ("at-work",), 10, "killed 0"),
    Case("seccomp.c", ("clockless",), 9, "inside"),
    Case("other_root.c", says="user 65534, child 5, back to root: -1", root=True),
    Case("pid_namespace.c", says="answer 12", root=True),
    Case("closed_streams.c", end=5),
    Case("environment.c", ("state",), says="dumpable 1"),
    Case("environment.c", ("variables",), says="LANG=", visible=OURS),
    Case("environment.c", ("cleared",), says="variables: 0"),
)
"""What a program is given at its start, and what it gives up."""

FAMILIES = (
    Case("daemonise.c", says="first file 3"),
    Case("fork_storm.c", says="1000 ended, 0 wrong"),
    Case("fork_beside_new_stacks.c", says="failed 0"),
    Case("fork_handlers.c", says="sum 1225, other 4"),
    *_variants("vfork.c", "exec", "spawn", "allocate", "clone", says="wrong 0"),
    Case("exec.c", ("chain",), 16, "60 end"),
    Case("exec.c", ("shell",), 17, "from the shell"),
    Case("exec.c", ("thread",), 18, "from the shell"),
    Case("exec.c", ("crowd",), 19, "from the shell"),
)
"""Children, and other programs in the same process."""

THREADS = (
    Case("cancellation.c", says="cancelled 300, cleaned at least once: 1"),
    *_variants("threads.c", "tiny", "storm", "short", "crowd", "reused", says="wrong 0"),
)
"""Threads in numbers, and their ends."""

ENDINGS = (
    Case("endings.c", ("return",), 3, "at exit"),
    Case("endings.c", ("exit",), 7, "at exit"),
    Case("endings.c", ("_exit",), 5),
    Case("endings.c", ("quick_exit",), 9),
    Case("endings.c", ("abort",), 134),
    Case("endings.c", ("segv",), 139),
    Case("endings.c", ("kill",), 137),
    Case("endings.c", ("term",), 143),
    Case("endings.c", ("trap",), 132),
    Case("endings.c", ("thread",), 12, "at exit"),
    Case("endings.c", ("crowd",), 12, "at exit"),
    Case("endings.c", ("stopped",), 13, "stopped 1, killed by 9"),
)
"""Every way to end."""

MEMORY = (
    Case("libraries.c", says="missing: 1"),
    Case("reallocs.c", says="sum "),
    Case("aligned.c", says="wrong 0"),
    Case("address_space.c", says="wrong 0"),
    Case("many_mappings.c", says="all made: 1"),
    Case("memory_limit.c", says="went on"),
)
"""Memory and what is mapped into it."""

COPIES = (
    *_variants("critical_sections.c", "fs", "pointer", says="lost 0"),
    *_variants("patched_code.c", "text", "shared", "private", says="wrong 0"),
    Case("fault_addresses.c", says="handled 400, wrong 0"),
    Case("no_clock.c", says="sum "),
    *_variants("seen_from_handlers.c", "stack", "alternate", says="in other code 0, short stacks 0"),
    *_variants("late_filters.c", "process", "thread", says="sum 1"),
    Case("dispatched_calls.c", says="calls 0"),
    *_variants("own_memory.c", "libraries", "forks", "shared", says="grew too much: 0"),
    Case("restricted_memory.c", ("locked",), says="grown 0", root=True),
    Case("restricted_memory.c", ("data",), says="refused 0"),
    Case("restricted_memory.c", ("executable",), says="worked 1"),
)
"""What goes wrong where a thread runs a copy of its code and somebody takes that for its code."""

ALL = (*STACKS, *SIGNALS, *WAITING, *TRACING, *RIGHTS, *FAMILIES, *THREADS, *ENDINGS, *MEMORY, *COPIES)
