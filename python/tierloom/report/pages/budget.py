"""Which objects are in fast memory at each amount of it: bytes against what is asked of each, and a slider."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from tierloom.columns import Column, Row
from tierloom.report.labels import shortened
from tierloom.report.pages.flame_graph import heated
from tierloom.report.pages.parts import Chart
from tierloom.report.pages.specs import COLOURS, INK, LEGEND, OTHERS, OURS, Spec, chart, field, log_marks, tips
from tierloom.report.table_layout.table import Table
from tierloom.units import binary_unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.schema import ComparisonDoc, FrontierDoc, ObjectDoc

MOST_OBJECTS = 300
"""Objects that are drawn, those that are asked for most."""

LEAST_ASKED = 1e-6
"""The least share that is drawn; where less or nothing was seen to be asked, it is drawn below the others."""

BELOW = 3.0
"""How far below."""

MOSTLY, HARDLY = 0.995, 0.005
"""Shares from which on an object is said to be in fast memory, or elsewhere."""

LETTERS = 28
"""Of a name beside its point."""

NAMED = 8
"""Objects whose names stand beside them."""

ROOM_FOR_NAMES = 500
"""Width of the picture, pixels, below which they would lie on each other."""

STEPS = 200
HEIGHT = 340


def by_budget(data: ComparisonDoc, objects: Sequence[ObjectDoc], what: str, asked: Mapping[str, float]) -> list[Chart]:
    """Every object by its bytes and what is asked of it, in the colour of where it is at the slider's amount."""
    points = [point for point in data["frontier"] if len(point.get("fast_shares", [])) == len(objects)]
    items = [each for each in heated(objects, asked) if each.item["size_bytes"] > 0]
    if len(points) < 2 or not items:
        return []
    order = {item["name"]: at for at, item in enumerate(objects)}
    scale, unit = binary_unit(points[-1]["fast_bytes"])
    shown = items[:MOST_OBJECTS]
    least = min((each.asked_share for each in shown if each.asked_share > LEAST_ASKED), default=1.0) / BELOW
    labels = shortened((each.item["name"] for each in shown[:NAMED]), LETTERS)
    rows: list[Row] = [
        {
            "object": each.item["name"],
            "label": labels.get(each.item["name"]),
            "rank": rank,
            "size": each.item["size_bytes"] / scale,
            "asked": max(each.asked_share, least),
            "heat": each.heat,
            "half_from": half_from(points, order[each.item["name"]], scale),
            "fast": [round(shares_of(point)[order[each.item["name"]]], 2) for point in points],
        }
        for rank, each in enumerate(shown)
    ]
    columns = [
        *(Column("object", "object"), Column("size", f"size, {unit}", "gib"), Column("asked", what, "percent")),
        *(Column("heat", "for its size", "times"), Column("half_from", "half of it in fast memory from", "gib")),
    ]
    fast, more = data["fast_memory"], len(items) - len(shown)
    about = (
        f"Drag the slider: the best placement for so much {fast}, and its time. Above the line: asked for more than "
        f"its size.{f' {more} objects that are asked for less are left out.' if more else ''}"
    )
    amount = _Amount(unit, scale, sum(each.item["size_bytes"] for each in items) / scale)
    spec = _spec(data, points, rows, amount, what)
    return [Chart(f"Which objects are in {fast}", spec, Table(columns, rows), about=about, wide=True)]


def shares_of(point: FrontierDoc) -> Sequence[float]:
    """How much of each object is in fast memory at a point."""
    return point.get("fast_shares", ())


def half_from(points: Sequence[FrontierDoc], at: int, scale: float) -> float | None:
    """The least amount from which on at least half of an object is in fast memory; none where that never is so."""
    known = None
    for point in reversed(points):
        if shares_of(point)[at] < 0.5:
            break
        known = point["fast_bytes"] / scale
    return known


class _Amount(NamedTuple):
    """How bytes are written: their unit, its bytes, and all of the program's data in it."""

    unit: str
    scale: float
    whole: float


