"""Tables and pictures of GPU memory expansion: configurations side by side, and their time series."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from tierloom.quantities import bytes_text, percent_text, seconds_text
from tierloom.report.layout import noted, table
from tierloom.report.pictures import INK, LINES, STYLE
from tierloom.reproducing import claims

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from rich.console import Group

    from tierloom.gpu_copies import Fit
    from tierloom.schema import ExpansionDoc

YARDSTICK = "gpu-dram"


def comparison(runs: Sequence[ExpansionDoc]) -> Group:
    """Runs of one workload, the yardstick first."""
    setup = runs[-1]["setup"]
    made = table(
        f"{runs[0]['workload']} on {setup['gpu']}, endpoint of {setup['media']}",
        ("configuration", "left"),
        ("time", "right"),
        (f"against {YARDSTICK}", "right"),
        ("load mean", "right"),
        ("load p99", "right"),
        ("store p99", "right"),
        ("cache hits", "right"),
        ("endpoint hits", "right"),
        ("with in flight", "right"),
        ("collections", "right"),
        ("faults", "right"),
    )
    for run in runs:
        made.add_row(*_cells(run, runs[0]["time_s"]))
    return noted(
        made,
        "load: from a miss of the last-level cache to its answer; a page that faults is waited for before that.\n"
        "store: until the cache is rid of it. endpoint hits: reads whose line is in the endpoint's internal DRAM, and\n"
        "those whose line is there or on its way.",
    )


def _cells(run: ExpansionDoc, yardstick_s: float) -> list[str]:
    endpoint, paging = run["endpoint"], run["paging"]
    hits = endpoint["reads"] > 0
    return [
        run["setup"]["config"],
        seconds_text(run["time_s"]),
        f"{run['time_s'] / yardstick_s:.2f}x",
        nanoseconds(run["loads"]["mean_ns"]),
        nanoseconds(run["loads"]["p99_ns"]),
        nanoseconds(run["write_backs"]["p99_ns"]) if run["write_backs"]["count"] else "-",
        percent_text(run["llc_hit_share"]),
        percent_text(endpoint["hit_share"]) if hits else "-",
        percent_text(endpoint["hit_or_in_flight_share"]) if hits else "-",
        str(endpoint["collections"]) if hits else "-",
        str(paging["faults"]) if paging["batches"] else "-",
    ]


def calibration(found: Fit, measured: dict[str, Any]) -> Group:
    """Measured copies beside the fitted line, and what others published."""
    made = table(
        f"Copies from pinned host memory on {found.gpu}", ("bytes", "right"), ("time", "right"), ("GB/s", "right")
    )
    for size, ns in measured["copies"]:
        made.add_row(bytes_text(size), nanoseconds(ns), f"{size / ns:.2f}")
    return noted(
        made,
        f"fit: {found.copy_ns:.0f} ns + bytes / {found.copy_gb_s:.1f} GB/s, "
        f"at worst {percent_text(found.worst_error)} off; "
        f"a load of host memory costs {found.extra_load_ns:.0f} ns more than one of GPU memory\n"
        + "\n".join(f"published: {line}" for line in published_copies()),
    )


def published_copies() -> list[str]:
    """What others measured of such copies: sentences of the ledger."""
    return [claim.what for claim in claims(["liu24.gpu.spread", "liu24.gpu.latency"])]


def nanoseconds(value: float) -> str:
    """A latency: ns below a microsecond, µs above."""
    return f"{value:.0f} ns" if value < 1000 else seconds_text(value * 1e-9)


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
