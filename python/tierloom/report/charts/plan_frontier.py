"""The policies of a plan as bars, and its frontier: time against fast memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.extras import brought_by
from tierloom.report.charts.picture import INK, OTHERS, OURS, STYLE
from tierloom.report.tables.plans import bound_text, ordered
from tierloom.units import binary_unit, bytes_text, count_text

with brought_by("report"):
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tierloom.policy_search import Comparison
    from tierloom.schema import PolicyDoc

BARS = 12
"""Policies that the picture compares; the tables have all."""

HEADROOM = 1.6
"""Height of the frontier's picture over the frontier: policies above would flatten it."""


def frontier(answer: Comparison) -> Figure:
    """The best policies as bars, and time against fast memory with all policies as points on it."""
    data = answer.brief
    usable = [policy for policy in ordered(data) if "prediction" in policy]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11.0, 0.24 * min(len(usable), BARS) + 1.7), layout="constrained")
        bars, curve = figure.subplots(1, 2, width_ratios=(1.15, 1.0))
        _policy_bars(bars, answer, usable)
        _frontier_curve(curve, answer, usable)
        budget = f"at most {bytes_text(data['budget_bytes'])} of {data['fast_memory']}"
        title = f"{data['profile']} on {data['machine']}, {count_text(data['threads'], 'thread')}, {budget}"
        figure.suptitle(title, x=0.01, ha="left", weight="bold", size=12)
    return figure


def _policy_bars(axes: Axes, answer: Comparison, usable: list[PolicyDoc]) -> None:
    chosen = answer.brief["chosen"]
    shown = usable[:BARS]
    times = [policy["prediction"]["time_s"] for policy in shown]
    colours = [OURS if policy["policy"] == chosen else OTHERS for policy in shown]
    axes.barh([policy["policy"] for policy in shown], times, color=colours, height=0.72)
    for row, policy in enumerate(shown):
        answered = policy["prediction"]
        label = f" {answered['time_s'] / times[0]:.2f}x, {bound_text(answered)}"
        axes.text(answered["time_s"], row, label, va="center", size=7.5)
    axes.invert_yaxis()
    axes.set_xlim(0, max(times) * 1.6)
    axes.grid(visible=False, axis="y")
    slower = len(usable) - len(shown)
    axes.set(
        title="Predicted time by policy", xlabel="time, s" + (f" ({slower} slower ones not shown)" if slower else "")
    )
    for name in axes.get_yticklabels():
        if name.get_text() == chosen:
            name.set(color=OURS, weight="bold")


def _frontier_curve(axes: Axes, answer: Comparison, usable: list[PolicyDoc]) -> None:
    data = answer.brief
    points = data["frontier"]
    scale, unit = binary_unit(points[-1]["fast_bytes"])
    axes.plot([p["fast_bytes"] / scale for p in points], [p["time_s"] for p in points], color=OURS, linewidth=2.2)
    others = [policy for policy in usable if policy["policy"] != data["chosen"]]
    spots = [(policy["fast_bytes"] / scale, policy["prediction"]["time_s"]) for policy in others]
    top = min(HEADROOM * points[0]["time_s"], 1.1 * max(time for _, time in [*spots, (0, points[0]["time_s"])]))
    axes.scatter([gib for gib, _ in spots], [time for _, time in spots], s=24, color=OTHERS, alpha=0.8)
    ours = answer.chosen
    spot = (ours["fast_bytes"] / scale, ours["prediction"]["time_s"])
    axes.plot(*spot, "D", color=OURS, markersize=8)
    axes.annotate(data["chosen"], spot, (8, 8), textcoords="offset points", color=OURS, weight="bold")
    axes.axvline(data["budget_bytes"] / scale, color=INK, linewidth=0.8, linestyle=":")
    axes.set_ylim(0, top)
    axes.yaxis.set_major_locator(MaxNLocator(6))
    above = sum(time > top for _, time in spots)
    axes.set(
        title=f"Least time by amount of {data['fast_memory']}",
        xlabel=f"{data['fast_memory']} used, {unit} (dots: other policies{f', {above} more above' if above else ''})",
        ylabel="time, s",
    )
