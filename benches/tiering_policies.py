"""Ours against every policy, workload and amount of fast memory: more than an hour of two processors.

    python benches/tiering_policies.py [NAME…]

Names of machines, workloads and profiles leave others of their kind out. The published study beside ours is in
`tierloom reproduce --only liu24`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product

import tierloom
from tierloom import migration_simulator
from tierloom.migration_simulator import Workload, simulate, terms

NODES = ["ldram", "cxl"]
MACHINES = ("liu-a", "bytedance-spr-a1000")
SHARES = ("25%", "50%", "75%")
TOUCH = "first-touch"
STATIC = (TOUCH, "interleave", "object-interleave", "soar", "weighted:ldram=3+cxl=1")


def of(all_names: Sequence[str], asked: Collection[str]) -> list[str]:
    """Those that are asked for, or all."""
    return [name for name in all_names if name in asked] or list(all_names)


def seconds(row: tuple[str, str, str]) -> dict[str, float]:
    """Time under each policy and placement that the data fits."""
    place, name, share = row
    machine = tierloom.Machine.load(place)
    policies = [migration_simulator.OURS, *(name for name, _, _ in terms()["policies"])]
    found: dict[str, float] = {}
    for policy, placement in [*(("none", each) for each in STATIC), *((each, TOUCH) for each in policies)]:
        try:
            done = simulate(Workload.of(name), machine, policy, placement=placement, nodes=NODES, fast_memory=share)
        except tierloom.TierloomError:
            continue
        found[f"{policy}, {placement}"] = done.time_s
    return found


def verdict(results: dict[str, float]) -> str:
    """Ours beside the best of the others."""
    ours = results.pop(f"{migration_simulator.OURS}, {TOUCH}", None)
    if ours is None or not results:
        return "does not fit"
    best = min(results, key=lambda key: results[key])
    said = "ahead" if ours <= results[best] * 1.01 else "BEHIND"
    return f"{ours:9.1f} s, next {best:24} {results[best]:9.1f} s  {said}"


def main() -> None:
    """Prints the table, and to stderr how far it is."""
    asked, began = sys.argv[1:], time.monotonic()
    names = of([*Workload.names(), *tierloom.Profile.names()], asked)
    rows = list(product(of(MACHINES, asked), names, SHARES))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for count, (row, results) in enumerate(zip(rows, pool.map(seconds, rows), strict=True), start=1):
            print(f"{row[0]:22}{row[1]:18}{row[2]}  {verdict(results)}", flush=True)
            print(f"{count} of {len(rows)} rows, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
