"""The machines that the lab can be: what memory they have, and how QEMU is told.

Third step, beside the image. Latencies and bandwidths here are what the guest's firmware tells the
kernel (ACPI HMAT), so that it builds memory tiers as on such a machine; nothing is slower for it.
They are assumed values in the range of published CXL measurements, and no measurement of anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tierloom.errors import RequestError
from tierloom.units import GIB, Amount, amount_in_bytes, bytes_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Version = tuple[int, int]
"""QEMU's, major and minor."""

STEP = 256 << 20
"""Sizes are multiples of this: the CXL specification's granule of a decoder (3.1, 8.2.4.20), two memory blocks."""

SERIAL = 0x7113_7008
"""Serial number of the CXL device. The labels of a persistent region carry it: it never changes."""

GENERIC_PORT_SINCE = (9, 2)
"""QEMU that can say how far a CXL host bridge is (SRAT generic port); without, the CXL node has no attributes."""


@dataclass(frozen=True)
class Memory:
    """One memory node.

    Args:
        kind: DRAM of the processors, a CPU-less node of the firmware's, or a CXL type-3 device.
        size_bytes: Its size when nothing else is asked for.
        latency_ns: What the firmware says of an access from the processors; for a CXL device, up to its port.
        bandwidth_mb_s: Likewise, in units of 10^6 bytes/s.
        distance: Entry of the SLIT from the processors' node, 10 meaning local.
    """

    kind: Literal["dram", "far", "cxl-ram", "cxl-pmem"]
    size_bytes: int
    latency_ns: int
    bandwidth_mb_s: int
    distance: int


@dataclass(frozen=True)
class Topology:
    """A machine of the lab.

    Args:
        name: What it is called on the command line.
        about: One line for the help.
        memories: Its nodes, the processors' DRAM first.
        modules: Purposes of kernel modules that it takes, beside sharing folders.
    """

    name: str
    about: str
    memories: tuple[Memory, ...]
    modules: tuple[str, ...] = field(default=())

    @property
    def is_cxl(self) -> bool:
        """Whether it has a CXL device."""
        return any(memory.kind.startswith("cxl") for memory in self.memories)

    def sized(self, memory: str | Sequence[Amount] | None) -> Topology:
        """The same machine with other sizes.

        Args:
            memory: Sizes in the order of the nodes, as text with commas or one by one; those left out stay.

        Raises:
            RequestError: A size is none, too small, or one too many.
        """
        if memory is None:
            return self
        asked = memory.split(",") if isinstance(memory, str) else list(memory)
        if len(asked) > len(self.memories):
            message = (
                f"{len(asked)} memory sizes for the {len(self.memories)} nodes of {self.name}\n"
                f"hint: write for example --memory {','.join(bytes_text(m.size_bytes) for m in self.memories)}"
            )
            raise RequestError(message)
        sizes = [_size(text) for text in asked] + [m.size_bytes for m in self.memories[len(asked) :]]
        parts = [
            Memory(m.kind, size, m.latency_ns, m.bandwidth_mb_s, m.distance)
            for m, size in zip(self.memories, sizes, strict=True)
        ]
        return Topology(self.name, self.about, tuple(parts), self.modules)


def _size(amount: Amount) -> int:
    size = amount_in_bytes(amount.strip() if isinstance(amount, str) else amount, 0)
    if size < 2 * STEP or size % STEP:
        allowed = f"multiples of {bytes_text(STEP)}, from {bytes_text(2 * STEP)} on"
        message = f"a node of {amount} cannot be made\nhint: sizes are {allowed}"
        raise RequestError(message)
    return size


