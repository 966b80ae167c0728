"""The HPC study of real CXL memory: policies of placement on the catalog's large profiles.

Machines hold published latencies and bandwidths, profiles hold sizes, sweeps and operation counts of their
sources; nothing of them was fitted to the study's findings. Runs of preferred and interleaved placement have
all three memories. The programs whose objects are interleaved are given near DRAM and the card, as the study's
scripts give them (its artifact, sherrywong1220/CXL_Evaluation: `NPB_NUMA_NODES=1,2` beside first touch and
interleaving over the same two).
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from tierloom import planning
from tierloom.errors import PlacementError
from tierloom.nouns import Profile
from tierloom.reproducing.computing import Runs, computes, task
from tierloom.units import GIB

WORKLOADS = ("bt-e", "sp-e", "lu-e", "mg-e", "ft-d", "cg-e", "xsbench-xl")
SERVER = "liu-a"
THREADS = 32
ALL = ("ldram", "rdram", "cxl")
TWO = ("ldram", "cxl")
"""What programs with interleaved objects may use."""

Policies = dict[str, dict[str, float]]


@task(weight=0.05)
def policies(
    *,
    workload: str,
    threads: int = THREADS,
    nodes: tuple[str, ...] = ALL,
    budget: str | None = None,
) -> Policies:
    """Time and fast memory of every policy that can be used; none where the data does not fit."""
    try:
        answer = planning.plan(workload, SERVER, threads=threads, nodes=nodes, fast_memory=budget)
    except PlacementError:
        return {}
    usable = [policy for policy in answer.data["policies"] if "Ok" in policy["outcome"]]
    return {
        policy["policy"]: {"time_s": policy["outcome"]["Ok"]["time_s"], "fast_bytes": policy["fast_bytes"]}
        for policy in usable
    }


def over(nodes: Sequence[str]) -> str:
    """Nodes as policies spell them."""
    return "+".join(nodes)


def named(words: str, nodes: Sequence[str]) -> str:
    """A policy by the words of the ledger: near memory first, all nodes alike, the published rule, the card first."""
    return {
        "local": "local",
        "uniform": f"interleave:{over(nodes)}",
        "object": f"object-interleave:{over(nodes)}",
        "cxl": "preferred:cxl",
    }[words]


def gains(runs: Runs, budget: str, against: str, policy: str) -> list[float]:
    """How many times as long `against` takes as `policy`, by workload, where both can be used."""
    found: list[Policies] = runs(*[policies(workload=name, budget=budget, nodes=TWO) for name in WORKLOADS])
    slow, fast = named(against, TWO), named(policy, TWO)
    return [table[slow]["time_s"] / table[fast]["time_s"] for table in found if slow in table and fast in table]


@computes
def mean_gain(runs: Runs, *, budget: str, against: str, policy: str) -> float:
    """Mean of the gains."""
    return fmean(gains(runs, budget, against, policy))


@computes
def gain(runs: Runs, *, workload: str, against: str, policy: str, threads: int = THREADS) -> float:
    """How many times as long one policy takes as another on one workload."""
    (table,) = runs(policies(workload=workload, threads=threads))
    return float(table[named(against, ALL)]["time_s"] / table[named(policy, ALL)]["time_s"])


@computes
def object_gain(runs: Runs, *, workload: str, budget: str, against: str) -> float:
    """How many times as long a policy takes as the published rule on one workload."""
    (table,) = runs(policies(workload=workload, budget=budget, nodes=TWO))
    return float(table[named(against, TWO)]["time_s"] / table[named("object", TWO)]["time_s"])


@computes
def gain_by_threads(runs: Runs, *, workload: str, against: str, policy: str, threads: list[int], which: str) -> float:
    """Least or most gain over numbers of threads, less one."""
    found: list[Policies] = runs(*[policies(workload=workload, threads=each) for each in threads])
    slow, fast = named(against, ALL), named(policy, ALL)
    each = [table[slow]["time_s"] / table[fast]["time_s"] - 1.0 for table in found]
    return min(each) if which == "least" else max(each)


def _savings(runs: Runs, budget: str) -> list[tuple[float, float]]:
    """Fast memory saved and time lost by the published rule against near memory first, XSBench apart."""
    tables: list[Policies] = runs(*[policies(workload=name, budget=budget, nodes=TWO) for name in WORKLOADS[:-1]])
    pairs = [(table[named("object", TWO)], table[named("local", TWO)]) for table in tables]
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
    return min(table[named("cxl", ALL)]["time_s"] / table[named("local", ALL)]["time_s"] for table in tables)


@computes
def footprint_gib(_runs: Runs, *, profile: str) -> float:
    """Bytes of all objects of a profile, GiB."""
    return Profile.load(profile).footprint_bytes / GIB
