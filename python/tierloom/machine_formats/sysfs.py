"""A machine's ``/proc`` and ``/sys`` as a sketch: this machine's, or a recorded tree.

The core reads the tree; here its words become figures. Latency and bandwidth come from firmware's HMAT
or CDAT by way of the kernel's access classes, for a node's nearest CPUs; distances fill the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.machine_formats.plausible import leave_out_implausible
from tierloom.machine_formats.sketch import Cpus, Known, Node, Route, Sketch
from tierloom.measurement import describe
from tierloom.units import GIB

if TYPE_CHECKING:
    from pathlib import Path

    from tierloom.measurement import DescriptionDoc
    from tierloom.schema import WarningDoc

SOURCE = "sysfs"


def is_tree(path: Path) -> bool:
    """Whether a folder holds a machine's ``/sys``."""
    return (path / "sys/devices/system").is_dir()


def read(path: Path) -> Sketch:
    """Reads the folder that holds ``proc`` and ``sys``.

    Raises:
        MachineError: No memory node is described there, or a file of it is damaged.
    """
    told = describe(path)
    host = told["host"]
    sketch = Sketch(sources={SOURCE: f"/sys and /proc of a machine with {host['cpu']}, Linux {host['kernel']}"})
    for socket in host["sockets"]:
        sketch.cpus[socket["node"]] = _cpus(socket, host["cpu"])
    for node in host["nodes"]:
        sketch.nodes[node["node"]] = _node(node)
    for entry in told["firmware"]:
        _routes(entry, sketch)
    leave_out_implausible(sketch)
    sketch.notes += [_region(region) for region in told["cxl_regions"]]
    sketch.warnings += [*told["warnings"], *_idle_devices(told)]
    return sketch


def _cpus(socket: dict[str, Any], model: str) -> Cpus:
    def cache(key: str) -> Known[int] | None:
        return Known(socket[key], "measured", SOURCE, "cpu*/cache") if socket[key] else None

    cores = Known(len(socket["cores"]), "measured", SOURCE, "first hardware thread of each core")
    return Cpus(None, model, cores, cache("llc_bytes"), cache("llc_per_core_bytes"))


def _node(node: dict[str, Any]) -> Node:
    capacity = Known(node["capacity_bytes"], "measured", SOURCE, "MemTotal of the node")
    return Node(None, Known(node["kind"], "derived", SOURCE, node["kind_because"]), capacity)


def _routes(entry: dict[str, Any], sketch: Sketch) -> None:
    end = entry["node"]
    for start in sketch.cpus:
        sketch.route(start, end)
    for other, distance in entry["distances"]:
        # Firmware tells the way from a memory; a matrix of distances is taken to be symmetric.
        if other in sketch.cpus:
            sketch.route(other, end).distance = distance
    access = entry["access"]
    for start in access["initiators"] if access else []:
        if start in sketch.cpus:
            _performance(access, sketch.route(start, end))


def _performance(access: dict[str, Any], route: Route) -> None:
    how = f"HMAT or CDAT, access class {access['class']}"

    def told(key: str, unit: float) -> Known[float] | None:
        return Known(access[key] * unit, "published", SOURCE, how) if access[key] else None

    route.idle_ns = told("read_latency_ns", 1.0)
    route.read_gb_s = told("read_mb_s", 1e-3)
    route.write_gb_s = told("write_mb_s", 1e-3)


def _region(region: dict[str, Any]) -> str:
    ways, grain = region["interleave_ways"], region["interleave_bytes"]
    spread = f", interleaved over {ways} devices by {grain} bytes" if ways and ways > 1 else ""
    node = region["target_node"]
    becomes = f", node {node}" if node is not None else ""
    return f"CXL {region['name']}: {region['bytes'] / GIB:g} GiB of {region['mode'] or 'unknown'}{spread}{becomes}."


def _idle_devices(told: DescriptionDoc) -> list[WarningDoc]:
    """CXL memory that no region uses."""
    have = sum(device["volatile_bytes"] + device["persistent_bytes"] for device in told["cxl_devices"])
    used = sum(region["bytes"] for region in told["cxl_regions"])
    if have <= used:
        return []
    names = ", ".join(device["name"] for device in told["cxl_devices"])
    return [
        {
            "what": f"{(have - used) / GIB:g} GiB of CXL memory ({names}) are in no region",
            "cause": "the kernel makes a node of a CXL device only when a region is created and onlined",
            "remedy": "cxl create-region, then daxctl reconfigure-device --mode=system-ram",
        }
    ]
