"""Machines, how they were measured and where they were read from."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Kind = Literal["measured", "published", "derived", "assumed"]


class Origin(TypedDict):
    """Where a number comes from."""

    kind: Kind
    source: str
    how: NotRequired[str]


class Figure(Origin):
    """A number that says where it comes from."""

    value: float


class SocketDoc(TypedDict):
    """A group of cores with a last-level cache."""

    name: str
    cpu: str
    cores: Figure
    llc_bytes: Figure
    llc_per_core_bytes: Figure
    stream_lines: Figure
    demand_lines: Figure


class MemoryDoc(TypedDict):
    """A memory node."""

    name: str
    kind: Literal["dram", "cxl", "hbm", "pmem", "ssd"]
    socket: str
    capacity_bytes: Figure
    usd_per_gib: NotRequired[Figure]


class LinkDoc(TypedDict):
    """An interconnect that paths share."""

    name: str
    gb_s_each_way: Figure


class PathDoc(TypedDict):
    """From a socket to a memory."""

    to: str
    idle_ns: Figure
    links: NotRequired[list[str]]
    writes_at_home: NotRequired[Figure]
    load: dict[str, Any]


# `from` is a keyword, so this key needs the other way to spell a TypedDict.
_From = TypedDict("_From", {"from": str})


class FromTo(_From, PathDoc):
    """A path with both of its ends."""


class MachineDoc(TypedDict):
    """What memory there is and what it costs to reach it."""

    version: int
    name: str
    title: str
    notes: NotRequired[list[str]]
    sources: dict[str, str]
    sockets: list[SocketDoc]
    memories: list[MemoryDoc]
    links: NotRequired[list[LinkDoc]]
    paths: list[FromTo]


class ContentDoc(TypedDict):
    """One section of a report: its charts by title, and how many tables it has besides."""

    kind: str
    title: str
    charts: list[str]
    tables: int


class WarningDoc(TypedDict):
    """A doubt about a measurement."""

    what: str
    cause: str
    remedy: str


class ImportDoc(TypedDict):
    """A machine that others have described: what `machine import --json` prints."""

    machine: MachineDoc
    warnings: list[WarningDoc]


class MeasurementDoc(TypedDict):
    """What was measured of this machine, raw; the parts are described in ``crates/probe/src/report.rs``."""

    name: str
    date: str
    host: dict[str, Any]
    migration: dict[str, Any]
    instructions: str
    scale: dict[str, Any]
    seconds: float
    arithmetic_ns: dict[str, float]
    latencies: list[dict[str, Any]]
    bandwidths: list[dict[str, Any]]
    scattered: list[dict[str, Any]]
    loaded: list[dict[str, Any]]
    together: list[dict[str, Any]]
    warnings: list[WarningDoc]
