"""What a worker counts about itself, and how it answers. Used inside the processes that `running` starts."""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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


def answer(run: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answers the request on stdin, with the problem where there is one."""
    try:
        found = run(json.load(sys.stdin))
    except Exception as problem:  # the other side of the pipe makes an error of ours from it
        found = {"problem": f"{type(problem).__name__}: {str(problem).strip()}"}
    json.dump(found, sys.stdout)
