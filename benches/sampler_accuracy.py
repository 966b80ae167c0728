"""How close the sampler's access counts come to the truth.

Runs every workload at -O2 and -O3 with 1 and 2 threads under the sampler's example program, and
compares reads + writes per object with the exact counts that the workload writes with `--truth`:
the total variation distance (TVD) of the shares, the error of the total, and the share of samples
that found an object. Needs `build/workloads`, the example and the preload library.

    python3 benches/sampler_accuracy.py --tool PATH --preload PATH [WORKLOAD...] [--seconds 3]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXACT = ["stream", "gather", "phases", "cg"]
OTHERS = ["mg", "fft", "adi", "ssor", "xsbench", "pagerank", "bfs", "btree", "kvstore"]


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


def compare(profile: dict, truth: dict, verbose: bool) -> tuple[float, float]:
    """TVD of access shares and relative error of the total count, both in percent."""
    counted: dict[str, float] = {}
    for phase in profile["phases"]:
        for access in phase["accesses"]:
            counted[access["object"]] = counted.get(access["object"], 0) + access["reads"] + access["writes"]
    right = {o["name"]: o["reads"] + o["writes"] for o in truth["objects"]}
    found = {o["name"]: sum(counted.get(n, 0) for n in find(profile, o)) for o in truth["objects"]}
    all_right, all_found = sum(right.values()), sum(found.values()) or 1
    if verbose:
        for name, value in right.items():
            print(f"    {name:12} true {value:.4e}  found {found[name]:.4e}  ratio {found[name] / max(value, 1):.3f}")
    tvd = 0.5 * sum(abs(right[n] / all_right - found[n] / all_found) for n in right)
    return 100 * tvd, 100 * (all_found / all_right - 1)


def run(args: argparse.Namespace, program: str, level: str, threads: int) -> dict | None:
    """Runs one workload under the sampler; the row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        out, truth = Path(folder) / "profile.json", Path(folder) / "truth.json"
        command = [str(args.workloads / level / program), "--threads", str(threads), "--truth", str(truth)]
        command += ["--seconds", str(args.seconds)] if args.seconds else []
        done = subprocess.run(
            [str(args.tool), str(args.preload), str(out), *command], capture_output=True, text=True, check=False
        )
        if done.returncode or not truth.exists():
            print(f"{program} {level} {threads}: failed\n{done.stderr}", file=sys.stderr)
            return None
        if args.keep:
            Path(args.keep).mkdir(exist_ok=True)
            for file in (out, truth):
                (Path(args.keep) / f"{program}-{level}-{threads}-{file.name}").write_bytes(file.read_bytes())
        profile = json.loads(out.read_text())
        if args.verbose:
            print(done.stderr.strip())
        tvd, total = compare(profile, json.loads(truth.read_text()), args.verbose)
        return {"tvd": tvd, "total": total, "samples": profile["sampling"]["samples"]}


def main() -> int:
    """Prints the table; 1 if a workload misses its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--preload", type=Path, required=True)
    parser.add_argument("--workloads", type=Path, default=ROOT / "build" / "workloads")
    parser.add_argument("--seconds", type=float, default=0, help="length of the main loop; default: the workload's own")
    parser.add_argument("--levels", default="O2,O3")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--keep", help="folder for the profiles and truths")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    missed = 0
    print(f"{'program':10} {'level':5} {'threads':>7} {'samples':>8} {'TVD %':>7} {'total %':>8}")
    for program in args.names or EXACT + OTHERS:
        for level in args.levels.split(","):
            for threads in map(int, args.threads.split(",")):
                row = run(args, program, level, threads)
                bound = 2 if program in EXACT else 10
                good = row is not None and row["tvd"] <= bound and (bound > 2 or abs(row["total"]) <= 5)
                missed += not good
                if row:
                    mark = "" if good else "  MISSED"
                    print(
                        f"{program:10} {level:5} {threads:7} {row['samples']:8} {row['tvd']:7.2f} "
                        f"{row['total']:+8.1f}{mark}",
                        flush=True,
                    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