def _spec(
    data: ComparisonDoc,
    points: Sequence[FrontierDoc],
    rows: Sequence[Row],
    amount: _Amount,
    what: str,
) -> Spec:
    unit, scale, fast = amount.unit, amount.scale, data["fast_memory"]
    amounts = [round(point["fast_bytes"] / scale, 6) for point in points]
    budget = min(max(data["budget_bytes"] / scale, amounts[0]), amounts[-1])
    name = f"{fast}, {unit}: "
    step = (amounts[-1] - amounts[0]) / STEPS
    slider = {"input": "range", "min": amounts[0], "max": amounts[-1], "step": step, "name": name}
    # The last placement that the slider's amount has room for; rounding of the slider must not lose one.
    at = " + ".join(f"(budget >= {each - step / 2:.9g})" for each in amounts[1:])
    times = [float(f"{point['time_s']:.6g}") for point in points]
    told = f"format({times}[at], '.4~g') + ' s with ' + format({amounts}[at], '.4~g') + ' {unit} of {fast}'"
    places = [f"in {fast}", "split", "elsewhere"]
    x = _logarithmic("size", f"size, {unit}", [row["size"] for row in rows], "~g")
    y = _logarithmic("asked", f"share of {what}", [row["asked"] for row in rows], "~p")
    colours = {"domain": places, "range": [OURS, COLOURS[2], OTHERS]}
    return chart(
        {
            "mark": {"type": "line", "color": INK, "strokeDash": [3, 3], "opacity": 0.5, "strokeWidth": 1},
            "data": {"values": _even(rows, amount.whole)},
            "encoding": {"x": x, "y": y},
        },
        {
            "transform": [
                {"calculate": "datum.fast[at]", "as": "share"},
                {
                    "calculate": f"datum.share >= {MOSTLY} ? '{places[0]}' : datum.share > {HARDLY} ? 'split' : "
                    "'elsewhere'",
                    "as": "place",
                },
            ],
            "mark": {"type": "point", "filled": True, "size": 90, "opacity": 0.85},
            "encoding": {
                "x": x,
                "y": y,
                "color": field("place", "nominal", None, scale=colours, legend=LEGEND),
                "shape": field(
                    "place",
                    "nominal",
                    None,
                    scale={"domain": places, "range": ["circle", "diamond", "triangle-down"]},
                    legend=LEGEND,
                ),
                "tooltip": tips(
                    *(("object", "object"), ("size", f"size, {unit}", ".3~g"), ("asked", f"of {what}", ".2%")),
                    *(("heat", "for its size, times the mean", ".3~g"), ("share", f"of it in {fast}", ".0%")),
                ),
            },
        },
        _names(x, y, math.sqrt(min(row["size"] for row in rows) * max(row["size"] for row in rows))),
        height=HEIGHT,
        title={"text": {"expr": told}, "anchor": "start", "fontSize": 13, "color": INK},
        params=[{"name": "budget", "value": budget, "bind": slider}, {"name": "at", "expr": at}],
    )


def _names(x: Spec, y: Spec, middle: float) -> Spec:
    """Names of the objects that are asked for most, towards the middle of the picture."""
    beyond = f"datum.size > {middle:.6g}"
    return {
        "transform": [
            {"filter": f"datum.rank < {NAMED}"},
        ],
        "mark": {
            "type": "text",
            "fontSize": 11,
            "opacity": {"expr": f"width < {ROOM_FOR_NAMES} ? 0 : 1"},
            "align": {"expr": f"{beyond} ? 'right' : 'left'"},
            "dx": {"expr": f"{beyond} ? -9 : 9"},
        },
        "encoding": {"x": x, "y": y, "text": {"field": "label"}, "color": {"value": INK}},
    }


def _even(rows: Sequence[Row], whole: float) -> list[Row]:
    """Two ends of the line on which objects lie that are asked for as their part of the `whole` data has it."""
    sizes, least = [row["size"] for row in rows], min(row["asked"] for row in rows)
    ends = max(min(sizes), least * whole), max(sizes)
    return [{"size": size, "asked": size / whole} for size in ends]


def _logarithmic(name: str, title: str, values: Sequence[float], form: str) -> Spec:
    """An axis with a little room at both ends."""
    ends = [min(values) / 1.5, max(values) * 1.5]
    return field(
        name, title=title, scale={"type": "log", "domain": ends}, axis={"format": form, "values": log_marks(*ends)}
    )
