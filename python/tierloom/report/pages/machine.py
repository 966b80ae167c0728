"""The section of a machine: topology, loaded-latency curves, every figure with its origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.columns import Column, Row
from tierloom.nouns import Machine
from tierloom.report.pages import topology
from tierloom.report.pages.parts import Chart, Drawing, Fact, Notes, Picture, Section
from tierloom.report.pages.specs import DASHES, INK, LEGEND, SI_AXIS, chart, field, log_marks, memory_scale, tips
from tierloom.report.table_layout.table import Table
from tierloom.report.tables.machines import memories, origins, paths, sockets, sources
from tierloom.units import bytes_text

if TYPE_CHECKING:
    from tierloom.report.pages.sources import Shelf, Source
    from tierloom.schema import PathDoc

MIXES = ((1.0, "reads only"), (2 / 3, "2 reads a write"))
"""Read shares that are drawn: pure reads, and STREAM's triad."""

STEPS = 60
CEILING = 4.0
"""Fitted forms rise without bound towards the peak; curves end where waits are so many times the longest idle one."""

BESIDE = 0.04
"""Distance of a name from its curves, in heights of the chart."""

TABLE_STEP = 6
"""Of the points that are drawn, the table lists one of so many."""


def section(source: Source, shelf: Shelf) -> Section:
    """What memory there is, how far, how much of it."""
    machine = shelf.machine(source.data["name"]) or Machine.from_data(source.data)
    data = machine.data
    return Section(
        kind="machine",
        title=machine.name,
        about=data["title"],
        facts=_facts(machine),
        charts=[_drawing(machine), *_curves(machine)],
        tables=[sockets(machine), memories(machine), origins(machine), sources(machine)],
        notes=[Notes("Notes", data["notes"])] if data.get("notes") else [],
    )


def picture(machine: Machine) -> Picture:
    """The curves alone."""
    charts = _curves(machine)
    return Picture(machine.name, charts, about=machine.data["title"], columns=min(len(charts), 2))


def _facts(machine: Machine) -> list[Fact]:
    data = machine.data
    capacity = sum(memory["capacity_bytes"]["value"] for memory in data["memories"])
    idle = [path["idle_ns"]["value"] for path in data["paths"]]
    cores = sum(socket["cores"]["value"] for socket in data["sockets"])
    return [
        Fact("cores", f"{cores:.0f}", f"on {len(data['sockets'])} sockets or parts of one"),
        Fact("memory", bytes_text(capacity), f"in {len(data['memories'])} nodes"),
        Fact("nearest, at rest", f"{min(idle):.0f} ns", "idle latency of the shortest path"),
        Fact("farthest, at rest", f"{max(idle):.0f} ns", f"{max(idle) / min(idle):.1f} times the nearest"),
    ]


def _drawing(machine: Machine) -> Drawing:
    shapes = {"wide": topology.draw(machine, columns=2), "narrow": topology.draw(machine, columns=1)}
    return Drawing(
        "Topology",
        shapes,
        paths(machine),
        about="Latency at rest and highest bandwidth of reads from each socket to its own memories; a wire is as "
        "thick as its path is wide. The table has the paths to other sockets' memories too.",
    )


def _curves(machine: Machine) -> list[Chart]:
    """One chart a socket from which the memories look different."""
    seen: list[tuple[float, ...]] = []
    made = []
    for socket in machine.data["sockets"]:
        reached = [path for path in machine.data["paths"] if path["from"] == socket["name"]]
        look = tuple(sorted(path["idle_ns"]["value"] for path in reached))
        if reached and look not in seen:
            made.append(_curve(machine, socket["name"], reached))
            seen.append(look)
    return made


