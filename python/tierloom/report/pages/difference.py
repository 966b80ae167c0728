"""The section of what differs between two profiles or two results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.report.pages.parts import Chart, Column, Fact, Row, Section, Table
from tierloom.report.pages.specs import INK, LEGEND, bars_height, chart, field, names_axis, tips

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.report.pages.sources import Shelf, Source

CHANGED, WITHIN = "changed", "within uncertainty"
VERDICTS = {"domain": [CHANGED, WITHIN], "range": ["var(--ours)", "var(--others)"]}
BARS = 30


def section(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """Every figure that differs, those that changed most first."""
    told: list[dict[str, Any]] = source.data["changes"]
    ordered = sorted(told, key=lambda change: (change["verdict"] == WITHIN, -abs(change["relative"] or 0.0)))
    rows: list[Row] = [_row(change) for change in ordered]
    columns = [
        *(Column("where", "where"), Column("what", "what"), Column("a", "A", "number"), Column("b", "B", "number")),
        *(Column("relative", "B against A", "percent"), Column("verdict", "verdict")),
        *(Column("low", "A from", "number"), Column("high", "A to", "number")),
        *(Column("low_b", "B from", "number"), Column("high_b", "B to", "number")),
    ]
    return Section(
        kind="difference",
        title=source.name,
        about="B against A. A figure changed when the ranges of both lie apart.",
        facts=[Fact("changed", str(source.data["changed"]), f"of {len(told)} figures that differ")],
        charts=_changes(rows),
        tables=[Table(columns, rows, "Every figure that differs")],
    )


def _row(change: dict[str, Any]) -> Row:
    (low, high), (low_b, high_b) = (change.get(key) or (None, None) for key in ("range_a", "range_b"))
    return {**change, "low": low, "high": high, "low_b": low_b, "high_b": high_b, "ours": change["verdict"] == CHANGED}


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
            "mark": {"type": "bar", "height": {"band": 0.66}},
            "encoding": {
                "y": names_axis("name", [row["name"] for row in shown]),
                "x": field("relative", title="B against A", axis={"format": "+.0%"}),
                "color": field("verdict", "nominal", None, scale=VERDICTS, legend=LEGEND),
                "tooltip": tip,
            },
        },
        {"mark": {"type": "rule", "color": INK}, "data": {"values": [{"zero": 0}]}, "encoding": {"x": field("zero")}},
        height=bars_height(len(shown)),
    )
    columns = [
        *(Column("name", "figure"), Column("a", "A", "number"), Column("b", "B", "number")),
        *(Column("relative", "B against A", "percent"), Column("verdict", "verdict")),
    ]
    more = f" {len(known) - len(shown)} more are in the table." if len(known) > len(shown) else ""
    about = f"Those that changed first, the largest on top.{more}"
    return [Chart("What changed", spec, Table(columns, known), values=shown, about=about, wide=True)]
