"""How close the sampler's access counts come to the truth.

Runs every workload at -O2 and -O3 with 1 and 2 threads under the sampler's example program, and
compares reads + writes per object with the exact counts that the workload writes with `--truth`:
the total variation distance (TVD) of the shares and the error of the total, median and worst of
several recordings. Needs `build/workloads`, the example and the preload library. `--recordings` keeps
recordings and truths in a folder; what is there already is analysed again and not recorded.

    python3 benches/sampler_accuracy.py --tool PATH --preload PATH [WORKLOAD...] [--seconds 3]
        [--times 3] [--recordings FOLDER]
"""

import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
EXACT = ["stream", "gather", "phases", "cg"]
OTHERS = ["mg", "fft", "adi", "ssor", "xsbench", "pagerank", "bfs", "btree", "kvstore"]


class Cell(NamedTuple):
    """A workload as it is compiled and run."""

    program: str
    level: str
    threads: int


class Found(NamedTuple):
    """What one recording says against the truth: TVD and error of the total in percent, and its samples."""

    tvd: float
    total: float
    samples: int

    def within(self, program: str) -> bool:
        """Whether the bounds hold: 2 % and totals within 5 %, or 10 %.

        `phases` has 2.5 %: at -O3 every second recording takes its lookups for 16 % too few (docs/accuracy.md).
        """
        tvd, total = {"phases": (2.5, 5)}.get(program, (2, 5) if program in EXACT else (10, math.inf))
        return self.tvd <= tvd and abs(self.total) <= total


def matches(site: dict, truth: dict) -> bool:
    """Whether a profiled object's site is the truth's allocation function or symbol."""
    if "stack" in site:
        return any(frame.get("function") == truth.get("function") for frame in site["stack"][:6])
    if "symbol" in site and "symbol" in truth:
        symbol = site["symbol"]["symbol"]
        return symbol == truth["symbol"] or symbol == f"_ZL{len(truth['symbol'])}{truth['symbol']}"
    return False


def find(profile: dict, truth: dict) -> set[str]:
    """Names of the profiled objects that a truth object became."""
    return {o["name"] for o in profile["objects"] if matches(o["site"], truth)}


def accesses(profile: dict) -> dict[str, float]:
    """By object, over all phases."""
    counted: dict[str, float] = {}
    for phase in profile["phases"]:
        for access in phase["accesses"]:
            counted[access["object"]] = counted.get(access["object"], 0) + access["reads"] + access["writes"]
    return counted


def compare(profile: dict, truth: dict, verbose: bool) -> tuple[float, float]:
    """TVD of access shares and relative error of the total count, both in percent."""
    counted = accesses(profile)
    right = {o["name"]: o["reads"] + o["writes"] for o in truth["objects"]}
    found = {o["name"]: sum(counted.get(n, 0) for n in find(profile, o)) for o in truth["objects"]}
    all_right, all_found = sum(right.values()), sum(found.values()) or 1
    if verbose:
        for name, value in right.items():
            print(f"    {name:12} true {value:.4e}  found {found[name]:.4e}  ratio {found[name] / max(value, 1):.3f}")
    tvd = 0.5 * sum(abs(right[n] / all_right - found[n] / all_found) for n in right)
    return 100 * tvd, 100 * (all_found / all_right - 1)


def record(args: argparse.Namespace, cell: Cell, base: Path) -> str:
    """Makes a recording and its truth; what went wrong."""
    command = [str(args.workloads / cell.level / cell.program), "--threads", str(cell.threads)]
    command += ["--truth", str(base.with_suffix(".truth"))]
    command += ["--seconds", str(args.seconds)] if args.seconds else []
    done = subprocess.run(
        [str(args.tool), str(args.preload), os.devnull, *command],
        env={**os.environ, "SAVE": str(base.with_suffix(".rec"))},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr if done.returncode else ""


def one(args: argparse.Namespace, cell: Cell, number: int, folder: Path) -> Found | None:
    """One recording of a workload, made if it is not there, against its truth."""
    base = folder / f"{cell.program}-{cell.level}-{cell.threads}-{number}"
    wrong = "" if base.with_suffix(".rec").exists() else record(args, cell, base)
    profile = folder / "profile.json"
    if not wrong:
        words = [str(args.tool), str(base.with_suffix(".rec")), str(profile)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        wrong = done.stderr if done.returncode else ""
    if wrong:
        print(f"{' '.join(map(str, cell))}: failed\n{wrong}", file=sys.stderr)
        return None
    found, truth = json.loads(profile.read_text()), json.loads(base.with_suffix(".truth").read_text())
    return Found(*compare(found, truth, args.verbose), found["sampling"]["samples"])


def row(cell: Cell, found: list[Found]) -> str:
    """A line of the table."""
    tvds, totals = [one.tvd for one in found], [one.total for one in found]
    within = sum(one.within(cell.program) for one in found)
    columns = [*cell, round(statistics.median(one.samples for one in found))]
    columns += [f"{statistics.median(tvds):.2f}", f"{max(tvds):.2f}"]
    columns += [f"{statistics.median(totals):+.1f}", f"{max(totals, key=abs):+.1f}", f"{within} of {len(found)}"]
    return "| " + " | ".join(map(str, columns)) + " |"


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--preload", type=Path, required=True)
    parser.add_argument("--workloads", type=Path, default=ROOT / "build" / "workloads")
    parser.add_argument("--seconds", type=float, default=0, help="length of the main loop; default: the workload's own")
    parser.add_argument("--levels", default="O2,O3")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--times", type=int, default=1, help="recordings of each cell")
    parser.add_argument("--recordings", type=Path, help="folder of recordings, to be made or analysed again")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def main() -> int:
    """Prints the table; 1 if a recording misses its bound."""
    args = arguments()
    head = "| program | level | threads | samples | TVD %, median | worst | total %, median | worst | within bounds |"
    print(head, "|---|---|---|---|---|---|---|---|---|", sep="\n")
    every, within = 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.recordings or Path(temporary)
        folder.mkdir(exist_ok=True)
        for words in itertools.product(args.names or EXACT + OTHERS, args.levels.split(","), args.threads.split(",")):
            cell = Cell(words[0], words[1], int(words[2]))
            tried = [one(args, cell, number, folder) for number in range(args.times)]
            found = [one for one in tried if one is not None]
            every, within = every + args.times, within + sum(one.within(cell.program) for one in found)
            if found:
                print(row(cell, found), flush=True)
    print(f"\n{within} of {every} recordings are within their bounds.")
    return 1 if within < every else 0


if __name__ == "__main__":
    sys.exit(main())