DRAM = Memory("dram", GIB, latency_ns=100, bandwidth_mb_s=100_000, distance=10)
FAR = Memory("far", 2 * GIB, latency_ns=250, bandwidth_mb_s=30_000, distance=20)
FARTHER = Memory("far", 2 * GIB, latency_ns=450, bandwidth_mb_s=12_000, distance=30)
CXL = Memory("cxl-ram", GIB, latency_ns=150, bandwidth_mb_s=30_000, distance=20)
PMEM = Memory("cxl-pmem", GIB // 2, latency_ns=150, bandwidth_mb_s=30_000, distance=20)

TOPOLOGIES: Mapping[str, Topology] = {
    topology.name: topology
    for topology in (
        Topology("two-tier", "DRAM and a CPU-less node, both from the firmware", (DRAM, FAR)),
        Topology("three-tier", "DRAM and two CPU-less nodes, one farther than the other", (DRAM, FAR, FARTHER)),
        Topology("cxl", "DRAM and a CXL type-3 device whose region is system RAM", (DRAM, CXL), ("cxl",)),
        Topology("cxl-pmem", "DRAM and a persistent CXL type-3 device", (DRAM, PMEM), ("pmem",)),
    )
}


def named(name: str) -> Topology:
    """A topology by name.

    Raises:
        RequestError: There is no such topology.
    """
    if name not in TOPOLOGIES:
        message = f"there is no topology `{name}`\nhint: there are {', '.join(TOPOLOGIES)}"
        raise RequestError(message)
    return TOPOLOGIES[name]


def arguments(topology: Topology, version: Version, store: Path | None) -> list[str]:
    """The machine in QEMU's words.

    Args:
        topology: What to build.
        version: QEMU's version.
        store: Folder for the contents of a persistent device.
    """
    plain = [m for m in topology.memories if not m.kind.startswith("cxl")]
    words = ["-machine", "q35,hmat=on" + (",cxl=on" if topology.is_cxl else "")]
    words += ["-m", _mib(sum(memory.size_bytes for memory in plain))]
    for node, memory in enumerate(plain):
        words += _plain_node(node, memory)
    if topology.is_cxl:
        words += _cxl_device(topology.memories[1], store)
        if version >= GENERIC_PORT_SINCE:
            words += [
                "-numa",
                "node,nodeid=1,initiator=0",
                "-object",
                "acpi-generic-port,id=port0,pci-bus=cxl.0,node=1",
            ]
            words += [*_distance(1, topology.memories[1]), *_attributes(1, topology.memories[1])]
    return words


def _plain_node(node: int, memory: Memory) -> list[str]:
    place = "cpus=0-1" if memory.kind == "dram" else "initiator=0"
    words = ["-object", f"memory-backend-ram,id=ram{node},size={_mib(memory.size_bytes)}"]
    words += ["-numa", f"node,nodeid={node},memdev=ram{node},{place}"]
    return words + _distance(node, memory) + _attributes(node, memory)


def _distance(node: int, memory: Memory) -> list[str]:
    """The SLIT's entries towards the nodes before; two far nodes only reach each other through the processors."""
    return [
        word
        for other in range(node)
        for word in ("-numa", f"dist,src={other},dst={node},val={memory.distance + (10 if other else 0)}")
    ]


def _attributes(node: int, memory: Memory) -> list[str]:
    pair = f"hmat-lb,initiator=0,target={node},hierarchy=memory"
    return [
        *("-numa", f"{pair},data-type=access-latency,latency={memory.latency_ns}"),
        *("-numa", f"{pair},data-type=access-bandwidth,bandwidth={memory.bandwidth_mb_s}M"),
    ]


def _cxl_device(memory: Memory, store: Path | None) -> list[str]:
    """A host bridge, its root port, the device, and a window of the same size.

    QEMU, docs/system/devices/cxl.rst.
    """
    size = _mib(memory.size_bytes)
    if memory.kind == "cxl-pmem":
        backends = [("cxl0", size, "pmem.raw"), ("labels0", "1M", "labels.raw")]
        words = [w for name, much, file in backends for w in ("-object", _file_backend(name, much, store, file))]
        device = "persistent-memdev=cxl0,lsa=labels0"
    else:
        words = ["-object", f"memory-backend-ram,id=cxl0,share=on,size={size}"]
        device = "volatile-memdev=cxl0"
    return [
        *words,
        *("-device", "pxb-cxl,bus_nr=12,bus=pcie.0,id=cxl.0"),
        *("-device", "cxl-rp,port=0,bus=cxl.0,id=rootport0,chassis=0,slot=2"),
        *("-device", f"cxl-type3,bus=rootport0,{device},id=cxl-memory0,sn={SERIAL:#x}"),
        *("-machine", f"cxl-fmw.0.targets.0=cxl.0,cxl-fmw.0.size={size}"),
    ]


def _file_backend(name: str, size: str, store: Path | None, file: str) -> str:
    place = f"mem-path={store / file}".replace(",", ",,") if store else ""
    return f"memory-backend-file,id={name},share=on,size={size},{place}"


def _mib(size_bytes: int) -> str:
    return f"{size_bytes >> 20}M"
