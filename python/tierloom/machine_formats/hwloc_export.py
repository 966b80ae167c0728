"""A machine as hwloc's XML with memory attributes, for programs that ask hwloc where to put data.

Firmware tells hwloc only the nearest initiator's performance, if anything at all. Here every path of a
machine becomes a value: ``Latency`` in ns, ``ReadBandwidth``, ``WriteBandwidth`` and their mean
``Bandwidth`` in MiB/s, as hwloc documents them. Load it with ``HWLOC_XMLFILE=file.xml`` and
``HWLOC_THISSYSTEM=1``, or look at it with ``lstopo -i file.xml --memattrs``. Cores are numbered socket
by socket, one hardware thread each: on the machine itself merge the attributes into its own topology.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tierloom.machine_formats.hwloc import KINDS_BACK
from tierloom.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tierloom.nouns import Machine
    from tierloom.schema import MemoryDoc, SocketDoc

HIGHER_FIRST, LOWER_FIRST, NEED_INITIATOR = 1, 2, 4
"""``enum hwloc_memattr_flag_e``."""
WORD_BITS = 32


def to_hwloc(machine: Machine) -> str:
    """The machine as text of an hwloc XML file (version 2.0)."""
    root = ET.Element("topology", version="2.0")
    export = _Export(machine)
    root.append(export.tree())
    root.extend(export.attributes())
    ET.indent(root)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
    return head + ET.tostring(root, encoding="unicode") + "\n"


def bitmap(bits: int) -> str:
    """Hwloc's spelling of a set: words of 32 bits, the highest first."""
    words = []
    while True:
        words.append(f"0x{bits % 2**WORD_BITS:08x}")
        bits >>= WORD_BITS
        if not bits:
            return ",".join(reversed(words))


@dataclass
class _Export:
    machine: Machine
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    targets: dict[str, int] = field(default_factory=dict)
    """gp_index by memory."""
    cpus: dict[str, int] = field(default_factory=dict)
    """CPUs by socket, as bits."""

    def tree(self) -> ET.Element:
        sockets = self.machine.data["sockets"]
        first = 0
        for socket in sockets:
            cores = int(socket["cores"]["value"])
            self.cpus[socket["name"]] = ((1 << cores) - 1) << first
            first += cores
        everything = (1 << first) - 1
        nodes = (1 << len(self.machine.data["memories"])) - 1
        top = self.element("Machine", everything, nodes, os_index="0")
        top.set("allowed_cpuset", bitmap(everything))
        top.set("allowed_nodeset", bitmap(nodes))
        for name, value in {"Backend": "Tierloom", "TierloomMachine": self.machine.name}.items():
            ET.SubElement(top, "info", name=name, value=value)
        top.extend(self.package(index, socket) for index, socket in enumerate(sockets))
        return top

    def element(self, kind: str, cpus: int, nodes: int, **more: str) -> ET.Element:
        sets = {"cpuset": cpus, "complete_cpuset": cpus, "nodeset": nodes, "complete_nodeset": nodes}
        written = {key: bitmap(bits) for key, bits in sets.items()}
        return ET.Element("object", {"type": kind, **written, "gp_index": str(next(self.numbers)), **more})

    def package(self, index: int, socket: SocketDoc) -> ET.Element:
        cpus = self.cpus[socket["name"]]
        here = [
            (at, memory)
            for at, memory in enumerate(self.machine.data["memories"])
            if memory["socket"] == socket["name"]
        ]
        nodes = sum(1 << at for at, _ in here)
        package = self.element("Package", cpus, nodes, os_index=str(index), name=socket["name"])
        ET.SubElement(package, "info", name="CPUModel", value=socket["cpu"])
        package.extend(self.node(at, memory, cpus) for at, memory in here)
        package.extend(self.caches(socket, nodes))
        return package

    def node(self, index: int, memory: MemoryDoc, cpus: int) -> ET.Element:
        size = str(int(memory["capacity_bytes"]["value"]))
        kind = KINDS_BACK[memory["kind"]]
        names = {"os_index": str(index), "name": memory["name"], "subtype": kind, "local_memory": size}
        node = self.element("NUMANode", cpus, 1 << index, **names)
        self.targets[memory["name"]] = int(node.get("gp_index", "0"))
        return node

    def caches(self, socket: SocketDoc, nodes: int) -> Iterator[ET.Element]:
        """The last-level caches with the cores that share each."""
        cores = int(socket["cores"]["value"])
        size = int(socket["llc_per_core_bytes"]["value"])
        groups = min(cores, max(1, round(socket["llc_bytes"]["value"] / size)))
        first = (self.cpus[socket["name"]] & -self.cpus[socket["name"]]).bit_length() - 1
        for group in range(groups):
            begin, end = first + cores * group // groups, first + cores * (group + 1) // groups
            sharers = (1 << end) - (1 << begin)
            cache = self.element("L3Cache", sharers, nodes, cache_size=str(size), depth="3", cache_linesize="64")
            cache.set("cache_associativity", "0")
            cache.set("cache_type", "0")
            cache.extend(self.core(number, nodes) for number in range(begin, end))
            yield cache

    def core(self, number: int, nodes: int) -> ET.Element:
        core = self.element("Core", 1 << number, nodes, os_index=str(number))
        core.append(self.element("PU", 1 << number, nodes, os_index=str(number)))
        return core

    def attributes(self) -> Iterator[ET.Element]:
        paths = [(path["from"], path["to"], path["idle_ns"]["value"]) for path in self.machine.data["paths"]]
        peaks = {
            (start, end): [self.machine.curve(start, end, share).peak_gb_s for share in (1.0, 0.0)]
            for start, end, _ in paths
        }
        mib_s = {ends: [gb_s * 1e9 / MIB for gb_s in peak] for ends, peak in peaks.items()}
        bandwidth, latency = HIGHER_FIRST | NEED_INITIATOR, LOWER_FIRST | NEED_INITIATOR
        yield self.attribute("Bandwidth", bandwidth, {ends: sum(both) / 2 for ends, both in mib_s.items()})
        yield self.attribute("Latency", latency, {(start, end): ns for start, end, ns in paths})
        yield self.attribute("ReadBandwidth", bandwidth, {ends: read for ends, (read, _) in mib_s.items()})
        yield self.attribute("WriteBandwidth", bandwidth, {ends: write for ends, (_, write) in mib_s.items()})
        yield self.attribute("ReadLatency", latency, {(start, end): ns for start, end, ns in paths})

    def attribute(self, name: str, flags: int, values: dict[tuple[str, str], float]) -> ET.Element:
        attribute = ET.Element("memattr", name=name, flags=str(flags))
        for (start, end), value in values.items():
            ET.SubElement(
                attribute,
                "memattr_value",
                target_obj_type="NUMANode",
                target_obj_gp_index=str(self.targets[end]),
                value=str(max(1, round(value))),
                initiator_cpuset=bitmap(self.cpus[start]),
            )
        return attribute
