"""GPU memory expansion: the published averages and ranges of CXL-GPU.

One parameter set for all of them, `catalog/expander/cxl-gpu.toml`. Per-bar data was not published.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from tierloom.gpu_expansion import GROUPS, ParameterSet, expand
from tierloom.published_claims.computation import Job, Runs, computes, task
from tierloom.published_claims.ledger import settings

DOCUMENT = "cxlgpu25"

SETS = {
    **GROUPS,
    "seq": ("rsum", "vadd", "saxpy"),
    "around": ("sort", "gauss"),
    "rand": ("path", "bfs"),
    "streams": ("vadd", "saxpy"),
    "arrays": ("gemm", "conv3"),
    "media": ("vadd", "path", "bfs"),
}
ALL = (*GROUPS["compute"], *GROUPS["load"], *GROUPS["store"])
"""The eleven of the averages."""

NO_MEDIUM = ("gpu-dram", "uvm")


@task(weight=0.25)
def expanded(*, workload: str, config: str, media: str, controller_ns: float | None = None) -> dict[str, Any]:
    """What one run says that a claim asks for."""
    done = expand(workload, config=config, media=media, controller_ns=controller_ns)
    endpoint, loads = done["endpoint"], done["loads"]
    return {
        "time_s": done["time_s"],
        "loads_per_access": loads["count"] / done["accesses"],
        "load_mean_ns": loads["mean_ns"],
        "load_p99_ns": loads["p99_ns"],
        "llc_hit_share": done["llc_hit_share"],
        "hit_share": endpoint["hit_share"],
        "collections": endpoint["collections"],
        "longest_ingress": endpoint["longest_ingress"],
        "stall_ns": done["write_backs_in_collection"]["p99_ns"],
    }


def run(workload: str, config: str, media: str, **options: float) -> Job:
    """A run; what has no endpoint has no medium either."""
    return expanded(workload=workload, config=config, media="dram" if config in NO_MEDIUM else media, **options)


def names(group: str) -> tuple[str, ...]:
    """Workloads of a group, all of them, or one by its name."""
    return ALL if group == "all" else SETS.get(group, (group,))


def ratios(runs: Runs, group: Sequence[str], slow: str, fast: str, media: str) -> list[float]:
    """How many times as long one configuration takes as another, by workload."""
    return times(runs, [(run(name, slow, media), run(name, fast, media)) for name in group])


def times(runs: Runs, pairs: Sequence[tuple[Job, Job]]) -> list[float]:
    """How many times as long the first run of each pair takes as the second."""
    seconds = [float(each["time_s"]) for each in runs(*[job for pair in pairs for job in pair])]
    return [above / below for above, below in zip(seconds[::2], seconds[1::2], strict=True)]


def endpoint_read_ns(runs: Runs) -> float:
    """A read of an idle endpoint's DRAM, its controller included: a row is opened, and a burst of a line brought."""
    opened, read, burst = (parameter(runs, section="dram", name=name) for name in ("rcd", "cl", "burst"))
    clock_ns = 2000.0 / parameter(runs, section="dram", name="mt_s")
    clocks = opened + read + burst / 2.0
    return float(parameter(runs, section="gpus.vortex-200mhz", name="controller_ns") + clocks * clock_ns)


def prototype_ns(runs: Runs) -> float:
    """What a prototype's controllers and link take of its round trip."""
    return float(settings(DOCUMENT)["prototype_round_trip_ns"]) - endpoint_read_ns(runs)


@computes
def round_trip(runs: Runs) -> float:
    """Round trip of the parameter set to DRAM behind the link, ns."""
    return float(parameter(runs, section="link", name="round_trip_ns")) + endpoint_read_ns(runs)


@computes
def prototype_round_trip(runs: Runs) -> float:
    """Round trip to DRAM behind a prototype's controller in the runs that are handed it, ns."""
    return prototype_ns(runs) + endpoint_read_ns(runs)


@computes
def round_trips(runs: Runs) -> float:
    """A prototype's round trip over that of the parameter set."""
    return prototype_round_trip(runs) / round_trip(runs)


@computes
def prototype_ratio(runs: Runs, *, group: str, config: str, media: str) -> float:
    """How many times as long a group takes behind a prototype's controller as behind our own, mean."""
    slower = prototype_ns(runs)
    pairs = [(run(name, config, media, controller_ns=slower), run(name, config, media)) for name in names(group)]
    return fmean(times(runs, pairs))


@computes
def alike(runs: Runs, *, group: str, config: str, media: str, other: str, other_media: str, within: float) -> bool:
    """Whether a group takes about as long on one system as on another: its mean ratio is near 1."""
    pairs = [(run(name, config, media), run(name, other, other_media)) for name in names(group)]
    return abs(fmean(times(runs, pairs)) - 1.0) <= within


