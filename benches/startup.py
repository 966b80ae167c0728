"""What starting Tierloom costs beside starting Python, and a profile beside the program that is profiled.

    .venv/bin/python benches/startup.py

Commands are run in turns, so that a machine whose pace moves slows all; what is printed are medians and ratios within
this run, which may be held against those of another machine, and seconds, which may not. Where somebody only asks for
words, or plans what is in the catalog, a ratio has a bound, and the bench ends with 1 where one is passed. Profiled are
a program that does nothing, and one of a second: `mg` at a size of its own, which waits for memory in several objects.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tierloom.commands import SECTIONS

ROOT = Path(__file__).parents[1]
TIERLOOM = Path(sys.executable).absolute().parent / "tierloom"
MG = ROOT / "build/workloads/O2/mg"

PYTHON = "python -c pass"
VERBS = [name for verbs in SECTIONS.values() for name in verbs]
MOST_STARTS = {
    "import tierloom": 5.0,
    "tierloom --version": 5.0,
    "tierloom --help": 5.0,
    **{f"tierloom {verb} --help": 7.5 for verb in VERBS},
    "tierloom plan mg-e --machine liu-a": 15.0,
}
"""Starts of Python that a command may take: 0.1, 0.15 and 0.3 s where Python starts in 0.02."""


class Cost(NamedTuple):
    """Median seconds of a command."""

    wall_s: float
    cpu_s: float

    def text(self) -> str:
        return f"{1e3 * self.wall_s:7.0f} ms, of CPU time {1e3 * self.cpu_s:5.0f} ms"


def once(command: list[str]) -> Cost:
    """One run: what passed, and what it used with its children."""
    begun = time.perf_counter()
    quiet = os.open(os.devnull, os.O_RDWR)
    streams = [(os.POSIX_SPAWN_DUP2, quiet, stream) for stream in (0, 1, 2)]
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=streams)
    _, status, used = os.wait4(child, 0)
    os.close(quiet)
    if status != 0:
        message = f"{' '.join(command)}: it ended with status {status}\nhint: run it by hand to see why"
        raise SystemExit(message)
    return Cost(time.perf_counter() - begun, used.ru_utime + used.ru_stime)


def interleaved(commands: dict[str, list[str]], runs: int) -> dict[str, Cost]:
    """Medians of each command. The first round is not counted: it fills caches, and the skid is measured then."""
    rounds = [{name: once(command) for name, command in commands.items()} for _ in range(runs + 1)][1:]

    def median(name: str) -> Cost:
        seen = [costs[name] for costs in rounds]
        return Cost(statistics.median(cost.wall_s for cost in seen), statistics.median(cost.cpu_s for cost in seen))

    return {name: median(name) for name in commands}


def starts(runs: int) -> bool:
    """Prints what starting takes; whether all of it is within its bounds."""
    commands = {name: [str(TIERLOOM), *name.split()[1:]] for name in MOST_STARTS}
    commands["import tierloom"] = [sys.executable, "-c", "import tierloom"]
    costs = interleaved({PYTHON: [sys.executable, "-c", "pass"], **commands}, runs)
    python = costs.pop(PYTHON)
    print(f"{PYTHON:35} {python.text()}")
    ratios = {name: cost.wall_s / python.wall_s for name, cost in costs.items()}
    for name, cost in costs.items():
        told = "" if ratios[name] <= MOST_STARTS[name] else f", more than {MOST_STARTS[name]:g}"
        print(f"{name:35} {cost.text()}, {ratios[name]:4.1f} starts of Python{told}")
    return all(ratio <= MOST_STARTS[name] for name, ratio in ratios.items())


def profiles(runs: int, iterations: int) -> None:
    """Prints what a profile takes."""
    mg = [str(MG), "--iterations", str(iterations)]
    profile = [str(TIERLOOM), "profile", "-o", "program.profile", "--"]
    commands = {
        "true": ["true"],
        PYTHON: [sys.executable, "-c", "pass"],
        "profile -- true": [*profile, "true"],
        "mg": mg,
        "profile -- mg": [*profile, *mg],
    }
    costs = interleaved(commands, runs)
    for name, cost in costs.items():
        print(f"{name:35} {cost.text()}")
    nothing, python, alone, profiled = (costs[name] for name in ("profile -- true", PYTHON, "mg", "profile -- mg"))
    print(f"profile -- true takes {nothing.wall_s / python.wall_s:.1f} starts of Python")
    print(f"profile -- mg takes {100 * (profiled.wall_s / alone.wall_s - 1):+.0f} % of what mg takes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="runs of each command")
    parser.add_argument("--iterations", type=int, default=6, help="rounds of mg: so many that it takes a second")
    asked = parser.parse_args()
    if not MG.is_file():
        message = f"{MG}: it is not there\nhint: make workloads"
        raise SystemExit(message)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        within = starts(asked.runs)
        profiles(asked.runs, asked.iterations)
    sys.exit(0 if within else 1)


if __name__ == "__main__":
    main()
