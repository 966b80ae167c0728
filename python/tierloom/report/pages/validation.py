"""The section of a validation: predicted against measured times, and how far predictions and runs are off."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from tierloom.columns import Column, Row
from tierloom.report.pages.parts import Chart, Fact, Notes, Picture, Section
from tierloom.report.pages.specs import FAINT, INK, Spec, chart, dots, field, lines, log_marks, marked, points, tips
from tierloom.report.table_layout.table import Table
from tierloom.report.tables.validations import command, verdict
from tierloom.units import count_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tierloom.report.pages.sources import Shelf, Source
    from tierloom.schema import ValidationDoc, ValidationRowDoc

MARGIN = 1.3
BAND = 1.1
"""Predictions within a tenth lie in the band about the diagonal."""

WIDEST = 0.5
"""Errors beyond it are not drawn."""

INSIDE, OUTSIDE = "inside range", "outside"
HEIGHT = 300


def section(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """Every program, predicted and measured."""
    data: ValidationDoc = source.data  # type: ignore[assignment] # recognised by its keys
    error = data["summary"]["median_error"]
    return Section(
        kind="validation",
        title=f"Predictions on {data['machine']}",
        about=verdict(data),
        facts=[
            Fact("rows", str(len(data["rows"])), f"each the median of {count_text(data['runs'], 'run')}"),
            Fact("median error", "·" if error is None else percent_text(error)),
        ],
        charts=_charts(data["rows"]),
        notes=[Notes("Left out", [each["why"] for each in data["failures"]])] if data["failures"] else [],
    )


def picture(data: ValidationDoc) -> Picture:
    """Both charts under the verdict."""
    return Picture(f"Predictions on {data['machine']}", _charts(data["rows"]), about=verdict(data))


def _charts(rows: Sequence[ValidationRowDoc]) -> list[Chart]:
    return [_times(rows), _shares(rows)] if rows else []


def _times(rows: Sequence[ValidationRowDoc]) -> Chart:
    """Times against each other, on logarithmic axes: an error has one length everywhere."""
    drawn: list[Row] = [
        {
            "program": command(row),
            "threads": row["threads"],
            "placement": row["placement"],
            "measured_s": statistics.median(row["measured_s"]),
            "least_s": min(row["measured_s"]),
            "most_s": max(row["measured_s"]),
            "predicted_s": row["predicted_s"],
            "low_s": row["low_s"],
            "high_s": row["high_s"],
            "error": row["error"],
            "inside": INSIDE if row["inside"] else OUTSIDE,
        }
        for row in rows
    ]
    ends = [row[key] for row in drawn for key in ("least_s", "most_s", "low_s", "high_s")]
    least, most = min(ends) / MARGIN, max(ends) * MARGIN
    scale, axis = {"type": "log", "domain": [least, most], "nice": False}, marked(log_marks(least, most), _short)
    x, y = (
        field(f"{name}_s", title=name, scale=scale, axis={**axis, **more})
        for name, more in (("measured", {"labelAngle": 0}), ("predicted", {}))
    )
    kinds = points("inside", {"domain": [INSIDE, OUTSIDE], "range": ["var(--c1)", "var(--ours)"]})
    tip = tips(
        *(("program", "program"), ("threads", "threads", "d"), ("placement", "placement")),
        *(("measured_s", "measured, s", ".4~g"), ("predicted_s", "predicted, s", ".4~g"), ("error", "error", "+.1%")),
    )
    band: Spec = {"values": [{"at": at, "low": at / BAND, "high": at * BAND} for at in (least, most)]}
    spec = chart(
        {
            "data": band,
            "mark": {"type": "area", "color": FAINT, "clip": True},
            "encoding": {"x": field("at"), "y": field("low"), "y2": {"field": "high"}},
        },
        {
            "data": band,
            "mark": {"type": "line", "color": INK, "strokeWidth": 0.8},
            "encoding": {"x": field("at"), "y": field("at")},
        },
        _range(x=field("measured_s"), y=field("low_s"), y2={"field": "high_s"}, color=kinds["color"]),
        _range(x=field("least_s"), x2={"field": "most_s"}, y=field("predicted_s"), color=kinds["color"]),
        dots(42, x=x, y=y, **kinds, tooltip=tip),
        height=HEIGHT,
    )
    columns = [
        *(Column("program", "program"), Column("threads", "threads", "count"), Column("placement", "placement")),
        *(Column("measured_s", "measured", "seconds"), Column("predicted_s", "predicted", "seconds")),
        *(Column("low_s", "from", "seconds"), Column("high_s", "to", "seconds"), Column("error", "error", "percent")),
    ]
    about = f"Band: within {BAND - 1:.0%}. Lines: ranges of predictions and of runs."
    return Chart("Predicted and measured", spec, Table(columns, drawn), about=about)


def _range(**encoding: Spec) -> Spec:
    return {"mark": {"type": "rule", "strokeWidth": 1}, "encoding": encoding}


def _short(seconds: float) -> str:
    """A round time without its zeros."""
    number, unit = seconds_text(seconds).split()
    return f"{float(number):g} {unit}"


def _shares(rows: Sequence[ValidationRowDoc]) -> Chart:
    """The share of rows within an error, for predictions, runs and the model."""
    found = {
        "a prediction": [abs(row["error"]) for row in rows],
        "run again": [row["repeat"] for row in rows if row["repeat"] is not None],
        "the model alone": [abs(row["residual"]) for row in rows],
    }
    drawn = [row for what, errors in found.items() for row in _steps(what, errors)]
    percent = {"format": ".0%"}
    spec = chart(
        {
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
            "encoding": {
                "x": field("error", title="error", axis=percent, scale={"domain": [0, WIDEST]}),
                "y": field("share", title="share of rows", axis=percent, scale={"domain": [0, 1]}),
                **lines("what", [what for what, errors in found.items() if errors]),
                "tooltip": tips(("what", "of"), ("error", "error", ".1%"), ("share", "within it", ".0%")),
            },
        },
        height=HEIGHT,
    )
    columns = [Column("what", "of"), Column("error", "error", "percent"), Column("share", "within it", "percent")]
    return Chart("Share of rows within an error", spec, Table(columns, drawn), about=f"Up to {WIDEST:.0%}.")


def _steps(what: str, errors: Sequence[float]) -> Iterator[Row]:
    """Where the share rises, and both ends."""
    inside = sorted(error for error in errors if error <= WIDEST)
    if errors:
        yield {"what": what, "error": 0.0, "share": 0.0}
        yield from ({"what": what, "error": error, "share": at / len(errors)} for at, error in enumerate(inside, 1))
        yield {"what": what, "error": WIDEST, "share": len(inside) / len(errors)}
