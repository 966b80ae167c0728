"""Pictures of data that does not fit: time against memory, cost against results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tierloom.capacity.mixes import frontier
from tierloom.extras import brought_by
from tierloom.report.charts.picture import FAINT, INK, LINES, OTHERS, OURS, STYLE
from tierloom.units import bytes_text

with brought_by("report"):
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from tierloom.capacity import Fit, Mix

STEPS = 200
MARGIN = 1.15


def runs(fit: Fit, name: str) -> Figure:
    """Measured time against memory with the model, and storage traffic beside it."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 3.8), layout="constrained")
        times, traffic = figure.subplots(1, 2)
        counts = sorted({point.streams for point in fit.points})
        for count, colour in zip(counts, LINES, strict=False):
            _times(times, fit, count, colour)
            _traffic(traffic, fit, count, colour)
        times.set(title=f"{name}: time", xlabel="memory", ylabel="s")
        traffic.set(title="Storage traffic", xlabel="memory", ylabel="GB")
        for axes in (times, traffic):
            _memory_axis(axes, [point.memory_bytes for point in fit.points])
            axes.set_ylim(bottom=0)
        times.legend(frameon=False)
    return figure


def _times(axes: Axes, fit: Fit, count: int, colour: str) -> None:
    points = [point for point in fit.points if point.streams == count]
    sizes = [point.memory_bytes for point in points]
    grid = np.geomspace(min(sizes) / MARGIN, max(sizes) * MARGIN, STEPS)
    axes.plot(grid, [fit.spill.seconds(size, count) for size in grid], color=colour, linewidth=1.6)
    label = f"{count} stream{'s' if count > 1 else ''}"
    axes.plot(sizes, [point.seconds for point in points], "o", color=colour, markersize=5, label=label)
    unseen = [(point.memory_bytes, point.unseen_s) for point in points if point.unseen_s is not None]
    if unseen:
        named = "predicted, this memory not seen" if count == min(p.streams for p in fit.points) else None
        axes.plot(*zip(*unseen, strict=True), "x", color=INK, markersize=6, label=named)


def _traffic(axes: Axes, fit: Fit, count: int, colour: str) -> None:
    points = [(p.memory_bytes, p.storage_bytes / 1e9) for p in fit.points if p.streams == count]
    axes.plot(*zip(*points, strict=True), "o-", color=colour, markersize=5, linewidth=1.0)


def _memory_axis(axes: Axes, sizes: Sequence[float]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(sizes) / MARGIN, max(sizes) * MARGIN)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def costs(made: Sequence[Mix], chosen: Mix, name: str) -> Figure:
    """What each purchase costs and brings; the line is what no cheaper one beats."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        axes = figure.add_subplot()
        for mixed, colour, label in ((False, OTHERS, "DRAM alone"), (True, LINES[0], "with CXL memory")):
            spots = [(each.usd, each.results_h) for each in made if bool(each.cxl_bytes) is mixed]
            if spots:
                axes.plot(*zip(*spots, strict=True), "o", color=colour, markersize=5, label=label)
        best = frontier(made)
        axes.step([each.usd for each in best], [each.results_h for each in best], where="post", color=FAINT, zorder=0)
        axes.plot(chosen.usd, chosen.results_h, "D", color=OURS, markersize=8, label="chosen")
        axes.annotate(
            f"{bytes_text(chosen.dram_bytes)} + {bytes_text(chosen.cxl_bytes)}",
            (chosen.usd, chosen.results_h),
            (8, -12),
            textcoords="offset points",
            color=OURS,
            weight="bold",
        )
        axes.set(title=f"{name}: what memory costs and brings", xlabel="USD", ylabel="results an hour")
        axes.set_ylim(0, 1.08 * max(each.results_h for each in made))
        axes.legend(frameon=False, loc="lower right")
    return figure
