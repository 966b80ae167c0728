"""What each memory does under a placement: how busy it is, and what it then answers in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.report.pages.parts import Chart, Column, Row, Table
from tierloom.report.pages.specs import FAINT, INK, chart, field, memory_scale, names_axis, tips

if TYPE_CHECKING:
    from tierloom.schema import PredictionDoc


def charts(told: PredictionDoc) -> list[Chart]:
    """How busy each memory is, and what that costs in latency."""
    used = [tier for tier in told["tiers"] if tier["placed_bytes"] > 0 or tier["gb_s"] > 0]
    if not used:
        return []
    rows: list[Row] = [
        {
            "memory": tier["memory"],
            "held": tier["placed_bytes"],
            "use": tier["utilisation"],
            "gb_s": tier["gb_s"],
            "idle_ns": tier["idle_ns"],
            "loaded_ns": tier["loaded_ns"],
            "read": tier["read_bytes"],
            "written": tier["write_bytes"],
        }
        for tier in used
    ]
    names = [tier["memory"] for tier in told["tiers"]]
    colour = field("memory", "nominal", None, scale=memory_scale(names), legend=None)
    columns = [
        *(Column("memory", "memory"), Column("held", "holds", "bytes"), Column("read", "read", "bytes")),
        *(
            Column("written", "written", "bytes"),
            Column("gb_s", "traffic", "gb_s"),
            Column("use", "of its peak", "percent"),
        ),
        *(Column("idle_ns", "at rest", "ns"), Column("loaded_ns", "under this load", "ns")),
    ]
    tip = tips(
        *(("memory", "memory"), ("gb_s", "GB/s", ".3~g"), ("use", "of its peak", ".1%")),
        *(("idle_ns", "at rest, ns", ".0f"), ("loaded_ns", "under load, ns", ".0f")),
    )
    table = Table(columns, rows)
    busy = Chart("How busy each memory is", _load_spec(rows, colour, tip), table, about="Over the whole run.")
    return [busy, _latency(table, rows, colour, tip)]


def _load_spec(rows: list[Row], colour: dict[str, Any], tip: list[dict[str, Any]]) -> dict[str, Any]:
    y = names_axis("memory", [row["memory"] for row in rows])
    return chart(
        {
            "mark": {"type": "bar", "height": {"band": 0.6}, "color": FAINT, "cornerRadius": 3},
            "transform": [{"calculate": "1", "as": "full"}],
            "encoding": {"y": y, "x": field("full", title="share of its peak bandwidth", axis={"format": ".0%"})},
        },
        {
            "mark": {"type": "bar", "height": {"band": 0.6}, "cornerRadius": 3},
            "encoding": {"y": y, "x": field("use"), "color": colour, "tooltip": tip},
        },
        {
            "transform": [{"calculate": "format(datum.gb_s, '.3~g') + ' GB/s'", "as": "label"}],
            "mark": {"type": "text", "align": "left", "dx": 6, "fontSize": 11},
            "encoding": {"y": y, "x": field("use"), "text": {"field": "label"}, "color": {"value": INK}},
        },
        height=max(len(rows) * 36, 72),
    )


def _latency(table: Table, rows: list[Row], colour: dict[str, Any], tip: list[dict[str, Any]]) -> Chart:
    y = names_axis("memory", [row["memory"] for row in rows])
    spec = chart(
        {
            "mark": {"type": "rule", "strokeWidth": 5, "opacity": 0.35},
            "encoding": {
                "y": y,
                "x": field("idle_ns", title="latency, ns"),
                "x2": {"field": "loaded_ns"},
                "color": colour,
            },
        },
        {
            "mark": {"type": "point", "size": 80, "strokeWidth": 2},
            "encoding": {"y": y, "x": field("idle_ns"), "color": colour, "tooltip": tip},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
            "encoding": {"y": y, "x": field("loaded_ns"), "color": colour, "tooltip": tip},
        },
        height=max(len(rows) * 36, 72),
    )
    return Chart("What the load costs", spec, table, about="Ring: latency at rest. Disc: while the memory is used.")
