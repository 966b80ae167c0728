"""Runs a program in one way and writes down how it behaved. It lives in a process of its own.

The warden adopts the descendants whose parents have ended (it is their subreaper), so that it sees how they end and
which of them stay behind. Nothing that it started is there when it is gone.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unharmed.behaviour import Behaviour
from unharmed.ways import Way

GRACE_S = 5.0
"""How long descendants may go on after the program has ended: daemons and background jobs of shells."""
BEHAVIOUR = "behaviour"
PR_SET_CHILD_SUBREAPER = 36
SHARED = Path("/dev/shm")  # noqa: S108 (that is where shared memory is)


@dataclass(frozen=True)
class Order:
    """What is to be run, and where."""

    way: Way
    command: tuple[str, ...]
    folder: Path
    """The current folder of the program."""
    notes: Path
    """A folder for what is seen of it."""
    environment: dict[str, str]
    timeout_s: float


def report(order: Order) -> None:
    """Runs the program and leaves its behaviour in a file among the notes."""
    behaviour = watch(order)
    (order.notes / BEHAVIOUR).write_bytes(pickle.dumps(behaviour))


def watch(order: Order) -> Behaviour:
    """Runs the program to its end, or to the end of its time."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    os.setsid()
    program = os.fork()
    if program == 0:
        os._exit(_start(order))
    orphans: list[str] = []
    status = _wait_for(program, time.monotonic() + order.timeout_s, orphans)
    _wait_for(None, time.monotonic() + (GRACE_S if status is not None else 0), orphans)
    left = tuple(sorted(_kill_descendants()))
    return _behaviour(order, program, status, tuple(sorted(orphans)), left)


def _start(order: Order) -> int:
    """In the child: the program's own surroundings, then the program."""
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    for stream, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(order.notes / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        os.dup2(file, stream)
        os.close(file)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    return order.way.take_over(list(order.command), order.notes / "told.json")


def _wait_for(program: int | None, end: float, orphans: list[str]) -> int | None:
    """Waits for one child, or for all, and writes down how the others end."""
    while True:
        for pid, name, status in _ended():
            if pid == program:
                return status
            orphans.append(f"{name}: {os.waitstatus_to_exitcode(status)}")
        remaining = end - time.monotonic()
        if remaining <= 0 or (program is None and not _children()):
            return None
        signal.sigtimedwait({signal.SIGCHLD}, remaining)


def _ended() -> Iterator[tuple[int, str, int]]:
    """Children that ended since: process id, name, status."""
    while True:
        try:
            seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if seen is None:
            return
        name = _name(seen.si_pid)
        _, status = os.waitpid(seen.si_pid, 0)
        yield seen.si_pid, name, status


def _kill_descendants() -> list[str]:
    """Ends what is still there, the children of what was ended too; names of them."""
    names = []
    while children := _children():
        for pid in children:
            names.append(_name(pid))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return names


def _children() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _behaviour(
    order: Order, program: int, status: int | None, orphans: tuple[str, ...], left: tuple[str, ...]
) -> Behaviour:
    document = order.notes / "told.json"
    told = json.loads(document.read_text()) if document.exists() else {}
    code = None if status is None else os.waitstatus_to_exitcode(status)
    return Behaviour(
        (order.notes / "stdout").read_bytes(),
        (order.notes / "stderr").read_bytes(),
        code if code is None or code >= 0 else 128 - code,
        orphans,
        left,
        tuple(sorted(path.name for path in SHARED.glob(f"tierloom-{program}-*"))),
        told.get("trouble", ""),
        told,
    )
