"""What each memory of a topology is made of, and how sure that is.

The rule is the core's (``crates/probe/src/memory_kinds.rs``), by which measurement knows this machine's memories, too;
here it is told what a topology knows. A guess is ``assumed``, with its reason, and ``doubts.py`` says so wherever the
machine is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.machine_formats.sketch import Known
from tierloom.machine_formats.topology import union
from tierloom.measurement import memory_kinds

if TYPE_CHECKING:
    from tierloom.machine_formats.localities import Localities
    from tierloom.machine_formats.topology import Topology
    from tierloom.measurement import FoundKindDoc, MachineFactsDoc, NodeFactsDoc


def kinds(topology: Topology, near: Localities) -> dict[int, Known[str]]:
    """The kind of every node."""
    found = {kind["node"]: kind for kind in memory_kinds(_facts(topology, near))}
    return {number: node.kind or _known(topology, found[number]) for number, node in topology.nodes.items()}


def _known(topology: Topology, found: FoundKindDoc) -> Known[str]:
    return Known(found["kind"], "assumed" if found["guessed"] else "derived", topology.source, found["because"])


def _facts(topology: Topology, near: Localities) -> MachineFactsDoc:
    return {
        "model": topology.model or "",
        "nodes": [_node(topology, number) for number in topology.nodes],
        "sockets": list(near.sockets),
        "owners": list(near.owned),
        "hidden_cpus": bool(topology.everyone() & ~union(near.owned.values())),
        "distances": [(*way, far) for way, far in topology.distances.items()],
    }


def _node(topology: Topology, number: int) -> NodeFactsDoc:
    node = topology.nodes[number]
    told = [each.known.value for each in topology.figures if each.node == number and each.key == "read_gb_s"]
    return {
        "node": number,
        "said": node.kind.value if node.kind else None,
        "device": node.dax or None,
        "read_mb_s": round(max(told) * 1e3) if told else None,
        "has_cpus": node.own,
        "of_gpu": bool(node.gpu),
        "bytes": node.bytes.value if node.bytes else None,
    }
