"""A machine's ``/proc`` and ``/sys`` as a sketch: this machine's, or a recorded tree.

Latency and bandwidth come from firmware's HMAT or CDAT by way of the kernel's access classes, for a node's nearest
CPUs; distances fill the rest. What the kernel does with pages, and its CXL devices, the core reads.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tierloom.machine_formats import cpuinfo, sys_nodes, topology_sketch
from tierloom.machine_formats.sketch import Sketch
from tierloom.machine_formats.sys_tree import CPU, NODE, Tree
from tierloom.machine_formats.texts import flaw
from tierloom.machine_formats.topology import Cache, Package, Topology, bits, union
from tierloom.measurement import describe
from tierloom.units import GIB, MIB

if TYPE_CHECKING:
    from pathlib import Path

    from tierloom.machine_formats.cpuinfo import Processors
    from tierloom.measurement import DescriptionDoc
    from tierloom.schema import WarningDoc

SOURCE = sys_nodes.SOURCE
SIZES = {"": 1, "K": 1 << 10, "M": MIB}
SHOWN = ("sys/bus/cxl/devices", "sys/devices/virtual/memory_tiering")
"""What the core would tell of."""


def is_tree(path: Path) -> bool:
    """Whether a folder holds a machine's ``/sys``."""
    return (path / "sys/devices/system").is_dir()


def read(path: Path) -> Sketch:
    """Reads the folder that holds ``proc`` and ``sys``.

    Raises:
        MachineError: No memory node is described there, or a file of it is damaged.
    """
    tree = Tree(path)
    topology = _topology(tree)
    kernel = tree.text("proc/sys/kernel/osrelease") or "unknown"
    model = topology.model or "unknown processor"
    sketch = Sketch(sources={SOURCE: f"/sys and /proc of a machine with {model}, Linux {kernel}"})
    topology_sketch.fill(sketch, topology)
    if not sketch.nodes or not sketch.cpus:
        hint = "give the folder that holds proc and sys"
        raise flaw(path, "", "no memory node is described there", hint)
    _of_the_core(sketch, tree)
    return sketch


def _topology(tree: Tree) -> Topology:
    processors = cpuinfo.read(tree.text("proc/cpuinfo") or "")
    topology = Topology(SOURCE, processors.model)
    homes = {cpu: number for cpu in tree.names(CPU, r"cpu(\d{1,5})") for number in _node_of(tree, cpu)}
    sys_nodes.fill(topology, tree, frozenset(homes.values()))
    online = tree.online_cpus() or union(node.cpus for node in topology.nodes.values())
    for node in topology.nodes.values():
        node.cpus &= online
    there = [cpu for cpu in range(online.bit_length()) if online >> cpu & 1]
    topology.cores = sorted({_core(tree, cpu, processors) & online for cpu in there})
    topology.caches = [Cache(level, sharers & online, size) for level, sharers, size in sorted(_caches(tree, there))]
    topology.packages = _packages(tree, there, homes)
    return topology


def _node_of(tree: Tree, cpu: int) -> list[int]:
    """The node that a CPU's folder links to, whether either is online or not."""
    return tree.names(f"{CPU}/cpu{cpu}", r"node(\d{1,5})")


def _core(tree: Tree, cpu: int, processors: Processors) -> int:
    """Hardware threads of a CPU's core; itself where the kernel does not say.

    Old kernels call the two cores of a Bulldozer module siblings, with a core id each: two cores, as in hwloc.
    """
    folder = f"{CPU}/cpu{cpu}/topology"
    told = tree.cpus(f"{folder}/thread_siblings_list", f"{folder}/thread_siblings")
    if not told:
        return processors.core_of(cpu)
    number = tree.text(f"{folder}/core_id")
    siblings = [other for other in range(told.bit_length()) if told >> other & 1]
    return bits(other for other in siblings if tree.text(f"{CPU}/cpu{other}/topology/core_id") in (number, None))


def _packages(tree: Tree, cpus: list[int], homes: dict[int, int]) -> list[Package]:
    """By package and node: what a source leaves out is a whole node."""
    found: dict[tuple[str, int], int] = {}
    for cpu in cpus:
        number = tree.text(f"{CPU}/cpu{cpu}/topology/physical_package_id") or ""
        key = (number, homes.get(cpu, -1))
        found[key] = found.get(key, 0) | 1 << cpu
    return [Package(cpus, cpus, (node,) if node >= 0 else ()) for (_, node), cpus in sorted(found.items())]


def _caches(tree: Tree, cpus: list[int]) -> set[tuple[int, int, int]]:
    """Level, CPUs and bytes of each data cache."""
    found = set()
    for cpu in cpus:
        folder = f"{CPU}/cpu{cpu}/cache"
        for index in tree.names(folder, r"index(\d{1,2})"):
            if cache := _cache(tree, f"{folder}/index{index}", cpu):
                found.add(cache)
    return found


def _cache(tree: Tree, folder: str, cpu: int) -> tuple[int, int, int] | None:
    level, size = tree.text(f"{folder}/level"), re.fullmatch(r"(\d{1,12})([KM]?)", tree.text(f"{folder}/size") or "")
    if tree.text(f"{folder}/type") == "Instruction" or not size or not re.fullmatch(r"\d", level or ""):
        return None
    sharers = tree.cpus(f"{folder}/shared_cpu_list", f"{folder}/shared_cpu_map")
    return int(level or 0), sharers | bits([cpu]), int(size[1]) * SIZES[size[2]]


def _of_the_core(sketch: Sketch, tree: Tree) -> None:
    """How the kernel moves pages, and its CXL devices."""
    if not tree.odd:
        told = describe(tree.root)
        sketch.notes += [_region(region) for region in told["cxl_regions"]]
        sketch.warnings += [*told["warnings"], *_idle_devices(told)]
    elif any((tree.root / folder).is_dir() for folder in SHOWN):
        sketch.warnings.append(_not_asked())


def _not_asked() -> WarningDoc:
    return {
        "what": "memory tiers and CXL devices of this tree are not read",
        "cause": f"its lists are not as a kernel of today writes them ({NODE}/online is missing, masks, NULs)",
        "remedy": "record it again on the machine, or import / there",
    }


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
