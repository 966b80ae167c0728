"""Runs of a job with different amounts of memory. A noun."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


FIGURES = ("seconds", "cpu_s", "read_bytes", "written_bytes", "spilled_bytes")
"""What is counted of a run."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run; bytes and CPU seconds are those of the whole run, 0 where nobody counted."""

    memory_bytes: int
    seconds: float
    streams: int = 1
    cpu_s: float = 0.0
    read_bytes: float = 0.0
    written_bytes: float = 0.0
    spilled_bytes: float = 0.0

    @property
    def storage_bytes(self) -> float:
        """Traffic to and from storage."""
        return self.read_bytes + self.written_bytes


def medians(runs: Iterable[Run]) -> list[Run]:
    """One run for each memory and number of streams: the medians of its repeats, least memory first."""
    groups: dict[tuple[int, int], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.streams, run.memory_bytes), []).append(run)
    return [_middle(group) for _, group in sorted(groups.items())]


def _middle(group: list[Run]) -> Run:
    first = group[0]
    middle = {name: median(getattr(run, name) for run in group) for name in FIGURES}
    return Run(memory_bytes=first.memory_bytes, streams=first.streams, **middle)
