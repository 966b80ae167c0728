"""Page migration on real CXL memory: four applications and the HPC programs, with 40 to 100 GB of fast memory.

Settings are those of the study's scripts (run_2_tiering.sh of its artifact, sherrywong1220/CXL_Evaluation): threads on
the second socket, its DRAM cut to 50G, the card beside it. That socket's DRAM is node 1, from which the kernels of 2022
demote nothing. The counters of the study are the whole system's; ours are the application's. Nothing in
the catalog was fitted to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from tierloom.errors import PlacementError
from tierloom.migration_simulator import simulate
from tierloom.nouns import Machine, Plan, Profile, Workload
from tierloom.published_claims.computation import Job, Runs, computes, task
from tierloom.published_claims.hpc import OBJECTS, SERVER, WORKLOADS
from tierloom.units import GIB

APPLICATIONS = ("btree-cited", "pagerank", "graph500", "silo")
NODES = ("ldram", "cxl")
SYSTEMS = ("autonuma", "tiering-0.8", "tpp")
TOUCH, SPREAD = "first-touch", "interleave"
REPORTED = {"btree-cited": "lookups"}
"""What a program's own clock covers, where that is not the whole run (btree1.c takes the time of its look-ups)."""


@task(weight=3.0)
def simulated(*, name: str, policy: str, placement: str) -> dict[str, float]:
    """Time that the program reports, and counters, of one run; nothing where the data does not fit."""
    source = Profile.load(name) if name in WORKLOADS else Workload.load(name)
    where = by_object(name) if placement == BY_OBJECT else placement
    near = _fast_gb(name) * GIB
    try:
        done = simulate(source, Machine.load(SERVER), policy, placement=where, nodes=NODES, fast_memory=near)
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
    seconds = dict(zip(CASES, times(runs, *[(name, *case) for case in CASES]), strict=True))
    ours = seconds.pop((policy, placement))
    return ours, list(seconds.values())


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
    rows = table(runs, WORKLOADS, *[("none", place) for place in (TOUCH, SPREAD, BY_OBJECT)])
    return max(min(touch, spread_out) / objects for touch, spread_out, objects in rows) - 1.0


BY_OBJECT = "objects of table 2"
"""Placement of the HPC programs by the objects that the study interleaved."""


FAST_GB = {"ft-d": 40, "mg-e": 100}


OTHERS_FAST_GB = 50
"""Near memory that the study left FT, MG and every other program, so that each fills it under any placement."""


CASES = [(policy, place) for policy in ("none", *SYSTEMS) for place in (TOUCH, SPREAD)]
"""All solutions of figure 18: policy and placement."""


PLAN = """version = 1
machine = "{machine}"
profile = "{profile}"
policy = "table 2"
nodes = ["ldram", "cxl"]
default = "first_touch"
predicted = {{ time_s = 1.0, low_s = 1.0, high_s = 1.0, threads = 1, bytes = [0, 0] }}
"""


RULE = """
[[rules]]
object = "{name}"
size_bytes = {size_bytes}
select = {{ name = "{name}" }}
place = {{ interleave = ["ldram", "cxl"] }}
"""


@computes
def fast_gb(_runs: Runs, *, name: str) -> float:
    """Near memory that a program has, GB as the scripts of the study have it (`50G`)."""
    return float(_fast_gb(name))


def _fast_gb(name: str) -> int:
    return FAST_GB.get(name, OTHERS_FAST_GB)


@computes
def footprint_gb(_runs: Runs, *, name: str) -> float:
    """Memory of an application, GB."""
    return Workload.load(name).footprint_bytes / 1e9


@computes
def threads(_runs: Runs, *, name: str) -> float:
    """Threads of an application."""
    return float(Workload.load(name).data["threads"])


def by_object(name: str) -> Plan:
    """The objects of the study's table 2 page by page over near memory and the card, the rest by first touch."""
    chosen = [item for item in Profile.load(name).objects if item["name"] in OBJECTS[name]]
    rules = [RULE.format(name=item["name"], size_bytes=item["size_bytes"]) for item in chosen]
    return Plan(PLAN.format(machine=SERVER, profile=name) + "".join(rules))


@computes
def variation(runs: Runs, *, name: str) -> float:
    """Slowest over quickest of all solutions, less one."""
    seconds = times(runs, *[(name, *case) for case in CASES])
    return max(seconds) / min(seconds) - 1.0


@computes
def no_solution_is_best(runs: Runs) -> bool:
    """Whether no solution is the fastest for all applications."""
    rows = table(runs, APPLICATIONS, *CASES)
    return not any(all(row[at] <= min(row) for row in rows) for at in range(len(CASES)))


@computes
def outperforms(runs: Runs, *, policy: str, others: list[str], placement: str) -> bool:
    """Whether a policy is faster than each of others, mean of the applications."""
    rows = table(runs, APPLICATIONS, (policy, placement), *[(other, placement) for other in others])
    return all(fmean(row[at] / row[0] for row in rows) > 1.0 for at in range(1, len(others) + 1))


@computes
def more_migrated(runs: Runs, *, name: str, policy: str, against: str, placement: str) -> float:
    """By how many million pages one system migrates more than another."""
    mine, theirs = runs(*[run(name, each, placement) for each in (policy, against)])
    return float(mine["numa_pages_migrated"] - theirs["numa_pages_migrated"]) / 1e6


@computes
def interleaving_faults_less(runs: Runs) -> bool:
    """Whether each application under each system sees fewer hint faults interleaved than by first touch."""
    cases = [(name, system) for name in APPLICATIONS for system in SYSTEMS]
    done = runs(*[run(*case, place) for case in cases for place in (TOUCH, SPREAD)])
    faults = [float(each["numa_hint_faults"]) for each in done]
    return all(spread_out < touched for touched, spread_out in zip(faults[::2], faults[1::2], strict=True))


@computes
def mean_object_loss(runs: Runs, *, policy: str) -> float:
    """Share of its performance that object-level interleaving loses once a policy moves its pages, mean of programs."""
    rows = table(runs, WORKLOADS, ("none", BY_OBJECT), (policy, BY_OBJECT))
    return fmean(1.0 - still / moved for still, moved in rows)


@computes
def loses(runs: Runs, *, name: str, placement: str) -> bool:
    """Whether each of the three systems makes a program slower."""
    still, *moved = times(runs, *[(name, policy, placement) for policy in ("none", *SYSTEMS)])
    return min(moved) > still


@computes
def changes_least(runs: Runs, *, name: str, others: list[str]) -> bool:
    """Whether migration changes the time of a program less than of any of others, at the most over all solutions."""
    mine, *theirs = [max(abs(gain) for gain in _migration_gains(row)) for row in table(runs, (name, *others), *CASES)]
    return mine < min(theirs)


@computes
def most_migration_gain(runs: Runs, *, name: str) -> float:
    """What the best of the three systems gains over no migration, whichever the placement."""
    return max(_migration_gains(times(runs, *[(name, *case) for case in CASES])))


def _migration_gains(seconds: Sequence[float]) -> list[float]:
    """By how much a program is faster under each system than without, by first touch and interleaved."""
    found = dict(zip(CASES, seconds, strict=True))
    return [found["none", place] / found[system, place] - 1.0 for system in SYSTEMS for place in (TOUCH, SPREAD)]
