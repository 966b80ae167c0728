"""Loaded-latency curves of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.extras import brought_by
from tierloom.report.charts.picture import LINES, STYLE

with brought_by("report"):
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tierloom.nouns import Machine


def machine_curves(machine: Machine) -> Figure:
    """Loaded latency of every memory from the first socket, for pure reads and two reads a write."""
    socket = machine.data["sockets"][0]["name"]
    reached = [path for path in machine.data["paths"] if path["from"] == socket]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        axes = figure.add_subplot()
        for path, colour in zip(reached, LINES, strict=False):
            _memory_curves(axes, machine, socket, path["to"], colour)
        axes.set(title=f"{machine.name}: loaded latency from {socket}", xlabel="bandwidth, GB/s", ylabel="latency, ns")
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_ylim(bottom=0, top=_ceiling(machine, socket))
        axes.text(0.02, 0.95, "solid: reads only\ndashed: 2 reads a write", transform=axes.transAxes, va="top")
    return figure


def _memory_curves(axes: Axes, machine: Machine, socket: str, memory: str, colour: str) -> None:
    for read_fraction, style in ((1.0, "-"), (2 / 3, "--")):
        curve = machine.curve(socket, memory, read_fraction, steps=100)
        xs, ys = zip(*[(max(gb_s, 1.0), ns) for gb_s, ns in curve.points], strict=True)
        axes.plot(xs, ys, style, color=colour, linewidth=2.0 if style == "-" else 1.2)
        if style == "-":
            axes.annotate(memory, (xs[0], ys[0]), (0, 5), textcoords="offset points", color=colour, weight="bold")


def _ceiling(machine: Machine, socket: str) -> float:
    """Fitted forms rise without bound towards the peak; the picture ends where waits are four times idle."""
    reached = [path for path in machine.data["paths"] if path["from"] == socket]
    return 4.0 * max(path["idle_ns"]["value"] for path in reached)
