"""The HPC study of real CXL memory: policies of placement on the catalog's large profiles.

Machines hold published latencies and bandwidths, profiles hold sizes, sweeps and operation counts of their
sources; nothing of them was fitted to the study's findings. Runs of preferred and interleaved placement have
all three memories. Object-level interleaving has near DRAM and the card, and interleaves the objects of the
study's table 2; threads run on CPU 0 where the text says so (figures 7 to 9). CloverLeaf on the server with
four CXL modules (Micron and AMD) runs on all cores, its pages dealt out in turn to all nodes of the kinds
given, as `numactl --interleave` does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from tierloom import policy_search
from tierloom.nouns import Machine, Profile
from tierloom.published_claims.computation import Job, Runs, computes, task
from tierloom.published_claims.ledger import settings
from tierloom.schema import ObjectDoc
from tierloom.units import GIB

DOCUMENT = "liu24"
WORKLOADS = ("bt-e", "sp-e", "lu-e", "mg-e", "ft-d", "cg-e", "xsbench-xl")
SERVER = "liu-a"
THREADS = 32
TWO = ("ldram", "cxl")
"""What the published rule for objects is given."""


@computes
def footprint_gib(_runs: Runs, *, profile: str) -> float:
    """Bytes of all objects of a profile, GiB."""
    return Profile.load(profile).footprint_bytes / GIB


CARD_SIDE, FAR_SIDE = "socket1", "socket0"
"""The socket that the card hangs on, where threads run if the text does not say where; and CPU 0, where figures 7
to 9 ran."""

SEEN_FROM = {
    CARD_SIDE: {"near": "ldram", "far": "rdram", "card": "cxl"},
    FAR_SIDE: {"near": "rdram", "far": "ldram", "card": "cxl"},
}
"""What the machine calls the memories that the study calls LDRAM, RDRAM and CXL."""

STATIC = ("near", "far", "card", "near+card", "far+card", "near+far+card")
"""The study's policies: one memory preferred, or pages interleaved over several."""

OBJECTS = {
    "bt-e": ("u", "rhs", "forcing"),
    "sp-e": ("u", "rhs", "forcing"),
    "lu-e": ("u", "rsd"),
    "mg-e": ("v", "r"),
    "ft-d": ("u0", "u1"),
    "cg-e": ("a",),
    "xsbench-xl": ("nuclide_grid",),
}
"""What the study interleaved: the last column of its table 2, by the names of the sources (it has `rsh` for `rhs` and
`nuclide_grids`)."""


def studied(name: str) -> Profile:
    """A program with as much memory as the study's took of it, where its arrays make up less.

    What is missing has no traffic. It is there before the first array that the program fills once its data is made.
    """
    declared, sizes = Profile.load(name), settings(DOCUMENT)["memory_gib"]
    if name not in sizes:
        return declared
    objects = list(declared.data["objects"])
    at = next(at for at, item in enumerate(objects) if item["name"] == sizes[name]["before"])
    touched = [item["first_touch_s"] for item in objects[at - 1 : at + 1]]
    missing = round(sizes[name]["gib"] * GIB) - declared.footprint_bytes
    objects.insert(at, {**objects[at], **REST, "size_bytes": missing, "first_touch_s": fmean(touched)})
    return Profile.from_data({**declared.data, "objects": objects})


REST: Any = {
    "name": "beyond its declarations",
    "site": {"name": "beyond its declarations"},
    "origin": {"kind": "derived", "source": "npb", "how": "the memory that the study prints, less all arrays"},
}


@task(weight=0.05)
def static(*, workload: str, threads: int, socket: str) -> dict[str, float]:
    """Seconds under each of the study's policies, over all three memories."""
    words = {_spelt(policy, socket): policy for policy in STATIC}
    answer = policy_search.plan(studied(workload), SERVER, threads=threads, socket=socket, policies=list(words))
    usable = [each for each in answer.data["policies"] if "prediction" in each]
    return {words[each["policy"]]: each["prediction"]["time_s"] for each in usable}


def over(nodes: Sequence[str]) -> str:
    """Nodes as policies spell them."""
    return "+".join(nodes)


def _spelt(policy: str, socket: str) -> str:
    names = [SEEN_FROM[socket][word] for word in policy.split("+")]
    return f"preferred:{names[0]}" if len(names) == 1 else f"interleave:{over(names)}"


def _by_threads(workload: str, threads: Sequence[int], socket: str) -> list[Job]:
    return [static(workload=workload, threads=each, socket=socket) for each in threads]


def _ratios(runs: Runs, jobs: Sequence[Job], slow: str, fast: str) -> list[float]:
    """How many times as long one policy takes as another, run by run."""
    return [float(table[slow] / table[fast]) for table in runs(*jobs)]


@computes
def ratio(runs: Runs, *, workload: str, slow: str, fast: str, threads: int, socket: str = CARD_SIDE) -> float:
    """How many times as long one policy takes as another on one workload."""
    (found,) = _ratios(runs, _by_threads(workload, [threads], socket), slow, fast)
    return found


