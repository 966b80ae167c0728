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


def storage() -> dict[str, int]:
    """What this process has had read from and written to storage, and has written to any file (``wchar``)."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return {name: int(value) for name, value in (line.split(": ") for line in lines)}


def cpu_s() -> float:
    """CPU time of this process, in the kernel too."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def answer(run: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answers the request on stdin, with the problem where there is one."""
    try:
        found = run(json.load(sys.stdin))
    except Exception as problem:  # the other side of the pipe makes an error of ours from it
        found = {"problem": f"{type(problem).__name__}: {problem}"}
    json.dump(found, sys.stdout)
