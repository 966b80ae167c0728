"""The HPC study of real CXL memory: policies of placement on the catalog's large profiles.

Machines hold published latencies and bandwidths, profiles hold sizes, sweeps and operation counts of their
sources; nothing of them was fitted to the study's findings. Which nodes the study's runs could use is not
known here: all three are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from tierloom import planning
from tierloom.errors import TierloomError
from tierloom.nouns import Machine, Profile
from tierloom.reproducing.computing import Job, Runs, computes, task

WORKLOADS = ("bt-e", "sp-e", "lu-e", "mg-e", "ft-d", "cg-e", "xsbench-xl")
SERVER = "liu-a"
THREADS = 32
ALL = ("ldram", "rdram", "cxl")

Policies = dict[str, dict[str, float]]


@task(weight=0.05)
def policies(
    *,
    workload: str,
    threads: int = THREADS,
    nodes: tuple[str, ...] = ALL,
    budget: str | None = None,
    machine: str = SERVER,
    only: tuple[str, ...] | None = None,
) -> Policies:
    """Time and fast memory of every policy that can be used; none where the data does not fit."""
    try:
        answer = planning.plan(
            Profile.load(workload),
            Machine.load(machine),
            threads=threads,
            nodes=nodes,
            fast_memory=budget,
            policies=only,
        )
    except TierloomError:
        return {}
    usable = [policy for policy in answer.data["policies"] if "Ok" in policy["outcome"]]
    return {
        policy["policy"]: {"time_s": policy["outcome"]["Ok"]["time_s"], "fast_bytes": policy["fast_bytes"]}
        for policy in usable
    }


def over(nodes: Sequence[str]) -> str:
    """Nodes as policies spell them."""
    return "+".join(nodes)


NAMES = {
    "local": "local",
    "uniform": f"interleave:{over(ALL)}",
    "object": f"object-interleave:{over(ALL)}",
    "cxl": "preferred:cxl",
}
"""Policies by the words of the ledger: near memory first, all nodes alike, the published rule, the card first."""


def gains(runs: Runs, budget: str | None, against: str, policy: str) -> list[float]:
    """How many times as long `against` takes as `policy`, by workload, where both can be used."""
    found: list[Policies] = runs(*[policies(workload=name, budget=budget) for name in WORKLOADS])
    slow, fast = NAMES[against], NAMES[policy]
    return [table[slow]["time_s"] / table[fast]["time_s"] for table in found if slow in table and fast in table]


@computes
def mean_gain(runs: Runs, *, budget: str, against: str, policy: str) -> float:
    """Mean of the gains."""
    return fmean(gains(runs, budget, against, policy))


@computes
def gain(
    runs: Runs, *, workload: str, budget: str | None = None, against: str, policy: str, threads: int = THREADS
) -> float:
    """How many times as long one policy takes as another on one workload."""
    (table,) = runs(policies(workload=workload, budget=budget, threads=threads))
    return float(table[NAMES[against]]["time_s"] / table[NAMES[policy]]["time_s"])


@computes
def gain_by_threads(runs: Runs, *, workload: str, against: str, policy: str, threads: list[int], which: str) -> float:
    """Least or most gain over numbers of threads, less one."""
    found: list[Policies] = runs(*[policies(workload=workload, threads=each) for each in threads])
    each = [table[NAMES[against]]["time_s"] / table[NAMES[policy]]["time_s"] - 1.0 for table in found]
    return min(each) if which == "least" else max(each)


def _savings(runs: Runs, budget: str) -> list[tuple[float, float]]:
    """Fast memory saved and time lost by the published rule against near memory first, XSBench apart."""
    tables: list[Policies] = runs(*[policies(workload=name, budget=budget) for name in WORKLOADS[:-1]])
    pairs = [(table[NAMES["object"]], table[NAMES["local"]]) for table in tables]
    return [(1 - ours["fast_bytes"] / near["fast_bytes"], ours["time_s"] / near["time_s"] - 1) for ours, near in pairs]


@computes
def mean_saving(runs: Runs, *, budget: str) -> float:
    """Share of fast memory that the published rule saves, mean."""
    return fmean(saved for saved, _ in _savings(runs, budget))


@computes
def most_loss(runs: Runs, *, budget: str) -> float:
    """Time that it costs at the worst."""
    return max(lost for _, lost in _savings(runs, budget))


@computes
def least_slowdown(runs: Runs, *, threads: int) -> float:
    """How many times as long the workload that suffers least takes with the card first."""
    tables: list[Policies] = runs(*[policies(workload=name, threads=threads) for name in WORKLOADS])
    return min(table[NAMES["cxl"]]["time_s"] / table[NAMES["local"]]["time_s"] for table in tables)


@computes
def footprint_gib(_runs: Runs, *, profile: str) -> float:
    """Bytes of all objects of a profile, GiB."""
    return Profile.load(profile).footprint_bytes / 2**30


@computes
def weighted_gain(runs: Runs, *, machine: str, profile: str, threads: int, near: int, far: int) -> float:
    """Gain of weighted interleaving over DRAM and CXL memory against DRAM alone."""
    weighted = f"weighted:dram={near}+cxl={far}"
    asked: dict[str, Any] = {"machine": machine, "workload": profile, "threads": threads}
    (table,) = runs(_both(weighted, asked))
    return float(table["local"]["time_s"] / table[weighted]["time_s"] - 1.0)


def _both(weighted: str, asked: dict[str, Any]) -> Job:
    return policies(nodes=("dram", "cxl"), only=("local", weighted), **asked)