@computes
def ratio_by_threads(
    runs: Runs, *, workload: str, slow: str, fast: str, threads: list[int], which: str, socket: str = CARD_SIDE
) -> float:
    """Least or most of the ratios over numbers of threads."""
    each = _ratios(runs, _by_threads(workload, threads, socket), slow, fast)
    return min(each) if which == "least" else max(each)


@computes
def ratio_by_workload(
    runs: Runs, *, workloads: list[str], slow: str, fast: str, threads: int, which: str, socket: str = CARD_SIDE
) -> float:
    """Least or most of the ratios over workloads."""
    jobs = [static(workload=name, threads=threads, socket=socket) for name in workloads]
    each = _ratios(runs, jobs, slow, fast)
    return min(each) if which == "least" else max(each)


@computes
def most_apart(runs: Runs, *, policy: str, other: str, threads: int, socket: str = CARD_SIDE) -> float:
    """How many times as long the slower of two policies takes as the other, on the workload where it is most."""
    jobs = [static(workload=name, threads=threads, socket=socket) for name in WORKLOADS]
    return max(max(each, 1 / each) for each in _ratios(runs, jobs, policy, other))


@computes
def is_faster_by_threads(
    runs: Runs, *, workload: str, policy: str, than: str, threads: list[int], socket: str = CARD_SIDE
) -> bool:
    """Whether one policy is faster than another at each number of threads."""
    return min(_ratios(runs, _by_threads(workload, threads, socket), than, policy)) > 1


@computes
def falls_behind(
    runs: Runs, *, workload: str, policy: str, than: str, threads: list[int], socket: str = CARD_SIDE
) -> bool:
    """Whether a policy fares worse against another by every further number of threads."""
    each = _ratios(runs, _by_threads(workload, threads, socket), policy, than)
    return all(before < after for before, after in pairwise(each))


@computes
def is_best(runs: Runs, *, workload: str, policy: str, among: list[str], threads: int, socket: str = CARD_SIDE) -> bool:
    """Whether a policy is faster than each of some others."""
    (table,) = runs(static(workload=workload, threads=threads, socket=socket))
    return all(table[policy] < table[other] for other in among)


@task(weight=0.05)
def picked(*, workload: str) -> list[str]:
    """Objects that the published rule interleaves."""
    profile = studied(workload)
    answer = policy_search.plan(
        profile, SERVER, threads=THREADS, nodes=TWO, policies=[f"object-interleave:{over(TWO)}"]
    )
    actions = zip(profile.objects, answer.chosen["actions"], strict=True)
    return [item["name"] for item, action in actions if "interleave" in action]


@computes
def rule_picks(runs: Runs, *, workload: str, objects: list[str]) -> bool:
    """Whether the published rule picks these objects and no other."""
    return set(runs(picked(workload=workload))[0]) == set(objects)


@task(weight=0.05)
def object_level(*, workload: str, gib: int) -> dict[str, float]:
    """Seconds of figures 8 and 9: LDRAM preferred, all pages interleaved, or those of table 2's objects.

    Threads run on CPU 0, in reach of the card and so much near memory; empty where the data does not fit.
    """
    machine, profile = Machine.load(SERVER), studied(workload)
    card = next(each for each in machine.data["memories"] if each["name"] == SEEN_FROM[FAR_SIDE]["card"])
    rooms = float(gib * GIB), float(card["capacity_bytes"]["value"])
    if profile.footprint_bytes > sum(rooms):
        return {}
    everything = [item["name"] for item in profile.objects]
    spread: dict[str, Collection[str]] = {"near": (), "uniform": everything, "object": OBJECTS[workload]}
    return {
        placement: _placed(profile, machine, near_shares(profile.objects, names, *rooms))
        for placement, names in spread.items()
    }


def near_shares(objects: Sequence[ObjectDoc], spread: Collection[str], near: float, card: float) -> list[float]:
    """By object, the share that comes to lie in near memory, of so many bytes there and on the card.

    Objects come in the order of first touch. Of what is spread every other page is meant for the card, of the rest
    none; where one memory is full, the other takes over.
    """
    shares: dict[str, float] = {}
    for item in sorted(objects, key=lambda item: item["first_touch_s"]):
        size = float(item["size_bytes"])
        meant = size / 2 if item["name"] in spread else size
        here = min(max(meant, size - card), near)
        near, card = near - here, card - (size - here)
        shares[item["name"]] = here / size
    return [shares[item["name"]] for item in objects]


def _placed(profile: Profile, machine: Machine, shares: Sequence[float]) -> float:
    seen = SEEN_FROM[FAR_SIDE]
    parts = [{seen["near"]: share, seen["card"]: 1 - share} for share in shares]
    rows = [[part.get(memory["name"], 0.0) for memory in machine.data["memories"]] for part in parts]
    return float(policy_search.predict(profile, machine, rows, threads=THREADS, socket=FAR_SIDE)["time_s"])


def _compared(runs: Runs, gib: int, placement: str, against: str) -> dict[str, float]:
    """How many times as long one placement takes as another, by workload that fits."""
    done = runs(*[object_level(workload=name, gib=gib) for name in WORKLOADS])
    found = {name: table for name, table in zip(WORKLOADS, done, strict=True) if table}
    return {name: float(table[placement] / table[against]) for name, table in found.items()}


