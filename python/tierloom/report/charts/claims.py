"""Published figures with our points in them, as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.extras import brought_by
from tierloom.report.charts.picture import INK, OURS, STYLE

with brought_by("report"):
    import matplotlib as mpl
    from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from tierloom.published_claims import Result

WIDE = 50.0
"""Largest over smallest value from which a picture's axis is logarithmic."""


def figures(results: Sequence[Result]) -> dict[str, Figure]:
    """A picture of each published figure with known points, by its name."""
    drawn: dict[str, list[Result]] = {}
    for result in results:
        claim = result.claim
        known = not isinstance(claim.value, bool | None) and result.ours is not None
        if claim.spot is not None and known:
            drawn.setdefault(f"{claim.study}.{claim.spot.figure}", []).append(result)
    return {name: _figure(name, of) for name, of in drawn.items()}


def _figure(name: str, results: Sequence[Result]) -> Figure:
    series: dict[str, list[Result]] = {}
    for result in results:
        if result.claim.spot:
            series.setdefault(result.claim.spot.series, []).append(result)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(max(3.2 * len(series), 4.8), 3.2), layout="constrained")
        for axes, (title, of) in zip(figure.subplots(1, len(series), squeeze=False).flat, series.items(), strict=True):
            _panel(axes, title, of)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
        figure.suptitle(name, x=0.01, ha="left", weight="bold")
    return figure


def _panel(axes: Axes, title: str, results: Sequence[Result]) -> None:
    """Published and ours side by side; over numbers as curves, over names as points."""
    placed = [(result.claim.spot, result) for result in results if result.claim.spot]
    over_numbers = all(spot.x.isdecimal() for spot, _ in placed) and len(placed) > 1
    if over_numbers:
        placed.sort(key=lambda pair: float(pair[0].x))
        axes.set_xlabel(placed[0][0].over)
    names = [spot.x for spot, _ in placed]
    published, ours = zip(*[(float(r.claim.value or 0), float(r.ours or 0)) for _, r in placed], strict=True)
    spots: Any = [float(name) for name in names] if over_numbers else range(len(names))
    line = "-" if over_numbers else ""
    axes.plot(spots, published, "o", linestyle=line, color=INK, fillstyle="none", markersize=8, label="published")
    axes.plot(spots, ours, "D", linestyle=line, color=OURS, markersize=5, label="ours")
    if not over_numbers:
        axes.set_xticks(spots, names, rotation=30 if max(map(len, names)) > 6 else 0)
        axes.margins(x=0.2)
    axes.margins(y=0.1)
    positive = [value for value in (*published, *ours) if value > 0]
    if positive and len(positive) == 2 * len(names) and max(positive) / min(positive) > WIDE:
        axes.set_yscale("log")
    elif min((*published, *ours)) >= 0:
        axes.set_ylim(bottom=0)
    axes.set_title(title, fontsize=9)
