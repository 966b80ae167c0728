"""Memories of which no source tells how far or how wide they are: told, for what stands there then is assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.catalog.kind_figures import KIND_FIGURES

if TYPE_CHECKING:
    from tierloom.machine_formats.sketch import Route, Sketch
    from tierloom.schema import WarningDoc


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
