"""A machine as far as it is known: what the readers of foreign formats fill and a machine file is made of.

A reader knows some of a machine: hwloc the cores and nodes, Intel MLC the latencies, a Mess directory
one path's curves. Each returns a :class:`Sketch`; :meth:`Sketch.add` lays one over the other, the later
one on top. Of what a sketch says only kinds of memory are ever guesses, and those are ``assumed``. What a
machine file needs and no source tells is filled in at the end (``assembly.py``), marked ``assumed`` or
``derived`` with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from tierloom.machine_formats.lanes import Lanes
    from tierloom.schema import Kind, WarningDoc

T = TypeVar("T")

Point = tuple[float, float]
"""GB/s and ns."""


@dataclass(frozen=True)
class Known(Generic[T]):
    """A value with its origin; ``source`` is a key of the sketch's ``sources``."""

    value: T
    kind: Kind
    source: str
    how: str = ""


@dataclass
class Cpus:
    """The CPUs of one node."""

    name: str | None = None
    model: str | None = None
    cores: Known[int] | None = None
    llc_bytes: Known[int] | None = None
    llc_per_core_bytes: Known[int] | None = None


@dataclass
class Node:
    """One memory node."""

    name: str | None = None
    kind: Known[str] | None = None
    capacity_bytes: Known[int] | None = None
    home: int | None = None
    """Node of the CPUs that it hangs on."""


@dataclass
class Curve:
    """Latency against bandwidth at one share of reads, in the order of growing load."""

    points: list[Point]
    origin: Known[None]


@dataclass
class Route:
    """From the CPUs of one node to the memory of another."""

    idle_ns: Known[float] | None = None
    read_gb_s: Known[float] | None = None
    write_gb_s: Known[float] | None = None
    lanes: Known[Lanes] | None = None
    """Where reads and writes do not share one bus; both peaks follow from it."""
    distance: int | None = None
    """As in ACPI's SLIT: 10 is the node itself."""
    curves: dict[float, Curve] = field(default_factory=dict)
    """By share of reads."""


@dataclass
class GpuNode:
    """A node that is the memory of a GPU: no tier of a program that runs on CPUs unless somebody wants it to be."""

    gpu: str
    node: Node
    routes: dict[int, Route]
    """By the node of the CPUs."""


@dataclass
class Unplaced:
    """A memory, and the node that it is, where its source tells: else found by its size, or a node of its own."""

    node: Node
    number: int | None


@dataclass
class Sketch:
    """A machine as far as it is known."""

    name: str | None = None
    sources: dict[str, str] = field(default_factory=dict)
    cpus: dict[int, Cpus] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    routes: dict[tuple[int, int], Route] = field(default_factory=dict)
    gpus: dict[int, GpuNode] = field(default_factory=dict)
    """Left out so far, by number."""
    unplaced: list[Unplaced] = field(default_factory=list)
    """Placed when all sources are known (``unplaced.py``)."""
    strays: list[int] = field(default_factory=list)
    """Nodes of `cpus` that nothing else tells of."""
    notes: list[str] = field(default_factory=list)
    warnings: list[WarningDoc] = field(default_factory=list)

    def route(self, start: int, end: int) -> Route:
        """The route between two nodes, with both of them; begins empty."""
        self.cpus.setdefault(start, Cpus())
        self.nodes.setdefault(end, Node())
        return self.routes.setdefault((start, end), Route())

    def leave_out(self, number: int, gpu: str) -> None:
        """Takes the memory of a GPU out of the machine."""
        ends = [ends for ends in self.routes if ends[1] == number]
        self.gpus[number] = GpuNode(
            gpu, self.nodes.pop(number), {start: self.routes.pop((start, end)) for start, end in ends}
        )

    def take_in(self, number: int) -> None:
        """Puts a node of a GPU back, with all that is known of it."""
        if found := self.gpus.pop(number, None):
            self.nodes[number] = found.node
            self.routes |= {(start, number): route for start, route in found.routes.items()}

    def add(self, other: Sketch) -> None:
        """Lays another sketch of the same machine on top: what it knows counts, the rest stays.

        Both may use the same key for different sources; the later one's is renamed.
        """
        other = _renamed(other, taken=self.sources)
        self.name = other.name or self.name
        self.sources |= other.sources
        for number, cpus in other.cpus.items():
            _lay(self.cpus.setdefault(number, Cpus()), cpus)
        for number, node in other.nodes.items():
            _lay(self.nodes.setdefault(number, Node()), node)
        for ends, route in other.routes.items():
            mine = self.route(*ends)
            mine.curves |= route.curves
            _lay(mine, route, but="curves")
        self.gpus |= other.gpus
        self.unplaced += other.unplaced
        self.strays += other.strays
        self.notes += other.notes
        self.warnings += other.warnings


def _lay(below: object, above: object, but: str = "") -> None:
    for key, value in vars(above).items():
        if value is not None and key != but:
            setattr(below, key, value)


def _renamed(sketch: Sketch, taken: dict[str, str]) -> Sketch:
    """The sketch with keys of sources that nobody else uses for another source."""
    new = {key: _free(key, text, taken) for key, text in sketch.sources.items()}
    if all(key == renamed for key, renamed in new.items()):
        return sketch
    sketch.sources = {new[key]: text for key, text in sketch.sources.items()}
    parts: list[object] = [*sketch.cpus.values(), *sketch.nodes.values(), *sketch.routes.values()]
    parts += [each.node for each in sketch.unplaced]
    for gpu in sketch.gpus.values():
        parts += [gpu.node, *gpu.routes.values()]
    for part in parts:
        for key, value in vars(part).items():
            if isinstance(value, Known):
                setattr(part, key, Known(value.value, value.kind, new[value.source], value.how))
    for curve in (curve for route in sketch.routes.values() for curve in route.curves.values()):
        origin = curve.origin
        curve.origin = Known(None, origin.kind, new[origin.source], origin.how)
    return sketch


def _free(key: str, text: str, taken: dict[str, str]) -> str:
    number = 1
    free = key
    while taken.get(free, text) != text:
        number += 1
        free = f"{key}{number}"
    return free
