"""A job that spills: how long it takes with how much memory, for how many streams at once.

Streams share the cores, so computing grows with them; they share the memory too, so each has less of it
and what does not fit goes to storage and back:

    time(m, S)  = compute (1 - alone + alone S) + scan h(m) + storage S h(m / S^sharing)
    h(m)        = |(reference/m)^a - (reference/working set)^a|, nothing above the working set

A power of memory below the working set and nothing above it: a hyperbola at a = 1, a straight line at -1.
Scans are read once for all streams, what a stream spills is its own. Its constants come from a few runs
(`fitting`) or from published figures (`published_tpch`); this engine knows neither.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

STREAMS = 64
"""Most streams that a peak is looked for at."""


@dataclass(frozen=True, kw_only=True)
class Spill:
    """How one job's time depends on memory and streams.

    Attributes:
        compute_s: Seconds of one stream by itself that more memory does not save.
        alone: Share of the machine that one stream uses by itself, 0 to 1: at 1 streams only queue.
        storage_s: Seconds that one stream spends on spilling with the reference memory and no working set.
        exponent: By which power spilling falls as memory grows; below 0 only with a working set.
        sharing: By which power of the streams the memory that a job needs grows: 0 all shared, 1 nothing.
        reference_bytes: Memory that `storage_s` is about.
        scan_s: Seconds of reading that all streams share, with the reference memory and no working set.
        working_set_bytes: From this memory on, one stream spills nothing; infinite where none is known.
    """

    compute_s: float
    storage_s: float
    exponent: float
    reference_bytes: float
    scan_s: float = 0.0
    working_set_bytes: float = math.inf
    alone: float = 1.0
    sharing: float = 1.0

    def computing_s(self, streams: float = 1.0) -> float:
        """Seconds that memory does not change, for this many streams at once."""
        return self.compute_s * (1.0 - self.alone + self.alone * streams)

    def spilling_s(self, memory_bytes: float, streams: float = 1.0) -> float:
        """Seconds that spilling adds."""
        own = self.storage_s * streams * self.shape(memory_bytes, streams)
        return own + self.scan_s * self.shape(memory_bytes)

    def shape(self, memory_bytes: float, streams: float = 1.0) -> float:
        """Spilling of a stream, 1 with the reference memory, one stream, and no working set."""
        return spill_shape(
            memory_bytes / streams**self.sharing, self.reference_bytes, self.exponent, self.working_set_bytes
        )

    def seconds(self, memory_bytes: float, streams: float = 1.0) -> float:
        """Seconds until all streams are done."""
        return self.computing_s(streams) + self.spilling_s(memory_bytes, streams)

    def throughput(self, memory_bytes: float, streams: float = 1.0) -> float:
        """Streams done per second."""
        return streams / self.seconds(memory_bytes, streams)

    def stall(self, memory_bytes: float, streams: float = 1.0) -> float:
        """Share of the time that spilling takes."""
        return self.spilling_s(memory_bytes, streams) / self.seconds(memory_bytes, streams)

    def speed_up(self, from_bytes: float, to_bytes: float, streams: float = 1.0) -> float:
        """How many times as fast the job runs with other memory."""
        return self.seconds(from_bytes, streams) / self.seconds(to_bytes, streams)

    def peak(self, memory_bytes: float, tried: Iterable[int] = range(1, STREAMS + 1)) -> int:
        """Number of streams with the highest throughput, the least of them where several have it."""
        return max(tried, key=lambda streams: self.throughput(memory_bytes, streams))


def spill_shape(memory_bytes: float, reference_bytes: float, exponent: float, working_set_bytes: float) -> float:
    """A power of memory below the working set, nothing above.

    Example:
        >>> spill_shape(2.0, 1.0, 2.0, float("inf")), spill_shape(2.0, 1.0, 2.0, 2.0)
        (0.25, 0.0)
        >>> [spill_shape(memory, 1.0, -1.0, 4.0) for memory in (1.0, 2.0, 3.0)]
        [3.0, 2.0, 1.0]
    """
    if memory_bytes >= working_set_bytes:
        return 0.0
    rest = 0.0 if math.isinf(working_set_bytes) else (reference_bytes / working_set_bytes) ** exponent
    return float(abs((reference_bytes / memory_bytes) ** exponent - rest))


def amdahl(stall: float, traffic: float) -> float:
    """Speed-up when a share `stall` of the time waits for storage and the traffic shrinks to `traffic` of it.

    Example:
        >>> round(amdahl(0.5, 0.1), 3)
        1.818
    """
    return 1.0 / (1.0 - stall * (1.0 - traffic))
