"""The section of a sweep: its points in a picture whose axes the reader chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.columns import Row, undeclared
from tierloom.report.pages.parts import Chart, Fact, Section
from tierloom.report.pages.specs import Spec, chart, field
from tierloom.report.table_layout.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tierloom.report.pages.sources import Shelf, Source

DONE = "done"
ABOUT = ("state", "error", "seconds", "key")
"""Columns that say what became of a point, not what it is."""

SOUGHT = ("time_s", "tokens_s", "step_s")
"""What is drawn upward at first, where the study does not say what it looks for."""

MOST_POINTS = 3000
"""Points that are drawn; of more, so many at even steps."""

MOST_COLOURS = 12
NONE = "nothing"
HEIGHT = 420


def section(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """Points of a study."""
    rows, study = source.data["rows"], source.data["study"]
    done = [row for row in rows if row.get("state", DONE) == DONE]
    axes = [name for name in study.get("axes", {}) if rows and name in rows[0]]
    return Section(
        kind="study",
        title=source.name,
        about=str(study.get("title", "")),
        facts=[
            Fact("points", f"{len(rows):,}", f"of {study['verb']}" if "verb" in study else ""),
            Fact("without a result", f"{len(rows) - len(done):,}"),
            Fact("axes", ", ".join(axes) or "·"),
        ],
        charts=_explorer(done, axes, study) if done else [],
        tables=[_points(rows)],
    )


def _explorer(rows: Sequence[Row], axes: Sequence[str], study: dict[str, Any]) -> list[Chart]:
    """The picture; none where nothing differs from point to point."""
    drawn = list(thinned(rows))
    told = [name for name in drawn[0] if name not in ABOUT and _different(drawn, name) > 1]
    numbers = [name for name in told if _are_numbers(drawn, name)]
    few = [name for name in told if _different(drawn, name) <= MOST_COLOURS]
    if not numbers:
        return []
    along = max((name for name in axes if name in numbers), key=lambda name: _different(drawn, name), default="")
    up = next((name for name in (study.get("objective", {}).get("column"), *SOUGHT) if name in numbers), "")
    colour = next((name for name in few if name in axes and name != along), NONE)
    start = {"along": along or numbers[0], "up": up or numbers[-1], "colour": colour}
    kept = undeclared(list(dict.fromkeys((*axes, *numbers))), drawn)
    shown = Chart(
        "Points of the study",
        _spec(start, numbers, [NONE, *few]),
        Table(kept, drawn),
        values=[{name: row[name] for name in told} for row in drawn],
        about="Choose what goes along, up, and by colour.",
        wide=True,
    )
    return [shown]


def thinned(rows: Sequence[Row]) -> Iterable[Row]:
    """At most so many points, at even steps."""
    return rows[:: max(1, -(-len(rows) // MOST_POINTS))]


def _different(rows: Sequence[Row], name: str) -> int:
    return len({row[name] for row in rows})


def _are_numbers(rows: Sequence[Row], name: str) -> bool:
    return all(isinstance(row[name], int | float | None) and not isinstance(row[name], bool) for row in rows)


_APART = {"zero": False, "padding": 12}
"""A scale on which no point is cut by the edge."""


def _spec(start: dict[str, str], numbers: list[str], few: list[str]) -> Spec:
    options = {"along": numbers, "up": numbers, "colour": few}
    return chart(
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0.85},
            "transform": [
                {"calculate": "datum[along]", "as": "x"},
                {"calculate": "datum[up]", "as": "y"},
                {"calculate": f"colour === '{NONE}' ? 'all' : toString(datum[colour])", "as": "c"},
                {"calculate": "isNumber(datum[colour]) ? datum[colour] : 0", "as": "place"},
                {"calculate": "format(datum[along], '.4~g') + ', ' + format(datum[up], '.4~g')", "as": "tip"},
            ],
            "encoding": {
                "x": field("x", title=None, axis={"title": {"signal": "along"}}, scale=_APART),
                "y": field("y", title=None, axis={"title": {"signal": "up"}}, scale=_APART),
                "color": field(
                    "c",
                    "nominal",
                    "colour",
                    scale={"range": PALETTE},
                    legend={"orient": "top"},
                    sort={"field": "place", "op": "min"},
                ),
                "tooltip": {"field": "tip", "type": "nominal"},
            },
        },
        height=HEIGHT,
        params=[
            {"name": name, "value": start[name], "bind": {"input": "select", "options": told, "name": f"{name}: "}}
            for name, told in options.items()
        ],
    )


PALETTE = [f"var(--c{number})" for number in (1, 3, 2, 4, 5, 6, 8, 7)]


def _points(rows: Sequence[Row]) -> Table:
    names = list(rows[0]) if rows else []
    return Table(undeclared([name for name in names if name != "key"], rows), rows, "Every point")
