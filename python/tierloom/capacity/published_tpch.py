"""TPC-H on a server with and without CXL memory: the published speed-ups and peaks beside ours.

The share of time that waits for storage is linear in the streams, with one offset for each amount of DRAM.
Three constants, five speed-ups: each speed-up is predicted by constants that the other four give. Its own
measured storage traffic goes in, its speed-up does not. A second prediction takes the traffic from the
memory in use instead, by the power law that the other points give.

Peaks follow from the same shares: waiting that streams share, and waiting of their own that grows as a power
of them. How much of the machine one stream uses is not published; the ratio of two peak throughputs is, and
says it. Where the peaks are is a prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from tierloom.capacity.findings import Finding, Verdict, near
from tierloom.capacity.spill import Spill, amdahl
from tierloom.extras import brought_by
from tierloom.units import GB

with brought_by("capacity"):
    from scipy.optimize import brentq

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tierloom.capacity.catalog import Case


@dataclass(frozen=True, kw_only=True)
class Point:
    """One published pair of runs: memory in use and storage traffic with CXL over those without."""

    dram_gb: int
    streams: int
    memory: float
    traffic: float


@dataclass(frozen=True, kw_only=True)
class Stalls:
    """Share of time that waits for storage: an offset by DRAM, and what each stream adds."""

    offsets: Mapping[int, float]
    slope: float

    def share(self, dram_gb: int, streams: float) -> float:
        """The share, for a number of streams."""
        return self.offsets[dram_gb] + self.slope * streams


def points(case: Case) -> list[Point]:
    """The inputs of the case."""
    names = ("dram_gb", "streams", "memory", "traffic")
    return [Point(**{name: item[name] for name in names}) for item in case.inputs["points"]]


def stalls(known: Sequence[Point], speed_ups: Sequence[float]) -> Stalls:
    """The offsets and the slope that speed-ups and traffic of some points give, by least squares."""
    drams = sorted({point.dram_gb for point in known})
    rows = [[*(float(point.dram_gb == dram) for dram in drams), float(point.streams)] for point in known]
    shares = [(1.0 - 1.0 / gain) / (1.0 - point.traffic) for point, gain in zip(known, speed_ups, strict=True)]
    found = np.linalg.lstsq(np.array(rows), np.array(shares), rcond=None)[0]
    return Stalls(offsets=dict(zip(drams, map(float, found), strict=False)), slope=float(found[-1]))


def power(known: Sequence[Point]) -> float:
    """The power by which traffic falls as memory grows, by least squares over some points."""
    memory, traffic = (np.log([getattr(point, name) for point in known]) for name in ("memory", "traffic"))
    return float(-(memory @ traffic) / (memory @ memory))


def unseen_speed_ups(case: Case, *, from_memory: bool = False) -> list[float]:
    """Each speed-up as the other points give it; from its traffic, or from its memory in use."""
    known, published = points(case), case.claims["speed_ups"]
    found: list[float] = []
    for out, point in enumerate(known):
        others = [index for index in range(len(known)) if index != out]
        left = [known[index] for index in others]
        fitted = stalls(left, [published[index] for index in others])
        traffic = point.memory ** -power(left) if from_memory else point.traffic
        found.append(amdahl(fitted.share(point.dram_gb, point.streams), traffic))
    return found


def impossible_speed_up(case: Case) -> float:
    """What the five other points and its own traffic give for the point that the study cannot explain."""
    point, fitted = case.impossible, stalls(points(case), case.claims["speed_ups"])
    return amdahl(fitted.share(point["dram_gb"], point["streams"]), point["traffic"])


def impossible_stall(case: Case) -> float:
    """Share of time that would have to wait for storage for the point that the study cannot explain."""
    point = case.impossible
    return float((1.0 - 1.0 / point["speed_up"]) / (1.0 - point["traffic"]))


def jobs(case: Case) -> dict[int, Spill]:
    """The job on each amount of memory, GB, in units of one stream's computing.

    `alone` is solved for so that the ratio of the two peak throughputs is the published one.
    """
    fitted = stalls(points(case), case.claims["speed_ups"])
    target, least = case.value("peaks"), min(fitted.offsets)

    def excess(alone: float) -> float:
        made = _jobs(case, fitted, alone)
        with_cxl, without = (_best(case, made[gb]) for gb in (least + case.value("cxl_gb"), least))
        return float(with_cxl / without - target)

    return _jobs(case, fitted, _root(excess, 0.02, 0.9))


def tried_streams(case: Case) -> range:
    """Numbers of streams that were run."""
    step = case.value("steps")
    return range(step, case.value("most_streams") + 1, step)


def _best(case: Case, job: Spill) -> float:
    return max(job.throughput(job.reference_bytes, streams) for streams in tried_streams(case))


def _jobs(case: Case, fitted: Stalls, alone: float) -> dict[int, Spill]:
    """The jobs if one stream uses a share `alone` of the machine."""
    known = points(case)
    base = min(fitted.offsets)

    def waiting(dram: int, traffic: Callable[[int], float]) -> Callable[[int], float]:
        def seconds(streams: int) -> float:
            share = fitted.share(dram, streams)
            return share / (1.0 - share) * (1.0 - alone + alone * streams) * traffic(streams)

        return seconds

    def through(seconds: Callable[[int], float], growth: float) -> tuple[float, float]:
        few, many = (min(streams_of[-2:]), streams_of[-1])
        own = (seconds(many) - seconds(few)) / (many**growth - few**growth)
        return seconds(few) - own * few**growth, own

    streams_of = sorted({point.streams for point in known})
    growth = _growth(waiting(base, lambda _: 1.0), streams_of)
    made = {}
    for dram in fitted.offsets:
        measured = {point.streams: point.traffic for point in known if point.dram_gb == dram}
        for extra, traffic in ((0, lambda _: 1.0), (case.value("cxl_gb"), measured.__getitem__)):
            shared, own = through(waiting(dram, traffic), growth)
            made[dram + extra] = _job(dram + extra, alone, shared, own, growth)
    return made


def _growth(seconds: Callable[[int], float], streams: Sequence[int]) -> float:
    """The power of the streams that leads through three points."""
    one, few, many = streams
    ratio = (seconds(many) - seconds(one)) / (seconds(few) - seconds(one))
    return _root(lambda p: (many**p - one**p) / (few**p - one**p) - ratio, 0.2, 6.0)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function is zero between two ends."""
    return float(cast("float", brentq(function, low, high)))


