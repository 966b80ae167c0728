"""The section of what differs between two profiles or two results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.columns import Column, Row
from tierloom.report.pages.parts import Chart, Fact, Section
from tierloom.report.pages.specs import (
    INK,
    LEGEND,
    OTHERS,
    OURS,
    SI_AXIS,
    Spec,
    bars_height,
    chart,
    dots,
    field,
    names_axis,
    tips,
)
from tierloom.report.table_layout.table import Table
from tierloom.report.tables.differences import FIGURE, change_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.differences import ChangeDoc
    from tierloom.forms import Form
    from tierloom.report.pages.sources import Shelf, Source

CHANGED, WITHIN = "changed", "within uncertainty"
VERDICTS = {"domain": [CHANGED, WITHIN], "range": ["var(--ours)", "var(--others)"]}
BARS = 30

FURTHEST = 2.0
"""Most that the picture of changes has room for: one that is ninety times as much would leave nothing of the others."""

SIDES = {"domain": ["A", "B"], "range": [OTHERS, OURS]}
SIDE_ROWS = 14
"""Entries that stand side by side, those with most; the table of every figure has all."""

MOST_FIGURES = 4
"""Kinds of figures that are drawn side by side, those first of which most entries differ."""

SIDE_STEP = 34
"""Height of an entry with both its marks, pixels."""


RULE = "B against A. A figure changed when the ranges of both lie apart."


def section(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """Every figure that differs, those that changed most first."""
    told: list[ChangeDoc] = source.data["changes"]
    ordered = sorted(told, key=lambda change: (change["verdict"] == WITHIN, -abs(change["relative"] or 0.0)))
    rows = [change_row(change) for change in ordered]
    return Section(
        kind="difference",
        title=source.name,
        about=" ".join([*source.data.get("answer", []), *source.data.get("remarks", []), RULE]),
        facts=[Fact("changed", str(source.data["changed"]), f"of {len(told)} figures that differ")],
        charts=[*_changes(rows), *_side_by_side(rows)],
        tables=[Table([Column("where", "where"), *FIGURE], rows, "Every figure that differs")],
    )


CHANGE: Spec = {"labelExpr": "datum.value ? format(datum.value, '+.0%') : '0%'"}
"""Along bars of changes."""


def _changes(rows: Sequence[Row]) -> list[Chart]:
    known = [{**row, "name": f"{row['where']}: {row['what']}"} for row in rows if row["relative"] is not None]
    if not known:
        return []
    shown = known[:BARS]
    tip = tips(
        *(("where", "where"), ("what", "what"), ("a", "A", ".4~g"), ("b", "B", ".4~g")),
        *(("relative", "B against A", "+.1%"), ("verdict", "verdict")),
    )
    spec = chart(
        {
            "mark": {"type": "bar", "height": {"band": 0.66}, "clip": True},
            "encoding": {
                "y": names_axis("name", [row["name"] for row in shown]),
                "x": field("relative", title="B against A", axis=CHANGE, scale=_ends(shown)),
                "color": field("verdict", "nominal", None, scale=VERDICTS, legend=LEGEND),
                "tooltip": tip,
            },
        },
        {"mark": {"type": "rule", "color": INK}, "data": {"values": [{"zero": 0}]}, "encoding": {"x": field("zero")}},
        height=bars_height(len(shown)),
    )
    columns = [Column("name", "figure"), *FIGURE[1:]]
    more = f" {len(known) - len(shown)} more are in the table." if len(known) > len(shown) else ""
    beyond = sum(row["relative"] > FURTHEST for row in shown)
    cut = f" Bars of {beyond} that grew by more than {FURTHEST:.0%} end at the edge." if beyond else ""
    about = f"Those that changed first, the largest on top.{more}{cut}"
    return [Chart("What changed", spec, Table(columns, known), values=shown, about=about, wide=True)]


def _ends(rows: Sequence[Row]) -> Spec:
    """A scale of changes that leaves room for those that are not the largest."""
    highest = max(row["relative"] for row in rows)
    return {"domainMax": FURTHEST, "nice": False} if highest > FURTHEST else {}


def _side_by_side(rows: Sequence[Row]) -> list[Chart]:
    """A and B of each figure that both have, entry by entry, with their ranges."""
    by_what: dict[str, list[Row]] = {}
    for row in rows:
        if row["a"] is not None and row["b"] is not None:
            by_what.setdefault(row["what"], []).append(row)
    kinds = sorted(by_what, key=lambda what: (-len(by_what[what]), what))[:MOST_FIGURES]
    return [_beside(what, sorted(by_what[what], key=lambda row: -max(row["a"], row["b"]))) for what in kinds]


WORDS = {
    "stall.share": "waits, share of CPU time",
    "dram_bytes": "memory traffic, bytes",
    "size_bytes": "size, bytes",
}
"""What figures of profiles are called; the others are called by their keys."""


def _beside(what: str, rows: Sequence[Row]) -> Chart:
    shown = rows[:SIDE_ROWS]
    marks = [mark for row in shown for mark in (_mark(row, "A", "a", "range_a"), _mark(row, "B", "b", "range_b"))]
    share, words = what.endswith("share"), WORDS.get(what, what)
    form = ".1%" if share else ".4~g"
    y = names_axis("where", list(dict.fromkeys(row["where"] for row in shown)))
    beside = {"yOffset": {"field": "side"}, "color": field("side", "nominal", None, scale=SIDES, legend=LEGEND)}
    tip = tips(
        *(("where", "where"), ("side", "in"), ("value", words, form), ("low", "from", form)),
        ("high", "to", form),
    )
    spec = chart(
        {
            "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.45, "strokeCap": "round"},
            "encoding": {"y": y, "x": field("low"), "x2": {"field": "high"}, **beside},
        },
        dots(
            70,
            y=y,
            x=field("value", title=words, axis={"format": ".0%"} if share else SI_AXIS),
            shape=field("side", "nominal", None, scale={"domain": ["A", "B"], "range": ["circle", "diamond"]}),
            **beside,
            tooltip=tip,
        ),
        height=SIDE_STEP * len(shown),
    )
    number: Form = "percent" if share else "number"
    columns = [
        *(Column("where", "where"), Column("side", "in"), Column("value", words, number)),
        *(Column("low", "from", number), Column("high", "to", number)),
    ]
    more = f" The {len(shown)} of {len(rows)} with most." if len(rows) > len(shown) else ""
    return Chart(
        f"Side by side: {words}", spec, Table(columns, marks), about=f"Lines: their ranges, where known.{more}"
    )


def _mark(row: Row, side: str, key: str, ends: str) -> Row:
    """One side of a figure; where no range is known, it is a point."""
    low, high = row.get(ends) or (row[key], row[key])
    return {"where": row["where"], "side": side, "value": row[key], "low": low, "high": high}
