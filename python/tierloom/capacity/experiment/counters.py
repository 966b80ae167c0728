"""What a worker counts about itself, and how it answers. Used inside the processes that `processes` starts."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


def join(groups: Sequence[str]) -> None:
    """Joins control groups; memory taken before stays where it was counted."""
    for procs in groups:
        Path(procs).write_text(str(os.getpid()), encoding="ascii")


def storage(process: int | str = "self") -> dict[str, int]:
    """What a process has had read from and written to storage, and has written to any file (``wchar``)."""
    lines = Path(f"/proc/{process}/io").read_text(encoding="ascii").splitlines()
    return {name: int(value) for name, value in (line.split(": ") for line in lines)}


def cpu_s() -> float:
    """CPU time of this process, in the kernel too."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cpu_of(process: int) -> float:
    """CPU time of another process, in the kernel too: fields 14 and 15 of its ``stat``."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(
    work: Callable[[], T], cpu: Callable[[], float] = cpu_s, process: int | str = "self"
) -> tuple[T, dict[str, float]]:
    """What work returns, and the seconds, CPU time and traffic that it took; what it wrote to files is spilled."""
    before, spent, start = storage(process), cpu(), time.monotonic()
    done = work()
    seconds, after = time.monotonic() - start, storage(process)
    return done, {
        "seconds": seconds,
        "cpu_s": cpu() - spent,
        "read_bytes": after["read_bytes"] - before["read_bytes"],
        "written_bytes": after["write_bytes"] - before["write_bytes"],
        "spilled_bytes": after["wchar"] - before["wchar"],
    }


def in_threads(work: Callable[[int], T], many: int) -> list[T]:
    """What each of so many threads returns of its number; the first error of theirs is raised."""
    with ThreadPoolExecutor(many) as threads:
        return list(threads.map(work, range(many)))


def answer(run: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answers the request on stdin, with the problem where there is one."""
    try:
        found = run(json.load(sys.stdin))
    except Exception as problem:  # the other side of the pipe makes an error of ours from it
        found = {"problem": f"{type(problem).__name__}: {str(problem).strip()}"}
    json.dump(found, sys.stdout)
