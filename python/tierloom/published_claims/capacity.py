"""Jobs that spill, key-value stores, shuffles and costs: the published cases of the catalog.

A case holds what went in and what came out, and `tierloom.capacity` what follows from the one without the
other: a speed-up is predicted from the other points of its table, never from itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tierloom.capacity import catalog, cost, published, published_others, published_tpch, store
from tierloom.capacity.catalog import Case
from tierloom.capacity.spill import amdahl
from tierloom.nouns import Machine
from tierloom.published_claims.computation import Runs, computes, task
from tierloom.units import GB, GIB


@task(weight=0.5)
def found(*, case: str) -> dict[str, float]:
    """Everything that a case's inputs say, by the name of the finding."""
    return {each.name: each.ours for each in published.findings(case)}


@computes
def finding(runs: Runs, *, case: str, name: str) -> float:
    """One finding of a case."""
    return float(runs(found(case=case))[0][name])


@computes
def faster(runs: Runs, *, case: str, name: str) -> bool:
    """Whether the configuration that is named first is the faster one."""
    return bool(runs(found(case=case))[0][name] > 1.0)


@computes
def near(runs: Runs, *, case: str, name: str, within: float) -> bool:
    """Whether the configuration that is named first is ahead by no more than a share."""
    return bool(runs(found(case=case))[0][name] <= 1.0 + within)


@computes
def memory_ratio(_runs: Runs, *, case: str, dram_gb: int, streams: int) -> float:
    """Memory in use with CXL memory over that without: an input of the case."""
    return float(_pair(catalog.load(case), dram_gb, streams)["memory"])


@computes
def traffic_drop(_runs: Runs, *, case: str, dram_gb: int, streams: int) -> float:
    """Share of the storage traffic that CXL memory saves: an input of the case."""
    return 1.0 - float(_pair(catalog.load(case), dram_gb, streams)["traffic"])


@computes
def fewer_drives_gain(_runs: Runs, *, case: str, dram_gb: int, streams: int, slower: float) -> float:
    """Speed-up by CXL memory on drives so many times as slow as the case's: only waiting for them grows."""
    loaded = catalog.load(case)
    fitted = published_tpch.stalls(published_tpch.points(loaded), loaded.claims["speed_ups"])
    waiting = fitted.share(dram_gb, streams) * slower
    rest = 1.0 - fitted.share(dram_gb, streams)
    return amdahl(waiting / (rest + waiting), float(_pair(loaded, dram_gb, streams)["traffic"]))


def _pair(case: Case, dram_gb: int, streams: int) -> Mapping[str, Any]:
    """A published pair of runs, with and without CXL memory; among them the one that the study cannot explain."""
    pairs: list[Mapping[str, Any]] = [*case.inputs["points"], case.impossible]
    return next(each for each in pairs if (each["dram_gb"], each["streams"]) == (dram_gb, streams))


@task(weight=0.5)
def throughputs(*, case: str) -> dict[int, dict[int, float]]:
    """Throughput by memory, GB, and by number of streams, from the case's fitted jobs."""
    loaded = catalog.load(case)
    tried = published_tpch.tried_streams(loaded)
    return {
        gb: {streams: job.throughput(job.reference_bytes, streams) for streams in tried}
        for gb, job in published_tpch.jobs(loaded).items()
    }


@computes
def peaks_ratio(runs: Runs, *, case: str, memory_gb: int, over_gb: int) -> float:
    """Highest throughput with some memory over that with other memory."""
    (found,) = runs(throughputs(case=case))
    return float(max(found[memory_gb].values()) / max(found[over_gb].values()))


@computes
def falls(runs: Runs, *, case: str, memory_gb: int, streams: int, then: int, by: float = 0.0) -> bool:
    """Whether throughput is lower with more streams, by more than a share."""
    (found,) = runs(throughputs(case=case))
    return bool(found[memory_gb][then] < found[memory_gb][streams] * (1.0 - by))


@task(weight=0.5)
def fitted_times(*, case: str) -> dict[int, float]:
    """Time by memory, GB, of the curve that is fitted to all speed-ups of a case."""
    loaded = catalog.load(case)
    job = published_others.svm(loaded)
    return {gb: job.seconds(gb * GB) for gb in (loaded.value("base_gb"), *loaded.value("memory_gb"))}


@computes
def fitted_gain(runs: Runs, *, case: str, from_gb: int, to_gb: int) -> float:
    """Speed-up from one amount of memory to another by that curve."""
    (found,) = runs(fitted_times(case=case))
    return float(found[from_gb] / found[to_gb])


@computes
def follows_memory(runs: Runs, *, case: str, within: float) -> bool:
    """Whether that curve's speed-ups are those of memory, to a share."""
    (found,) = runs(fitted_times(case=case))
    base = min(found)
    return all(abs(found[base] / seconds / (gb / base) - 1.0) <= within for gb, seconds in found.items())


RATES: dict[str, Callable[[Case, Machine], dict[str, float]]] = {
    "keydb": published_others.keydb_rates,
    "spark-sql": published_others.sql_rates,
}
"""What computes the rate of each configuration, by case."""


@task(weight=0.5)
def rates(*, case: str) -> dict[str, float]:
    """Operations a second by configuration."""
    loaded = catalog.load(case)
    return RATES[case](loaded, Machine.load(loaded.machine))


@computes
def outruns(runs: Runs, *, case: str, better: str, worse: str, by: float = 0.0) -> bool:
    """Whether one configuration is faster than another, by more than a share."""
    (found,) = runs(rates(case=case))
    return bool(found[better] > found[worse] * (1.0 + by))


@computes
def given(_runs: Runs, *, case: str, name: str, at: int | None = None) -> float:
    """An input of a case, or one of several."""
    value: Any = catalog.load(case).value(name)
    return float(value if at is None else value[at])


@computes
def interleaved_share(_runs: Runs, *, ratio: str) -> float:
    """Share on CXL memory of pages interleaved by a ratio of DRAM to it."""
    dram, cxl = map(int, ratio.split(":"))
    return store.interleaved({"dram": dram, "cxl": cxl}).memories["cxl"]


@computes
def instance_gib(_runs: Runs, *, vcpus: int, per_vcpu_gib: float) -> float:
    """Memory that sells all vCPUs, GiB: what one of them needs, and what the others then lack."""
    one_bytes = per_vcpu_gib * GIB
    return (one_bytes + cost.shape(vcpus, one_bytes, one_bytes, 0.0).missing_bytes) / GIB
