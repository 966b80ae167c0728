"""STREAM in ordinary memory and on a pool: what App-Direct access and durability cost.

Kernels, threads and clock are in the core; here is which runs there are, where their arrays lie, and what
their seconds mean. A bandwidth is the best of the rounds, as STREAM has it, with the median and the
worst beside it.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import tierloom._core as _core
from tierloom import progress_bar
from tierloom.errors import RequestError
from tierloom.pmem import cpu_affinity, groups
from tierloom.pmem.pools import Pool
from tierloom.units import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tierloom.pmem.choices import Backend, Persist
    from tierloom.pmem.documents import OverheadDoc, RateDoc, StreamDoc, StreamRunDoc
    from tierloom.schema import WarningDoc

BYTES_PER_ELEMENT = {"copy": 16, "scale": 16, "add": 24, "triad": 24}
"""As STREAM counts: what the program names. Lines that are fetched only to be stored to come on top."""

MOST_ELEMENTS = 100_000_000
"""Of the published runs; more is only of use to caches that are larger than any."""

TIMES_CACHE = 4
"""STREAM's rule: each array at least four times all last-level caches together."""

PASSES = 3
"""Volatile and pool take turns this often, each time on fresh pages: a slow minute of the machine hits both, and
neither is judged by one draw of physical pages, of which some are 5 % slower than others (measured)."""

QUIET = 0.9
"""Rounds of a machine that does nothing else lie closer than this (median to best); assumed."""

LEAST_ELEMENTS = 1024
ROOM_BYTES = 4 << 20
"""Beside arrays and what a transaction saves: headers, the directory (1 MiB at most), rounding to pages."""

LIBRARY_BYTES = 16 << 20
LIBRARY_SHARE = 1.1
"""libpmemobj has 3 MiB of lanes and a heap of chunks of 256 KiB with headers; assumed to be enough."""


