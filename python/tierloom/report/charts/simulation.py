"""Simulated runs over time, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.extras import brought_by
from tierloom.report.charts.picture import LINES, STYLE
from tierloom.units import GIB, PAGE_BYTES

with brought_by("report"):
    import matplotlib as mpl
    from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from tierloom.page_migration import Simulation
    from tierloom.schema import PointDoc


def over_time(simulations: Sequence[Simulation]) -> Figure:
    """Share served by fast memory, pages in it, promotions and demotions, by run, over time."""
    panels: list[tuple[str, Callable[[PointDoc], float]]] = [
        ("accesses served by fast memory, %", lambda point: 100.0 * point["fast_share"]),
        ("in fast memory, GiB", lambda point: point["used_pages"][0] * PAGE_BYTES / GIB),
        ("hint faults, millions", lambda point: point["counters"]["numa_hint_faults"] / 1e6),
        ("pages promoted, millions", lambda point: point["counters"]["pgpromote_success"] / 1e6),
    ]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.0, 6.0), layout="constrained")
        axes = figure.subplots(2, 2, sharex=True).flat
        for axis, (title, value) in zip(axes, panels, strict=True):
            _panel(axis, title, simulations, value)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    return figure


def _panel(axis: Axes, title: str, simulations: Sequence[Simulation], value: Callable[[PointDoc], float]) -> None:
    for index, run in enumerate(simulations):
        points = run.data["series"]
        line = ("-", "--", ":", "-.")[index // len(LINES) % 4]
        axis.plot(
            [point["time_s"] for point in points],
            [value(point) for point in points],
            line,
            color=LINES[index % len(LINES)],
            label=run.data["policy"],
        )
    axis.set_title(title)
    axis.set_xlabel("s")
    axis.set_ylim(bottom=0)
