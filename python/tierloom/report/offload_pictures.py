"""Pictures of offloading plans: throughput against the capacity of each tier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from tierloom.offload.capacity import curve
from tierloom.report.pictures import INK, LINES, OURS, STYLE

if TYPE_CHECKING:
    from tierloom.offload.answers import InferAnswer

GIB = 2**30


def capacities(answer: InferAnswer) -> Figure:
    """Tokens per second of the best plan as one tier grows or shrinks and the others stay."""
    problem = answer.plan.problem
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        axes = figure.add_subplot()
        for tier, colour in zip(problem.host.memories, LINES, strict=False):
            found = [(p.capacity_bytes / GIB, p.tokens_s) for p in curve(problem, tier.name) if p.tokens_s is not None]
            if found:
                axes.plot(*zip(*found, strict=True), color=colour, marker="o", markersize=3.5, linewidth=1.8)
                axes.annotate(tier.name, found[-1], (6, 0), textcoords="offset points", color=colour, va="center")
            axes.plot(tier.capacity_bytes / GIB, answer.plan.tokens_s, "D", color=OURS, markersize=6)
        axes.set(
            title=f"{problem.model.name} on {problem.gpu.name} and {problem.host.name}: what capacity buys",
            xlabel="capacity of one tier, GiB, the others as they are",
            ylabel="tokens/s",
        )
        axes.set_ylim(bottom=0)
        axes.margins(x=0.12)
        axes.text(0.98, 0.04, "diamonds: the machine as it is", transform=axes.transAxes, ha="right", color=INK)
    return figure
