"""Page migration on real CXL memory: four applications of about 130 GB with 50 GB of fast memory.

Settings are those of the study's scripts (run_2_tiering.sh of its artifact, sherrywong1220/CXL_Evaluation): threads on
the second socket, its DRAM cut to 50G, the card beside it. That socket's DRAM is node 1, from which the kernels of 2022
demote nothing. The counters of the study are the whole system's; ours are the application's. Nothing in
the catalog was fitted to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from tierloom.errors import PlacementError
from tierloom.nouns import Machine, Profile
from tierloom.reproducing.computing import Job, Runs, computes, task
from tierloom.reproducing.hpc import SERVER, WORKLOADS
from tierloom.simulating import Workload, simulate
from tierloom.units import PAGE_BYTES

APPLICATIONS = ("btree-cited", "pagerank", "graph500", "silo")
NODES = ("ldram", "cxl")
FAST_BYTES = 50 << 30
"""``LOCAL_DRAM_SIZE="50G"``, for applications and HPC programs alike."""
SYSTEMS = ("autonuma", "tiering-0.8", "tpp")
TOUCH, SPREAD, OBJECTS = "first-touch", "interleave", "object-interleave"
REPORTED = {"btree-cited": "lookups"}
"""What a program's own clock covers, where that is not the whole run (btree1.c takes the time of its look-ups)."""


@task(weight=3.0)
def simulated(*, name: str, policy: str, placement: str) -> dict[str, float]:
    """Time that the program reports, and counters, of one run; nothing where the data does not fit."""
    source = Profile.load(name) if name in WORKLOADS else Workload.load(name)
    try:
        done = simulate(source, Machine.load(SERVER), policy, placement=placement, nodes=NODES, fast_memory=FAST_BYTES)
    except PlacementError:
        return {}
    phases = {use["phase"]: use["time_s"] for use in done.data["phases"]}
    reported_s = phases[REPORTED[name]] if name in REPORTED else done.time_s
    return {"reported_s": reported_s, **done.data["counters"]}


def run(name: str, policy: str, placement: str) -> Job:
    """A run as a job."""
    return simulated(name=name, policy=policy, placement=placement)


def times(runs: Runs, *cases: tuple[str, str, str]) -> list[float]:
    """Seconds of runs: workload, policy, placement."""
    return [done["reported_s"] for done in runs(*[run(*case) for case in cases])]


def table(runs: Runs, names: Sequence[str], *cases: tuple[str, str]) -> list[list[float]]:
    """Seconds of workloads under policies and placements, a row each workload that fits."""
    done = runs(*[run(name, *case) for name in names for case in cases])
    rows = [done[at : at + len(cases)] for at in range(0, len(done), len(cases))]
    return [[each["reported_s"] for each in row] for row in rows if all(row)]


@computes
def counter(runs: Runs, *, name: str, policy: str, placement: str, counter: str) -> float:
    """A counter of /proc/vmstat after a run."""
    return float(runs(run(name, policy, placement))[0][counter])


@computes
def mean_gain(runs: Runs, *, policy: str, against: str, placement: str) -> float:
    """By how much a policy is faster than another, mean of the applications."""
    rows = table(runs, APPLICATIONS, (against, placement), (policy, placement))
    return fmean(slow / fast - 1.0 for slow, fast in rows)


@computes
def gain(runs: Runs, *, name: str, policy: str, against: str, placement: str, against_placement: str) -> float:
    """By how much one run is faster than another."""
    slow, fast = times(runs, (name, against, against_placement), (name, policy, placement))
    return slow / fast - 1.0


@computes
def spread(runs: Runs, *, name: str) -> float:
    """Slowest over quickest of all runs without and with migration, first touch and interleaved, less one."""
    cases = [(name, policy, place) for policy in ("none", "autonuma", "tiering-0.8") for place in (TOUCH, SPREAD)]
    seconds = times(runs, *cases)
    return max(seconds) / min(seconds) - 1.0


@computes
def most_gain(runs: Runs, *, name: str, policy: str, placement: str) -> float:
    """By how much a run is faster than the slowest of all others."""
    ours, others = _against_all(runs, name, policy, placement)
    return max(others) / ours - 1.0


@computes
def is_best(runs: Runs, *, name: str, policy: str, placement: str) -> bool:
    """Whether no other run is faster."""
    ours, others = _against_all(runs, name, policy, placement)
    return ours <= min(others)


def _against_all(runs: Runs, name: str, policy: str, placement: str) -> tuple[float, list[float]]:
    cases = [(name, system, place) for system in ("none", *SYSTEMS) for place in (TOUCH, SPREAD)]
    seconds = dict(zip(cases, times(runs, *cases), strict=True))
    ours = seconds.pop((name, policy, placement))
    return ours, list(seconds.values())


@computes
def faults_a_page(runs: Runs, *, name: str, policy: str, only_slow: bool) -> float:
    """Hint faults over the pages of a workload, or over those that do not fit fast memory; first touch."""
    size = Workload.load(name).footprint_bytes - (FAST_BYTES if only_slow else 0)
    return float(runs(run(name, policy, TOUCH))[0]["numa_hint_faults"] / (size / PAGE_BYTES))


@computes
def fault_ratio(runs: Runs, *, policy: str, against: str) -> float:
    """Hint faults of one system over another's, mean of the applications; first touch."""
    done = runs(*[run(name, each, TOUCH) for name in APPLICATIONS for each in (policy, against)])
    faults = [each["numa_hint_faults"] for each in done]
    return fmean(mine / theirs for mine, theirs in zip(faults[::2], faults[1::2], strict=True))


@computes
def none_interleaved(runs: Runs) -> bool:
    """Whether interleaved memory sees no hint fault under any system."""
    done = runs(*[run(name, system, SPREAD) for name in APPLICATIONS for system in SYSTEMS])
    return all(each["numa_hint_faults"] == 0 for each in done)


@computes
def most_object_gain(runs: Runs) -> float:
    """Object-level interleaving without migration over the better of first touch and interleave: the best case."""
    rows = table(runs, WORKLOADS, *[("none", place) for place in (TOUCH, SPREAD, OBJECTS)])
    return max(min(touch, spread) / objects for touch, spread, objects in rows) - 1.0


@computes
def most_object_loss(runs: Runs, *, policy: str) -> float:
    """What object-level interleaving loses when a policy moves its pages: the worst case, below zero."""
    return min(still / moved for still, moved in table(runs, WORKLOADS, ("none", OBJECTS), (policy, OBJECTS))) - 1.0


@computes
def best_migration(runs: Runs, *, name: str) -> float:
    """What the best of the three systems gains over none, first touch."""
    still, *moved = times(runs, *[(name, policy, TOUCH) for policy in ("none", *SYSTEMS)])
    return still / min(moved) - 1.0
