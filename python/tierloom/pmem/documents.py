"""The shapes of the documents that ``tierloom pmem --json`` prints; sizes and offsets are in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from tierloom.schema import WarningDoc


class PoolArrayDoc(TypedDict):
    """An array of a persistent pool; a version other than 0 belongs to a checkpoint."""

    name: str
    elements: str
    offset_bytes: int
    size_bytes: int
    version: int
    checksums: bool


class PoolDoc(TypedDict):
    """A persistent pool: what ``tierloom pmem show --json`` prints; none stands for what libpmemobj does not say."""

    path: str
    backend: str
    durability: str
    pool_bytes: int
    data_bytes: int | None
    used_bytes: int
    longest_free_bytes: int | None
    log_bytes: int | None
    unfinished_ranges: int | None
    """Of a transaction that a crash cut off, which opening undoes; none is what libpmemobj says."""
    arrays: list[PoolArrayDoc]


class RateDoc(TypedDict):
    """Bandwidth of one kernel over the counted rounds."""

    best_gb_s: float
    median_gb_s: float
    worst_gb_s: float


class StreamRunDoc(TypedDict):
    """STREAM at one number of threads; rates are by kernel."""

    mode: str
    series: str | None
    threads: int
    cpus: list[int]
    rates: dict[str, RateDoc]
    published_triad_gb_s: float | None


class OverheadDoc(TypedDict):
    """What the pool costs: the share of the volatile bandwidth that is missing, by kernel."""

    series: str | None
    threads: int
    shares: dict[str, float]


class StreamDoc(TypedDict):
    """What ``tierloom pmem stream --json`` prints; without a pool its three keys are null."""

    pool: str | None
    backend: str | None
    durability: str | None
    persist: str
    array_bytes: int
    runs: list[StreamRunDoc]
    overheads: list[OverheadDoc]
    warnings: list[WarningDoc]


class PublishedSeriesDoc(TypedDict):
    """A published series of a test group; numbers of threads are text, as JSON has it."""

    name: str
    mode: str
    memory: str
    threads_on: str
    affinity: str
    triad_gb_s: dict[str, float]
    overheads: dict[str, float]
    measured_here: bool


class GroupDoc(StreamDoc):
    """What ``tierloom pmem stream --group G --json`` prints."""

    group: str
    title: str
    source: str
    published: list[PublishedSeriesDoc]
