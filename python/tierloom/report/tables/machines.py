"""Tables of machines: what memory there is, how far, how much of it, and says who."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

from rich.text import Text

from tierloom.report.tables.layout import Heading, noted, table
from tierloom.report.tables.marks import LEGEND, marked
from tierloom.units import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import RenderableType

    from tierloom.nouns import Machine
    from tierloom.report.tables.layout import Table
    from tierloom.schema import Figure, Origin, PathDoc

BLOCKS = "▁▂▃▄▅▆▇█"
"""Eighths of a line, for curves in a terminal."""

RANDOM: tuple[Heading, ...] = (("random ns", "right"),)
"""The column of random reads' idle latency, for machines that tell it from that of reads in sequence."""

LATENCY: tuple[Heading, ...] = (("its ns", "right"),)
"""The column of the last-level cache's latency, for machines of which somebody measured it."""

LINES: tuple[Heading, ...] = (("lines in flight", "right"),)
"""The column of the most lines under way to a memory, for machines with one that has a limit."""

PRICE: tuple[Heading, ...] = (("US$/GiB", "right"),)
"""The column of prices, for machines that have any."""

WRITE_MIXES = (2 / 3, 1 / 2)
"""Read shares beside pure reads: two reads a write (STREAM's triad), and a copy."""


def machine_list(machines: Iterable[Machine]) -> Table:
    """One line a machine."""
    made = table(None, ("machine", "left"), ("memories", "left", "key"), ("what it is", "left"))
    for machine in machines:
        memories = ", ".join(
            f"{m['name']} {bytes_text(m['capacity_bytes']['value'])}" for m in machine.data["memories"]
        )
        made.add_row(machine.name, memories, machine.data["title"])
    return made


def summary(machine: Machine) -> tuple[RenderableType, ...]:
    """Who computes, what holds data, and how far it is."""
    head = f"{machine.name}: {machine.data['title']}\n"
    return head, sockets(machine), memories(machine), paths(machine)


def sockets(machine: Machine) -> Table:
    """Who computes."""
    timed = any("llc_ns" in socket for socket in machine.data["sockets"])
    made = table(
        "Sockets",
        ("socket", "left"),
        ("processor", "left", "key"),
        ("cores", "right", "key"),
        ("last-level cache", "right"),
        ("of it, per core", "right"),
        *LATENCY[:timed],
        ("lines in flight, streaming", "right"),
        ("demand", "right"),
    )
    for socket in machine.data["sockets"]:
        latency = [_number(socket["llc_ns"]) if "llc_ns" in socket else ""] if timed else []
        made.add_row(
            socket["name"],
            socket["cpu"],
            _number(socket["cores"]),
            _bytes(socket["llc_bytes"]),
            _bytes(socket["llc_per_core_bytes"]),
            *latency,
            _number(socket["stream_lines"]),
            _number(socket["demand_lines"]),
        )
    return made


def memories(machine: Machine) -> Table:
    """What holds data."""
    limited = any("lines_in_flight" in memory for memory in machine.data["memories"])
    priced = any("usd_per_gib" in memory for memory in machine.data["memories"])
    made = table(
        "Memories",
        ("node", "left"),
        ("kind", "left"),
        ("on", "left"),
        ("capacity", "right", "key"),
        *LINES[:limited],
        *PRICE[:priced],
    )
    for memory in machine.data["memories"]:
        lines = [_number(memory["lines_in_flight"]) if "lines_in_flight" in memory else ""] if limited else []
        price = [_number(memory["usd_per_gib"])] if "usd_per_gib" in memory else []
        capacity = _bytes(memory["capacity_bytes"])
        made.add_row(memory["name"], memory["kind"], memory["socket"], capacity, *lines, *price)
    return made


def paths(machine: Machine) -> Table:
    """How far each memory is, at rest and under load."""
    told_apart = any("random_idle_ns" in path for path in machine.data["paths"])
    made = table(
        "Paths",
        ("from", "left"),
        ("to", "left", "key"),
        ("idle ns", "right", "key"),
        *RANDOM[:told_apart],
        ("GB/s, reads only", "right", "key"),
        ("2 reads : 1 write", "right"),
        ("1 : 1", "right"),
        ("ns at 50 %", "right"),
        ("at 90 %", "right"),
        ("0 to 95 %", "left", "extra"),
    )
    for path in machine.data["paths"]:
        reads, kind = machine.curve(path["from"], path["to"]), load_origin(path)["kind"]
        peaks = [reads.peak_gb_s, *(machine.curve(path["from"], path["to"], mix).peak_gb_s for mix in WRITE_MIXES)]
        made.add_row(
            path["from"],
            path["to"],
            _ns(path["idle_ns"]),
            *([_ns(path.get("random_idle_ns", path["idle_ns"]))] if told_apart else []),
            *(marked(f"{peak:.1f}", kind) for peak in peaks),
            f"{reads.latency_ns(0.5):.0f}",
            f"{reads.latency_ns(0.9):.0f}",
            sparkline([math.log(reads.latency_ns(step / 20)) for step in range(20)]),
        )
    sequence = "idle ns: reads in sequence; random ns: random reads, by so much slower at any load. "
    rest = f"GB/s: highest, by read share. ns and curve: latency at a share of the read-only peak. {LEGEND}"
    return noted(made, f"{sequence * told_apart}{rest}")


def load_origin(path: PathDoc) -> Origin:
    """Where the numbers of a path's load come from; of several curves, the first one's."""
    load = path["load"]
    origin: Origin = load["form"]["origin"] if "form" in load else load["points"][0]["origin"]
    return origin


def sources(machine: Machine) -> Table:
    """What the source keys stand for."""
    made = table("Sources", ("key", "left"), ("source", "left", "key"))
    for key, text in machine.data["sources"].items():
        made.add_row(key, text)
    return made


def origins(machine: Machine) -> Table:
    """Every figure with its source, and how a derived or assumed one came about."""
    made = table(
        "Figures", ("figure", "left"), ("value", "right", "key"), ("source", "left", "key"), ("how", "left", "key")
    )
    for place, value, origin in figures(machine):
        made.add_row(place, marked(value, origin["kind"]), origin["source"], origin.get("how", ""))
    return noted(made, LEGEND)


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


def _number(figure: Figure) -> Text:
    return marked(f"{figure['value']:.4g}", figure["kind"])


def _ns(figure: Figure) -> Text:
    return marked(f"{figure['value']:.0f}", figure["kind"])


def _bytes(figure: Figure) -> Text:
    return marked(bytes_text(figure["value"]), figure["kind"])
