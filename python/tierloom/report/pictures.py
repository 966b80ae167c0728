"""Pictures: loaded-latency curves of a machine, the policies and the frontier of a plan.

Every picture is drawn the same way twice: no dates, no random ids, so that a report can be kept in
git. Colours are those of Okabe and Ito, which readers with any colour vision tell apart; what
matters is also said by line style, weight or a label beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom import outputs
from tierloom.errors import RequestError
from tierloom.extras import brought_by
from tierloom.quantities import binary_unit, bytes_text, count_text
from tierloom.report.plans import bound_text, ordered

with brought_by("report"):
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from tierloom.nouns import Machine
    from tierloom.planning import Comparison
    from tierloom.schema import PolicyDoc

OURS = "#D55E00"
OTHERS = "#7F8C9A"
INK = "#22303C"
FAINT = "#D9DEE3"
LINES = ("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BARS = 12
"""Policies that the picture compares; the tables have all."""

HEADROOM = 1.6
"""Height of the frontier's picture over the frontier: policies above would flatten it."""

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "tierloom",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "xtick.color": INK,
    "ytick.color": INK,
}


def save(figure: Figure, path: Path) -> None:
    """Writes a picture in the format that the path's ending names.

    Raises:
        RequestError: The ending names no format that can be drawn.
    """
    endings = (".png", ".svg", ".pdf")
    if path.suffix not in endings:
        message = f"{path}: `{path.suffix}` is no kind of picture\nhint: let the name end with {', '.join(endings)}"
        raise RequestError(message)
    dateless = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[path.suffix]
    with mpl.rc_context(STYLE), outputs.whole(path) as part:
        figure.savefig(part, dpi=160, metadata=dateless)


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


def frontier(answer: Comparison) -> Figure:
    """The best policies as bars, and time against fast memory with all policies as points on it."""
    data = answer.data
    usable = [policy for policy in ordered(data) if "Ok" in policy["outcome"]]
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
    chosen = answer.data["chosen"]
    shown = usable[:BARS]
    times = [policy["outcome"]["Ok"]["time_s"] for policy in shown]
    colours = [OURS if policy["policy"] == chosen else OTHERS for policy in shown]
    axes.barh([policy["policy"] for policy in shown], times, color=colours, height=0.72)
    for row, policy in enumerate(shown):
        answered = policy["outcome"]["Ok"]
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
    data = answer.data
    points = data["frontier"]
    scale, unit = binary_unit(points[-1]["fast_bytes"])
    axes.plot([p["fast_bytes"] / scale for p in points], [p["time_s"] for p in points], color=OURS, linewidth=2.2)
    others = [policy for policy in usable if policy["policy"] != data["chosen"]]
    spots = [(policy["fast_bytes"] / scale, policy["outcome"]["Ok"]["time_s"]) for policy in others]
    top = min(HEADROOM * points[0]["time_s"], 1.1 * max(time for _, time in [*spots, (0, points[0]["time_s"])]))
    axes.scatter([gib for gib, _ in spots], [time for _, time in spots], s=24, color=OTHERS, alpha=0.8)
    ours = answer.chosen
    spot = (ours["fast_bytes"] / scale, ours["outcome"]["Ok"]["time_s"])
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
