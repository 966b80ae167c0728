"""hwloc's XML (version 2 and later) as a topology: cores, caches, nodes, memory attributes.

The format is that of ``hwloc_topology_export_xml`` and ``lstopo file.xml``: objects nest, each NUMA node
has the CPUs beside it as ``cpuset``, and as ``complete_cpuset`` with those that are offline or that the cgroup
of whoever wrote it does not allow. What hangs on firmware is in ``hwloc_attributes.py``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tierloom.machine_formats import hwloc_attributes, topology_sketch
from tierloom.machine_formats.hwloc_xml import bits, document, infos, whole
from tierloom.machine_formats.sketch import Known, Sketch
from tierloom.machine_formats.texts import flaw
from tierloom.machine_formats.topology import Cache, MemoryNode, Package, Topology, union

if TYPE_CHECKING:
    from pathlib import Path
    from xml.etree import ElementTree as ET

    from tierloom.machine_formats.hwloc_xml import Document, Object

SOURCE = "hwloc"
KINDS = {
    "dram": "dram",
    "hbm": "hbm",
    "mcdram": "hbm",
    "cxl-dram": "cxl",
    "cxl-hbm": "cxl",
    "nvm": "pmem",
    "cxl-nvm": "pmem",
    "ssd": "ssd",
}
"""Our kinds by hwloc's subtype or MemoryTier."""
KINDS_BACK = {"dram": "DRAM", "lpddr": "DRAM", "hbm": "HBM", "cxl": "CXL-DRAM", "pmem": "NVM", "ssd": "SSD"}
DAX = {"nvm": "pmem", "spm": "reserved"}
"""The device that a node was onlined from by hwloc's DAXType."""
SIDE_CACHE = "MemorySideCache"


def is_topology(path: Path) -> bool:
    """Whether a file begins as hwloc's XML does, whatever its name."""
    with path.open("rb") as file:
        return re.match(rb"\s*(<\?xml[^>]*>\s*)?(<!DOCTYPE topology\b|<topology\b)", file.read(512)) is not None


def read(path: Path) -> Sketch:
    """Reads an XML file that hwloc exported.

    Raises:
        MachineError: It is no such file, or a part of it makes no sense.
    """
    doc = document(path)
    nodes = {_index(found, path): found for found in doc.of_kind("NUMANode")}
    if not nodes:
        raise flaw(path, "topology", "there is no NUMANode", "export it with hwloc 2.0 or newer: lstopo topology.xml")
    sketch = Sketch(name=_machine_name(doc), sources={SOURCE: _source(doc)})
    topology_sketch.fill(sketch, _topology(doc, nodes))
    return sketch


def _topology(doc: Document, nodes: dict[int, Object]) -> Topology:
    path = doc.path
    packages = [_package(found, path) for found in doc.of_kind("Package")]
    topology = Topology(SOURCE, _machine_infos(doc).get("CPUModel"), packages=packages)
    sizes = {number: _bytes(found, path) for number, found in sorted(nodes.items())}
    caches = _side_caches(doc)
    for number, found in sorted(nodes.items()):
        topology.nodes[number] = _node(found)
        # hwloc leaves the size out where it is 0, and old versions everywhere.
        told = any(sizes.values())
        topology.nodes[number].bytes = Known(sizes[number], "measured", SOURCE, "local_memory") if told else None
        topology.nodes[number].side_cache_bytes = caches.get(found.element, 0)
    topology.all_cpus = union(found.all_cpus for found in doc.objects)
    topology.cores = [found.cpus for found in doc.of_kind("Core") or doc.of_kind("PU") if found.cpus]
    topology.caches = [_cache(found, path) for found in doc.objects if _is_cache(found)]
    topology.model = topology.model or next((package.model for package in packages if package.model), None)
    hwloc_attributes.fill(topology, doc, nodes)
    return topology


def _index(found: Object, path: Path) -> int:
    return whole(found.element, "os_index", path)


