"""`machine measure` against plain programs that measure the same, in one run.

The peers: a pointer chase and STREAM's copy and triad, written here from their definitions in C, and
`mbw` where it is installed. Rounds are interleaved, the peers before and after us, so that a busy minute
hits everybody; of each program's figures the median over the rounds counts, and the spread over the
rounds is printed. Each peer runs its own default of ten turns. Half a minute a round.

    python benches/probe_against_peers.py [--rounds 10] [--pause 5] [--full] [--probe FILE] [--json]

Targets: our highest bandwidth not below 95 % of the best peer's, our idle latency within 5 % of the
chase's, both repeatable within 5 %: the medians of every other round, five and five, are that near to
each other. Run it on a quiet machine; the load is printed with the result.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

BANDWIDTH_TARGET = 0.95
LATENCY_TARGET = 0.05
REPEATABLE = 0.05

CHASE = r"""
// Pointer chase: every line holds the address of the next on one random cycle (Sattolo's shuffle).
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
static uint64_t state = 88172645463325252ull;
static uint64_t next_random(void) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return state;
}
static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
int main(int argc, char **argv) {
    size_t bytes = strtoull(argv[1], 0, 10), windows = strtoull(argv[2], 0, 10), huge = 2 << 20;
    double window_s = atof(argv[3]);
    char *raw = mmap(0, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *start = (char *)(((uintptr_t)raw + huge - 1) & ~(uintptr_t)(huge - 1));
    madvise(start, bytes, MADV_HUGEPAGE);
    uint32_t lines = bytes / 64, *order = malloc(lines * sizeof *order);
    for (uint32_t i = 0; i < lines; i++) order[i] = i;
    for (uint32_t i = lines - 1; i > 0; i--) {
        uint32_t j = next_random() % i, swap = order[i];
        order[i] = order[j]; order[j] = swap;
    }
    for (uint32_t i = 0; i < lines; i++) *(char **)(start + 64ull * i) = start + 64ull * order[i];
    char *place = start;
    size_t loads = 100000;
    double begin = now_s();
    for (size_t i = 0; i < loads; i++) place = *(char *volatile *)place;
    loads = window_s / ((now_s() - begin) / loads);
    for (size_t w = 0; w < windows; w++) {
        begin = now_s();
        for (size_t i = 0; i < loads; i++) place = *(char *volatile *)place;
        printf("%f\n", (now_s() - begin) / loads * 1e9);
    }
    return place == 0;
}
"""

STREAM = r"""
// STREAM copy and triad (McCalpin): bytes as STREAM counts them, write-allocate not counted.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    size_t n = strtoull(argv[1], 0, 10) / sizeof(double);
    double *a = malloc(n * 8), *b = malloc(n * 8), *c = malloc(n * 8);
    #pragma omp parallel for
    for (size_t i = 0; i < n; i++) { a[i] = 1; b[i] = 2; c[i] = 0; }
    for (int turn = 0; turn < 10; turn++) {
        double t = omp_get_wtime();
        #pragma omp parallel for
        for (size_t i = 0; i < n; i++) c[i] = a[i];
        double copy = omp_get_wtime() - t;
        t = omp_get_wtime();
        #pragma omp parallel for
        for (size_t i = 0; i < n; i++) a[i] = b[i] + 3.0 * c[i];
        double triad = omp_get_wtime() - t;
        printf("%f %f\n", 16e-9 * n / copy, 24e-9 * n / triad);
    }
    return a[n / 2] == 0;
}
"""


def compile_c(source: str, name: str, folder: Path) -> Path:
    """Compiles a peer as a user would: -O3 for this machine, OpenMP."""
    program = folder / name
    (folder / f"{name}.c").write_text(source)
    command = ["gcc", "-O3", "-march=native", "-fopenmp", "-o", program, folder / f"{name}.c"]
    subprocess.run(command, check=True)
    return program


def build_probe() -> Path:
    """The probe without Python around it; its report is what `machine measure --json` prints."""
    subprocess.run(
        ["cargo", "build", "--release", "--quiet", "-p", "tierloom-probe", "--example", "measure"], cwd=ROOT, check=True
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release/examples/measure"


def output(command: list[str | Path], **environment: str) -> str:
    """Standard output of a program that must succeed."""
    done = subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True, env={**os.environ, **environment}
    )
    return done.stdout


def quiet_tenth(values: list[float]) -> float:
    """10th percentile, interpolated: what the probe itself calls idle latency."""
    return statistics.quantiles(values, n=10, method="inclusive")[0]


def ours(report: dict) -> dict[str, float]:
    """Our figures of the socket's own node, GB/s and ns."""
    node = report["host"]["nodes"][0]["node"]
    here = [entry for entry in report["bandwidths"] if entry["node"] == node]
    most = max(entry["threads"] for entry in here)
    figures = {}
    for entry in here:
        if entry["threads"] in (1, most):
            name = f"tierloom {entry['mix']}, {entry['threads']} threads"
            figures[name] = max(figures.get(name, 0.0), entry["gb_s"]["p90"])
    largest = max(entry["footprint_bytes"] for entry in report["latencies"])
    rounds = [e["ns"]["p10"] for e in report["latencies"] if e["footprint_bytes"] == largest and e["order"] == "random"]
    figures["tierloom idle ns"] = min(rounds)
    return figures


