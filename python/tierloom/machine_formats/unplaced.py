"""Which node of a machine a memory is whose source does not say: found by its size, or a node of its own.

The number that a source tells counts. Else it is a node without CPUs that is about as large and not known to be
something else, and where there is none, the next number that is free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.machine_formats.sketch import Node

if TYPE_CHECKING:
    from collections.abc import Collection

    from tierloom.machine_formats.sketch import Sketch

ALIKE = 0.1
"""Part by which a node is smaller or larger than the memory that it is: the kernel keeps some for itself. Assumed."""


def place(sketch: Sketch, given: Collection[int]) -> None:
    """Makes nodes of the memories without one, on the sockets beside them; these are all where nobody tells of any.

    Args:
        sketch: The machine, all sources laid over each other.
        given: Nodes that the user speaks of, whose numbers are not free.
    """
    told = set(sketch.cpus)
    claimed = {each.number for each in sketch.unplaced if each.number is not None}
    for each in sketch.unplaced:
        number = each.number if each.number is not None else _number(sketch, each.node, claimed, given)
        claimed.add(number)
        there = sketch.nodes.setdefault(number, Node())
        there.kind = each.node.kind
        there.capacity_bytes = there.capacity_bytes or each.node.capacity_bytes
        there.home = each.node.home if there.home is None else there.home
        if not told or there.home in told:
            sketch.route(there.home or 0, number)
    if sketch.unplaced and not {*sketch.nodes, *given} - claimed:
        sketch.warnings.append(
            {
                "what": "the machine has no memory but that on CXL",
                "cause": "no source tells of its DRAM",
                "remedy": f"add its hwloc XML or /sys tree, or --node {min(sketch.cpus)}=dram:64GiB",
            }
        )
    sketch.unplaced = []


def _number(sketch: Sketch, memory: Node, claimed: Collection[int], given: Collection[int]) -> int:
    alike = (
        number
        for number, node in sorted(sketch.nodes.items())
        if number not in claimed and number not in sketch.cpus and _may_be(node, memory)
    )
    taken = {*sketch.nodes, *sketch.cpus, *given, *claimed, 0}
    return next(alike, max(taken) + 1)


def _may_be(node: Node, memory: Node) -> bool:
    if node.capacity_bytes is None or memory.capacity_bytes is None or memory.kind is None:
        return False
    size = memory.capacity_bytes.value
    is_alike = abs(node.capacity_bytes.value - size) <= ALIKE * size
    return is_alike and (node.kind is None or node.kind.value == memory.kind.value or node.kind.kind == "assumed")
