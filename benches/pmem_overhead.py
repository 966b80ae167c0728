"""What keeping data in a pool costs: transactions by size against libpmemobj, and STREAM against plain memory.

    make install && cargo build --release --package tierloom-pmem --example transactions
    .venv/bin/python benches/pmem_overhead.py --tool target/release/examples/transactions --folder /dev/shm

Transactions begin, save a range, store to it and commit; ours and libpmemobj's take turns in one process,
once with cache lines written back (both told to take the folder for persistent memory) and once with
`msync`. STREAM runs in ordinary memory and on a pool by turns; done is a pool without persistence that
reaches 0.95 of ordinary memory on every kernel.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path

from tierloom.pmem import cpu_affinity, stream
from tierloom.pmem.choices import PERSISTS, Persist

WANTED = 0.95


def transactions(tool: Path, folder: Path, how: str) -> dict[int, dict[str, list[float]]]:
    environment = {**os.environ, "PMEM_IS_PMEM_FORCE": "1" if how == "lines" else "0"}
    done = subprocess.run([tool, folder, how], env=environment, capture_output=True, text=True, check=True)
    found: dict[int, dict[str, list[float]]] = {}
    for line in map(json.loads, done.stdout.splitlines()):
        if "skipped" in line:
            print(line["skipped"].replace("\n", "; "))
        else:
            found.setdefault(line["bytes"], {})[line["keeper"]] = line["ns"]
    return found


def show_transactions(found: dict[int, dict[str, list[float]]], how: str) -> None:
    print(f"\nTransactions, {how}: ns, median of the turns (least to most)")
    heads = "".join(f" {head:>28}" for head in ("native", "with checksums", "libpmemobj"))
    print(f"{'bytes':>10} {'stores':>24}{heads} {'native/libpmemobj':>18}")
    for size, keepers in found.items():
        cells = [
            f"{statistics.median(ns):.0f} ({min(ns):.0f} to {max(ns):.0f})"
            for ns in (keepers.get(name, [float("nan")]) for name in ("stores", "native", "checksums", "pmdk"))
        ]
        ratio = ""
        if "pmdk" in keepers:
            ratio = f"{statistics.median(keepers['native']) / statistics.median(keepers['pmdk']):.2f}"
        print(f"{size:>10} {cells[0]:>24} {cells[1]:>28} {cells[2]:>28} {cells[3]:>28} {ratio:>18}")


def overheads(folder: Path, elements: int, persist: Persist, backend: str) -> None:
    cpus = cpu_affinity.order(cpu_affinity.allowed(), "close")
    steps = stream.steps_of(sorted({1, len(cpus)}), cpus)
    found = stream.measure(stream.Plan(folder, elements, 10, persist, backend), steps)
    print(f"\nSTREAM on a {backend} pool, arrays of {elements * 8 / 1e6:.0f} MB, persist {persist}")
    for run in found["runs"]:
        cells = " ".join(f"{kernel} {rate['best_gb_s']:6.2f}" for kernel, rate in run["rates"].items())
        print(f"  {run['mode']:>10} {run['threads']:>3} threads  {cells} GB/s")
    for item in found["overheads"]:
        reached = {kernel: 1 - share for kernel, share in item["shares"].items()}
        told = " ".join(f"{kernel} {share:.3f}" for kernel, share in reached.items())
        verdict = ""
        if persist == "none" and backend == "native":
            verdict = "  reached" if min(reached.values()) >= WANTED else "  MISSED"
        print(f"  pool/volatile {item['threads']:>3} threads  {told}{verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))  # noqa: S108
    parser.add_argument("--elements", type=int, default=stream.default_elements())
    asked = parser.parse_args()
    for how in ("lines", "msync"):
        show_transactions(transactions(asked.tool, asked.folder, how), how)
    for backend in ("native", "pmdk"):
        for persist in PERSISTS:
            overheads(asked.folder, asked.elements, persist, backend)


if __name__ == "__main__":
    main()
