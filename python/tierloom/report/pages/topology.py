"""A machine as a drawing: sockets, the memories that hang on each, and the wires between.

Every socket is a box with its memories below, one a line, so that any number of them fits; sockets
stand beside each other on a wide screen and below each other on a narrow one. A wire is as thick as
its path is wide.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tierloom.report.pages.specs import memory_scale
from tierloom.units import bytes_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.nouns import Machine
    from tierloom.schema import MemoryDoc, PathDoc, SocketDoc

COLUMN = 336
GAP = 84
SOCKET_HEIGHT = 74
MEMORY_HEIGHT = 46
MEMORY_STEP = 62
STEM = 26
"""From a socket's left edge to the stem that its memories hang on."""

MEMORY_LEFT = 156
MARGIN = 4
THINNEST, THICKEST = 1.5, 9.0
"""Widths of wires, pixels."""


def draw(machine: Machine, columns: int) -> dict[str, Any]:
    """Boxes and wires of a machine with so many sockets beside each other."""
    sockets = machine.data["sockets"]
    across = min(columns, len(sockets))
    most = max(_peak(machine, path) for path in machine.data["paths"])
    drawn = []
    y = MARGIN
    for first in range(0, len(sockets), across):
        row = sockets[first : first + across]
        drawn += [_socket(machine, each, MARGIN + at * (COLUMN + GAP), y, most) for at, each in enumerate(row)]
        y += max(each["height"] for each in drawn[first:]) + MARGIN * 5
    width = across * COLUMN + (across - 1) * GAP + 2 * MARGIN
    return {"width": width, "height": y, "sockets": drawn, "links": _links(machine, drawn, across)}


def _socket(machine: Machine, socket: SocketDoc, x: float, y: float, most: float) -> dict[str, Any]:
    held = [memory for memory in machine.data["memories"] if memory["socket"] == socket["name"]]
    cores, llc = socket["cores"]["value"], bytes_text(socket["llc_bytes"]["value"])
    memories = [_memory(machine, socket, each, x, y, at, most) for at, each in enumerate(held)]
    stem_end = memories[-1]["middle"] if memories else y + SOCKET_HEIGHT
    return {
        "name": socket["name"],
        "cpu": socket["cpu"],
        "what": f"{cores:.0f} cores, {llc} last-level cache",
        "x": x,
        "y": y,
        "width": COLUMN,
        "box_height": SOCKET_HEIGHT,
        "stem": {"x": x + STEM, "from": y + SOCKET_HEIGHT, "to": stem_end},
        "memories": memories,
        "height": SOCKET_HEIGHT + len(held) * MEMORY_STEP,
    }


def _memory(
    machine: Machine, socket: SocketDoc, memory: MemoryDoc, x: float, y: float, at: int, most: float
) -> dict[str, Any]:
    top = y + SOCKET_HEIGHT + at * MEMORY_STEP + (MEMORY_STEP - MEMORY_HEIGHT)
    path = path_between(machine, socket["name"], memory["name"])
    price = f", {memory['usd_per_gib']['value']:.3g} US$/GiB" if "usd_per_gib" in memory else ""
    wire = {"label": "", "peak": "", "thick": THINNEST}
    if path is not None:
        peak = _peak(machine, path)
        wire = {"label": f"{path['idle_ns']['value']:.0f} ns", "peak": f"{peak:.0f} GB/s", "thick": _thick(peak, most)}
    return {
        "name": memory["name"],
        "what": f"{memory['kind'].upper()} {bytes_text(memory['capacity_bytes']['value'])}{price}",
        "colour": colours(machine)[memory["name"]],
        "x": x + MEMORY_LEFT,
        "y": top,
        "width": COLUMN - MEMORY_LEFT,
        "height": MEMORY_HEIGHT,
        "middle": top + MEMORY_HEIGHT / 2,
        "wire": {**wire, "from": x + STEM, "to": x + MEMORY_LEFT},
    }


def _links(machine: Machine, drawn: Sequence[dict[str, Any]], across: int) -> list[dict[str, Any]]:
    """Wires between neighbours that stand beside each other; the machine names the first of its links."""
    links = machine.data.get("links", [])
    label = f"{links[0]['name']}, {links[0]['gb_s_each_way']['value']:.0f} GB/s" if links else ""
    pairs = [(a, b) for at, (a, b) in enumerate(pairwise(drawn)) if (at + 1) % across]
    return [
        {"from": a["x"] + COLUMN, "to": b["x"], "y": a["y"] + SOCKET_HEIGHT / 2, "label": label, "way": "each way"}
        for a, b in pairs
    ]


def colours(machine: Machine) -> dict[str, str]:
    """Colour of each memory, the same in all charts."""
    made = memory_scale([memory["name"] for memory in machine.data["memories"]])
    return dict(zip(made["domain"], made["range"], strict=True))


def path_between(machine: Machine, socket: str, memory: str) -> PathDoc | None:
    """The path from a socket to a memory, where there is one."""
    return next((path for path in machine.data["paths"] if (path["from"], path["to"]) == (socket, memory)), None)


def _peak(machine: Machine, path: PathDoc) -> float:
    return machine.curve(path["from"], path["to"], steps=2).peak_gb_s


def _thick(peak: float, most: float) -> float:
    return round(THINNEST + (THICKEST - THINNEST) * peak / most, 1)
