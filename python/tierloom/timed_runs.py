"""Runs of a program that nobody profiles: how long each takes, and what else happens on the machine meanwhile."""

from __future__ import annotations

import os
import resource
import select
import subprocess
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import tierloom._core as _core
from tierloom.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PIPE_BYTES = 1 << 16
"""What a pipe holds by default (pipe(7))."""


@dataclass(frozen=True)
class Timed:
    """A run: how long it took, the share of this machine's processors that others had meanwhile, and how it ended.

    Of a run that is too short for the kernel's clock, nobody knows the share.

    ``system_s`` is what the kernel worked for it, CPU seconds.

    Of a run under a placement: the share of pages that were not where they were meant to be, where that was seen, and
    what else its reader should know.
    """

    seconds: float
    others: float | None
    exit_code: int
    elsewhere: float | None = None
    notes: tuple[str, ...] = ()
    system_s: float = 0.0


@contextmanager
def telling(variable: str, threads: int | None) -> Iterator[None]:
    """The environment in which a program has so many threads."""
    before = os.environ.get(variable)
    if threads is not None:
        os.environ[variable] = str(threads)
    try:
        yield
    finally:
        if threads is not None and before is None:
            del os.environ[variable]
        elif threads is not None and before is not None:
            os.environ[variable] = before


def timed(command: Sequence[str], stdin: int | None = None) -> Timed:
    """A run; its output is read, and kept nowhere.

    Some programs do less work where they see that nobody reads: GNU grep ends at its first match. Its input is ours
    unless a descriptor is given.

    Raises:
        OSError: It cannot be started.
    """
    return watched(partial(_timed, command, stdin))


def _timed(command: Sequence[str], stdin: int | None, writing: int) -> Timed:
    began = time.perf_counter()
    ended = subprocess.run(command, stdin=stdin, stdout=writing, stderr=writing, check=False).returncode
    return Timed(time.perf_counter() - began, 0.0, ended if ended >= 0 else 128 - ended)


def watched(run: Callable[[int], Timed]) -> Timed:
    """A run with what others had of the machine meanwhile; it is given the descriptor to write its output to."""
    busy_s, own_s, system_s = machine_busy_s(), own_busy_s(), programs_system_s()
    with reader() as writing:
        ended = run(writing)
    others_s = machine_busy_s() - busy_s - (own_busy_s() - own_s)
    share = max(0.0, others_s - TICKS_S) / (ended.seconds * (os.cpu_count() or 1))
    others = share if ended.seconds >= SHORTEST_S else None
    return replace(ended, others=others, system_s=programs_system_s() - system_s)


def ends_alike(command: Sequence[str], runs: Sequence[Timed], exit_code: int) -> None:
    """Makes sure that runs end as the profiled one did.

    Raises:
        ProgramError: One of them does not.
    """
    for run in runs:
        if run.exit_code != exit_code:
            message = (
                f"{command[0]} ended with {run.exit_code}, and with {exit_code} under the profiler\n"
                "hint: give a program that can run several times in a row"
            )
            raise ProgramError(message, 1)


@contextmanager
def reader() -> Iterator[int]:
    """A pipe to write to, which is read meanwhile; what a program leaves behind may keep it open for ever."""
    reading, writing = os.pipe()
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            if select.select([reading], [], [], LOOK_S)[0] and not os.read(reading, PIPE_BYTES):
                return

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield writing
    finally:
        over.set()
        os.close(writing)
        thread.join()
        os.close(reading)


LOOK_S = 0.1
"""How often the reader of a pipe that nobody writes to looks whether it is needed."""
TICKS_S = (os.cpu_count() or 1) / os.sysconf("SC_CLK_TCK")
"""How far two looks at `/proc/stat` may be off, in CPU seconds: it counts in ticks, by processor."""
SHORTEST_S = 20 / os.sysconf("SC_CLK_TCK")
"""The shortest run of which a tick is no more than the twentieth that a validation warns from."""


def machine_busy_s(root: Path = Path("/")) -> float:
    """CPU seconds that all processors have worked since the start, with what their host took from them."""
    words = (root / "proc/stat").read_text(encoding="ascii").split(maxsplit=9)[1:9]
    user, nice, system, _idle, _waiting, interrupts, soft, stolen = map(int, words)
    return (user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")


def own_busy_s() -> float:
    """CPU seconds of this process, neighbours and all, and of the programs that it started and that have ended."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def programs_system_s() -> float:
    """CPU seconds that the kernel worked for the programs that this process started and that have ended."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_stime


def beside(gb_s: float, cores: int, runs: Callable[[], list[Timed]]) -> tuple[float, list[Timed]]:
    """Runs while neighbours read near memory at about `gb_s`, on other cores than the program has.

    Returns:
        What the neighbours read meanwhile, GB/s, and the runs; 0 where none were asked for.

    Raises:
        RequestError: No core is left beside the program's `cores`, or neighbours on those that are read less.
        MeasurementError: There is no memory for them.
    """
    if not gb_s:
        return 0.0, runs()

    def held(cpus: list[int]) -> list[Timed]:
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cpus)  # Of this thread, and of the programs that it starts.
        try:
            return runs()
        finally:
            os.sched_setaffinity(0, allowed)

    return _core.beside_neighbours(gb_s, cores, held)
