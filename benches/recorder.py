"""What recording costs: CPU time of programs by themselves and under the recorder.

Usage: python3 benches/recorder.py [TURNS] [--pairs N] [--only malloc|arithmetic] [--built LIBRARY RECORDER]

Builds the preload library and the recorder (`cargo build --release`), compiles the C programs
beside this file, and runs every way of running them in turn, each turn in another order, so that a
change of the machine's mood meets all of them. A program is pinned to as many CPUs as it has threads,
and the recorder to the same: it takes its time from theirs.
Prints the median and the minimum, the median of the ratios to the plain program of the same turn with
its 95 % interval (order statistics), and the ratio of the minima.
"""

import argparse
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent


def build() -> tuple[str, str]:
    """Paths of the preload library and of the recorder's example program."""
    release = ["cargo", "build", "--quiet", "--release", "--package"]
    subprocess.run([*release, "tierloom-preload"], cwd=ROOT, check=True)
    subprocess.run([*release, "tierloom-record", "--example", "record"], cwd=ROOT, check=True)
    about = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    metadata = json.loads(subprocess.run(about, cwd=ROOT, check=True, capture_output=True).stdout)
    folder = pathlib.Path(metadata["target_directory"]) / "release"
    return str(folder / "libtierloom_preload.so"), str(folder / "examples" / "record")


def compiled(name: str, folder: str, *flags: str) -> str:
    """Compiles a C program of this folder and returns its path."""
    program = str(pathlib.Path(folder) / name)
    subprocess.run(["gcc", "-O2", "-pthread", *flags, "-o", program, HERE / f"{name}.c"], check=True)
    return program


def pinned(cpus: set[int]) -> object:
    """What a child does first: stay on these CPUs."""
    return lambda: os.sched_setaffinity(0, cpus)


def cpu_seconds(command: list[str], cpus: set[int]) -> float:
    """User + system CPU time of a command and its children."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=pinned(cpus)
    )
    words = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command} failed: {words}")
    of_program = re.search(r"([\d.]+) s CPU", words)
    return float(of_program[1]) if of_program else used.ru_utime + used.ru_stime


def interval(values: list[float]) -> tuple[float, float]:
    """95 % interval of the median: order statistics, n/2 -+ 0.98 sqrt(n) (Conover, 3.2)."""
    ordered, half = sorted(values), 0.98 * math.sqrt(len(values))
    low = max(0, math.floor(len(values) / 2 - half))
    high = min(len(values) - 1, math.ceil(len(values) / 2 + half))
    return ordered[low], ordered[high]


def compare(title: str, ways: dict[str, list[str]], turns: int, cpus: set[int]) -> None:
    """Runs all ways in turn and prints their costs; the first one is the plain program."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(turns):
        for way, command in list(ways.items())[:: 1 if turn % 2 else -1]:
            times[way].append(cpu_seconds(command, cpus))
    plain = times[next(iter(ways))]
    head = f"{'median s':>10}{'min s':>10}{'median ratio':>14}{'95 % interval':>16}{'ratio of mins':>15}"
    print(f"\n{title}\n{'':24}{head}")
    for way, taken in times.items():
        ratios = [one / other for one, other in zip(taken, plain, strict=True)]
        low, high = interval(ratios)
        row = f"{statistics.median(taken):10.3f}{min(taken):10.3f}{statistics.median(ratios):14.3f}"
        print(f"{way:24}{row}{low:9.3f}-{high:.3f}{min(taken) / min(plain):15.3f}", flush=True)


def malloc(library: str, recorder: str, folder: str, pairs: int, turns: int) -> None:
    """The malloc-heavy program with one thread and with two."""
    program = compiled("mbench", folder)
    jump = compiled("jump", folder, "-shared", "-fPIC", "-fno-plt", "-fno-builtin")
    for threads in (1, 2):
        command = [program, str(pairs), str(threads)]
        alone = ["env", f"LD_PRELOAD={library}", *command]
        ways = {
            "plain": command,
            "a jump to libc, no more": ["env", f"LD_PRELOAD={jump}", *command],
            "library, no recorder": alone,
            "recorded, no samples": [recorder, library, "none", *command],
            "recorded and sampled": [recorder, library, "perf", *command],
        }
        compare(f"malloc-heavy, {threads} thread(s)", ways, turns, set(sorted(os.sched_getaffinity(0))[-threads:]))


def storm(library: str, recorder: str, folder: str, pairs: int) -> None:
    """Pairs that are all recorded: ns of CPU time each, the least of seven runs."""
    program = compiled("storm", folder)
    print(f"\n100 kB, asked for and given back, ns a pair\n{'threads':>10}{'plain':>10}{'recorded':>10}")
    for threads in (1, 2, 1024):
        command = [program, str(pairs // threads), str(threads)]
        recorded = [recorder, library, "none", *command]
        least = [
            min(float(subprocess.run(words, check=True, capture_output=True, text=True).stdout) for _ in range(7))
            for words in (command, recorded)
        ]
        print(f"{threads:10}{least[0]:10.1f}{least[1]:10.1f}", flush=True)


def arithmetic(library: str, recorder: str, folder: str, turns: int) -> None:
    """A program that allocates nothing."""
    program = [compiled("spin", folder), "1000000000"]
    ways = {
        "plain": program,
        "the usual samples": [recorder, library, "perf", *program],
        "ptrace": [recorder, library, "ptrace", *program],
    }
    compare("arithmetic", ways, turns, os.sched_getaffinity(0))


def main() -> None:
    """Runs the comparison."""
    words = argparse.ArgumentParser(description="What recording costs.")
    words.add_argument("turns", type=int, nargs="?", default=11)
    words.add_argument("--pairs", type=int, default=5_000_000)
    words.add_argument("--only", choices=["malloc", "arithmetic", "storm"])
    words.add_argument("--built", nargs=2, metavar=("LIBRARY", "RECORDER"))
    asked = words.parse_args()
    library, recorder = asked.built or build()
    with tempfile.TemporaryDirectory() as folder:
        if asked.only in (None, "malloc"):
            malloc(library, recorder, folder, asked.pairs, asked.turns)
        if asked.only in (None, "storm"):
            storm(library, recorder, folder, asked.pairs // 10)
        if asked.only in (None, "arithmetic"):
            arithmetic(library, recorder, folder, asked.turns)


if __name__ == "__main__":
    main()
