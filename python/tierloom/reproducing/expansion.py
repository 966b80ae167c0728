"""GPU memory expansion: the published averages and ranges of CXL-GPU.

One parameter set for all of them, `catalog/expander/cxl-gpu.toml`. Per-bar data was not published.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from statistics import fmean
from typing import Any

from tierloom.expanding import ParameterSet, expand
from tierloom.reproducing.computing import Job, Runs, computes, task

GROUPS = {
    "compute": ("rsum", "stencil", "sort"),
    "load": ("gemm", "vadd", "saxpy", "conv3", "path"),
    "store": ("cfd", "gauss", "bfs"),
    "seq": ("rsum", "vadd", "saxpy"),
    "around": ("sort", "gauss"),
    "rand": ("path", "bfs"),
    "streams": ("vadd", "saxpy"),
    "media": ("vadd", "path", "bfs"),
}
ALL = (*GROUPS["compute"], *GROUPS["load"], *GROUPS["store"])
"""The eleven of the averages."""

NO_MEDIUM = ("gpu-dram", "uvm")
BOTH = "hit_or_in_flight_share"


@task(weight=0.25)
def expanded(*, workload: str, config: str, media: str) -> dict[str, Any]:
    """What one run says that a claim asks for."""
    done = expand(workload, config=config, media=media)
    return {
        "time_s": done["time_s"],
        "loads_per_access": done["loads"]["count"] / done["accesses"],
        "hit_share": done["endpoint"]["hit_share"],
        BOTH: done["endpoint"][BOTH],
        "collections": done["endpoint"]["collections"],
        "stall_ns": done["write_backs_in_collection"]["p99_ns"],
    }


def run(workload: str, config: str, media: str) -> Job:
    """A run; what has no endpoint has no medium either."""
    return expanded(workload=workload, config=config, media="dram" if config in NO_MEDIUM else media)


def names(group: str) -> tuple[str, ...]:
    """Workloads of a group, all of them, or one by its name."""
    return ALL if group == "all" else GROUPS.get(group, (group,))


def ratios(runs: Runs, group: Sequence[str], slow: str, fast: str, media: str) -> list[float]:
    """How many times as long one configuration takes as another, by workload."""
    done = runs(*[run(name, config, media) for name in group for config in (slow, fast)])
    seconds = [float(each["time_s"]) for each in done]
    return [above / below for above, below in zip(seconds[::2], seconds[1::2], strict=True)]


@computes
def mean_ratio(runs: Runs, *, group: str, slow: str, fast: str, media: str = "znand") -> float:
    """Mean of the ratios of a group."""
    return fmean(ratios(runs, names(group), slow, fast, media))


@computes
def geometric_ratio(runs: Runs, *, group: str, slow: str, fast: str, media: str = "znand") -> float:
    """Their geometric mean."""
    return exp(fmean(log(ratio) for ratio in ratios(runs, names(group), slow, fast, media)))


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
def hit_share(runs: Runs, *, group: str, config: str, in_flight: bool = False) -> float:
    """Hit rate of the endpoint's internal DRAM, mean of a group."""
    done = runs(*[run(name, config, "znand") for name in names(group)])
    return fmean(float(each[BOTH if in_flight else "hit_share"]) for each in done)


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
def no_more_collections(runs: Runs, *, workload: str, config: str, over: str) -> bool:
    """Whether the endpoint collects no more often than under another configuration."""
    mine, theirs = runs(run(workload, config, "znand"), run(workload, over, "znand"))
    return bool(mine["collections"] <= theirs["collections"])


@computes
def parameter(_runs: Runs, *, section: str, name: str) -> float:
    """A figure of the parameter set."""
    return float(ParameterSet.load().data[section][name]["value"])


@computes
def mix(_runs: Runs, *, workload: str, share: str) -> float:
    """A workload's published mix of instructions, as the parameter set has it."""
    return float(ParameterSet.load().data["workloads"][workload][share]["value"])
