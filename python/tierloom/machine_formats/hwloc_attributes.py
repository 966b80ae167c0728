"""Distances and memory attributes of hwloc's XML: what firmware says of the ways between CPUs and nodes.

``memattr`` holds latencies in ns and bandwidths in MiB/s by target and initiator (hwloc documentation, "Memory
attributes"); ``distances2`` holds firmware's distances, whose rows belong to the numbers in ``indexes``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tierloom.machine_formats.hwloc_xml import AGAIN, bits
from tierloom.machine_formats.sketch import Known
from tierloom.machine_formats.texts import flaw, number
from tierloom.machine_formats.topology import Figure
from tierloom.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from xml.etree import ElementTree as ET

    from tierloom.machine_formats.hwloc_xml import Document, Object
    from tierloom.machine_formats.topology import Topology

ATTRIBUTES = {
    "Latency": ("idle_ns", 1.0),
    "ReadLatency": ("idle_ns", 1.0),
    "Bandwidth": ("read_gb_s", MIB / 1e9),
    "ReadBandwidth": ("read_gb_s", MIB / 1e9),
    "WriteBandwidth": ("write_gb_s", MIB / 1e9),
}
"""What we take over and its unit; a direction's own attribute follows the general one and replaces it."""


def fill(topology: Topology, doc: Document, nodes: dict[int, Object]) -> None:
    """Adds the distances and the attributes of a document.

    Raises:
        MachineError: A matrix is none, or a value is no number.
    """
    _distances(topology, doc)
    targets = {found.element.get("gp_index"): index for index, found in nodes.items()}
    initiators = {found.element.get("gp_index"): found.cpus for found in doc.objects}
    told = {memattr.get("name", ""): memattr for memattr in doc.root.iter("memattr")}
    for name, (key, unit) in ATTRIBUTES.items():
        for value in told[name].findall("memattr_value") if name in told else []:
            end = targets.get(value.get("target_obj_gp_index"))
            if value.get("target_obj_type", "NUMANode") == "NUMANode" and end is not None:
                known = Known(_value(value, name, doc.path) * unit, "published", "hwloc", f"memory attribute {name}")
                topology.figures.append(Figure(key, _initiator(value, initiators, doc.path), end, known))


def _distances(topology: Topology, doc: Document) -> None:
    for matrix in doc.root.iter("distances2"):
        if matrix.get("type") != "NUMANode" or "latency" not in matrix.get("name", "").lower():
            continue
        indexes = [int(word) for word in _words(matrix, "indexes", doc.path)]
        values = [int(word) for word in _words(matrix, "u64values", doc.path)]
        if matrix.get("indexing", "os") != "os" or len(values) != len(indexes) ** 2:
            problem = f"{len(values)} values for {len(indexes)} nodes are no matrix"
            raise flaw(doc.path, "distances2 NUMALatency", problem, AGAIN)
        for place, value in enumerate(values):
            start, end = indexes[place // len(indexes)], indexes[place % len(indexes)]
            if 0 < value < 256:
                topology.distances[start, end] = value


def _words(matrix: ET.Element, tag: str, path: Path) -> Iterator[str]:
    for part in matrix.findall(tag):
        for word in (part.text or "").split():
            if not re.fullmatch(r"\d{1,19}", word):
                raise flaw(path, f"distances2 {tag}", f"`{word[:40]}` is not a number", AGAIN)
            yield word


def _value(value: ET.Element, name: str, path: Path) -> float:
    target = value.get("target_obj_gp_index", "?")
    return number(value.get("value", ""), path, f"memattr {name}, target {target}, value", above=True)


def _initiator(value: ET.Element, initiators: dict[str | None, int], path: Path) -> int:
    if value.get("initiator_cpuset") is not None:
        return bits(value, "initiator_cpuset", path)
    return initiators.get(value.get("initiator_obj_gp_index"), 0)
