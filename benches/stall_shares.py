"""How close the sampler's stall shares come to what waiting for an object really costs.

The referee is ablation (`workloads/ablate.hpp`): an object's pages are replaced by a few that repeat, so
that the same instructions always find its data in the first-level cache; the CPU time that this saves
against the same pages replaced by a copy is the object's marginal stall time. Medians of interleaved
runs, negative savings taken as none, normalised over the objects of a program. Objects of indices
cannot be ablated and are left out on both sides. Prints the total variation distance (TVD) of the
stall shares and beside it that of the access shares of the same profiled run. Marginal times of
misses that overlap add up to less than all waiting; how much of the time all savings together
explain is printed, too.

    python3 benches/stall_shares.py --tool PATH --preload PATH [WORKLOAD...] [--runs 5] [--seconds 3]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from sampler_accuracy import ROOT, compare, find

OBJECTS = {
    "stream": ["a", "b", "c"],
    "gather": ["A", "B", "C"],
    "phases": ["D", "L", "H"],
    "cg": ["a", "p", "x", "r", "q"],
}


def rounds_within(program: Path, seconds: float, folder: Path) -> int:
    """Iterations of the main loop that last about this long: a first run of two of them tells."""
    cpu = main_cpu_seconds(program, 2, [], folder)
    return max(2, round(2 * seconds / max(cpu, 1e-3)))


def main_cpu_seconds(program: Path, iterations: int, options: list[str], folder: Path) -> float:
    """CPU time of the main loop of one run."""
    truth = folder / "truth.json"
    command = [str(program), "--threads", "1", "--iterations", str(iterations), "--truth", str(truth), *options]
    subprocess.run(command, check=True, capture_output=True)
    return json.loads(truth.read_text())["main_cpu_s"]


def savings(program: Path, objects: list[str], iterations: int, runs: int, folder: Path) -> tuple[list[float], float]:
    """Seconds saved by ablating each object, and the seconds of the main loop; medians."""
    whole: dict[str, list[float]] = {name: [] for name in objects}
    cached: dict[str, list[float]] = {name: [] for name in objects}
    for _ in range(runs):
        for name in objects:
            whole[name].append(main_cpu_seconds(program, iterations, ["--rebuild", name], folder))
            cached[name].append(main_cpu_seconds(program, iterations, ["--ablate", name], folder))
    saved = [statistics.median(whole[name]) - statistics.median(cached[name]) for name in objects]
    return saved, statistics.median([value for values in whole.values() for value in values])


def profiled(args: argparse.Namespace, program: Path, iterations: int, folder: Path) -> tuple[dict, dict]:
    """Profile and true counts of one run."""
    out, truth = folder / "profile.json", folder / "truth.json"
    command = [str(program), "--threads", "1", "--iterations", str(iterations), "--truth", str(truth)]
    subprocess.run([str(args.tool), str(args.preload), str(out), *command], check=True, capture_output=True)
    return json.loads(out.read_text()), json.loads(truth.read_text())


def shares(values: list[float]) -> list[float]:
    """Normalised, negative values as none."""
    positive = [max(value, 0.0) for value in values]
    return [value / (sum(positive) or 1.0) for value in positive]


def row(args: argparse.Namespace, name: str, level: str, folder: Path) -> None:
    """Measures one program and prints its line."""
    program, objects = args.workloads / level / name, OBJECTS[name]
    iterations = rounds_within(program, args.seconds, folder)
    saved, whole = savings(program, objects, iterations, args.runs, folder)
    profile, truth = profiled(args, program, iterations, folder)
    stalls = {item["name"]: item["stall"]["share"] for item in profile["objects"] if "stall" in item}
    true_objects = {item["name"]: item for item in truth["objects"]}
    waited = [sum(stalls[found] for found in find(profile, true_objects[o]) if found in stalls) for o in objects]
    right, found = shares(saved), shares(waited)
    tvd = 50 * sum(abs(left - other) for left, other in zip(right, found, strict=True))
    access_tvd, _ = compare(profile, truth, verbose=False)
    each = "  ".join(f"{o} {100 * r:.0f}/{100 * f:.0f}" for o, r, f in zip(objects, right, found, strict=True))
    explained = 100 * sum(max(value, 0.0) for value in saved) / whole
    print(f"{name:10} {level:5} {tvd:7.1f} {access_tvd:9.2f} {explained:10.0f}  {each}", flush=True)


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--preload", type=Path, required=True)
    parser.add_argument("--workloads", type=Path, default=ROOT / "build" / "workloads")
    parser.add_argument("--levels", default="O2")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    args = parser.parse_args()
    print(f"{'program':10} {'level':5} {'stall %':>7} {'access %':>9} {'explained':>10}  ablation/profile %")
    with tempfile.TemporaryDirectory() as folder:
        for name in args.names or OBJECTS:
            for level in args.levels.split(","):
                row(args, name, level, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
