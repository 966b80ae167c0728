"""Real programs alone, under `tierloom profile` and under `tierloom run`: the same, and at what cost.

Usage: .venv/bin/python benches/real_programs.py [--turns N] [--only NAME] [--write docs/real-programs.md]

Runs every program of `tests/programs/real.py` that is installed, in turn, compares output and exit code,
and prints a table; `--write` puts it into the document, between the marks. CPU time is user + system of
the program and the children that it waited for, without Tierloom's own start and analysis. To have all:

    apt-get install redis-server postgresql nginx-light apache2-utils curl sqlite3 gawk mawk bc git gdb \
        valgrind default-jdk-headless nodejs r-base-core octave ffmpeg imagemagick
    pip install duckdb
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "programs"))

import real  # noqa: E402 (the programs are shared with the tests)

TIERLOOM = pathlib.Path(sys.executable).parent / "tierloom"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
HEAD = "| program | version | same output | same exit code | CPU alone | profile | run | objects | samples |"
SHORT_S = 0.05
"""Below this much CPU time a ratio says nothing."""


def spent() -> float:
    """CPU time of all children that have ended, s."""
    used = os.times()
    return used.children_user + used.children_system


def one_turn(program: real.Program, folder: pathlib.Path) -> dict:
    """The program alone, profiled and placed; CPU times, and whether all was the same."""
    folder.chmod(0o755)
    plan = folder / "it.plan.toml"
    plan.write_text(real.PLAN)
    before = spent()
    alone = program.run(folder / "alone")
    cpu = {"alone": spent() - before}
    profiled = program.run(folder / "profiled", str(TIERLOOM), "profile", "-o", str(folder / "it.profile"), "--")
    profile = json.loads((folder / "it.profile" / "profile.json").read_text(encoding="utf-8"))
    cpu["profile"] = profile["program"]["cpu_s"]
    placed = program.run(folder / "placed", str(TIERLOOM), "run", "--plan", str(plan), "--")
    told = program.run(folder / "told", str(TIERLOOM), "run", "--json", "--plan", str(plan), "--")
    cpu["run"] = json.loads(told.stdout)["cpu_s"]
    worked = program.says in alone.stdout
    same = [program.visible(ours.stdout) == program.visible(alone.stdout) for ours in (profiled, placed)]
    ended = [ours.returncode == alone.returncode for ours in (profiled, placed)]
    samples = profile["sampling"]["samples"]
    return {"cpu": cpu, "output": worked and all(same), "code": all(ended), "objects": len(profile["objects"]),
            "samples": samples}  # fmt: skip


def row(program: real.Program, turns: int) -> str:
    """One line of the table: medians of the CPU times, and everything that ever differed."""
    done = []
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as folder:
            done.append(one_turn(program, pathlib.Path(folder)))
    alone = statistics.median(turn["cpu"]["alone"] for turn in done)

    def overhead(way: str) -> str:
        ratio = statistics.median(turn["cpu"][way] / max(turn["cpu"]["alone"], 1e-3) for turn in done)
        return f"{(ratio - 1) * 100:+.0f} %" if alone >= SHORT_S else "too short"

    yes = [("yes" if all(turn[key] for turn in done) else "**no**") for key in ("output", "code")]
    counts = [str(max(turn[key] for turn in done)) for key in ("objects", "samples")]
    cells = [
        program.name,
        program.known_version(),
        *yes,
        f"{alone:.2f} s",
        overhead("profile"),
        overhead("run"),
        *counts,
    ]
    return f"| {' | '.join(cells)} |"


def host() -> str:
    """The machine in words."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    name = next(line for line in lines if line.startswith("model name")).split(":")[1].strip()
    return f"{len(os.sched_getaffinity(0))} CPUs {name}, Linux {platform.release().split('-')[0]}"


def main() -> None:
    """Runs all that are installed."""
    words = argparse.ArgumentParser(description="Real programs: the same, and at what cost.")
    words.add_argument("--turns", type=int, default=3)
    words.add_argument("--only", action="append")
    words.add_argument("--write", type=pathlib.Path)
    asked = words.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    lines = [HEAD, "|" + " --- |" * HEAD.count(" | ") + " --- |"]
    for program in real.PROGRAMS:
        if asked.only and program.name not in asked.only:
            continue
        missing = program.missing()
        if missing:
            print(f"left out: {missing}", file=sys.stderr)
            continue
        lines.append(row(program, asked.turns))
        print(lines[-1], flush=True)
    if asked.write:
        page = asked.write.read_text(encoding="utf-8")
        measured = f"Medians of {asked.turns} turns on {host()}."
        table = "\n".join([BEGIN, "", measured, "", *lines, "", END])
        asked.write.write_text(page[: page.index(BEGIN)] + table + page[page.index(END) + len(END) :], encoding="utf-8")


if __name__ == "__main__":
    main()
