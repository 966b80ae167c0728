"""A machine's parts with the CPUs beside them: what an XML file of hwloc and a tree of ``/sys`` tell alike.

Both readers fill a :class:`Topology` and decide nothing. Whose CPUs are whose (``localities.py``), what a
memory is made of (``memory_kinds.py``) and what becomes of it (``topology_sketch.py``) is decided once, so the
same machine is the same from both. Sets of CPUs are whole numbers, CPU *n* is bit *n*.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tierloom.machine_formats.sketch import Known
    from tierloom.schema import WarningDoc


@dataclass
class MemoryNode:
    """A NUMA node."""

    cpus: int = 0
    """CPUs beside it that a program can use."""
    all_cpus: int = 0
    """With those that are offline or not allowed."""
    own: bool = False
    """Whether the kernel itself says that these CPUs sit on it; hwloc gives a node those nearest to it, too."""
    bytes: Known[int] | None = None
    """None: not told. Of 0: a node without memory."""
    kind: Known[str] | None = None
    """What it is made of, where the source says so."""
    gpu: str = ""
    """The GPU whose memory it is."""
    dax: str = ""
    """The device that it was onlined from: ``cxl``, ``pmem``, ``reserved`` (firmware's specific-purpose memory) or
    ``unknown``."""
    initiators: int = 0
    """CPUs that firmware calls its nearest."""
    side_cache_bytes: int = 0
    """Of the caches in front of it that all accesses to it go through, whoever makes them."""
    name: str | None = None
    home: int | None = None


@dataclass
class Package:
    """What is plugged into one socket."""

    cpus: int
    all_cpus: int = 0
    nodes: tuple[int, ...] = ()
    """Its nodes, those among them that the source leaves out."""
    model: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Cache:
    """A data cache of CPUs."""

    level: int
    cpus: int
    bytes: int


@dataclass(frozen=True)
class Figure:
    """What firmware tells of the way from CPUs to a node."""

    key: str
    """Of :class:`~tierloom.machine_formats.sketch.Route`: ``idle_ns``, ``read_gb_s`` or ``write_gb_s``."""
    cpus: int
    node: int
    known: Known[float]


@dataclass
class Topology:
    """A machine's parts."""

    source: str
    """Key of the sketch's sources."""
    model: str | None = None
    nodes: dict[int, MemoryNode] = field(default_factory=dict)
    packages: list[Package] = field(default_factory=list)
    cores: list[int] = field(default_factory=list)
    """CPUs of each core that can be used."""
    caches: list[Cache] = field(default_factory=list)
    distances: dict[tuple[int, int], int] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    warnings: list[WarningDoc] = field(default_factory=list)
    all_cpus: int = 0
    """CPUs of the machine, where they are told apart from those of its parts."""

    def usable(self) -> int:
        """CPUs that a program can use."""
        parts = [*(node.cpus for node in self.nodes.values()), *(package.cpus for package in self.packages)]
        return union([*parts, *self.cores])

    def everyone(self) -> int:
        """All CPUs of the machine."""
        parts = [*(node.all_cpus for node in self.nodes.values()), *(package.all_cpus for package in self.packages)]
        return union([*parts, self.all_cpus, self.usable()])


def bits(numbers: Iterable[int]) -> int:
    """The set of these CPUs."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def lowest(cpus: int) -> int:
    """The lowest CPU of a set, as a set: what sets are put in order by."""
    return cpus & -cpus


def union(sets: Iterable[int]) -> int:
    """All CPUs of some sets."""
    whole = 0
    for each in sets:
        whole |= each
    return whole
