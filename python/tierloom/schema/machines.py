"""How machines were measured and where they were read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    pass


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
