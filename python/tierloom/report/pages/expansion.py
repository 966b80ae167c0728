"""The section of GPU memory expansion: configurations side by side, latencies, and a run over time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tierloom.columns import Column, Row
from tierloom.report.pages.parts import Chart, Fact, Picture, Section
from tierloom.report.pages.specs import (
    LEGEND,
    OTHERS,
    OURS,
    SI_AXIS,
    Spec,
    chart,
    dots,
    field,
    labels,
    lines,
    log_marks,
    marked,
    names_axis,
    scale,
    tips,
)
from tierloom.report.table_layout.table import Table
from tierloom.report.tables.expansions import YARDSTICK, comparison, yardstick
from tierloom.units import seconds_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.report.pages.sources import Shelf, Source
    from tierloom.schema import ExpansionDoc

LINE_HEIGHT = 200


def section(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """Runs of one workload on several systems."""
    runs: list[ExpansionDoc] = source.data["runs"]
    setup, base = runs[-1]["setup"], yardstick(runs)
    facts = [Fact("time", seconds_text(runs[-1]["time_s"]), f"under {setup['config']}")]
    if base is not None and base is not runs[-1]:
        facts.append(
            Fact(f"against {YARDSTICK}", f"{runs[-1]['time_s'] / base['time_s']:.2f}x", "a GPU with enough memory")
        )
    facts.append(Fact("accesses", f"{runs[-1]['accesses']:,}", f"{runs[-1]['stores']:,} of them stores"))
    return Section(
        kind="GPU expansion",
        title=f"{runs[-1]['workload']} on {setup['gpu']}",
        about=f"Endpoint of {setup['media']}.",
        facts=facts,
        charts=[_times(runs), *_latencies(runs), *(each for each in _timelines(runs) if _is_busy(each.table.rows))],
        tables=[replace(comparison(runs), title="Every configuration")],
    )


def picture(run: ExpansionDoc) -> Picture:
    """One run over time, what shares a clock above each other."""
    setup = run["setup"]
    about = f"{setup['config']} on {setup['media']}: {seconds_text(run['time_s'])}."
    return Picture(f"{run['workload']} on {setup['gpu']}", _timelines([run]), about, columns=1)


def _times(runs: Sequence[ExpansionDoc]) -> Chart:
    base = yardstick(runs) or runs[0]
    rows: list[Row] = [
        {
            "config": run["setup"]["config"],
            "ms": run["time_s"] * 1e3,
            "time_s": run["time_s"],
            "times": run["time_s"] / base["time_s"],
            "one": 1,
        }
        for run in runs
    ]
    y = names_axis("config", [row["config"] for row in rows])
    colour = {"condition": {"test": f"datum.config === '{YARDSTICK}'", "value": OTHERS}, "value": OURS}
    tip = tips(("config", "configuration"), ("ms", "ms", ".4~g"), ("times", "times", ".2f"))
    x = field("times", title="times a GPU with enough memory", scale=_LOG, axis={"format": "~g"})
    spec = chart(
        {
            "mark": {"type": "rule", "strokeWidth": 4, "opacity": 0.45},
            "encoding": {"y": y, "x": field("one"), "x2": {"field": "times"}, "color": colour},
        },
        dots(130, y=y, x=x, color=colour, tooltip=tip),
        labels("format(datum.times, '.2f') + 'x'", x=field("times"), y=y, dx=11),
        height=max(len(rows) * 30, 80),
    )
    columns = [
        Column("config", "configuration"),
        Column("time_s", "time", "seconds"),
        Column("times", f"against {base['setup']['config']}", "times"),
    ]
    return Chart("Time by configuration", spec, Table(columns, rows))


_LOG = {"type": "log", "nice": False, "padding": 28}


def _latencies(runs: Sequence[ExpansionDoc]) -> list[Chart]:
    rows: list[Row] = [
        {
            "config": run["setup"]["config"],
            "what": what,
            **{name: told[name] for name in ("count", "mean_ns", "p50_ns", "p99_ns", "p999_ns")},
        }
        for run in runs
        for what, told in (("load", run["loads"]), ("store", run["write_backs"]))
        if told["count"]
    ]
    if not rows:
        return []
    configs = list(dict.fromkeys(row["config"] for row in rows))
    colour = field("what", "nominal", None, scale=scale(["load", "store"]), legend=LEGEND)
    place: Spec = {"y": names_axis("config", configs), "yOffset": {"field": "what"}, "color": colour}
    ends = [max(row[key], 1.0) for row in rows for key in ("p50_ns", "mean_ns", "p99_ns")]
    x: Spec = {"title": "ns", "scale": _LOG, "axis": {**SI_AXIS, "values": log_marks(min(ends), max(ends))}}
    spec = chart(
        {
            "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.4},
            "transform": [
                {"calculate": "max(datum.p50_ns, 1)", "as": "low"},
                {"calculate": "max(datum.p99_ns, 1)", "as": "high"},
            ],
            "encoding": {**place, "x": field("low", **x), "x2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "transform": [{"calculate": "max(datum.mean_ns, 1)", "as": "mean"}],
            "encoding": {
                **place,
                "x": field("mean", **x),
                "tooltip": tips(
                    *(("config", "configuration"), ("what", "of"), ("mean_ns", "mean, ns", ".1f")),
                    *(("p50_ns", "median", ".1f"), ("p99_ns", "99 %", ".1f"), ("p999_ns", "99.9 %", ".1f")),
                ),
            },
        },
        height=max(len(configs) * 34, 80),
    )
    columns = [
        *(Column("config", "configuration"), Column("what", "of"), Column("count", "requests", "count")),
        *(Column("mean_ns", "mean", "ns"), Column("p50_ns", "median", "ns"), Column("p99_ns", "99 %", "ns")),
        Column("p999_ns", "99.9 %", "ns"),
    ]
    about = "Beyond the GPU's last-level cache. Line: median to 99th percentile. Dot: mean."
    return [Chart("Latencies of loads and stores", spec, Table(columns, rows), about=about)]


DEV_LOADS = ("light", "optimal", "moderate", "severe")
"""What an endpoint says of its load, by number."""

Lines = tuple[tuple[str, str, int | None], ...]

STEPS = 120
"""Most points of a line over time."""

_LOAD = "DevLoad"

SERIES: tuple[tuple[str, str, Lines], ...] = (
    ("Load latency", "ns", (("median", "load_ns", 0), ("99th percentile", "load_ns", 1))),
    ("Store latency", "ns", (("median", "store_ns", 0), ("99th percentile", "store_ns", 1))),
    ("Queues", "entries", (("ingress queue", "ingress", None), ("store stack", "stack", None))),
    (_LOAD, "", (("DevLoad", "dev_load", None), ("collecting", "collecting", None))),
    ("Use of the links", "share", (("to the endpoints", "link_use", 0), ("to the GPU", "link_use", 1))),
)
"""What is drawn over time: title, unit, and lines by key and position."""


def _timelines(runs: Sequence[ExpansionDoc]) -> list[Chart]:
    """Runs that carry a time series, one at a time, by choice."""
    told = [run for run in runs if run["timeline"]]
    return [_timeline(told, title, unit, lines) for title, unit, lines in SERIES] if told else []


def _is_busy(rows: Sequence[Row]) -> bool:
    """Whether a line ever is more than nothing."""
    return any(row["value"] for row in rows)


def _timeline(runs: Sequence[ExpansionDoc], title: str, unit: str, told: Lines) -> Chart:
    rows = [row for run in runs for row in _steps(run, told)]
    configs = [run["setup"]["config"] for run in runs]
    busy = [config for config in configs if _is_busy([row for row in rows if row["config"] == config])]
    shown = {
        "ns": "datum.value === null ? null : max(datum.value, 1)",
        "": f"datum.what !== 'collecting' ? datum.value : datum.value ? {len(DEV_LOADS) - 0.7} : null",
    }
    bind = {"input": "select", "options": configs, "name": "of: "}
    most = max((row["value"] or 0.0 for row in rows), default=0.0)
    least = min((row["value"] for row in rows if row["value"]), default=1.0)
    decades = [10.0 ** math.floor(math.log10(max(least, 1.0))), 10.0 ** math.ceil(math.log10(max(most, 1.1)))]
    scales: dict[str, Spec] = {
        "ns": {"type": "log", "domain": [decades[0], max(decades[1], 10 * decades[0])]},
        "entries": {"type": "symlog", "domain": [0, max(1.1 * most, 1)]},
        "": {"domain": [0, len(DEV_LOADS) - 0.6]},
        "share": {"domain": [0, most or 1.0], "nice": True},
    }
    axes: dict[str, Spec] = {
        "ns": {**SI_AXIS, "values": log_marks(*scales["ns"]["domain"])},
        "": marked(range(len(DEV_LOADS)), lambda load: DEV_LOADS[int(load)]),
        "share": {"format": ".0%"},
    }
    spec = chart(
        {
            "mark": {
                "type": "line",
                "strokeWidth": 1.6,
                "strokeCap": "round",
                "interpolate": "step-before" if title == _LOAD else "linear",
            },
            "encoding": {
                "x": field("ms", title="time, ms", scale={"nice": False}),
                "y": field("shown", title=unit, scale=scales.get(unit, {}), axis=axes.get(unit, SI_AXIS)),
                **lines("what", [name for name, _, _ in told]),
            },
        },
        height=LINE_HEIGHT,
        params=[{"name": "config", "value": [*configs, *busy][-1], "bind": bind}],
        transform=[{"filter": "datum.config === config"}, {"calculate": shown.get(unit, "datum.value"), "as": "shown"}],
        usermeta={"renderer": "canvas"},
    )
    columns = [
        *(Column("config", "configuration"), Column("time_s", "time", "seconds"), Column("what", "what")),
        Column("value", unit, "number"),
    ]
    about = f"The highest of each of {STEPS} steps." if any(len(run["timeline"]) > STEPS for run in runs) else ""
    return Chart(f"{title} over time", spec, Table(columns, rows), about=about)


def _steps(run: ExpansionDoc, told: Lines) -> list[Row]:
    series = run["timeline"]
    wide = max(1, -(-len(series) // STEPS))
    return [
        {
            "config": run["setup"]["config"],
            "time_s": part[-1]["time_s"],
            "ms": part[-1]["time_s"] * 1e3,
            "what": name,
            "value": _highest(part, key, at),
        }
        for name, key, at in told
        for part in (series[first : first + wide] for first in range(0, len(series), wide))
    ]


def _highest(steps: Sequence[Mapping[str, Any]], key: str, at: int | None) -> float | None:
    """Of some steps; a latency in which nothing came is none, not the axis's lowest."""
    values = [float(step[key] if at is None else step[key][at]) for step in steps]
    return None if key.endswith("_ns") and not max(values) else max(values)
