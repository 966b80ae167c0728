"""What a memory of a kind is taken to do where no source tells: published figures of one device of that kind.

A node that nobody measured would else be as near as DRAM and as wide, and plans would move what is hot to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tierloom.machine_formats.sketch import Route, Sketch
    from tierloom.schema import WarningDoc


@dataclass(frozen=True)
class KindFigures:
    """Of one device, with who published them."""

    idle_ns: float
    idle_of: str
    read_gb_s: float
    write_gb_s: float
    bandwidth_of: str


KIND_FIGURES = {
    "cxl": KindFigures(
        251.0,
        "an Astera A1000 card (EuroSys 2024)",
        27.1,
        23.4,
        "Micron's simulated CXL expander behind an x8 link (Mess)",
    ),
    "pmem": KindFigures(
        305.0,
        "random reads of Optane modules (arXiv 1903.05714)",
        6.6,
        2.3,
        "one Optane module (arXiv 1903.05714)",
    ),
}
"""Latency as `machine measure` has it, of random reads where the source tells them apart."""


def tell_assumed(sketch: Sketch) -> None:
    """Adds a warning for each memory but DRAM of which no source tells how far or how wide it is."""
    for number, node in sorted(sketch.nodes.items()):
        routes = [route for (_, end), route in sketch.routes.items() if end == number]
        lacking = [what for what, told in FIGURES.items() if not any(map(told, routes))]
        if node.kind and node.kind.value != "dram" and lacking:
            sketch.warnings.append(_told(number, node.kind.value, lacking))


def tells_idle(route: Route) -> bool:
    """Whether a source tells the latency of a way."""
    return bool(route.idle_ns or route.curves)


def tells_bandwidth(route: Route) -> bool:
    """Whether a source tells the bandwidth of a way."""
    return bool(route.read_gb_s or route.lanes or route.curves)


FIGURES = {"latency": tells_idle, "bandwidth": tells_bandwidth}


def _told(number: int, kind: str, lacking: list[str]) -> WarningDoc:
    known = KIND_FIGURES.get(kind)
    taken = {
        "latency": f"{known.idle_ns:g} ns as of {known.idle_of}" if known else "as of DRAM",
        "bandwidth": f"{known.read_gb_s:g} GB/s as of {known.bandwidth_of}" if known else "that of one channel of DDR5",
    }
    said = " and ".join(f"{what} ({taken[what]})" for what in lacking)
    return {
        "what": f"node {number} ({kind}): assumed {said}",
        "cause": "no source tells them",
        "remedy": "measure there (tierloom machine measure), add a log of Intel MLC, or write what you know into the "
        "machine file",
    }
