"""The section of simulated runs: time by policy and what it went to, and every run over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tierloom.columns import Column, Row
from tierloom.report import verdicts
from tierloom.report.pages.parts import Chart, Fact, Notes, Picture, Section
from tierloom.report.pages.specs import (
    SI_AXIS,
    bars_height,
    chart,
    field,
    lines,
    memory_scale,
    stacked,
    tips,
)
from tierloom.report.table_layout.table import Table
from tierloom.report.tables.simulations import NODES, counters, node_rows
from tierloom.report.tables.simulations import names as names_of
from tierloom.units import PAGE_BYTES, binary_unit, bytes_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tierloom.migration_simulator import Simulation
    from tierloom.report.pages.sources import Shelf, Source
    from tierloom.schema import OutcomeDoc, PointDoc

PARTS = {
    "compute_s": "computing",
    "stall_s": "memory",
    "fault_s": "hint faults",
    "scan_s": "scans",
    "copy_s": "copies",
    "shootdown_s": "shootdowns",
    "sample_s": "sampling",
}
"""What time goes to, in the order of a stack."""

POINTS = 160
"""Most points of a line; of longer series every so many."""

MOST_BARS = 40
"""More would be higher than a screen."""


class Line(NamedTuple):
    """A quantity over time."""

    title: str
    unit: str
    value: Callable[[PointDoc], float]
    number: str = ".4~g"
    """How one value is written: whole numbers of things by thousands, measures by digits, for 500m GB/s is none."""


COUNTED = ".4~s"
BYTES = "bytes"
"""Drawn in the unit of which there are some."""

LINES = (
    Line("Served by fast memory", "share of accesses", lambda point: point["fast_share"]),
    Line("Held in fast memory", BYTES, lambda point: point["used_pages"][0] * PAGE_BYTES),
    Line("Traffic of fast memory", "GB/s", lambda point: point["gb_s"][0]),
    Line("Traffic of the other memories", "GB/s", lambda point: sum(point["gb_s"][1:])),
    Line("Latency of fast memory", "ns", lambda point: point["latency_ns"][0]),
    Line("Hint faults", "since the start", lambda point: point["counters"]["numa_hint_faults"], COUNTED),
    Line("Pages promoted", "since the start", lambda point: point["counters"]["pgpromote_success"], COUNTED),
    Line(
        "Pages demoted",
        "since the start",
        lambda point: sum(value for name, value in point["counters"].items() if name.startswith("pgdemote")),
        COUNTED,
    ),
)
"""What is drawn over time, where it ever is more than nothing."""

BY_POLICY = "Where the time goes"

DRAWN = (BY_POLICY, "Served by fast memory", "Hint faults", "Pages promoted")
"""Charts of a picture, by title."""


def section(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """Runs of one program under several policies."""
    runs: list[OutcomeDoc] = sorted(source.data["runs"], key=lambda run: (run["time_s"], run["policy"]))
    best = runs[0]
    warnings = sorted({warning for run in runs for warning in run["warnings"]})
    memories = ", ".join(f"{node['memory']} {bytes_text(node['pages'] * PAGE_BYTES)}" for node in best["nodes"])
    return Section(
        kind="simulation",
        title=source.name,
        about=f"Pages that move, on {memories}. Evaluator: {best['evaluator']}.",
        facts=[
            Fact("fastest", best["policy"], best["about"]),
            Fact(
                "its time",
                seconds_text(best["time_s"]),
                f"{runs[-1]['time_s'] / best['time_s']:.2f}x for {runs[-1]['policy']}",
            ),
            Fact("from fast memory", percent_text(best["fast_share"]), f"of accesses under {best['policy']}"),
        ],
        charts=[_times(runs), *_over_time(runs), *_regions(runs)],
        tables=[counters(runs), _nodes(runs)],
        notes=[Notes("Warnings", warnings)] if warnings else [],
    )


def picture(simulations: Sequence[Simulation]) -> Picture:
    """What the runs took, and what moved when, under the answer in a sentence."""
    runs = [run.data for run in simulations]
    charts = {chart.title: chart for chart in (_times(runs), *_over_time(runs))}
    return Picture(
        "What moving pages brings", [charts[title] for title in DRAWN if title in charts], verdicts.moved(simulations)
    )


def _times(runs: Sequence[OutcomeDoc]) -> Chart:
    names = names_of(runs)
    spent: list[Mapping[str, Any]] = [run["parts"] for run in runs]
    parts = {key: name for key, name in PARTS.items() if any(each[key] > 0 for each in spent)}
    rows: list[Row] = [
        {
            "policy": name,
            "placement": run["placement"],
            "part": part,
            "rank": rank,
            "seconds": each[key],
            "share": each[key] / run["time_s"] if run["time_s"] else 0.0,
        }
        for name, run, each in zip(names, runs, spent, strict=True)
        for rank, (key, part) in enumerate(parts.items())
    ]
    tip = tips(("policy", "policy"), ("part", "went to"), ("seconds", "s", ".4~g"), ("share", "of the time", ".1%"))
    colours = {"domain": list(parts.values()), "range": [f"var(--c{c})" for c in (7, 1, 3, 4, 2, 6, 8)][: len(parts)]}
    spec = chart(
        stacked("policy", "seconds", "part", colours, title="run time, s", tooltip=tip, names=names),
        height=bars_height(len(names)),
    )
    columns = [
        *(Column("policy", "policy"), Column("placement", "placed at first"), Column("part", "went to")),
        *(Column("seconds", "time", "seconds"), Column("share", "of the time", "percent")),
    ]
    return Chart(BY_POLICY, spec, Table(columns, rows), about="Shorter is better; the fastest on top.", wide=True)


def _over_time(runs: Sequence[OutcomeDoc]) -> list[Chart]:
    return [chart for line in LINES for chart in _line(line, runs)]


def _line(line: Line, runs: Sequence[OutcomeDoc]) -> list[Chart]:
    names = names_of(runs)
    rows: list[Row] = [
        {"policy": name, "time_s": point["time_s"], "value": line.value(point)}
        for name, run in zip(names, runs, strict=True)
        for point in thinned(run["series"])
    ]
    if not any(row["value"] for row in rows):
        return []
    unit = line.unit
    if unit == BYTES:
        size, unit = binary_unit(max(row["value"] for row in rows))
        rows = [{**row, "value": row["value"] / size} for row in rows]
    share = unit.startswith("share")
    y = {"domain": [0, 1]} if share else {"zero": True}
    encoding = {
        "x": field("time_s", title="time, s", scale={"nice": False}),
        "y": field("value", title=unit, scale=y, axis={"format": ".0%"} if share else SI_AXIS),
        **lines("policy", names),
    }
    tip = tips(("policy", "policy"), ("time_s", "time, s", ".4~g"), ("value", unit, ".1%" if share else line.number))
    spec = chart(
        {"mark": {"type": "line", "strokeWidth": 2, "interpolate": "monotone"}, "encoding": encoding},
        {"mark": {"type": "point", "opacity": 0, "size": 80}, "encoding": {**encoding, "tooltip": tip}},
        height=220,
    )
    columns = [
        *(Column("policy", "policy"), Column("time_s", "time", "seconds")),
        Column("value", unit, "percent" if share else "number"),
    ]
    return [Chart(line.title, spec, Table(columns, rows))]


def thinned(series: Sequence[PointDoc]) -> Sequence[PointDoc]:
    """A series of at most so many points, the last among them."""
    step = max(1, -(-len(series) // POINTS))
    kept = list(series[::step])
    return kept if not series or kept[-1] is series[-1] else [*kept, series[-1]]


def _regions(runs: Sequence[OutcomeDoc]) -> list[Chart]:
    """Where regions were at the end under each policy."""
    memories = [node["memory"] for node in runs[0]["nodes"]]
    size, unit = binary_unit(max((region["pages"] * PAGE_BYTES for region in runs[0]["regions"]), default=0))
    rows: list[Row] = [
        {
            "bar": f"{region['region']}, {name}",
            "region": region["region"],
            "policy": name,
            "memory": memory,
            "rank": rank,
            "amount": share * region["pages"] * PAGE_BYTES / size,
            "share": share,
        }
        for region_at in range(len(runs[0]["regions"]))
        for name, run in zip(names_of(runs), runs, strict=True)
        for region in [run["regions"][region_at]]
        for rank, (memory, share) in enumerate(zip(memories, region["shares"], strict=True))
        if share > 0
    ]
    bars = list(dict.fromkeys(row["bar"] for row in rows))
    if not bars or len(bars) > MOST_BARS:
        return []
    tip = tips(
        ("region", "region"),
        ("policy", "policy"),
        ("memory", "memory"),
        ("share", "of it", ".0%"),
        ("amount", unit, ".3~g"),
    )
    spec = chart(
        stacked("bar", "amount", "memory", memory_scale(memories), title=unit, tooltip=tip, names=bars),
        height=bars_height(len(bars)),
    )
    columns = [
        *(Column("region", "region"), Column("policy", "policy"), Column("memory", "memory")),
        *(Column("share", "of it", "percent"), Column("amount", unit, "gib")),
    ]
    return [Chart("Where everything is at the end", spec, Table(columns, rows), wide=True)]


def _nodes(runs: Sequence[OutcomeDoc]) -> Table:
    named = zip(names_of(runs), runs, strict=True)
    rows = [{"policy": name, **row} for name, run in named for row in node_rows(run)]
    return Table([Column("policy", "policy"), *NODES], rows, "What each memory did")
