"""GPU memory expansion over time, as a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tierloom.extras import brought_by
from tierloom.report.charts.picture import INK, LINES, STYLE

with brought_by("report"):
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tierloom.schema import ExpansionDoc


def timeline(run: ExpansionDoc) -> Figure:
    """Latencies, queue, load, collections, stack and links over time."""
    steps = run["timeline"]
    times = [step["time_s"] * 1e3 for step in steps]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.0, 9.0), layout="constrained")
        axes = figure.subplots(5, 1, sharex=True)
        _latency(axes[0], times, [step["load_ns"] for step in steps], "load latency, ns")
        _latency(axes[1], times, [step["store_ns"] for step in steps], "store latency, ns")
        axes[2].plot(times, [step["ingress"] for step in steps], color=LINES[0], label="ingress queue")
        axes[2].plot(times, [step["stack"] for step in steps], color=LINES[1], label="store stack")
        most = max((max(step["ingress"], step["stack"]) for step in steps), default=0)
        axes[2].set(ylabel="entries", yscale="symlog", ylim=(0, max(1.1 * most, 1)))
        load = [step["dev_load"] for step in steps]
        axes[3].fill_between(times, 0, load, step="pre", color=LINES[2], linewidth=0, alpha=0.7, label="DevLoad")
        axes[3].set(ylabel="DevLoad", yticks=range(4), yticklabels=["light", "optimal", "moderate", "severe"])
        collecting = [step["collecting"] for step in steps]
        axes[3].fill_between(times, 3, 3.4, where=collecting, step="pre", color=INK, linewidth=0, label="collection")
        for at, way in enumerate(("to the endpoints", "to the GPU")):
            axes[4].plot(times, [step["link_use"][at] for step in steps], color=LINES[at], label=way)
        axes[4].set(ylabel="link use", xlabel="time, ms", ylim=(0, None))
        axes[4].yaxis.set_major_formatter(PercentFormatter(1.0))
        for part in axes:
            part.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, ncols=2, borderaxespad=0)
        setup = run["setup"]
        axes[0].set_title(f"{run['workload']}, {setup['config']} on {setup['media']}", loc="left")
    return figure


def _latency(axes: Axes, times: list[float], pairs: list[list[float]], label: str) -> None:
    """Two percentiles on whole decades: a latency that hardly changes looks like one; a gap where nothing came."""
    floor = [[max(value, 1.0) if pair[1] > 0 else math.nan for value in pair[:2]] for pair in pairs]
    for at, (name, colour) in enumerate((("median", LINES[0]), ("99th percentile", LINES[3]))):
        axes.plot(times, [pair[at] for pair in floor], color=colour, label=name, linewidth=1.0)
    flat = [value for pair in floor for value in pair if not math.isnan(value)] or [1.0]
    low, high = math.floor(math.log10(min(flat))), math.ceil(math.log10(max(flat)))
    axes.set(ylabel=label, yscale="log", ylim=(10.0**low, 10.0 ** max(high, low + 1)))
