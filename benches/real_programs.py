"""Real programs alone, under `tierloom profile` and under `tierloom run`: the same, and at what cost.

Usage: .venv/bin/python benches/real_programs.py [--turns N] [--only NAME]… [--write docs/real-programs.md]

Runs every program of `tests/programs/real.py` that is installed, in turn, compares output and exit code,
and prints a table; `--write` puts it into the document, between the marks, piece by piece if need be.
CPU time is user + system of the program and the children that it waited for, without Tierloom's own
start and analysis. To have all:

    apt-get install redis-server postgresql nginx-light apache2-utils curl sqlite3 gawk mawk bc git gdb \
        valgrind default-jdk-headless nodejs r-base-core octave ffmpeg imagemagick
    pip install duckdb
"""

import argparse
import json
import os
import pathlib
import platform
import resource
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from programs import real  # noqa: E402 (the programs are shared with the tests)
from three_ways import Finished, run_three_ways, written_plan  # noqa: E402

TIERLOOM = pathlib.Path(sys.executable).parent / "tierloom"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
HEAD = "| program | version | same output | same exit code | CPU alone | profile | run | objects | samples |"
SHORT_S = 0.05
"""Below this much CPU time a ratio says nothing."""


def spent_s() -> float:
    """CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True)
class Turn:
    """What one turn of a program cost, and what was not as ever."""

    alone_s: float
    profile_s: float
    run_s: float
    objects: int
    samples: int
    harm: tuple[str, ...]

    def ratio(self, way: str) -> float:
        """CPU time of a way by that of the program alone."""
        return getattr(self, f"{way}_s") / max(self.alone_s, 1e-3)


def one_turn(program: real.Program, folder: pathlib.Path) -> Turn:
    """The program alone, profiled and placed; once more placed, for its CPU time is only in the JSON."""
    folder.chmod(0o755)
    took = {}

    def start(turn: str, *before: str) -> Finished:
        already = spent_s()
        done = program.run(folder / turn, *before)
        took[turn] = spent_s() - already
        return done

    ways = run_three_ways(TIERLOOM, folder, start)
    told = start("told", str(TIERLOOM), "run", "--json", "--plan", str(written_plan(folder)), "--")
    harm = ways.harm(program.visible)
    if program.says not in ways.alone.stdout:
        harm.append(f"it did not work alone: {ways.alone.stdout[-500:]!r} {ways.alone.stderr[-500:]!r}")
    return Turn(
        took["alone"],
        ways.profile["program"]["cpu_s"],
        json.loads(told.stdout)["cpu_s"],
        len(ways.profile["objects"]),
        ways.profile["sampling"]["samples"],
        tuple(harm),
    )


def overhead(turns: list[Turn], way: str) -> str:
    """Median and range of what a way costs more than the program alone."""
    if statistics.median(turn.alone_s for turn in turns) < SHORT_S:
        return "too short"
    more = sorted((turn.ratio(way) - 1) * 100 for turn in turns)
    spread = f" ({more[0]:+.0f} to {more[-1]:+.0f})" if len(more) > 1 else ""
    return f"{statistics.median(more):+.0f} %{spread}"


def row(program: real.Program, count: int) -> str:
    """One line of the table: medians of the CPU times, and everything that ever differed."""
    turns = []
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            turns.append(one_turn(program, pathlib.Path(folder)))
    harm = [text for turn in turns for text in turn.harm]
    for text in harm:
        print(f"{program.name}: {text}", file=sys.stderr)
    codes = [text for text in harm if "exit code" in text]
    same = ["yes" if not found else "**no**" for found in (len(harm) > len(codes), codes)]
    cells = [
        program.name,
        program.known_version(),
        *same,
        f"{statistics.median(turn.alone_s for turn in turns):.2f} s",
        overhead(turns, "profile"),
        overhead(turns, "run"),
        str(max(turn.objects for turn in turns)),
        str(max(turn.samples for turn in turns)),
    ]
    return f"| {' | '.join(cells)} |"


def host() -> str:
    """The machine in words."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    name = next(line for line in lines if line.startswith("model name")).split(":")[1].strip()
    return f"{len(os.sched_getaffinity(0))} CPUs {name}, Linux {platform.release().split('-')[0]}"


def measured(words: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Programs with their lines of the table: all that were asked for and are installed."""
    for program in real.PROGRAMS:
        if words.only and program.name not in words.only:
            continue
        if missing := program.missing():
            print(f"left out: {missing}", file=sys.stderr)
            continue
        line = row(program, words.turns)
        print(line, flush=True)
        yield program.name, line


def write(page: pathlib.Path, rows: dict[str, str], how: str) -> None:
    """Puts the lines into the page; those of other programs stay if they were measured so, too."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    if how in table:
        rows = {line.split("|")[1].strip(): line for line in table.splitlines() if line.startswith("|")} | rows
    ordered = [rows[program.name] for program in real.PROGRAMS if program.name in rows]
    rule = "|" + " --- |" * (HEAD.count("|") - 1)
    page.write_text(before + "\n".join([BEGIN, "", how, "", HEAD, rule, *ordered, "", END]) + after, encoding="utf-8")


def main() -> None:
    """Runs all that are installed."""
    words = argparse.ArgumentParser(description="Real programs: the same, and at what cost.")
    words.add_argument("--turns", type=int, default=3)
    words.add_argument("--only", action="append", metavar="NAME")
    words.add_argument("--write", type=pathlib.Path, metavar="FILE")
    asked = words.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    how = f"Median and range of {asked.turns} turns" if asked.turns > 1 else "One turn"
    for name, line in measured(asked):
        if asked.write:
            write(asked.write, {name: line}, f"{how} on {host()}.")


if __name__ == "__main__":
    main()
