"""The table of small programs that are hard to watch: one idea a file in `cases/`, with variants by their words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unharmed.behaviour import hidden


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
    visible: Callable[[bytes], bytes] = bytes
    """Takes away what differs by its nature."""
    seconds: float = 60.0
    """Time until it hangs."""

    @property
    def name(self) -> str:
        """Its file and variant."""
        return "-".join((self.source.rsplit(".", 1)[0], *self.words, *(flag.strip("-D") for flag in self.flags)))


def _variants(source: str, *words: str, end: int = 0, says: str = "") -> tuple[Case, ...]:
    return tuple(Case(source, (word,), end, says) for word in words)


STACKS = (
    *_variants("stack_overflow.c", "main", "thread", says="went on"),
    Case("stack_overflow.c", ("main",), says="went on", flags=("-DFRAME=5000",)),
    Case("stack_overflow.c", ("exit",), 3, "the stack is full"),
    Case("stack_overflow.c", ("die",), 139, "the stack is full"),
    *_variants("shrunk_stack.c", "alloca", "array", says="went on"),
    Case("endless_stack.c", says="went on"),
)
"""Stacks that are not what a walker of stacks expects."""

SIGNALS = (
    Case("default_signals.c", says="went on"),
    Case("profiling_timer.c", ("handler",), says=": 1\n"),
    *_variants("profiling_timer.c", "ignored", "blocked", "none", says=": 0\n"),
    Case("real_time_signals.c", says="wrong 0"),
    Case("cancellation.c", says="cancelled 300, cleaned at least once: 1"),
)
"""Signals and timers of the program's own."""

RIGHTS = (
    *_variants("seccomp.c", "strict", "strict-large", end=7, says="inside"),
    Case("seccomp.c", ("allowed",), 8, "inside"),
    Case("other_root.c", says="user 65534, child 5, back to root: -1", root=True),
)
"""Rights that are given up."""

FAMILIES = (
    Case("daemonise.c", says="first file 3"),
    Case("fork_storm.c", says="1000 ended, 0 wrong"),
    *_variants("vfork.c", "exec", "spawn", "allocate", "clone", says="wrong 0"),
    Case("exec.c", ("chain",), 16, "60 end"),
    Case("exec.c", ("shell",), 17, "from the shell"),
    Case("exec.c", ("thread",), 18, "from the shell"),
    Case("exec.c", ("crowd",), 19, "from the shell"),
)
"""Children, and other programs in the same process."""

MEMORY = (Case("libraries.c", says="missing: 1"),)
"""Memory and what is mapped into it."""

ALL = (*STACKS, *SIGNALS, *RIGHTS, *FAMILIES, *MEMORY)