def _job(memory_gb: int, alone: float, shared: float, own: float, growth: float) -> Spill:
    return Spill(
        compute_s=1.0,
        alone=alone,
        scan_s=shared,
        storage_s=own,
        exponent=1.0,
        sharing=growth - 1.0,
        reference_bytes=memory_gb * GB,
    )


def findings(case: Case) -> list[Finding]:
    """Every published figure of the case beside ours."""
    published = case.claims["speed_ups"]
    made = []
    for kind, ours in (("traffic", unseen_speed_ups(case)), ("memory", unseen_speed_ups(case, from_memory=True))):
        note = f"from its {'storage traffic' if kind == 'traffic' else 'memory in use'} and the other four"
        made += [
            Finding(
                name=f"{_name(point)}: speed-up by {kind}",
                published=gain,
                ours=found,
                verdict=near(found, gain),
                note=note if near(found, gain) == "reproduced" else f"{note}: {FEW_STREAMS}",
            )
            for point, gain, found in zip(points(case), published, ours, strict=True)
        ]
    return [*made, *_peak_findings(case), *_impossible(case)]


FEW_STREAMS = "one stream's traffic is scans more than spills, and falls less with memory"
FLAT = 0.98
"""Throughput at the published number of streams over our highest from which on the two peaks are one: repeats
of such runs differ by more than the rest."""


def _peak_findings(case: Case) -> list[Finding]:
    made, ours = [], jobs(case)
    for gb, job in sorted(ours.items()):
        published = case.claims["peak_streams"][str(gb)]
        found = job.peak(job.reference_bytes, tried_streams(case))
        rates = [job.throughput(job.reference_bytes, streams) for streams in (published, found)]
        verdict: Verdict = "reproduced" if rates[0] >= FLAT * rates[1] else "missed"
        note = "" if found == published else f"at {published} streams ours gives {rates[0] / rates[1]:.1%} of its peak"
        made.append(
            Finding(name=f"{gb} GB: streams at the peak", published=published, ours=found, verdict=verdict, note=note)
        )
    small, large = sorted(gb for gb in ours if gb - case.value("cxl_gb") not in ours)
    ratio = _best(case, ours[small + case.value("cxl_gb")]) / _best(case, ours[large])
    claim = case.claims["peak_over_1152"]
    note = "the speed-ups put 1152 GB higher above 768 GB than this ratio and 2.3 do" if ratio < claim else ""
    name = f"{small + case.value('cxl_gb')} GB over {large} GB, peaks"
    return [*made, Finding(name=name, published=claim, ours=ratio, verdict=near(ratio, claim), note=note)]


def _impossible(case: Case) -> list[Finding]:
    point, ours = case.impossible, impossible_speed_up(case)
    name = f"{point['dram_gb']} GB, {point['streams']} stream"
    gain: float = point["speed_up"]
    return [
        Finding(name=f"{name}: speed-up by traffic", published=gain, ours=ours, verdict="missed", note=point["why"]),
        Finding(
            name=f"{name}: share waiting",
            published=1.0,
            ours=impossible_stall(case),
            verdict="conflict",
            note=point["why"],
        ),
    ]


def _name(point: Point) -> str:
    return f"{point.dram_gb} + 1024, {point.streams} streams"