_Seconds = dict[str, dict[str, list[float]]]
"""Seconds of rounds by kernel, by mode."""


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        pool: Where the pool goes: a folder, a new file, or a DAX device whose contents are lost. Ordinary memory alone
            by default.
        elements: Doubles of each array.
        rounds: Times a kernel counts.
        persist: What makes a kernel's output durable in the timed part.
        backend: Who keeps the pool.
        node: Memory node of the ordinary memory; that of the first CPU by default.
    """

    pool: Path | None
    elements: int
    rounds: int = 10
    persist: Persist = "none"
    backend: Backend = "native"
    node: int | None = None


@dataclass(frozen=True)
class Step:
    """Threads on their CPUs, and the published figures that go with them, if any."""

    cpus: tuple[int, ...]
    volatile: bool = True
    in_pool: bool = True
    series: groups.Series | None = None


def default_elements(root: Path = Path("/")) -> int:
    """Doubles of an array by STREAM's rule, up to the published size."""
    return min(MOST_ELEMENTS, max(LEAST_ELEMENTS, TIMES_CACHE * llc_bytes(root) // 8))


def llc_bytes(root: Path = Path("/")) -> int:
    """All last-level caches of the machine together; 32 MiB where the kernel does not say."""
    sizes: dict[tuple[str, str], int] = {}
    for index in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cache/index*"):
        try:
            level, kind = (index / "level").read_text().strip(), (index / "type").read_text().strip()
            size = (index / "size").read_text().strip().removesuffix("K")
            if kind != "Instruction":
                sizes[level, (index / "shared_cpu_list").read_text()] = int(size) << 10
        except (OSError, ValueError):
            continue
    last = max((level for level, _ in sizes), default="")
    return sum(size for (level, _), size in sizes.items() if level == last) or 32 << 20


def steps_of(threads: Sequence[int], cpus: Sequence[int]) -> list[Step]:
    """One step a number of threads.

    Raises:
        RequestError: There are not as many CPUs.
    """
    most = max(threads)
    if most > len(cpus):
        message = f"{most} threads need as many CPUs, there are {len(cpus)}\nhint: use fewer threads"
        raise RequestError(message)
    return [Step(tuple(cpus[:count])) for count in threads]


def steps_of_group(name: str, memory: groups.Memory, home: int, allowed: Sequence[cpu_affinity.Cpu]) -> list[Step]:
    """The steps of a published group that this machine can take: on its kind of memory, with its sockets."""
    steps = []
    for series in groups.group(name).series:
        cpus = cpu_affinity.order(series.cpus(allowed, home), series.affinity)
        if series.memory != memory or not cpus:
            continue
        direct = series.mode == "app-direct"
        counts = sorted({n for n in series.triad_gb_s if n <= len(cpus)} | {min(len(cpus), max(series.triad_gb_s))})
        steps += [Step(tuple(cpus[:n]), volatile=True, in_pool=direct, series=series) for n in counts]
    return steps


def measure(
    plan: Plan,
    steps: Sequence[Step],
    progress: progress_bar.Tell | None = None,
) -> StreamDoc:
    """Runs all steps.

    Raises:
        PoolError: The pool cannot be made, or results are wrong.
        RequestError: A CPU or a size cannot be.
    """
    if not any(step.in_pool for step in steps):
        plan = replace(plan, pool=None)
    told: list[_Seconds] = [{"volatile": {}, "app-direct": {}} for _ in steps]
    turns = list(itertools.product(range(PASSES), range(len(steps))))
    backend, durability, ahead = None, None, progress_bar.Steps(len(turns), progress)
    for _, group in itertools.groupby(turns, lambda turn: turn[0] if _anew(plan) else 0):
        with _arrays(plan) as pool:
            for _, index in group:
                ahead.tell(f"{len(steps[index].cpus)} threads")
                _turn(plan, steps[index], pool, told[index])
            backend, durability = (pool.backend, pool.durability) if pool else (None, None)
    runs = [
        _run(mode, step, plan.elements, times)
        for step, seconds in zip(steps, told, strict=True)
        for mode, times in seconds.items()
        if times
    ]
    return {
        "pool": str(plan.pool) if plan.pool else None,
        "backend": backend,
        "durability": durability,
        "persist": plan.persist,
        "array_bytes": plan.elements * 8,
        "runs": runs,
        "overheads": _overheads(runs),
        "warnings": [*_warnings(plan, durability), *_noise(runs)],
    }


def _anew(plan: Plan) -> bool:
    """Whether every pass makes its pool anew: not on a device, whose pages are always the same."""
    return plan.pool is not None and not plan.pool.is_char_device()


@contextmanager
def _arrays(plan: Plan) -> Iterator[Pool | None]:
    """A pool with the three arrays, gone when the block ends; none where only ordinary memory is measured."""
    if plan.pool is None:
        yield None
        return
    with ExitStack() as last:
        path = plan.pool
        if path.is_dir():
            path = Path(last.enter_context(tempfile.TemporaryDirectory(prefix="tierloom-", dir=path))) / "stream.pool"
        with _create(plan, path) as pool:
            if not path.is_char_device():
                last.callback(path.unlink, missing_ok=True)
            for name in "abc":
                pool.zeros(name, plan.elements)
            yield pool


def _create(plan: Plan, path: Path) -> Pool:
    array = plan.elements * 8
    saved = array if plan.persist == "transaction" else 0
    if plan.backend == "pmdk":
        size = round((3 * array + saved) * LIBRARY_SHARE) + LIBRARY_BYTES
        return Pool.create(path, size, backend="pmdk")
    return Pool.create(path, 3 * array + saved + 2 * ROOM_BYTES, log=saved + ROOM_BYTES)


def _turn(plan: Plan, step: Step, pool: Pool | None, into: _Seconds) -> None:
    """Volatile and pool, one after the other; a run is the rounds of all of its turns."""
    rounds = max(1, -(-plan.rounds // PASSES)) + 1
    if step.volatile:
        _collect(into["volatile"], _core.stream_volatile(plan.elements, list(step.cpus), rounds, plan.node))
    if pool is not None and step.in_pool:
        _collect(into["app-direct"], pool.stream("abc", plan.elements, step.cpus, rounds, plan.persist))


def _collect(into: dict[str, list[float]], times: list[tuple[str, list[float]]]) -> None:
    for kernel, found in times:
        into.setdefault(kernel, []).extend(found)


def _run(mode: str, step: Step, elements: int, seconds: dict[str, list[float]]) -> StreamRunDoc:
    rates = {kernel: _rate(BYTES_PER_ELEMENT[kernel] * elements, found) for kernel, found in seconds.items()}
    return {
        "mode": mode,
        "series": step.series.name if step.series else None,
        "threads": len(step.cpus),
        "cpus": list(step.cpus),
        "rates": rates,
        "published_triad_gb_s": _published(mode, step),
    }


def _published(mode: str, step: Step) -> float | None:
    """The published figure for the same thing: a group of plain memory publishes its volatile runs."""
    if step.series is None or (step.series.mode == "app-direct") != (mode == "app-direct"):
        return None
    return step.series.triad_gb_s.get(len(step.cpus))


def _rate(moved_bytes: int, seconds: list[float]) -> RateDoc:
    rates = [moved_bytes / found / 1e9 for found in seconds]
    return {"best_gb_s": max(rates), "median_gb_s": statistics.median(rates), "worst_gb_s": min(rates)}


def _overheads(runs: Sequence[StreamRunDoc]) -> list[OverheadDoc]:
    """What the pool costs, by best rate, for each pair of runs on the same CPUs."""
    volatile = {tuple(run["cpus"]): run for run in runs if run["mode"] == "volatile"}
    pairs = [(volatile[tuple(run["cpus"])], run) for run in runs if run["mode"] == "app-direct"]
    return [
        {
            "series": run["series"],
            "threads": run["threads"],
            "shares": {
                kernel: 1 - rate["best_gb_s"] / before["rates"][kernel]["best_gb_s"]
                for kernel, rate in run["rates"].items()
            },
        }
        for before, run in pairs
    ]


def _noise(runs: Sequence[StreamRunDoc]) -> list[WarningDoc]:
    """A warning where the rounds of one kernel lie far apart: an overhead is their difference."""
    shares = [rate["median_gb_s"] / rate["best_gb_s"] for run in runs for rate in run["rates"].values()]
    if not shares or min(shares) >= QUIET:
        return []
    return [
        {
            "what": f"the median of the rounds is down to {min(shares):.0%} of the best",
            "cause": "something else ran on these CPUs or used the memory",
            "remedy": "measure again while nothing else runs, with more --rounds; overheads are not to be trusted",
        }
    ]


def _warnings(plan: Plan, durability: str | None) -> list[WarningDoc]:
    found: list[WarningDoc] = []
    llc = llc_bytes()
    if plan.elements * 8 < TIMES_CACHE * llc:
        found.append(
            {
                "what": f"arrays of {bytes_text(plan.elements * 8)} are less than {TIMES_CACHE} times the caches",
                "cause": f"the last-level caches hold {bytes_text(llc)} as the kernel tells it",
                "remedy": "use larger arrays (--size), or read this as the caches' bandwidth",
            }
        )
    if durability == "msync" and plan.persist != "none":
        found.append(
            {
                "what": "the pool's file is not persistent memory",
                "cause": "durability is msync's here, so the file system is measured too",
                "remedy": "put the pool on a DAX file system or device to measure persistent memory",
            }
        )
    return found
