"""hwloc's XML (version 2 and later) as a sketch of a machine: cores, caches, nodes, memory attributes.

The format is that of ``hwloc_topology_export_xml`` and ``lstopo file.xml``: objects nest, each NUMA node
has the CPUs beside it as ``cpuset``; ``memattr`` holds latencies in ns and bandwidths in MiB/s by target
and initiator (hwloc documentation, "Memory attributes"); ``distances2`` holds firmware's distances.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tierloom.machine_formats.plausible import leave_out_implausible
from tierloom.machine_formats.sketch import Cpus, Known, Node, Sketch
from tierloom.machine_formats.texts import flaw, number, text_of
from tierloom.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE = "hwloc"
KINDS = {
    "dram": "dram",
    "hbm": "hbm",
    "mcdram": "hbm",
    "cxl-dram": "cxl",
    "nvm": "pmem",
    "cxl-nvm": "pmem",
    "ssd": "ssd",
}
"""Our kinds by hwloc's subtype or MemoryTier."""
KINDS_BACK = {"dram": "DRAM", "lpddr": "DRAM", "hbm": "HBM", "cxl": "CXL-DRAM", "pmem": "NVM", "ssd": "SSD"}
ATTRIBUTES = {
    "Latency": ("idle_ns", 1.0),
    "ReadLatency": ("idle_ns", 1.0),
    "Bandwidth": ("read_gb_s", MIB / 1e9),
    "ReadBandwidth": ("read_gb_s", MIB / 1e9),
    "WriteBandwidth": ("write_gb_s", MIB / 1e9),
}
"""What we take over and its unit; a direction's own attribute follows the general one and replaces it."""
MOST_CPUS = 1 << 16


@dataclass(frozen=True)
class _Object:
    """One object of the tree that we read."""

    element: ET.Element
    kind: str
    cpus: int
    """CPUs as bits."""


def read(path: Path) -> Sketch:
    """Reads an XML file that hwloc exported.

    Raises:
        MachineError: It is no such file, or a part of it makes no sense.
    """
    root = _root(path)
    objects = [_Object(element, element.get("type", ""), _bits(element, path)) for element in root.iter("object")]
    nodes = {_index(found, path): found for found in objects if found.kind == "NUMANode"}
    if not nodes:
        raise flaw(path, "topology", "there is no NUMANode", "export it with hwloc 2.0 or newer: lstopo topology.xml")
    sketch = Sketch(name=_machine_name(root), sources={SOURCE: _source(root, path)})
    owners = _owners(nodes)
    for index, found in sorted(nodes.items()):
        sketch.nodes[index] = _node(found, owners, path)
    for index in sorted(owners, key=lambda owner: nodes[owner].cpus & -nodes[owner].cpus):
        sketch.cpus[index] = _cpus(nodes[index], objects, path)
    _distances(root, sketch, path)
    _attributes(root, sketch, nodes, owners, path)
    leave_out_implausible(sketch)
    return sketch


def _root(path: Path) -> ET.Element:
    text = text_of(path)
    if "<!ENTITY" in text:
        raise flaw(path, "", "it defines entities, which hwloc never does", "export the topology again")
    try:
        root = ET.fromstring(text)  # noqa: S314 (no entities, no external parts: see above)
    except ET.ParseError as problem:
        line, column = problem.position
        where = f"line {line}, column {column}"
        raise flaw(path, where, "this is not XML", "export it again: lstopo topology.xml") from problem
    version = root.get("version", "1")
    if root.tag != "topology":
        raise flaw(path, root.tag, "this is not an hwloc topology", "give a file that lstopo exported")
    if not re.fullmatch(r"[2-9]\d*\.\d+", version):
        hint = "convert it: lstopo -i old.xml new.xml (hwloc 2.0 or newer)"
        raise flaw(path, "topology version", f"`{version[:20]}` is not version 2 or later", hint)
    return root


def _bits(element: ET.Element, path: Path) -> int:
    """CPUs of ``0x00000001,0x0000ffff``: 32 bits a word, the highest first, empty words zero."""
    text = element.get("cpuset", "0x0")
    if len(text) > MOST_CPUS // 2:
        raise flaw(path, _where(element), "the cpuset is longer than any machine's", "export the topology again")
    words = [word.removeprefix("0x") for word in text.split(",")]
    if not all(re.fullmatch(r"[0-9a-fA-F]{0,8}", word) for word in words):
        problem = f"cpuset `{text[:40]}` is not a list of 32-bit words"
        raise flaw(path, _where(element), problem, "export the topology again")
    return int("".join(word.rjust(8, "0") for word in words), 16)


def _where(element: ET.Element) -> str:
    key = "os_index" if element.get("os_index") else "gp_index"
    return f"{element.get('type', element.tag)} {key}={element.get(key, '?')}"


def _whole(element: ET.Element, key: str, path: Path, *, least: int = 0) -> int:
    text = element.get(key, "")
    if not re.fullmatch(r"\d{1,19}", text) or int(text) < least:
        problem = f"{key} `{text[:40]}` is not a whole number of at least {least}"
        raise flaw(path, _where(element), problem, "export the topology again")
    return int(text)


def _index(found: _Object, path: Path) -> int:
    return _whole(found.element, "os_index", path)


def _infos(element: ET.Element) -> dict[str, str]:
    return {info.get("name", ""): info.get("value", "") for info in element.findall("info")}


def _machine_name(root: ET.Element) -> str | None:
    infos = (_infos(element) for element in root.iter("object") if element.get("type") == "Machine")
    found = next(infos, {})
    return found.get("TierloomMachine") or found.get("HostName")


