"""What each memory does under a placement: how busy it is, and what it then answers in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tierloom.report.pages.parts import Chart
from tierloom.report.pages.specs import FAINT, chart, dots, field, labels, memory_scale, names_axis, tips
from tierloom.report.tables.plans import tiers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.report.table_layout.table import Table
    from tierloom.schema import PredictionDoc, TierUseDoc

RATE_ROOM = 66
"""Beside the bars, pixels, so that a rate can stand there."""


def charts(told: PredictionDoc) -> list[Chart]:
    """How busy each memory is, and what that costs in latency."""
    used = [tier for tier in told["tiers"] if tier["placed_bytes"] > 0 or tier["gb_s"] > 0]
    if not used:
        return []
    names = [tier["memory"] for tier in told["tiers"]]
    colour = field("memory", "nominal", None, scale=memory_scale(names), legend=None)
    tip = tips(
        *(("memory", "memory"), ("gb_s", "GB/s", ".3~g"), ("utilisation", "of its peak", ".1%")),
        *(("idle_ns", "at rest, ns", ".0f"), ("loaded_ns", "under load, ns", ".0f")),
    )
    table = replace(tiers(used), title="")
    busy = Chart("How busy each memory is", _load_spec(used, colour, tip), table, about="Over the whole run.")
    return [busy, _latency(table, used, colour, tip)]


def _load_spec(rows: Sequence[TierUseDoc], colour: dict[str, Any], tip: list[dict[str, Any]]) -> dict[str, Any]:
    y = names_axis("memory", [row["memory"] for row in rows])
    # Rates stand behind the bars of what is full, for a memory that is nearly full leaves them no room.
    shares = {"domain": [0, 1], "rangeMax": {"expr": f"width - {RATE_ROOM}"}}
    x = field("full", title="share of its peak bandwidth", axis={"format": ".0%"}, scale=shares)
    return chart(
        {
            "mark": {"type": "bar", "height": {"band": 0.6}, "color": FAINT, "cornerRadius": 3},
            "transform": [{"calculate": "1", "as": "full"}],
            "encoding": {"y": y, "x": x},
        },
        {
            "mark": {"type": "bar", "height": {"band": 0.6}, "cornerRadius": 3},
            "encoding": {"y": y, "x": field("utilisation"), "color": colour, "tooltip": tip},
        },
        labels("format(datum.gb_s, '.3~g') + ' GB/s'", x={"datum": 1}, y=y),
        height=max(len(rows) * 36, 72),
    )


def _latency(table: Table, rows: Sequence[TierUseDoc], colour: dict[str, Any], tip: list[dict[str, Any]]) -> Chart:
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
        dots(110, y=y, x=field("loaded_ns"), color=colour, tooltip=tip),
        height=max(len(rows) * 36, 72),
    )
    return Chart("What the load costs", spec, table, about="Ring: latency at rest. Disc: while the memory is used.")
