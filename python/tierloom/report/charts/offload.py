"""Pictures of offloading plans: throughput against the capacity of each tier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.extras import brought_by
from tierloom.offload.capacity import curve
from tierloom.report.charts.picture import LINES, OURS, STYLE
from tierloom.units import GIB

with brought_by("report"):
    import matplotlib as mpl
    from matplotlib.figure import Figure

if TYPE_CHECKING:
    from tierloom.offload.answers import InferAnswer

ROOM_ABOVE = 1.08
"""Of the axis over the highest point, so that no mark is cut."""

MARKERS = "os^vPX*"
"""One a tier: curves of memories that are worth the same lie on each other."""

CURVE: dict[str, Any] = {"markersize": 5, "linewidth": 1.8, "alpha": 0.85, "markerfacecolor": "white"}


def capacities(answer: InferAnswer) -> Figure:
    """Tokens per second of the best plan as one tier grows or shrinks and the others stay."""
    problem = answer.plan.problem
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        axes = figure.add_subplot()
        highest = answer.plan.tokens_s
        for tier, colour, marker in zip(problem.host.memories, LINES, MARKERS, strict=False):
            found = [(p.capacity_bytes / GIB, p.tokens_s) for p in curve(problem, tier.name) if p.tokens_s is not None]
            if found:
                axes.plot(*zip(*found, strict=True), color=colour, marker=marker, label=tier.name, **CURVE)
                highest = max(highest, *(rate for _, rate in found))
            now = "the machine as it is" if tier is problem.host.memories[-1] else None
            axes.plot(tier.capacity_bytes / GIB, answer.plan.tokens_s, "D", color=OURS, markersize=6, label=now)
        axes.set(
            title=f"{problem.model.name} on {problem.gpu.name} and {problem.host.name}: what capacity buys",
            xlabel="capacity of one tier, GiB, the others as they are",
            ylabel="tokens/s",
        )
        axes.set_ylim(0, ROOM_ABOVE * highest)
        axes.legend(loc="lower right", frameon=False)
    return figure