def peers(chase: Path, stream: Path, report: dict) -> dict[str, float]:
    """The peers' figures on regions of the same size, each at its best."""
    bytes_ = max(entry["footprint_bytes"] for entry in report["latencies"])
    cores = len(report["host"]["sockets"][0]["cores"])
    cpu = str(report["host"]["sockets"][0]["cores"][0])
    scale = report["scale"]
    windows = [str(scale["windows"]), str(scale["window_s"])]
    chased = output(["taskset", "-c", cpu, chase, str(bytes_), *windows])
    figures = {"chase ns": quiet_tenth([float(line) for line in chased.split()])}
    for threads in sorted({1, cores}):
        lines = output([stream, str(bytes_)], OMP_NUM_THREADS=str(threads), OMP_PROC_BIND="true").splitlines()[1:]
        for column, kernel in enumerate(["copy", "triad"]):
            figures[f"STREAM {kernel}, {threads} threads"] = max(float(line.split()[column]) for line in lines)
    if shutil.which("mbw"):
        figures |= mbw(bytes_)
    return figures


def mbw(bytes_: int) -> dict[str, float]:
    """What mbw copies, read and written; mcblock (1.2.2) reads its first block again and again, from the cache."""
    text = output(["mbw", "-q", "-n", "10", str(bytes_ >> 20)])
    figures = {}
    for method, times in (("MEMCPY", 2), ("DUMB", 2), ("MCBLOCK", 1)):
        copied = [float(rate) for rate in re.findall(rf"^\d+\s+Method: {method}\s.*Copy: ([\d.]+)", text, re.M)]
        figures[f"mbw {method.lower()}, 1 threads"] = times * max(copied) * 2**20 / 1e9
    return figures


def better(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    """The better of two runs: the peers run before and after us, for we take our quietest round too."""
    return {name: (min if name.endswith("ns") else max)(first[name], second[name]) for name in first}


def summary(rounds: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Of every figure the median, the spread (greatest less least) and how far the medians of every other
    round lie apart, both over the median."""
    table = {}
    for name in rounds[0]:
        values = [figures[name] for figures in rounds]
        median = statistics.median(values)
        halves = [statistics.median(half) for half in (values[::2], values[1::2] or values)]
        table[name] = {
            "median": median,
            "spread": (max(values) - min(values)) / median,
            "apart": (max(halves) - min(halves)) / median,
        }
    return table


def verdicts(table: dict[str, dict[str, float]]) -> dict[str, dict[str, object]]:
    """The targets, each with its figure."""

    def best(names: list[str]) -> tuple[str, float]:
        return max(((name, table[name]["median"]) for name in names), key=lambda pair: pair[1])

    threads = sorted({int(found[1]) for name in table if (found := re.search(r", (\d+) threads$", name))})
    answers: dict[str, dict[str, object]] = {}
    for count in threads:
        end = f", {count} threads"
        mine = best([name for name in table if name.startswith("tierloom") and name.endswith(end)])
        theirs = best([name for name in table if not name.startswith("tierloom") and name.endswith(end)])
        share = mine[1] / theirs[1]
        text = f"{mine[0]} is {share:.3f} of {theirs[0]}"
        answers[f"bandwidth, {count} threads"] = {"holds": share >= BANDWIDTH_TARGET, "text": text}
        answers[f"bandwidth repeatable, {count} threads"] = repeatable(table[mine[0]]["apart"])
    off = table["tierloom idle ns"]["median"] / table["chase ns"]["median"] - 1
    answers["latency"] = {"holds": abs(off) <= LATENCY_TARGET, "text": f"{off:+.1%} off the pointer chase"}
    answers["latency repeatable"] = repeatable(table["tierloom idle ns"]["apart"])
    return answers


def repeatable(apart: float) -> dict[str, object]:
    """Whether two medians this far apart are the same figure."""
    return {"holds": apart <= REPEATABLE, "text": f"two medians {apart:.1%} apart"}


def main() -> None:
    """Runs the rounds and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--pause", type=float, default=5.0, help="seconds between programs, for others on the machine")
    parser.add_argument("--full", action="store_true", help="measure as without --quick: minutes a round")
    parser.add_argument("--probe", type=Path, metavar="FILE", help="the probe's example `measure`, already built")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    probe = [arguments.probe or build_probe(), "--json", *(["--full"] if arguments.full else [])]
    rounds, warnings = [], []
    report = json.loads(output([*probe[:2]]))
    with tempfile.TemporaryDirectory() as folder:
        chase, stream = compile_c(CHASE, "chase", Path(folder)), compile_c(STREAM, "stream", Path(folder))
        for number in range(arguments.rounds):
            time.sleep(arguments.pause)
            before = peers(chase, stream, report)
            report = json.loads(output(probe))
            warnings += [f"round {number + 1}: {warning['what']}" for warning in report["warnings"]]
            time.sleep(arguments.pause)
            rounds.append({**ours(report), **better(before, peers(chase, stream, report))})
            print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
    table = summary(rounds)
    answer = {"load": os.getloadavg(), "figures": table, "targets": verdicts(table), "warnings": warnings}
    if arguments.json:
        json.dump(answer, sys.stdout, indent=2)
        return
    for name, figure in sorted(table.items(), key=lambda item: -item[1]["median"]):
        print(
            f"{name:45} {figure['median']:9.2f}  spread {figure['spread']:6.1%}  medians {figure['apart']:5.1%} apart"
        )
    for name, target in answer["targets"].items():
        print(f"{'holds ' if target['holds'] else 'MISSED'} {name}: {target['text']}")
    print("\n".join(warnings), f"\nload average {answer['load'][0]:.2f}")


if __name__ == "__main__":
    main()
