"""Which node each CPU belongs to, and which CPUs a memory without any hangs on.

hwloc gives a node without CPUs those nearest to it, the kernel gives it none. So a CPU belongs to the smallest
node that names it; what no node names belongs to its package, under the number of the node that the source
left out (a cgroup, a node without memory), and has its memory elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.machine_formats.topology import lowest, union

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tierloom.machine_formats.topology import MemoryNode, Topology

OTHER_KINDS = ("hbm", "cxl", "pmem", "ssd")


@dataclass(frozen=True)
class Localities:
    """The CPUs of each socket and the socket of each memory."""

    sockets: dict[int, int]
    """CPUs that can be used, by node number, in the order of their lowest CPU."""
    owned: dict[int, int]
    """All CPUs that belong to a node, offline ones among them."""
    strays: list[int]
    """Sockets whose node is not described."""

    def nearest(self, topology: Topology, number: int) -> int | None:
        """The socket that a node hangs on: its own, else by CPUs beside it, firmware's figures, distance, number."""
        if number in self.sockets:
            return number
        beside = topology.nodes[number].all_cpus | topology.nodes[number].cpus
        left = _kept(self.sockets, lambda socket: self.sockets[socket] & beside)
        first = _best_initiators(topology, number) or topology.nodes[number].initiators
        left = _kept(left, lambda socket: self.sockets[socket] & first)
        near = {socket: _distance(topology, socket, number) for socket in left}
        left = _kept(left, lambda socket: near[socket] == min(near.values()))
        return min(left, default=None)


def localities(topology: Topology) -> Localities:
    """Sorts all CPUs of a topology by node."""
    owned: dict[int, int] = {}
    taken = 0
    for number, node in sorted(topology.nodes.items(), key=_smallest_first):
        everyone = node.all_cpus | node.cpus
        if not node.gpu and everyone & ~taken:
            owned[number] = everyone & ~taken
            taken |= everyone
    online = {number: cpus & topology.nodes[number].cpus for number, cpus in owned.items()}
    sockets = {number: cpus for number, cpus in online.items() if cpus}
    strays = _strays(topology, taken)
    sockets |= strays
    ordered = dict(sorted(sockets.items(), key=lambda entry: lowest(entry[1])))
    return Localities(ordered, owned | strays, list(strays))


def _smallest_first(entry: tuple[int, MemoryNode]) -> tuple[int, bool, int]:
    number, node = entry
    other = node.dax != "" or (node.kind is not None and node.kind.value in OTHER_KINDS)
    return (node.all_cpus | node.cpus).bit_count(), other, number


def _strays(topology: Topology, taken: int) -> dict[int, int]:
    """CPUs of no node, package by package."""
    left = union(topology.cores) & ~taken
    found: dict[int, int] = {}
    for package in sorted(topology.packages, key=lambda package: lowest(package.cpus)):
        if cpus := package.cpus & left:
            found[_free(package.nodes, topology, found)] = cpus
            left &= ~cpus
    return found | ({_free((), topology, found): left} if left else {})


def _free(numbers: tuple[int, ...], topology: Topology, found: dict[int, int]) -> int:
    """The number of a node that is not described: as told, else the first above all."""
    told = [number for number in numbers if number not in topology.nodes and number not in found]
    return told[0] if told else max([-1, *topology.nodes, *found]) + 1


def _kept(sockets: Iterable[int], test: Callable[[int], object]) -> list[int]:
    """Those that pass, or all where none does."""
    everyone = list(sockets)
    return [socket for socket in everyone if test(socket)] or everyone


def _best_initiators(topology: Topology, number: int) -> int:
    """CPUs from which firmware says that a node is fastest: by latency where it is told, else by bandwidth."""
    for key, pick in (("idle_ns", min), ("read_gb_s", max)):
        told = [figure for figure in topology.figures if figure.node == number and figure.key == key]
        if told:
            best = pick(figure.known.value for figure in told)
            return union(figure.cpus for figure in told if figure.known.value == best)
    return 0


def _distance(topology: Topology, socket: int, number: int) -> float:
    told = topology.distances.get((socket, number))
    return float("inf") if told is None else told
