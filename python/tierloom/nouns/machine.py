"""A machine: what memory there is, and what it costs to reach it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import tierloom._core as _core
from tierloom import arguments, catalog, outputs
from tierloom.errors import MachineError
from tierloom.tables import Charted, Row, Tabular

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.schema import Figure, MachineDoc, MemoryDoc


@dataclass(frozen=True)
class Curve:
    """Latency against bandwidth at one read fraction.

    ``points`` are ``(GB/s, ns)``, from idle to 99 % of the peak: at the very peak a fitted form is
    infinite.
    """

    peak_gb_s: float
    points: list[tuple[float, float]]

    def latency_ns(self, load: float) -> float:
        """Latency at a share of the peak, ns, between the two nearest points."""
        last = len(self.points) - 1
        position = min(load * self.peak_gb_s / self.points[-1][0], 1.0) * last
        low = min(int(position), last - 1)
        (_, before), (_, after) = self.points[low : low + 2]
        return before + (after - before) * (position - low)


class Machine(Charted, Tabular):
    """What memory there is and what it costs to reach it.

    Example:
        >>> Machine.load("liu-a").name
        'liu-a'
    """

    def __init__(self, text: str, file: str = "machine") -> None:
        self.text = arguments.text(file, text)
        self.core = _core.Machine.from_toml(text, file)

    def __reduce__(self) -> tuple[type[Machine], tuple[str]]:
        return Machine, (self.text,)

    @cached_property
    def data(self) -> MachineDoc:
        """What the file says, as a document."""
        return cast("MachineDoc", self.core.document())

    @classmethod
    def load(cls, name_or_path: str | Path) -> Machine:
        """Reads a machine by its name in the catalog or the path of its TOML file.

        Raises:
            MachineError: There is no such machine, or the file does not hold one.
        """
        text = catalog.machine_text(arguments.path("machine", name_or_path, MachineError))
        return cls(text.content, text.file)

    @classmethod
    def of(cls, given: Machine | str | Path) -> Machine:
        """What is meant by a machine, a name of the catalog, or a path."""
        return given if isinstance(given, Machine) else cls.load(given)

    @classmethod
    def from_data(cls, data: Mapping[str, object], file: str = "machine") -> Machine:
        """A machine of a document such as :attr:`data`, checked; `file` is only named in errors.

        Raises:
            MachineError: The document does not hold a machine.
        """
        return cls(_core.Machine.from_document(data, file).to_toml(), file)

    @staticmethod
    def names() -> list[str]:
        """Names of the machines in the catalog, sorted."""
        return catalog.machine_names()

    @property
    def name(self) -> str:
        """Short name, as on the command line."""
        return self.data["name"]

    def nearest(self, socket: str | None = None) -> str:
        """The memory that a socket reaches soonest, of the first socket by default; empty where it reaches none.

        Example:
            >>> Machine.load("liu-a").nearest()
            'ldram'
        """
        home = socket or self.data["sockets"][0]["name"]
        paths = [path for path in self.data["paths"] if path["from"] == home]
        return min(paths, key=lambda path: path["idle_ns"]["value"])["to"] if paths else ""

    def save(self, path: str | Path) -> None:
        """Writes the file that :meth:`load` reads.

        Raises:
            RequestError: It cannot be written there.
            OutputError: There is no room for it.
        """
        outputs.write(Path(arguments.path("path", path)), self.text)

    @arguments.reads(socket=arguments.text, memory=arguments.text)
    def curve(self, socket: str, memory: str, read_fraction: float = 1.0, steps: int = 25) -> Curve:
        """Loaded latency of one path, sampled at even steps of load.

        Args:
            socket: Where the traffic comes from.
            memory: Where it goes.
            read_fraction: Share of reads in the traffic, 0 to 1 by bytes.
            steps: Number of points, at least 2.

        Raises:
            RequestError: There is no such path, or a number makes no sense.

        Example:
            >>> curve = Machine.load("liu-a").curve("socket1", "cxl", read_fraction=1.0, steps=3)
            >>> [round(gb_s / curve.peak_gb_s, 2) for gb_s, ns in curve.points]
            [0.0, 0.49, 0.99]
        """
        peak_gb_s, points = _core.path_curve(self.core, socket, memory, read_fraction, steps)
        return Curve(peak_gb_s, points)

    def rows(self) -> list[Row]:
        """A row a path, from a socket to a memory: capacity, idle latency, peaks, and what kind of number it is."""
        memories = {memory["name"]: memory for memory in self.data["memories"]}
        return [self._row(path["from"], memories[path["to"]], path["idle_ns"]) for path in self.data["paths"]]

    def _row(self, socket: str, memory: MemoryDoc, idle: Figure) -> Row:
        def peak_gb_s(reads: float) -> float:
            return self.curve(socket, memory["name"], reads, steps=2).peak_gb_s

        return {
            "from": socket,
            "to": memory["name"],
            "kind": memory["kind"],
            "capacity_bytes": int(memory["capacity_bytes"]["value"]),
            "idle_ns": idle["value"],
            "idle_is": idle["kind"],
            "reads_gb_s": peak_gb_s(1.0),
            "half_writes_gb_s": peak_gb_s(0.5),
        }

    def __repr__(self) -> str:
        return f"<Machine {self.name}: {', '.join(memory['name'] for memory in self.data['memories'])}>"