def _machine_infos(doc: Document) -> dict[str, str]:
    """Of the machine: on its object, and since version 3 on the topology."""
    machine = next((found.element for found in doc.of_kind("Machine")), doc.root)
    return {**infos(doc.root), **infos(machine)}


def _machine_name(doc: Document) -> str | None:
    found = _machine_infos(doc)
    return found.get("TierloomMachine") or found.get("HostName")


def _source(doc: Document) -> str:
    version = _machine_infos(doc).get("hwlocVersion")
    return f"hwloc topology {doc.path.name}" + (f", exported by hwloc {version}" if version else "")


def _package(found: Object, path: Path) -> Package:
    nodes = bits(found.element, "complete_nodeset", path)
    numbers = tuple(number for number in range(nodes.bit_length()) if nodes >> number & 1)
    model = infos(found.element).get("CPUModel") or _family(infos(found.element))
    return Package(found.cpus, found.all_cpus, numbers, model, found.element.get("name"))


def _family(told: dict[str, str]) -> str | None:
    """Family and model in hexadecimal, as Intel writes them, where the name is not told."""
    numbers = [told.get(key, "") for key in ("CPUFamilyNumber", "CPUModelNumber")]
    return "{:02x}/{:02x}".format(*map(int, numbers)) if all(re.fullmatch(r"\d{1,4}", n) for n in numbers) else None


def _node(found: Object) -> MemoryNode:
    element = found.element
    told = infos(element)
    node = MemoryNode(found.cpus, found.all_cpus, name=element.get("name"))
    node.home = _whole_or_none(told.get("TierloomHome"))
    tier = element.get("subtype") or told.get("MemoryTier", "")
    if tier.lower() in KINDS:
        node.kind = Known(KINDS[tier.lower()], "published", SOURCE, tier)
    node.gpu = told.get("PCIBusID", tier) if tier.lower().endswith("gpumemory") else ""
    node.dax = _dax(told)
    return node


def _dax(told: dict[str, str]) -> str:
    if "DAXDevice" not in told:
        return ""
    parent = told.get("DAXParent", "")
    of_cxl = "dax_region" in parent or "decoder" in parent
    return "cxl" if of_cxl else DAX.get(told.get("DAXType", "").lower(), "unknown")


def _bytes(found: Object, path: Path) -> int:
    """Of the node itself, else of the pages of each size that it lists."""
    if "local_memory" in found.element.attrib:
        return whole(found.element, "local_memory", path)
    pages = [page for page in found.element.findall("page_type") if page.get("count")]
    return sum(whole(page, "size", path) * whole(page, "count", path) for page in pages)


def _whole_or_none(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,9}", text) else None


def _side_caches(doc: Document) -> dict[ET.Element, int]:
    """Bytes of the memory-side caches around each node."""
    parents, found = doc.parents(), _among_cpu_caches(doc)
    for node in doc.of_kind("NUMANode"):
        around = parents.get(node.element)
        while around is not None and around.get("type") == "MemCache":
            found[node.element] = found.get(node.element, 0) + whole(around, "cache_size", doc.path)
            around = parents.get(around)
    return found


def _among_cpu_caches(doc: Document) -> dict[ET.Element, int]:
    """Where versions before 2.1 have them; they are in front of the DRAM beside the same CPUs."""
    caches = [found for found in doc.objects if found.element.get("subtype") == SIDE_CACHE]
    return {
        node.element: whole(cache.element, "cache_size", doc.path)
        for cache in caches
        for node in doc.of_kind("NUMANode")
        if node.cpus == cache.cpus and node.element.get("subtype", "DRAM") == "DRAM"
    }


def _is_cache(found: Object) -> bool:
    data = found.element.get("cache_type") != "2"
    return bool(re.fullmatch(r"L\dCache", found.kind)) and data and found.element.get("subtype") != SIDE_CACHE


def _cache(found: Object, path: Path) -> Cache:
    return Cache(int(found.kind[1]), found.cpus, whole(found.element, "cache_size", path))
