"""From a topology to a sketch: sockets with all their cores, memories that are tiers, and what was left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.machine_formats.localities import localities
from tierloom.machine_formats.memory_kinds import kinds
from tierloom.machine_formats.plausible import leave_out_implausible
from tierloom.machine_formats.sketch import Cpus, Known, Node
from tierloom.units import GIB

if TYPE_CHECKING:
    from tierloom.machine_formats.localities import Localities
    from tierloom.machine_formats.sketch import Sketch
    from tierloom.machine_formats.topology import Cache, MemoryNode, Topology
    from tierloom.schema import WarningDoc


def fill(sketch: Sketch, topology: Topology) -> None:
    """Adds what a topology tells to an empty sketch."""
    near = localities(topology)
    for number, cpus in near.sockets.items():
        sketch.cpus[number] = _cpus(topology, cpus)
    _memories(sketch, topology, near)
    _routes(sketch, topology, near)
    leave_out_implausible(sketch)
    sketch.warnings += topology.warnings + _absent_cpus(topology) + _caches(topology)
    for number in sorted(sketch.nodes.keys() & topology.nodes.keys()):
        if gpu := topology.nodes[number].gpu:
            sketch.leave_out(number, gpu)
    sketch.strays += near.strays
    sketch.notes += [_cached(number, node) for number, node in sorted(topology.nodes.items()) if node.side_cache_bytes]


def _cpus(topology: Topology, cpus: int) -> Cpus:
    cores = sum(1 for core in topology.cores if core & cpus)
    package = next((package for package in topology.packages if package.cpus & cpus), None)
    found = Cpus(name=package.name if package else None, model=(package.model if package else None) or topology.model)
    found.cores = Known(cores, "measured", topology.source, "cores of the topology")
    caches = [cache for cache in topology.caches if cache.cpus & cpus and cache.bytes]
    last = [cache for cache in caches if cache.level == max(cache.level for cache in caches)]
    if last:
        level = f"L{last[0].level}"
        # A cache that spans several nodes (sub-NUMA clusters) counts by the share of its CPUs here.
        total = sum(_share(cache, cpus) for cache in last)
        found.llc_bytes = Known(total, "measured", topology.source, f"{level} of the node's cores")
        found.llc_per_core_bytes = Known(last[0].bytes, "measured", topology.source, f"one {level}")
    return found


def _share(cache: Cache, cpus: int) -> int:
    return cache.bytes * (cache.cpus & cpus).bit_count() // cache.cpus.bit_count()


def _memories(sketch: Sketch, topology: Topology, near: Localities) -> None:
    told = kinds(topology, near)
    for number, node in sorted(topology.nodes.items()):
        if node.bytes is not None and not node.bytes.value:
            continue
        home = node.home if node.home in near.sockets else near.nearest(topology, number)
        sketch.nodes[number] = Node(node.name, told[number], node.bytes, home)


def _routes(sketch: Sketch, topology: Topology, near: Localities) -> None:
    for (start, end), distance in topology.distances.items():
        if start in sketch.cpus and end in sketch.nodes:
            sketch.route(start, end).distance = distance
    for figure in topology.figures:
        for start, cpus in near.sockets.items():
            if cpus & figure.cpus and figure.node in sketch.nodes:
                setattr(sketch.route(start, figure.node), figure.key, figure.known)


def _cached(number: int, node: MemoryNode) -> str:
    size = f"{node.side_cache_bytes / GIB:g} GiB"
    return (
        f"node{number} stands behind a memory-side cache of {size}: what hits there is as fast as the cache, and no "
        "figure here tells the two apart."
    )


def _caches(topology: Topology) -> list[WarningDoc]:
    """The same as the notes, for the answer: nodes with caches of one size together."""
    by_size: dict[int, list[int]] = {}
    for number, node in sorted(topology.nodes.items()):
        if node.side_cache_bytes:
            by_size.setdefault(node.side_cache_bytes, []).append(number)
    return [
        {
            "what": f"node {', '.join(map(str, numbers))}: behind a memory-side cache of {size / GIB:g} GiB",
            "cause": "what hits there is as fast as the cache, and no figure here tells the two apart",
            "remedy": "measure on the machine itself: tierloom machine measure",
        }
        for size, numbers in by_size.items()
    ]


def _absent_cpus(topology: Topology) -> list[WarningDoc]:
    """CPUs that the machine has and that nobody can use."""
    absent = (topology.everyone() & ~topology.usable()).bit_count()
    if not absent:
        return []
    return [
        {
            "what": f"{absent} of {topology.everyone().bit_count()} CPUs are not counted",
            "cause": "they are offline, or the cgroup in which this was written does not allow them",
            "remedy": "write it again outside of containers and batch jobs, with all CPUs online",
        }
    ]
