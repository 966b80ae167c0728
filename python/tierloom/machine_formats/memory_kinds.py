"""What each memory of a topology is made of, and how sure that is.

The kernel has no such attribute. In this order: what the source says; the device that the memory was onlined
from; firmware's bandwidths; the CPUs beside it. Where none of them tells, the kind is a guess: ``assumed``,
with its reason, and ``doubts.py`` says so wherever the machine is shown. Live measurement has the same rule in the core
(``crates/probe/src/memory_kinds.rs``); ``tests/machine_formats/memory_kinds.txt`` holds both to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.machine_formats.sketch import Known
from tierloom.machine_formats.topology import union

if TYPE_CHECKING:
    from tierloom.machine_formats.localities import Localities
    from tierloom.machine_formats.topology import Topology

STACKED = 2.0
"""So many times the bandwidth of DRAM is that of stacked memory; hwloc's rule (``hwloc__guess_dram_hbm_tiers``)."""
IN_PACKAGE = {"CPU Max": "Xeon Max", "Xeon Phi": "Xeon Phi", "06/57": "Xeon Phi"}
"""Processors that are sold with HBM in their package, by a part of the name, or family and model in hexadecimal."""


def kinds(topology: Topology, near: Localities) -> dict[int, Known[str]]:
    """The kind of every node with memory that is not a GPU's."""
    judge = _Judge(topology, near)
    return {number: judge.kind(number) for number in topology.nodes}


class _Judge:
    def __init__(self, topology: Topology, near: Localities) -> None:
        self.topology = topology
        self.near = near
        self.gb_s = {number: self.bandwidth(number) for number in topology.nodes}
        beside_cpus = [self.gb_s[number] for number in near.owned if number in topology.nodes and self.plain(number)]
        self.dram_gb_s = min((gb_s for gb_s in beside_cpus if gb_s), default=0.0)

    def bandwidth(self, number: int) -> float:
        """The most that firmware tells from anywhere, GB/s."""
        told = [f.known.value for f in self.topology.figures if f.node == number and f.key == "read_gb_s"]
        return max(told, default=0.0)

    def plain(self, number: int) -> bool:
        node = self.topology.nodes[number]
        return not node.dax and (node.kind is None or node.kind.value in ("dram", "lpddr"))

    def kind(self, number: int) -> Known[str]:
        node = self.topology.nodes[number]
        if node.kind:
            return node.kind
        if node.dax == "pmem":
            return self.derived("pmem", "it was onlined from a DAX device of an NVDIMM")
        if self.dram_gb_s and self.gb_s[number] > STACKED * self.dram_gb_s:
            how = f"firmware gives it {self.gb_s[number]:g} GB/s, and {self.dram_gb_s:g} to the slowest DRAM"
            return self.derived("hbm", how)
        if node.dax == "cxl":
            return self.derived("cxl", "it was onlined from a DAX device, and there are CXL regions")
        if number in self.near.owned or node.own:
            return self.derived("dram", "CPUs sit on its node")
        return self.guess(number)

    def derived(self, kind: str, how: str) -> Known[str]:
        return Known(kind, "derived", self.topology.source, how)

    def guess(self, number: int) -> Known[str]:
        kind, how = self.guessed(number)
        return Known(kind, "assumed", self.topology.source, how)

    def guessed(self, number: int) -> tuple[str, str]:
        known = next((name for part, name in IN_PACKAGE.items() if part in (self.topology.model or "")), None)
        if known and self.topology.nodes[number].dax in ("", "reserved"):
            return "hbm", f"it has no CPUs, and a {known} has HBM in its package"
        if any(self.nearest_memory(socket) == number for socket in self.near.sockets):
            return "dram", "it has no CPUs, and CPUs whose own node has no memory have none nearer"
        hidden = self.topology.everyone() & ~union(self.near.owned.values())
        if hidden and not self.topology.nodes[number].dax and self.as_near_as_dram(number):
            return "dram", "it may belong to CPUs that are not described, and is as near as other DRAM"
        reserved = ": firmware keeps it for a special purpose" if self.topology.nodes[number].dax == "reserved" else ""
        return "cxl", f"it has no CPUs, and no device or figure says what it is{reserved}"

    def as_near_as_dram(self, number: int) -> bool:
        """Whether it is no farther from any socket than the farthest DRAM of CPUs."""
        far = {end: self.farthest(end) for end in {number, *self.near.owned}}
        return far[number] <= max(far[end] for end in self.near.owned)

    def farthest(self, number: int) -> int:
        ways = [(start, number) for start in self.near.sockets if start != number]
        return max((self.topology.distances[way] for way in ways if way in self.topology.distances), default=0)

    def nearest_memory(self, socket: int) -> int | None:
        """The memory nearest to CPUs that have none of their own."""
        own = self.topology.nodes.get(socket)
        if own is None or own.bytes is None or own.bytes.value:
            return None
        ways = {
            end: distance
            for (start, end), distance in self.topology.distances.items()
            if start == socket and _holds(self.topology, end)
        }
        return min(ways, key=lambda end: (ways[end], end), default=None)


def _holds(topology: Topology, number: int) -> bool:
    node = topology.nodes.get(number)
    return node is not None and not node.gpu and node.bytes is not None and node.bytes.value > 0