def _source(root: ET.Element, path: Path) -> str:
    machine = next((e for e in root.iter("object") if e.get("type") == "Machine"), root)
    infos = _infos(machine)
    version = infos.get("hwlocVersion")
    return f"hwloc topology {path.name}" + (f", exported by hwloc {version}" if version else "")


def _owners(nodes: dict[int, _Object]) -> set[int]:
    """Nodes that CPUs sit on.

    hwloc gives a node without CPUs the cpuset of those nearest to it. So of the nodes that share CPUs
    the one with the fewest, then the lowest number, is taken for theirs.
    """
    owners: set[int] = set()
    taken = 0
    for index, found in sorted(nodes.items(), key=lambda entry: (entry[1].cpus.bit_count(), entry[0])):
        if found.cpus and not found.cpus & taken:
            owners.add(index)
            taken |= found.cpus
    return owners


def _node(found: _Object, owners: set[int], path: Path) -> Node:
    element = found.element
    index = _index(found, path)
    told = element.get("subtype") or _infos(element).get("MemoryTier", "")
    node = Node(name=element.get("name"), home=_whole_or_none(_infos(element).get("TierloomHome")))
    node.capacity_bytes = Known(_whole(element, "local_memory", path, least=1), "measured", SOURCE, "local_memory")
    if told.lower() in KINDS:
        node.kind = Known(KINDS[told.lower()], "published", SOURCE, told)
    elif index not in owners and "DAXDevice" in _infos(element):
        node.kind = Known("cxl", "assumed", SOURCE, "no CPUs, onlined from a DAX device")
    return node


def _whole_or_none(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,9}", text) else None


def _cpus(node: _Object, objects: list[_Object], path: Path) -> Cpus:
    inside = [found for found in objects if found.cpus and found.cpus & ~node.cpus == 0]
    cores = [found for found in inside if found.kind == "Core"] or [found for found in inside if found.kind == "PU"]
    package = next((f for f in objects if f.kind == "Package" and f.cpus & node.cpus), None)
    infos = _infos(package.element) if package else {}
    cpus = Cpus(name=package.element.get("name") if package else None, model=infos.get("CPUModel"))
    cpus.cores = Known(len(cores), "measured", SOURCE, "cores of the topology") if cores else None
    caches = sorted((found for found in inside if _is_cache(found)), key=lambda found: found.kind)
    last = [found for found in caches if found.kind == caches[-1].kind]
    if last:
        sizes = [_whole(found.element, "cache_size", path, least=1) for found in last]
        cpus.llc_bytes = Known(sum(sizes), "measured", SOURCE, f"{last[0].kind} of the node's cores")
        cpus.llc_per_core_bytes = Known(sizes[0], "measured", SOURCE, f"one {last[0].kind}")
    return cpus


def _is_cache(found: _Object) -> bool:
    return re.fullmatch(r"L\dCache", found.kind) is not None


def _distances(root: ET.Element, sketch: Sketch, path: Path) -> None:
    for matrix in root.iter("distances2"):
        if matrix.get("type") != "NUMANode" or "latency" not in matrix.get("name", "").lower():
            continue
        indexes = [int(word) for word in _words(matrix, "indexes", path)]
        values = [int(word) for word in _words(matrix, "u64values", path)]
        if matrix.get("indexing", "os") != "os" or len(values) != len(indexes) ** 2:
            problem = f"{len(values)} values for {len(indexes)} nodes are no matrix"
            raise flaw(path, "distances2 NUMALatency", problem, "export the topology again")
        for place, value in enumerate(values):
            start, end = indexes[place // len(indexes)], indexes[place % len(indexes)]
            if start in sketch.cpus and end in sketch.nodes and 0 < value < 256:
                sketch.route(start, end).distance = value


def _words(matrix: ET.Element, tag: str, path: Path) -> Iterator[str]:
    for part in matrix.findall(tag):
        for word in (part.text or "").split():
            if not re.fullmatch(r"\d{1,19}", word):
                raise flaw(path, f"distances2 {tag}", f"`{word[:40]}` is not a number", "export the topology again")
            yield word


def _attributes(root: ET.Element, sketch: Sketch, nodes: dict[int, _Object], owners: set[int], path: Path) -> None:
    targets = {found.element.get("gp_index"): index for index, found in nodes.items()}
    initiators = {e.get("gp_index"): _bits(e, path) for e in root.iter("object") if e.get("gp_index")}
    told = {memattr.get("name", ""): memattr for memattr in root.iter("memattr")}
    for name, (key, unit) in ATTRIBUTES.items():
        values = told[name].findall("memattr_value") if name in told else []
        for value in values:
            end = targets.get(value.get("target_obj_gp_index"))
            if value.get("target_obj_type", "NUMANode") != "NUMANode" or end is None:
                continue
            figure = Known(_value(value, name, path) * unit, "published", SOURCE, f"memory attribute {name}")
            cpus = _initiator(value, initiators, path)
            for start in sorted(index for index in owners if nodes[index].cpus & cpus):
                setattr(sketch.route(start, end), key, figure)


def _value(value: ET.Element, name: str, path: Path) -> float:
    target = value.get("target_obj_gp_index", "?")
    return number(value.get("value", ""), path, f"memattr {name}, target {target}, value", above=True)


def _initiator(value: ET.Element, initiators: dict[str | None, int], path: Path) -> int:
    if value.get("initiator_cpuset") is not None:
        holder = ET.Element("memattr_value", {"cpuset": value.get("initiator_cpuset", "")})
        return _bits(holder, path)
    return initiators.get(value.get("initiator_obj_gp_index"), 0)
