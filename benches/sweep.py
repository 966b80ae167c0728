"""What sweeping costs: 10,000 predictions by `tierloom sweep` on two workers, against two bare processes.

A bare process calls `predict` in a loop and keeps the times in a list: no keys, no store, no
table, no Dask. Rounds alternate, and the quickest of each kind counts. `whole` is from the call to the finished
table, start of the workers included; `steady` is from the first finished batch to the last.

    python benches/sweep.py [--steps 50] [--rounds 3] [--json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tierloom.sweeps import Progress, Study, sweep

WORKERS = 2
STUDY = """
version = 1
verb = "predict"
[parameters]
profile = "mg-e"
machine = "liu-a"
rest = "ldram"
[axes]
threads = [8, 16, 24, 32]
"place.u.cxl" = {{ from = 0.0, to = 1.0, steps = {steps} }}
"place.r.cxl" = {{ from = 0.0, to = 1.0, steps = {steps} }}
"""
BARE = """
import json, sys, time
import tierloom
from tierloom.placements import fractions
from tierloom.policy_search import predict
steps, part, parts = map(int, sys.argv[1:])
profile, machine = tierloom.Profile.load("mg-e"), tierloom.Machine.load("liu-a")
shares = [step / (steps - 1) for step in range(steps)]
points = [(t, u, r) for t in (8, 16, 24, 32) for u in shares for r in shares][part::parts]
print("ready", flush=True)
sys.stdin.readline()
start = time.process_time()
times = []
for threads, u, r in points:
    rows = fractions(profile, machine, {"u.cxl": u, "r.cxl": r}, rest="ldram")
    times.append(predict(profile, machine, rows, threads=threads)["time_s"])
print(json.dumps([len(times), time.process_time() - start]))
"""


def cpu_s() -> float:
    """CPU time of this process and all that it started: what a busy machine does not change."""
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(sum(each.cpu_times()[:2]) for each in family)


def bare(steps: int) -> dict[str, float]:
    """Points per second of two processes that do nothing else, their start left out; CPU time with it."""
    command = [sys.executable, "-c", BARE, str(steps)]
    running = [
        subprocess.Popen([*command, str(part), str(WORKERS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for part in range(WORKERS)
    ]
    for each in running:
        assert each.stdout
        each.stdout.readline()
    start = time.perf_counter()
    told = [json.loads(each.communicate("go\n")[0]) for each in running]
    points = sum(points for points, _ in told)
    took = time.perf_counter() - start
    return {"bare": points / took, "bare_cpu_us": sum(cpu for _, cpu in told) / points * 1e6}


def swept(steps: int) -> dict[str, float]:
    """Points per second of a sweep, and where its time went."""
    seen: list[tuple[float, int, float]] = []

    def tell(progress: Progress) -> None:
        at_an_end = not seen or progress.done == progress.total
        seen.append((time.perf_counter(), progress.done, cpu_s() if at_an_end else 0.0))

    with tempfile.TemporaryDirectory() as folder:
        start, cpu = time.perf_counter(), cpu_s()
        found = sweep(Study.parse(STUDY.format(steps=steps)), Path(folder), workers=WORKERS, progress=tell)
        took = time.perf_counter() - start
        stored = (Path(folder) / "results.sqlite").stat().st_size
        table = found.table.stat().st_size
    (first_s, first, first_cpu), (last_s, last, last_cpu) = seen[0], seen[-1]
    return {
        "whole": found.total / took,
        "steady": (last - first) / (last_s - first_s),
        "steady_cpu_us": (last_cpu - first_cpu) / (last - first) * 1e6,
        "start_s": first_s - start,
        "start_cpu_s": first_cpu - cpu,
        "end_s": start + took - last_s,
        "batches": len(seen),
        "store_bytes": stored / found.total,
        "table_bytes": table / found.total,
    }


def main() -> None:
    """Prints one line a round, then the quickest."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50, help="Points are four times the square of it.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rounds = []
    for _ in range(asked.rounds):
        rounds.append({**bare(asked.steps), **swept(asked.steps)})
        print(" ".join(f"{name} {value:.4g}" for name, value in rounds[-1].items()), file=sys.stderr)
    best = {name: max(each[name] for each in rounds) for name in ("bare", "whole", "steady")}
    shares = {name: best[name] / best["bare"] for name in ("whole", "steady")}
    least = {name: min(each[name] for each in rounds) for name in ("bare_cpu_us", "steady_cpu_us")}
    shares["CPU time"] = least["bare_cpu_us"] / least["steady_cpu_us"]
    if asked.json:
        print(json.dumps({"points": 4 * asked.steps**2, "rounds": rounds, "share_of_bare": shares}))
        return
    print(f"{4 * asked.steps**2} points, {WORKERS} workers; two bare processes: {best['bare']:.0f} points/s")
    for name in ("whole", "steady"):
        print(f"{name}: {best[name]:.0f} points/s, {shares[name]:.1%} of bare")
    print(f"CPU time a point: bare {least['bare_cpu_us']:.0f} us, swept {least['steady_cpu_us']:.0f} us")


if __name__ == "__main__":
    main()