@computes
def leads(runs: Runs, *, group: str, others: list[str], slow: str, fast: str, media: str) -> bool:
    """Whether a group's mean ratio is above that of every other."""
    mine, *theirs = (fmean(ratios(runs, names(each), slow, fast, media)) for each in (group, *others))
    return mine > max(theirs)


@computes
def among_parts(runs: Runs, *, workload: str, parts: list[str], slow: str, fast: str, media: str) -> bool:
    """Whether a workload's ratio lies between the least and the most of those that it is made of."""
    mine, *theirs = ratios(runs, (workload, *parts), slow, fast, media)
    return min(theirs) <= mine <= max(theirs)


@computes
def mostly_hits(runs: Runs, *, group: str) -> bool:
    """Whether more than half of a group's accesses find their line in the GPU's last-level cache."""
    done = runs(*[run(name, "gpu-dram", "dram") for name in names(group)])
    return fmean(float(each["llc_hit_share"]) for each in done) > 0.5


@computes
def most_over_media(runs: Runs, *, workload: str, slow: str, fast: str, media: list[str]) -> float:
    """The largest of one workload's ratios over media."""
    return max(ratio for medium in media for ratio in ratios(runs, (workload,), slow, fast, medium))


@computes
def more_hits(runs: Runs, *, group: str, config: str, over: str) -> bool:
    """Whether the endpoint's internal DRAM has more hits, in a group's mean, than under another configuration."""
    done = runs(*[run(name, each, "znand") for each in (config, over) for name in names(group)])
    shares = [float(each["hit_share"]) for each in done]
    half = len(shares) // 2
    return fmean(shares[:half]) > fmean(shares[half:])


@computes
def lower(runs: Runs, *, workload: str, config: str, over: str, figure: str) -> bool:
    """Whether a figure of a run on Z-NAND is below that of another configuration."""
    mine, theirs = runs(run(workload, config, "znand"), run(workload, over, "znand"))
    return bool(mine[figure] < theirs[figure])


@computes
def mean_ratio(runs: Runs, *, group: str, slow: str, fast: str, media: str = "znand") -> float:
    """Mean of the ratios of a group."""
    return fmean(ratios(runs, names(group), slow, fast, media))


@computes
def worst_is_in(runs: Runs, *, group: str, slow: str, fast: str, media: str = "znand") -> bool:
    """Whether the largest ratio of all is a workload's of this group."""
    found = dict(zip(ALL, ratios(runs, ALL, slow, fast, media), strict=True))
    return max(found, key=lambda name: found[name]) in names(group)


@computes
def groups_in_order(runs: Runs, *, groups: list[str], slow: str, fast: str, media: str) -> bool:
    """Whether mean ratios fall from group to group."""
    means = [fmean(ratios(runs, names(group), slow, fast, media)) for group in groups]
    return means == sorted(means, reverse=True)


@computes
def media_in_order(runs: Runs, *, media: list[str], group: str, slow: str, fast: str) -> bool:
    """Whether mean ratios rise from medium to medium."""
    means = [fmean(ratios(runs, names(group), slow, fast, medium)) for medium in media]
    return means == sorted(means)


@computes
def fewer_misses(runs: Runs, *, group: str, other: str) -> float:
    """By which share fewer of a group's accesses leave the last-level cache as loads than of another's."""
    mine, theirs = (runs(*[run(name, "gpu-dram", "dram") for name in names(each)]) for each in (group, other))
    share = fmean(done["loads_per_access"] for done in mine) / fmean(done["loads_per_access"] for done in theirs)
    return 1.0 - float(share)


@computes
def hit_share(runs: Runs, *, group: str, config: str) -> float:
    """Hit rate of the endpoint's internal DRAM, mean of a group."""
    done = runs(*[run(name, config, "znand") for name in names(group)])
    return fmean(float(each["hit_share"]) for each in done)


@computes
def mean_over_media(runs: Runs, *, workload: str, slow: str, fast: str, media: list[str]) -> float:
    """Mean of one workload's ratios over media."""
    return fmean(ratio for medium in media for ratio in ratios(runs, (workload,), slow, fast, medium))


@computes
def stays_flat(runs: Runs, *, workload: str, config: str, over: str, below: float) -> bool:
    """Whether the 99th percentile of stores released during collections is below a share of another's."""
    mine, theirs = runs(run(workload, config, "znand"), run(workload, over, "znand"))
    return bool(mine["stall_ns"] < below * max(theirs["stall_ns"], 1.0))


@computes
def parameter(_runs: Runs, *, section: str, name: str, per: float = 1.0) -> float:
    """A figure of the parameter set, in units that hold so many of its own; sections within sections have dots."""
    found = ParameterSet.load().data
    for part in (*section.split("."), name):
        found = found[part]
    return float(found["value"]) / per


@computes
def mix(_runs: Runs, *, workload: str, share: str) -> float:
    """A workload's published mix of instructions, as the parameter set has it."""
    return float(ParameterSet.load().data["workloads"][workload][share]["value"])
