"""A machine: what memory there is, and what it costs to reach it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import tierloom._core as _core
from tierloom import arguments, catalog, outputs
from tierloom.columns import Column, Row
from tierloom.errors import MachineError
from tierloom.notebook_tables import Charted, Tabular

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.schema import MachineDoc, MemoryDoc, Origin, PathDoc

PEAKS = {"reads_gb_s": 1.0, "triad_gb_s": 2 / 3, "copy_gb_s": 1 / 2}
"""Read shares of which a path's highest bandwidth is told: pure reads, two reads a write (STREAM's triad), a copy."""

PATHS = (
    *(Column("from", "from"), Column("to", "to", rank="key"), Column("kind", "kind", rank="frame")),
    *(Column("capacity_bytes", "capacity", "bytes", "frame"), Column("idle_ns", "idle ns", "whole", "key")),
    Column("random_idle_ns", "random ns", "whole", about="idle latency of random reads"),
    Column("reads_gb_s", "GB/s, reads only", "tenths", "key"),
    Column("triad_gb_s", "2 reads : 1 write", "tenths", about="highest GB/s of two reads a write"),
    Column("copy_gb_s", "1 : 1", "tenths", about="highest GB/s of a read a write"),
    Column("half_ns", "ns at 50 %", "whole", about="latency at half the peak of reads"),
    Column("most_ns", "at 90 %", "whole", about="latency at 90 % of that peak"),
    Column("over", "over", rank="page", about="links between sockets that it goes over"),
)


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

    @property
    def columns(self) -> Sequence[Column]:
        """Of a path, from a socket to a memory."""
        return PATHS

    def told(self) -> list[Row]:
        """A row a path: how far the memory is at rest and under load, and what kind of number each figure is."""
        memories = {memory["name"]: memory for memory in self.data["memories"]}
        return [self._row(path, memories[path["to"]]) for path in self.data["paths"]]

    def _row(self, path: PathDoc, memory: MemoryDoc) -> Row:
        reads, origin = self.curve(path["from"], path["to"]), load_origin(path)["kind"]
        peaks = {key: self.curve(path["from"], path["to"], mix, steps=2).peak_gb_s for key, mix in PEAKS.items()}
        return {
            "kind": memory["kind"],
            "capacity_bytes": int(memory["capacity_bytes"]["value"]),
            **{key: path[key] for key in ("from", "to", "idle_ns")},
            "random_idle_ns": path.get("random_idle_ns", path["idle_ns"]),
            **{key: {"value": peak, "kind": origin} for key, peak in peaks.items()},
            "half_ns": reads.latency_ns(0.5),
            "most_ns": reads.latency_ns(0.9),
            "over": ", ".join(path.get("links", [])),
        }

    def __repr__(self) -> str:
        return f"<Machine {self.name}: {', '.join(memory['name'] for memory in self.data['memories'])}>"


def load_origin(path: PathDoc) -> Origin:
    """Where the numbers of a path's load come from; of several curves, the first one's."""
    load = path["load"]
    origin: Origin = load["form"]["origin"] if "form" in load else load["points"][0]["origin"]
    return origin
