"""Holds the workloads' own access counts (--truth) against an instrumented run.

valgrind's DHAT runs the very machine code that is profiled and counts the bytes read and written
in each heap block; blocks are grouped by the alloc_NAME frame of their call stack. Static arrays
are out of its reach, so stream is checked with --heap; its kernels are the same functions.
Prints a table; exit code 1 when an object deviates by more than TOLERANCE, or when a verification
value depends on the build or the number of threads.

Usage: check_truth.py FOLDER... [--programs NAME,...]
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

TOLERANCE = 0.01

# Small enough for a hundredfold slowdown, large enough for several rounds on every path.
RUNS = {
    "stream": ["--heap", "--size", "100003", "--iterations", "3"],
    "gather": ["--size", "17", "--iterations", "3"],
    "phases": ["--size", "18", "--iterations", "2"],
    "cg": ["--size", "14", "--iterations", "5"],
    "mg": ["--size", "32", "--iterations", "3"],
    "fft": ["--size", "32", "--iterations", "2"],
    "adi": ["--size", "32", "--iterations", "2"],
    "ssor": ["--size", "32", "--iterations", "3"],
    "xsbench": ["--size", "200", "--iterations", "2"],
    "pagerank": ["--size", "13", "--iterations", "3"],
    "bfs": ["--size", "13", "--iterations", "3"],
    "btree": ["--size", "100000", "--iterations", "2"],
    "kvstore": ["--size", "20000", "--iterations", "2"],
}


def measured(dhat: pathlib.Path) -> dict[str, tuple[int, int]]:
    """Bytes read and written per object, from DHAT's output file."""
    report = json.loads(dhat.read_text())
    objects: dict[str, tuple[int, int]] = {}
    for point in report["pps"]:
        stack = " ".join(report["ftbl"][frame] for frame in point["fs"])
        name = re.search(r"\balloc_(\w+)", stack)
        if name:
            reads, writes = objects.get(name[1], (0, 0))
            objects[name[1]] = (reads + point["rb"], writes + point["wb"])
    return objects


def run(program: pathlib.Path, threads: int) -> tuple[dict, dict[str, tuple[int, int]]]:
    """The program's own counts and DHAT's."""
    with tempfile.TemporaryDirectory() as folder:
        truth, dhat = pathlib.Path(folder, "truth.json"), pathlib.Path(folder, "dhat.json")
        command = ["valgrind", "--tool=dhat", f"--dhat-out-file={dhat}", str(program.resolve())]
        command += [*RUNS[program.name], "--threads", str(threads), "--truth", str(truth)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        return json.loads(truth.read_text()), measured(dhat)


def deviation(claimed: int, counted: int) -> float:
    """Relative distance of a claim from what was counted; 0 where both are nothing."""
    return abs(claimed - counted) / max(claimed, counted, 1)


def check(program: pathlib.Path, threads: int, verified: dict[str, float]) -> bool:
    """Prints a line per program and one per deviating object; whether all agree.

    `verified` keeps each program's first verification value: all builds must print the same.
    """
    truth, counted = run(program, threads)
    if truth["verification"] != verified.setdefault(program.name, truth["verification"]):
        print(f"{program} with {threads} threads: another verification value")
        return False
    worst, lines = 0.0, []
    for item in truth["objects"]:
        reads, writes = counted.get(item["name"], (0, 0))
        off = max(deviation(item["read_bytes"], reads), deviation(item["write_bytes"], writes))
        worst = max(worst, off)
        if off > 0:
            lines.append(
                f"    {item['name']:<12} read {item['read_bytes']:>12} counted {reads:>12}"
                f"  write {item['write_bytes']:>12} counted {writes:>12}  {off:8.4%}"
            )
    total = sum(item["read_bytes"] + item["write_bytes"] for item in truth["objects"])
    label = f"{program.parent.name}/{program.name}"
    print(f"{label:<14} {threads} threads  {total:>12} bytes  worst object {worst:8.4%}")
    print("\n".join(lines), end="\n" if lines else "", flush=True)
    return worst <= TOLERANCE


def main() -> None:
    """Checks every program that was built into the folders, with 1 and 2 threads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--programs", default=",".join(RUNS))
    options = parser.parse_args()
    programs = [folder / name for folder in options.folders for name in options.programs.split(",")]
    verified: dict[str, float] = {}
    agreed = [
        check(program, threads, verified)
        for program in programs
        if program.exists()
        for threads in (1, 2)
    ]
    sys.exit(0 if agreed and all(agreed) else 1)


if __name__ == "__main__":
    main()
