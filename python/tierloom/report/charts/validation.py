"""Picture of a validation: predicted against measured times, and how far both predictions and runs are off."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from tierloom.extras import brought_by
from tierloom.report.charts.picture import FAINT, INK, LINES, OTHERS, OURS, STYLE
from tierloom.units import seconds_text

with brought_by("report"):
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from tierloom.schema import ValidationDoc, ValidationRowDoc

MARGIN = 1.3
BAND = 1.1
"""Predictions within a tenth lie in the band about the diagonal."""

WIDEST = 0.5
"""Errors beyond it are not drawn."""

MARKS = (
    (2.5, (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)),
    (12.0, (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)),
    (1e3, (1.0, 2.0, 5.0)),
)
"""Where a decade is marked, for times that span less than so many."""


def errors(data: ValidationDoc) -> Figure:
    """Times against each other, and the share of rows within an error.

    Both axes of the times are logarithmic, so that an error has one length everywhere.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 4.0), layout="constrained")
        times, shares = figure.subplots(1, 2)
        _times(times, data["rows"])
        _shares(shares, data["rows"])
    return figure


def _times(axes: Axes, rows: Sequence[ValidationRowDoc]) -> None:
    axes.set(title="Predicted and measured", xlabel="measured", ylabel="predicted", xscale="log", yscale="log")
    every = [time for row in rows for time in (*row["measured_s"], row["low_s"], row["high_s"])] or [1.0]
    least, most = min(every) / MARGIN, max(every) * MARGIN
    axes.fill_between([least, most], [least / BAND, most / BAND], [least * BAND, most * BAND], color=FAINT, linewidth=0)
    axes.plot([least, most], [least, most], color=INK, linewidth=0.8)
    for inside, colour, label in ((True, LINES[0], "inside its range"), (False, OURS, "outside")):
        known = [row for row in rows if row["inside"] is inside]
        if known:
            _cross(axes, known, colour, f"{label} ({len(known)})")
    axes.set(xlim=(least, most), ylim=(least, most))
    marks = next((marks for span, marks in MARKS if most < span * least), (1.0,))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(10.0, subs=marks))
        axis.set_major_formatter(FuncFormatter(lambda value, _: seconds_text(value)))
        axis.set_minor_formatter(NullFormatter())
    if rows:
        axes.legend(frameon=False, loc="upper left")


def _cross(axes: Axes, rows: Sequence[ValidationRowDoc], colour: str, label: str) -> None:
    """A point a row, with the range of the prediction upright and that of the runs across."""
    middle = [statistics.median(row["measured_s"]) for row in rows]
    runs = zip(middle, (row["measured_s"] for row in rows), strict=True)
    across = [(at - min(times), max(times) - at) for at, times in runs]
    upright = [(row["predicted_s"] - row["low_s"], row["high_s"] - row["predicted_s"]) for row in rows]
    axes.errorbar(
        middle,
        [row["predicted_s"] for row in rows],
        xerr=list(zip(*across, strict=True)),
        yerr=list(zip(*upright, strict=True)),
        fmt="o",
        color=colour,
        markersize=4,
        linewidth=0.8,
        label=label,
    )


def _shares(axes: Axes, rows: Sequence[ValidationRowDoc]) -> None:
    axes.set(title="Share of rows within an error", xlabel="error", xlim=(0.0, WIDEST), ylim=(0.0, 1.0))
    found = (
        ([abs(row["error"]) for row in rows], LINES[0], "-", "a prediction"),
        ([row["repeat"] for row in rows if row["repeat"] is not None], INK, "--", "one run, of the others"),
        ([abs(row["residual"]) for row in rows], OTHERS, ":", "the model alone"),
    )
    for values, colour, line, label in found:
        if values:
            steps = [0.0, *(value for value in sorted(values) if value <= WIDEST), WIDEST]
            reached = [min(place, len(steps) - 2) / len(values) for place in range(len(steps))]
            axes.step(steps, reached, line, where="post", color=colour, label=label)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    if rows:
        axes.legend(frameon=False, loc="lower right")
