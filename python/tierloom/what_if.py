"""Machines that nobody has yet: one of the catalog with a memory farther away, wider, larger, or shared.

A change names a memory, a figure of it and an amount: ``cxl.idle=+70ns``, ``ldram.bandwidth=x1.17``,
``cxl.capacity=512GiB``. Of figures there are:

- ``idle``: latencies of every path to the memory, in sequence and at random. The rise above idle stays what it was at
  the same bandwidth, so a curve moves up or down as a whole.
- ``bandwidth``: the peaks, at the same rise by utilisation: more of the same channels, not faster ones.
- ``capacity``: its size.
- ``cards``: so many times the modules it has: bandwidth and capacity.
- ``hosts``: so many hosts share it alike, each with its part of the bandwidth and of the capacity.
- ``neighbours``: traffic of others on it, GB/s, which is always there: latency begins where that traffic has brought
  it, and what bandwidth it takes is gone.

Links between sockets stay. Every figure that is changed is marked as derived.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tierloom.errors import RequestError
from tierloom.nouns import Machine
from tierloom.readers import Flaws
from tierloom.units import amount_in_bytes, bandwidth_gb_s, latency_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tierloom.schema import Figure

RATE = (bandwidth_gb_s, "GB/s, TB/s")
READERS = {"idle": (latency_ns, "ns, us"), "bandwidth": RATE, "neighbours": RATE}
"""What reads an amount of a figure, and the units that it may have; capacities are sizes as everywhere."""

FIGURES = ("idle", "bandwidth", "capacity", "cards", "hosts", "neighbours")
SCALED = ("idle", "bandwidth", "capacity")
"""Figures that a study may multiply."""

MIXES = (0.0, 0.25, 0.5, 2 / 3, 0.75, 1.0)
"""Shares of reads at which a path beside neighbours keeps its curves."""

STEPS = 60
"""Points of each of them."""

EXAMPLES = "cxl.idle=+70ns, ldram.bandwidth=x1.17, cxl.capacity=512GiB, cxl.cards=3, cxl.hosts=4, cxl.neighbours=10GB/s"

_FACTOR = re.compile(r"^[x*](?P<factor>\d+(?:\.\d*)?|\.\d+)$")
_AMOUNT = re.compile(r"^(?P<sign>[+-]?)(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z/]*)$")


@dataclass(frozen=True)
class Change:
    """One change of one figure of a memory.

    Attributes:
        memory: Its name.
        figure: One of `FIGURES`.
        factor: What the figure is multiplied with.
        plus: What is added then, in its unit: ns, GB/s, or bytes.
    """

    memory: str
    figure: str
    factor: float
    plus: float


def changes(words: Sequence[str]) -> list[Change]:
    """Changes as the command line has them.

    Raises:
        RequestError: Some are not understood.

    Example:
        >>> changes(["cxl.idle=+70ns"])
        [Change(memory='cxl', figure='idle', factor=1.0, plus=70.0)]
    """
    flaws = Flaws()
    found = [flaws.of(_change, word) for word in words]
    flaws.refuse()
    return [change for change in found if change is not None]


def _change(word: str) -> Change:
    name, _, amount = word.partition("=")
    memory, _, figure = name.strip().rpartition(".")
    if not memory or figure not in FIGURES or not amount:
        raise _refused(word, f"it is no change: MEMORY.FIGURE=AMOUNT, of {', '.join(FIGURES)}")
    factor, plus = _amount(word, figure, amount.strip())
    return Change(memory, figure, factor, plus)


def _amount(word: str, figure: str, text: str) -> tuple[float, float]:
    """Factor and summand."""
    if times := _FACTOR.match(text):
        if figure == "neighbours":
            raise _refused(word, "neighbours have a bandwidth, such as 10GB/s")
        return float(times["factor"]), 0.0
    told = _AMOUNT.match(text)
    if told is None:
        raise _refused(word, f"{text} is no amount")
    if figure in {"cards", "hosts"}:
        if told["sign"] or told["unit"] or float(told["number"]) <= 0.0:
            raise _refused(word, f"{figure} are a number above 0")
        return float(told["number"]), 0.0
    sign = {"": 0.0, "+": 1.0, "-": -1.0}[told["sign"]]
    size = _size(word, figure, told)
    return (1.0, sign * size) if sign else (0.0, size)


def _size(word: str, figure: str, told: re.Match[str]) -> float:
    text = told["number"] + told["unit"]
    if figure == "capacity":
        return float(amount_in_bytes(text, 0))
    read, units = READERS[figure]
    size = read(text)
    if size is None:
        raise _refused(word, f"it needs a unit: {units}")
    return size


def _refused(word: str, why: str) -> RequestError:
    return RequestError(f"--what-if {word}: {why}\nhint: {EXAMPLES}")


def scaled(machine: Machine, factors: Mapping[str, float]) -> Machine:
    """A machine with ``MEMORY.idle``, ``MEMORY.bandwidth`` or ``MEMORY.capacity`` multiplied.

    Raises:
        RequestError: There is no such memory or figure, or a factor is not above 0.

    Example:
        >>> far = scaled(Machine.load("liu-a"), {"cxl.idle": 2.0})
        >>> [path["idle_ns"]["value"] for path in far.data["paths"] if path["to"] == "cxl"][0]
        476.0
    """
    names = [memory["name"] for memory in machine.data["memories"]]
    wanted = []
    for key, factor in factors.items():
        memory, _, figure = key.rpartition(".")
        if memory not in names or figure not in SCALED:
            listed = f"{', '.join(names)} with {', '.join(SCALED)}"
            message = f"scale.{key}: {machine.name} has no such figure\nhint: write scale.MEMORY.FIGURE, of {listed}"
            raise RequestError(message)
        if not 0.0 < factor < float("inf"):
            message = f"scale.{key}: {factor} is no factor\nhint: write a number above 0, such as 1.5"
            raise RequestError(message)
        wanted.append(Change(memory, figure, factor, 0.0))
    return changed(machine, wanted)


def changed(machine: Machine, wanted: Sequence[Change]) -> Machine:
    """A machine after changes, one after the other.

    Raises:
        RequestError: It has no such memory, or nothing is left of a figure.
    """
    if not wanted:
        return machine
    data: Any = copy.deepcopy(machine.data)
    names = [memory["name"] for memory in data["memories"]]
    for change in wanted:
        if change.memory not in names:
            message = f"{machine.name} has no memory {change.memory}\nhint: it has {', '.join(names)}"
            raise RequestError(message)
        for figure, one in _parts(change):
            HOW[figure](data, one)
    return Machine.from_data(data, machine.name)


def _parts(change: Change) -> list[tuple[str, Change]]:
    """What a change means for the figures of the catalog."""
    if change.figure not in {"cards", "hosts"}:
        return [(change.figure, change)]
    factor = change.factor if change.figure == "cards" else 1.0 / change.factor
    return [(figure, Change(change.memory, figure, factor, 0.0)) for figure in ("bandwidth", "capacity")]


def _capacity(data: Any, change: Change) -> None:  # noqa: ANN401 (a document)
    (found,) = (item for item in data["memories"] if item["name"] == change.memory)
    found["capacity_bytes"] = _derived(found["capacity_bytes"], round, change)


def _idle(data: Any, change: Change) -> None:  # noqa: ANN401
    for path in _paths(data, change):
        before = path["idle_ns"]["value"]
        path["idle_ns"] = _derived(path["idle_ns"], float, change)
        if "random_idle_ns" in path:
            path["random_idle_ns"] = _derived(path["random_idle_ns"], float, change)
        shift = path["idle_ns"]["value"] - before
        for curve in path["load"].get("points", []):
            curve["points"] = [[gb_s, ns + shift] for gb_s, ns in curve["points"]]
            curve["origin"] = _from(curve["origin"], f"all latencies {shift:+.0f} ns")


def _bandwidth(data: Any, change: Change) -> None:  # noqa: ANN401
    """Peaks times a factor: that by which the highest of a path grows, where an amount is told."""
    for memory in data["memories"]:
        if memory["name"] == change.memory and "lines_in_flight" in memory and not change.plus:
            memory["lines_in_flight"] = _derived(memory["lines_in_flight"], float, change)
    for path in _paths(data, change):
        load = path["load"]
        highest = _highest(load)
        factor = _above_0(change, change.factor + change.plus / highest)
        for curve in load.get("points", []):
            curve["points"] = [[gb_s * factor, ns] for gb_s, ns in curve["points"]]
            curve["origin"] = _from(curve["origin"], f"all bandwidths times {factor:g}")
        if "form" in load:
            (peak,) = load["form"]["peak"].values()
            peak.update({key: value * factor for key, value in peak.items() if key.endswith("_gb_s")})
            load["form"]["origin"] = _from(load["form"]["origin"], f"peaks times {factor:g}")


def _highest(load: Any) -> float:  # noqa: ANN401
    """Highest bandwidth of reads alone, or of any curve."""
    if "form" in load:
        (peak,) = load["form"]["peak"].values()
        return float(peak["read_gb_s"])
    return float(max(gb_s for curve in load["points"] for gb_s, _ in curve["points"]))


def _neighbours(data: Any, change: Change) -> None:  # noqa: ANN401
    machine = Machine.from_data(data, data["name"])
    for path in _paths(data, change):
        curves = [_beside(machine, path, reads, change) for reads in MIXES]
        origins = path["load"].get("form") or path["load"]["points"][0]
        how = f"{change.plus:g} GB/s of others on it"
        origin = _from(origins["origin"], how)
        path["load"] = {"points": [{"read_fraction": reads, **curve, "origin": origin} for reads, curve in curves]}
        risen = curves[-1][1]["points"][0][1] - path["idle_ns"]["value"]
        for key in ("idle_ns", "random_idle_ns"):
            if key in path:
                path[key] = {"value": path[key]["value"] + risen, **_from(path[key], how)}


def _beside(machine: Machine, path: Any, reads: float, change: Change) -> tuple[float, dict[str, Any]]:  # noqa: ANN401
    """A curve from the traffic of others on."""
    curve = machine.curve(path["from"], path["to"], reads, steps=STEPS)
    most, ns_at_most = curve.points[-1]
    if change.plus >= most:
        message = (
            f"{change.memory} gives {most:.3g} GB/s with {reads:.0%} reads, so neighbours may not take {change.plus:g}"
            "\nhint: name less traffic"
        )
        raise RequestError(message)
    start = curve.latency_ns(change.plus / curve.peak_gb_s)
    rest = [[gb_s - change.plus, max(ns, start)] for gb_s, ns in curve.points if gb_s > change.plus * 1.001]
    return reads, {"points": [[0.0, start], *rest] if rest else [[0.0, start], [most - change.plus, ns_at_most]]}


HOW: dict[str, Callable[[Any, Change], None]] = {
    "capacity": _capacity,
    "idle": _idle,
    "bandwidth": _bandwidth,
    "neighbours": _neighbours,
}


def _paths(data: Any, change: Change) -> list[Any]:  # noqa: ANN401
    return [path for path in data["paths"] if path["to"] == change.memory]


def _above_0(change: Change, value: float) -> float:
    if not value > 0.0:
        message = f"{change.memory}.{change.figure}: nothing would be left\nhint: take away less"
        raise RequestError(message)
    return value


def _derived(figure: Figure, number: type | Any, change: Change) -> dict[str, object]:  # noqa: ANN401
    value = number(_above_0(change, figure["value"] * change.factor + change.plus))
    added = f" {change.plus:+g}" if change.plus else ""
    return {"value": value, **_from(figure, f"{figure['value']:g} times {change.factor:g}{added}")}


def _from(origin: Any, how: str) -> dict[str, object]:  # noqa: ANN401
    before = f" ({origin['how']})" if origin.get("how") else ""
    return {"kind": "derived", "source": origin["source"], "how": f"{how}{before}"}
