"""Every policy on the workloads of the HPC study: server A, 32 threads, 128 and 64 GiB of local DRAM.

    python benches/hpc_study.py [WORKLOAD…]

The study's findings beside ours are in `tierloom reproduce --only liu24`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import tierloom

WORKLOADS = ("bt-e", "sp-e", "lu-e", "mg-e", "ft-d", "cg-e", "xsbench-xl")
THREADS = 32
BUDGETS = ("128GiB", "64GiB")
ALL = ("ldram", "rdram", "cxl")
GIB = 1 << 30

Policy = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One run of the study: a workload, how wide it runs, and the memory it may use."""

    workload: str
    threads: int = THREADS
    nodes: tuple[str, ...] = ALL
    budget: str | None = None
    machine: str = "liu-a"
    policies: tuple[str, ...] | None = None


@cache
def results(case: Case) -> dict[str, Policy]:
    """Every policy of a case by name; empty where the data does not fit at all."""
    profile = tierloom.Profile.load(case.workload)
    machine = tierloom.Machine.load(case.machine)
    try:
        answer = tierloom.plan(
            profile,
            machine,
            threads=case.threads,
            nodes=case.nodes,
            fast_memory=case.budget,
            policies=case.policies,
        )
    except tierloom.TierloomError:
        return {}
    return {policy["policy"]: dict(policy) for policy in answer.data["policies"]}


def table(case: Case) -> Iterator[str]:
    """Every policy of a case, fastest first."""
    yield f"\n{case.workload}, {case.threads} threads, {case.budget} of ldram beside {', '.join(case.nodes[1:])}"
    rows = [(policy["prediction"], policy) for policy in results(case).values() if "prediction" in policy]
    best = min((outcome["time_s"] for outcome, _ in rows), default=0.0)
    if not rows:
        yield "  does not fit"
    for outcome, policy in sorted(rows, key=lambda row: row[0]["time_s"]):
        loads = "  ".join(f"{tier['memory']} {tier['gb_s']:.0f} GB/s" for tier in outcome["tiers"] if tier["gb_s"] > 0)
        times = f"{outcome['time_s']:11.1f} s  {outcome['time_s'] / best:6.2f}x  {policy['fast_bytes'] / GIB:6.1f} GiB"
        yield f"  {policy['policy']:<42}{times}  {loads}"


def tables(workloads: tuple[str, ...]) -> Iterator[str]:
    """The policy tables of the study."""
    for workload in workloads:
        for budget in BUDGETS:
            yield from table(Case(workload, budget=budget))


def main() -> None:
    """Prints the study."""
    for line in tables(tuple(sys.argv[1:]) or WORKLOADS):
        print(line)


if __name__ == "__main__":
    main()