@computes
def oli_ratio(runs: Runs, *, workload: str, gib: int, slow: str, fast: str) -> float:
    """How many times as long one placement takes as another."""
    return _compared(runs, gib, slow, fast)[workload]


@computes
def oli_mean_ratio(runs: Runs, *, gib: int, slow: str, fast: str) -> float:
    """Mean of that over the workloads that fit."""
    return fmean(_compared(runs, gib, slow, fast).values())


@computes
def oli_gains_most(runs: Runs, *, workload: str, gib: int, slow: str, fast: str) -> bool:
    """Whether a workload gains most of all that fit."""
    each = _compared(runs, gib, slow, fast)
    return max(each, key=lambda name: each[name]) == workload


@computes
def oli_is_faster(runs: Runs, *, workload: str, gib: int, placement: str, than: str) -> bool:
    """Whether one placement is faster than another."""
    return _compared(runs, gib, than, placement)[workload] > 1


@computes
def oli_mean_difference(runs: Runs, *, gib: int, placement: str, against: str, apart_from: str) -> float:
    """By how much times differ either way, mean of the workloads that fit but one."""
    each = _compared(runs, gib, placement, against)
    return fmean(abs(ratio - 1) for name, ratio in each.items() if name != apart_from)


def _saved(workload: str, gib: int) -> float:
    """Share of LDRAM preferred's near memory that the study's objects, interleaved, leave free.

    They are counted whole, as if none of their pages had to be near: 80 % for FT, as printed, is u0 and u1 of all. By
    halves, which interleaving over two memories leaves near, no workload could save more than 50 %.
    """
    near, profile = gib * GIB, studied(workload)
    others = sum(item["size_bytes"] for item in profile.objects if item["name"] not in OBJECTS[workload])
    return 1.0 - min(others, near) / min(profile.footprint_bytes, near)


@computes
def oli_saving(_runs: Runs, *, workload: str, gib: int) -> float:
    """Share of near memory that a workload saves."""
    return _saved(workload, gib)


@computes
def oli_mean_saving(_runs: Runs, *, gib: int) -> float:
    """Mean of that over the workloads."""
    return fmean(_saved(name, gib) for name in WORKLOADS)


@computes
def oli_saves_most(_runs: Runs, *, workload: str, gib: int) -> bool:
    """Whether a workload saves most of all."""
    return max(WORKLOADS, key=lambda name: _saved(name, gib)) == workload


@computes
def least_footprint_gib(_runs: Runs) -> float:
    """Bytes of the smallest workload, GiB."""
    return min(Profile.load(name).footprint_bytes for name in WORKLOADS) / GIB


@task(weight=0.05)
def dealt(*, workload: str, machine: str, kinds: tuple[str, ...]) -> dict[str, float]:
    """A program on all cores, its pages dealt out in turn to all nodes of some kinds: time, and the busiest node."""
    found, profile = Machine.load(machine), Profile.load(workload)
    used = [float(each["kind"] in kinds) for each in found.data["memories"]]
    even = [each / sum(used) for each in used]
    teams = {each["name"]: int(each["cores"]["value"]) for each in found.data["sockets"]}
    done = policy_search.predict(profile, found, [even] * len(profile.data["objects"]), threads=teams)
    return {"time_s": done["time_s"], "utilisation": max(tier["utilisation"] for tier in done["tiers"])}


@computes
def interleaving_gain(runs: Runs, *, workload: str, machine: str) -> float:
    """How many times as fast a program is dealt out over DRAM and CXL nodes as over the DRAM nodes alone."""
    near, both = runs(
        dealt(workload=workload, machine=machine, kinds=("dram",)),
        dealt(workload=workload, machine=machine, kinds=("dram", "cxl")),
    )
    return float(near["time_s"] / both["time_s"])


@computes
def interleaving_pays(runs: Runs, *, workload: str, machine: str) -> bool:
    """Whether it is faster."""
    return bool(interleaving_gain(runs, workload=workload, machine=machine) > 1.0)


@computes
def best_split(runs: Runs, *, workload: str, machine: str, others: Sequence[str]) -> bool:
    """Whether, dealt out over all nodes, a program is faster than over DRAM alone, and than on other splits."""
    mine, *theirs = runs(
        dealt(workload=workload, machine=machine, kinds=("dram", "cxl")),
        *[dealt(workload=workload, machine=each, kinds=("dram", "cxl")) for each in others],
        *[dealt(workload=workload, machine=each, kinds=("dram",)) for each in (machine, *others)],
    )
    return bool(mine["time_s"] < min(each["time_s"] for each in theirs))


@computes
def saturates(runs: Runs, *, workload: str, machine: str, share: float) -> bool:
    """Whether a program on all cores, all of it in DRAM, takes more than a share of DRAM's bandwidth."""
    (done,) = runs(dealt(workload=workload, machine=machine, kinds=("dram",)))
    return bool(done["utilisation"] > share)
