"""Sweeps with two workers that die; prints what became of every point.

A script of its own: workers import what starts them, and what Dask says about a dead worker is no
warning of the tests. ``first`` kills the worker that answers first; ``poison`` has a point whose noun ends
whatever process reads it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import tierloom
from tierloom.sweeps import Progress, Study, clusters, sweep
from tierloom.sweeps.worker import Batch


class Poison:
    """Ends any worker that unpickles it; the scheduler, in this process, unpickles it, too."""

    def __reduce__(self) -> tuple[object, ...]:
        return end_a_worker, (os.getpid(),)


def end_a_worker(us: int) -> Poison:
    if os.getpid() != us:
        os._exit(9)
    return Poison()


def first(study: str, folder: str) -> dict[str, object]:
    pids: list[int] = []

    def kill_the_first(progress: Progress) -> None:
        if not pids:
            os.kill(progress.pid, signal.SIGKILL)
        pids.append(progress.pid)

    found = sweep(Study.load(study), Path(folder), workers=2, progress=kill_the_first)
    return {"counts": found.counts, "pids": pids}


def poison(*_: str) -> dict[str, object]:
    fixed = {"profile": tierloom.Profile.load("mg-e"), "machine": tierloom.Machine.load("liu-a")}
    points = [(bytes([threads]), {"threads": threads}) for threads in range(1, 8)]
    sound = [Batch("predict", fixed, {}, tuple(points[start : start + 3])) for start in (0, 3, 6)]
    deadly = Batch("predict", fixed, {("threads", 9): Poison()}, ((b"poison", {"threads": 9}),))
    batches = iter([sound[0], deadly, *sound[1:]])
    with clusters.pool({}, workers=2) as pool:
        computed = list(pool(8).run(lambda: next(batches, None)))
    results = {result.key: result.state for each in computed for result in each.results}
    return {"states": list(results.values()), "poisoned": results[b"poison"]}


if __name__ == "__main__":
    mode, *words = sys.argv[1:]
    print(json.dumps({"first": first, "poison": poison}[mode](*words)))  # noqa: T201
