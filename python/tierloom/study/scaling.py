"""Machines that nobody sells yet: one of the catalog with a memory farther away, wider or larger.

``idle`` multiplies the idle latency of every path to a memory; the rise above idle stays what it was at
the same utilisation, so a curve moves up or down as a whole. ``bandwidth`` multiplies the peaks, again at
the same rise by utilisation: more of the same channels, not faster ones. ``capacity`` multiplies the size.
Links between sockets stay. Every figure that is changed is marked as derived.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tierloom.errors import RequestError
from tierloom.nouns import Machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.schema import Figure

WHAT = ("idle", "bandwidth", "capacity")


def scaled(machine: Machine, factors: Mapping[str, float]) -> Machine:
    """A machine with ``MEMORY.idle``, ``MEMORY.bandwidth`` or ``MEMORY.capacity`` multiplied.

    Raises:
        RequestError: There is no such memory or figure, or a factor is not above 0.

    Example:
        >>> far = scaled(Machine.load("liu-a"), {"cxl.idle": 2.0})
        >>> [path["idle_ns"]["value"] for path in far.data["paths"] if path["to"] == "cxl"][0]
        476.0
    """
    if not factors:
        return machine
    data: Any = copy.deepcopy(machine.data)
    names = [memory["name"] for memory in data["memories"]]
    for key, factor in factors.items():
        memory, _, what = key.rpartition(".")
        if memory not in names or what not in WHAT:
            listed = f"{', '.join(names)} with {', '.join(WHAT)}"
            message = f"scale.{key}: {machine.name} has no such figure\nhint: write scale.MEMORY.FIGURE, of {listed}"
            raise RequestError(message)
        if not 0.0 < factor < float("inf"):
            message = f"scale.{key}: {factor} is no factor\nhint: write a number above 0, such as 1.5"
            raise RequestError(message)
        _scale(data, memory, what, factor)
    return Machine.from_data(data, machine.name)


def _scale(data: Any, memory: str, what: str, factor: float) -> None:  # noqa: ANN401 (a document)
    if what == "capacity":
        (found,) = (item for item in data["memories"] if item["name"] == memory)
        found["capacity_bytes"] = _derived(found["capacity_bytes"], round, factor)
        return
    for path in data["paths"]:
        if path["to"] == memory:
            (_idle if what == "idle" else _bandwidth)(path, factor)


def _idle(path: Any, factor: float) -> None:  # noqa: ANN401
    shift = path["idle_ns"]["value"] * (factor - 1.0)
    path["idle_ns"] = _derived(path["idle_ns"], float, factor)
    for curve in path["load"].get("points", []):
        curve["points"] = [[gb_s, ns + shift] for gb_s, ns in curve["points"]]
        curve["origin"] = _from(curve["origin"], f"all latencies {shift:+.0f} ns")


def _bandwidth(path: Any, factor: float) -> None:  # noqa: ANN401
    load = path["load"]
    for curve in load.get("points", []):
        curve["points"] = [[gb_s * factor, ns] for gb_s, ns in curve["points"]]
        curve["origin"] = _from(curve["origin"], f"all bandwidths times {factor:g}")
    if "form" in load:
        (peak,) = load["form"]["peak"].values()
        peak.update({key: value * factor for key, value in peak.items() if key.endswith("_gb_s")})
        load["form"]["origin"] = _from(load["form"]["origin"], f"peaks times {factor:g}")


def _derived(figure: Figure, number: type | Any, factor: float) -> dict[str, object]:  # noqa: ANN401
    scaled_to = number(figure["value"] * factor)
    return {"value": scaled_to, **_from(figure, f"{figure['value']:g} times {factor:g}")}


def _from(origin: Any, how: str) -> dict[str, object]:  # noqa: ANN401
    before = f" ({origin['how']})" if origin.get("how") else ""
    return {"kind": "derived", "source": origin["source"], "how": f"{how}{before}"}
