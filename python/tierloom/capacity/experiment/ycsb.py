"""YCSB's six core mixes as operations that are the same in every run: which kind, which record, how long a scan.

Source: Cooper et al., *Benchmarking Cloud Serving Systems with YCSB*, SoCC 2010, and the files
``workloads/workloada`` to ``workloadf`` of its release: shares of operations, Zipf's law with 0.99 over scattered
records, the latest records for D, scans of 1 to 100 records for E.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

Kind = Literal["read", "update", "insert", "scan", "modify"]
KINDS: tuple[Kind, ...] = ("read", "update", "insert", "scan", "modify")

LONGEST_SCAN = 100
"""``maxscanlength`` of workload E; lengths are uniform."""


@dataclass(frozen=True, kw_only=True)
class Mix:
    """Shares of each kind of operation, and whether the latest records are the popular ones."""

    read: float = 0.0
    update: float = 0.0
    insert: float = 0.0
    scan: float = 0.0
    modify: float = 0.0
    latest: bool = False


MIXES = {
    "ycsb-a": Mix(read=0.5, update=0.5),
    "ycsb-b": Mix(read=0.95, update=0.05),
    "ycsb-c": Mix(read=1.0),
    "ycsb-d": Mix(read=0.95, insert=0.05, latest=True),
    "ycsb-e": Mix(scan=0.95, insert=0.05),
    "ycsb-f": Mix(read=0.5, modify=0.5),
}


@dataclass(frozen=True)
class Operation:
    """One operation; `length` counts the records of a scan."""

    kind: Kind
    record: int
    length: int = 1


@dataclass(frozen=True, kw_only=True)
class Load:
    """The operations of one thread of a run.

    Attributes:
        mix: Name in `MIXES`.
        records: Records that were loaded before; inserts come behind them.
        operations: Of this thread.
        theta: Zipf's exponent.
        seed: Of everything that is drawn.
        thread: Which of `threads`; each inserts records of its own.
        threads: Threads of the run.
        before: Inserts of this thread that an earlier phase did.
        phase: Warming up and measuring draw different operations.
    """

    mix: str
    records: int
    operations: int
    theta: float
    seed: int
    thread: int
    threads: int
    before: int = 0
    phase: int = 0

    def drawn(self) -> list[Operation]:
        """The operations in order."""
        return list(self._draw())

    @property
    def inserts(self) -> int:
        """Records that this phase inserts."""
        return int((self._kinds() == KINDS.index("insert")).sum())

    def _draw(self) -> Iterator[Operation]:
        ranks, scattered = self._ranks(), _scattered(self.records, self.seed)
        lengths = self._random(2).integers(1, LONGEST_SCAN + 1, self.operations)
        mine = self.before
        for kind, rank, length in zip(self._kinds(), ranks, lengths, strict=True):
            name = KINDS[kind]
            if name == "insert":
                yield Operation(name, self._own(mine))
                mine += 1
            elif MIXES[self.mix].latest:
                yield Operation(name, self._latest(int(rank), mine))
            else:
                yield Operation(name, int(scattered[rank]), int(length) if name == "scan" else 1)

    def _kinds(self) -> npt.NDArray[np.int64]:
        mix = MIXES[self.mix]
        shares = [getattr(mix, kind) for kind in KINDS]
        return self._random(0).choice(len(KINDS), self.operations, p=shares)

    def _ranks(self) -> npt.NDArray[np.int64]:
        popularity = np.cumsum(np.arange(1, self.records + 1, dtype=float) ** -self.theta)
        drawn = np.searchsorted(popularity, self._random(1).random(self.operations) * popularity[-1])
        ranks: npt.NDArray[np.int64] = np.minimum(drawn, self.records - 1)
        return ranks

    def _random(self, what: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, self.phase, self.thread, what))

    def _own(self, index: int) -> int:
        """The record that this thread inserts as its `index`-th."""
        return self.records + index * self.threads + self.thread

    def _latest(self, rank: int, mine: int) -> int:
        """The record that is `rank` records old: of this thread's own inserts, then of those loaded."""
        if rank < mine:
            return self._own(mine - 1 - rank)
        return max(0, self.records - 1 - (rank - mine))


def _scattered(records: int, seed: int) -> npt.NDArray[np.int64]:
    """Records by popularity: popular ones are neighbours of any."""
    return np.random.default_rng(seed).permutation(records)