def _curve(machine: Machine, socket: str, reached: list[PathDoc]) -> Chart:
    ceiling = CEILING * max(path["idle_ns"]["value"] for path in reached)
    rows = [row for path in reached for row in _points(machine, path, ceiling)]
    axis = {**SI_AXIS, "values": log_marks(1.0, max(row["gb_s"] for row in rows))}
    spec = chart(
        {
            "mark": {"type": "line", "clip": True, "strokeWidth": 2.2},
            "encoding": {
                "x": field("gb_s", title="bandwidth, GB/s", scale={"type": "log", "nice": False}, axis=axis),
                "y": field("latency_ns", title="latency, ns", scale={"domain": [0, ceiling]}),
                "color": field("memory", "nominal", None, scale=_memories(machine, reached), legend=_STROKES),
                "strokeDash": field("mix", "nominal", None, scale=_DASHES, legend=_STROKES),
            },
        },
        {
            "mark": {"type": "point", "size": 60, "opacity": 0, "filled": True, "clip": True},
            "encoding": {
                "x": field("gb_s"),
                "y": field("latency_ns"),
                "color": field("memory", "nominal", None),
                "tooltip": tips(
                    ("memory", "memory"), ("mix", "traffic"), ("gb_s", "GB/s", ".3~g"), ("latency_ns", "ns", ".0f")
                ),
            },
        },
        {
            "data": {"values": _names(rows, ceiling)},
            "mark": {"type": "text", "align": "left", "dx": 3, "fontSize": 11, "fontWeight": "bold"},
            "encoding": {
                "x": field("gb_s"),
                "y": field("at_ns"),
                "text": {"field": "memory"},
                "color": {"value": INK},
            },
        },
    )
    columns = [
        *(Column("memory", "memory"), Column("mix", "traffic"), Column("load", "of its peak", "percent")),
        *(Column("gb_s", "bandwidth", "gb_s"), Column("latency_ns", "latency", "ns")),
    ]
    listed = [row for row in rows if row["step"] % TABLE_STEP == 0]
    return Chart(
        f"Latency under load, from {socket}",
        spec,
        Table(columns, listed, note=f"One of {TABLE_STEP} points that are drawn."),
        values=rows,
        about="What a memory answers in when other traffic is there. Each curve ends at 99 % of what its memory gives. "
        "Where a program asks for more, its lines queue, and the latency in a plan is that of the queue.",
    )


_STROKES = {**LEGEND, "symbolType": "stroke", "symbolStrokeWidth": 2.2}
_DASHES = {"domain": [name for _, name in MIXES], "range": [list(each) for each in DASHES[:2]]}


def _names(rows: list[Row], ceiling: float) -> list[Row]:
    """Names where curves begin: the nearest memory's below its curves, the others' above theirs and each other."""
    begun: dict[str, list[float]] = {}
    for row in rows:
        if row["step"] == 0:
            begun.setdefault(row["memory"], []).append(row["latency_ns"])
    nearest, *others = sorted(begun, key=lambda name: begun[name])
    apart = BESIDE * ceiling
    at_ns = max(min(begun[nearest]) - apart, apart / 2)
    made: list[Row] = [{"memory": nearest, "gb_s": 1.0, "at_ns": at_ns}]
    for name in others:
        at_ns = max(max(begun[name]) + apart, at_ns + 1.5 * apart)
        made.append({"memory": name, "gb_s": 1.0, "at_ns": at_ns})
    return made


def _points(machine: Machine, path: PathDoc, ceiling: float) -> list[Row]:
    rows: list[Row] = []
    for mix, name in MIXES:
        curve = machine.curve(path["from"], path["to"], mix, STEPS)
        for step, (gb_s, ns) in enumerate(curve.points):
            row = {"memory": path["to"], "mix": name, "step": step, "load": gb_s / curve.peak_gb_s}
            if ns <= 2 * ceiling:
                rows.append({**row, "gb_s": max(gb_s, 1.0), "latency_ns": ns})
    return rows


def _memories(machine: Machine, reached: list[PathDoc]) -> dict[str, Any]:
    names = {path["to"] for path in reached}
    colours = topology.colours(machine)
    listed = [memory["name"] for memory in machine.data["memories"] if memory["name"] in names]
    return {**memory_scale(listed), "range": [colours[name] for name in listed]}
