"""Threads that work on data in several tiers: a key-value store, or an operator that streams.

A thread alternates between computing and waiting for cache lines, some of them one after another. What it
waits for a line depends on where the line is and on how loaded that memory is, by the machine's curves;
the load depends on how fast the threads go. This is solved for. A thread that meets data on storage waits
for a read of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.capacity.skew import hottest
from tierloom.offload.cpu_only import loaded
from tierloom.units import LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.offload.host import Tier

ROUNDS = 60
"""Halvings of the interval that holds the throughput."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation of a thread.

    Attributes:
        compute_s: Seconds of computing.
        waits: Cache lines waited for one after another: pointers, the first line of a value.
        lines: All lines that the operation moves: its traffic.
        storage_reads: Reads from storage if its data is there.
    """

    compute_s: float
    waits: float
    lines: float
    storage_reads: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Where accesses go: a share by memory, and the share that finds its data on storage."""

    memories: Mapping[str, float]
    storage: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Rate:
    """What comes out: operations a second, and mean loaded latency by memory, s."""

    operations_s: float
    latency_s: Mapping[str, float]
    bound: str


def rate(
    operation: Operation, tiers: Mapping[str, Tier], spread: Spread, threads: int, storage: Tier | None = None
) -> Rate:
    """Operations per second of all threads together."""
    shares = {name: share for name, share in spread.memories.items() if share > 0.0}
    traffic = operation.lines * LINE_BYTES * (1.0 - spread.storage)
    moved = max(traffic, LINE_BYTES)
    limits = [(tiers[name].read_bytes_s / (moved * share), f"bandwidth of {name}") for name, share in shares.items()]
    most, bound = min(limits)
    low, high = 0.0, most
    for _ in range(ROUNDS):
        middle = 0.5 * (low + high)
        if middle * _seconds(operation, tiers, spread, traffic * middle, storage) <= threads:
            low = middle
        else:
            high = middle
    latency = {name: loaded(tiers[name], share * traffic * low) for name, share in shares.items()}
    return Rate(operations_s=low, latency_s=latency, bound=bound if low > most * (1.0 - 1e-9) else "latency")


def interleaved(pages: Mapping[str, int]) -> Spread:
    """Pages in turn, so accesses too, however uneven they are.

    Example:
        >>> interleaved({"dram": 3, "cxl": 1}).memories
        {'dram': 0.75, 'cxl': 0.25}
    """
    whole = sum(pages.values())
    return Spread(memories={name: count / whole for name, count in pages.items()})


def promoted(fast: str, slow: str, fast_share: float, records_per_page: int, theta: float) -> Spread:
    """The hottest pages in the fast memory, as many as fit, as hot-page promotion tends to."""
    hot = hottest(fast_share, records_per_page, theta)
    return Spread(memories={fast: hot, slow: 1.0 - hot})


def evicted(memory: str, storage_share: float, theta: float) -> Spread:
    """A share of the records on storage, the coldest of them: what a cache of records at its best does."""
    return Spread(memories={memory: 1.0}, storage=1.0 - hottest(1.0 - storage_share, 1, theta))


def _seconds(
    operation: Operation, tiers: Mapping[str, Tier], spread: Spread, bytes_s: float, storage: Tier | None
) -> float:
    """Seconds of one operation of one thread while all together move `bytes_s`."""
    line = sum(share * loaded(tiers[name], share * bytes_s) for name, share in spread.memories.items() if share > 0.0)
    reading = storage.idle_s * operation.storage_reads * spread.storage if storage else 0.0
    return operation.compute_s + operation.waits * line + reading
