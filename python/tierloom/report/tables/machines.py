"""Tables of machines: what memory there is, how far, how much of it, and says who."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from tierloom.columns import Column
from tierloom.nouns.machine import PATHS, load_origin
from tierloom.report.table_layout.table import Table, known
from tierloom.units import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import RenderableType

    from tierloom.columns import Row
    from tierloom.nouns import Machine
    from tierloom.schema import Figure, Origin

BLOCKS = "▁▂▃▄▅▆▇█"
"""Eighths of a line, for curves in a terminal."""


def machine_list(machines: Iterable[Machine]) -> Table:
    """One line a machine."""
    columns = [Column("name", "machine"), Column("memories", "memories", rank="key"), Column("title", "what it is")]
    return Table(columns, [{**machine.data, "memories": _memories(machine)} for machine in machines], None)


def _memories(machine: Machine) -> str:
    """What holds data, in one cell."""
    return ", ".join(f"{m['name']} {bytes_text(m['capacity_bytes']['value'])}" for m in machine.data["memories"])


def summary(machine: Machine) -> tuple[RenderableType, ...]:
    """Who computes, what holds data, and how far it is."""
    head = f"{machine.name}: {machine.data['title']}\n"
    return head, sockets(machine), memories(machine), paths(machine)


SOCKETS = (
    *(Column("name", "socket"), Column("cpu", "processor", rank="key"), Column("cores", "cores", "number", "key")),
    *(Column("llc_bytes", "last-level cache", "bytes"), Column("llc_per_core_bytes", "of it, per core", "bytes")),
    *(Column("llc_ns", "its latency", "ns"), Column("stream_lines", "lines in flight, streaming", "number")),
    Column("demand_lines", "demand", "number"),
)
MEMORIES = (
    *(Column("name", "node"), Column("kind", "kind"), Column("socket", "on")),
    *(Column("capacity_bytes", "capacity", "bytes", "key"), Column("lines_in_flight", "lines in flight", "number")),
    Column("usd_per_gib", "US$/GiB", "number"),
)
CURVE = Column("curve", "0 to 95 %", rank="extra")


def sockets(machine: Machine) -> Table:
    """Who computes."""
    return known(SOCKETS, machine.data["sockets"], "Sockets")


def memories(machine: Machine) -> Table:
    """What holds data."""
    return known(MEMORIES, machine.data["memories"], "Memories")


def paths(machine: Machine) -> Table:
    """How far each memory is, at rest and under load."""
    told_apart = any("random_idle_ns" in path for path in machine.data["paths"])
    *figures, over = (column for column in PATHS if told_apart or column.key != "random_idle_ns")
    rows = [{**row, "curve": _curve(machine, row)} for row in machine.told()]
    made = Table([*figures, CURVE, over], rows, "Paths")
    sequence = "idle ns: reads in sequence; random ns: random reads, by so much slower at any load. "
    rest = "GB/s: highest, by read share. ns and curve: latency at a share of the read-only peak."
    return replace(made, note=f"{sequence * told_apart}{rest}", has_legend=True)


def _curve(machine: Machine, path: Row) -> str:
    """Latency of reads from rest to 95 % of the peak."""
    reads = machine.curve(path["from"], path["to"])
    return sparkline([math.log(reads.latency_ns(step / 20)) for step in range(20)])


def sources(machine: Machine) -> Table:
    """What the source keys stand for."""
    columns = [Column("key", "key", "code"), Column("source", "source", rank="key")]
    rows = [{"key": key, "source": text} for key, text in machine.data["sources"].items()]
    return Table(columns, rows, "Sources")


def origins(machine: Machine) -> Table:
    """Every figure with its source, and how a derived or assumed one came about."""
    columns = [
        *(Column("figure", "figure"), Column("value", "value", "number", "key")),
        *(Column("source", "source", "code", "key"), Column("how", "how", rank="key")),
    ]
    rows = [
        {"figure": place, "value": {"value": value, "kind": origin["kind"]}, **_said(origin)}
        for place, value, origin in figures(machine)
    ]
    return Table(columns, rows, "Figures", has_legend=True)


def _said(origin: Origin) -> dict[str, str]:
    return {"source": origin["source"], "how": origin.get("how", "")}


def figures(machine: Machine) -> Iterator[tuple[str, str, Origin]]:
    """Every figure of a machine: what it is, its value, where it comes from."""
    parts: list[tuple[str, Any]] = [
        *((item["name"], item) for item in machine.data["sockets"]),
        *((item["name"], item) for item in machine.data["memories"]),
        *((item["name"], item) for item in machine.data.get("links", [])),
        *((f"{item['from']} to {item['to']}", item) for item in machine.data["paths"]),
    ]
    for name, part in parts:
        for key, value in part.items():
            if isinstance(value, dict) and "value" in value:
                text = bytes_text(value["value"]) if key.endswith("_bytes") else f"{value['value']:g}"
                yield f"{name}: {key}", text, cast("Figure", value)
        if "load" in part:
            yield f"{name}: load", "curve", load_origin(part)


def sparkline(values: list[float]) -> str:
    """Values as a line of blocks, scaled from their least to their greatest.

    Example:
        >>> sparkline([1.0, 1.0, 2.0])
        '▁▁█'
    """
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(BLOCKS[round((value - low) / span * (len(BLOCKS) - 1))] for value in values)
