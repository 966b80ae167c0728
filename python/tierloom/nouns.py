"""Machine, Profile and Plan: what the verbs read and write, each with one file format.

A noun is checked once, by the Rust core, when it is read; afterwards it is plain data that does not
change. ``data`` is the document, ``text`` what the file says.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import tierloom._core as _core
from tierloom import lookup, outputs, profile_folder
from tierloom.errors import ProfileError
from tierloom.reading import reading
from tierloom.tables import Row, Tabular

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    from tierloom.schema import AccessDoc, Action, Figure, MachineDoc, MemoryDoc, ObjectDoc, PlanDoc, ProfileDoc


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


class Machine(Tabular):
    """What memory there is and what it costs to reach it.

    Example:
        >>> Machine.load("liu-a").name
        'liu-a'
    """

    def __init__(self, text: str, file: str = "machine") -> None:
        self.text = text
        self.data = cast("MachineDoc", json.loads(_core.check_machine(text, file)))

    @classmethod
    def load(cls, name_or_path: str | Path) -> Machine:
        """Reads a machine by its name in the catalog or the path of its TOML file.

        Raises:
            MachineError: There is no such machine, or the file does not hold one.
        """
        text = lookup.machine_text(str(name_or_path))
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
        return cls(_core.write_machine(json.dumps(data), file), file)

    @staticmethod
    def names() -> list[str]:
        """Names of the machines in the catalog, sorted."""
        return lookup.machine_names()

    @property
    def name(self) -> str:
        """Short name, as on the command line."""
        return self.data["name"]

    def save(self, path: str | Path) -> None:
        """Writes the file that :meth:`load` reads."""
        outputs.write(Path(path), self.text)

    def curve(self, socket: str, memory: str, read_fraction: float = 1.0, steps: int = 25) -> Curve:
        """Loaded latency of one path, sampled at even steps of load.

        Args:
            socket: Where the traffic comes from.
            memory: Where it goes.
            read_fraction: Share of reads in the traffic, 0 to 1 by bytes.
            steps: Number of points, at least 2.

        Raises:
            RequestError: There is no such path, or a number makes no sense.
        """
        peak_gb_s, points = _core.path_curve(self.text, socket, memory, read_fraction, steps)
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


class Profile(Tabular):
    """A program's data objects and how they are touched.

    Example:
        >>> Profile.load("mg-e").footprint_bytes > 10**9
        True
    """

    def __init__(self, text: str, file: str = "profile", folder: Path | None = None) -> None:
        self.text = text
        self.data = cast("ProfileDoc", json.loads(_core.check_profile(text, file)))
        self.folder = folder

    @classmethod
    def load(cls, name_or_path: str | Path) -> Profile:
        """Reads a profile by its name in the catalog or the path of its ``.profile`` folder.

        Raises:
            ProfileError: There is no such profile, or the folder does not hold one.
        """
        text = lookup.profile_text(str(name_or_path))
        path = Path(name_or_path)
        return cls(text.content, text.file, path if path.is_dir() else None)

    @classmethod
    def of(cls, given: Profile | str | Path) -> Profile:
        """What is meant by a profile, a name of the catalog, or a path."""
        return given if isinstance(given, Profile) else cls.load(given)

    @staticmethod
    def names() -> list[str]:
        """Names of the profiles in the catalog, sorted."""
        return lookup.profile_names()

    @property
    def name(self) -> str:
        """Short name: the program's."""
        return self.data["name"]

    @property
    def footprint_bytes(self) -> int:
        """Bytes of all objects at their full size."""
        return sum(item["size_bytes"] for item in self.data["objects"])

    def samples(self) -> npt.NDArray[np.void]:
        """The samples as a NumPy structured array, memory-mapped from the profile's folder.

        Columns: ``time_ns``, ``offset`` (bytes into the object), ``thread``, ``object`` (position in
        the profile; negative for unattributed samples, ``-1 - position``), ``access`` (0 none,
        1 read, 2 write, 3 both).

        Raises:
            FileNotFoundError: The profile was derived on paper and has no samples.
            ProfileError: The file of the samples is damaged.
        """
        import numpy as np

        if self.folder is None:
            message = f"profile `{self.name}` has no samples: it was not recorded"
            raise FileNotFoundError(message)
        path = self.folder / lookup.SAMPLES_FILE
        if path.stat().st_size == 0:
            message = f"{path}: the profile was saved without samples"
            raise FileNotFoundError(message)
        with reading(path, "whole array of samples", "record the program again", ProfileError):
            rows: npt.NDArray[np.void] = np.lib.format.open_memmap(path, mode="r")
        return rows

    def save(self, folder: str | Path, samples: bytes) -> None:
        """Writes the folder that :meth:`load` reads: ``profile.json`` and ``samples.npy``."""
        self.folder = Path(folder)
        profile_folder.save(self.folder, self.text, samples)

    def rows(self) -> list[Row]:
        """A row an object: its size, its share of all waiting, its traffic to memory, and how it is mostly touched."""
        accesses = [access for phase in self.data["phases"] for access in phase["accesses"]]
        return [
            _row(item, [access for access in accesses if access["object"] == item["name"]]) for item in self.objects
        ]

    @property
    def objects(self) -> list[ObjectDoc]:
        """The program's data objects."""
        return self.data["objects"]

    def __repr__(self) -> str:
        return f"<Profile {self.name}: {len(self.data['objects'])} objects>"


def _row(item: ObjectDoc, accesses: list[AccessDoc]) -> Row:
    most = max(accesses, key=lambda access: access["dram_read_bytes"] + access["dram_write_bytes"], default=None)
    return {
        "object": item["name"],
        "kind": item["kind"],
        "size_bytes": item["size_bytes"],
        "allocations": item["allocations"],
        "waits_share": item["stall"]["share"] if "stall" in item else None,
        "dram_read_bytes": sum(access["dram_read_bytes"] for access in accesses),
        "dram_write_bytes": sum(access["dram_write_bytes"] for access in accesses),
        "pattern": most["pattern"] if most else None,
        "mlp": most["mlp"] if most else None,
    }


class Plan(Tabular):
    """Rules that say which object goes where; a person can read and edit its file."""

    def __init__(self, text: str, file: str = "plan") -> None:
        self.text = text
        self.data = cast("PlanDoc", json.loads(_core.check_plan(text, file)))

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Reads a plan from its TOML file.

        Raises:
            PlanError: The file cannot be read or does not hold a plan.
        """
        text = lookup.plan_text(str(path))
        return cls(text.content, text.file)

    def save(self, path: str | Path) -> None:
        """Writes the file that :meth:`load` reads."""
        outputs.write(Path(path), self.text)

    def rows(self) -> list[Row]:
        """A row a rule, and one for everything that no rule names: what is asked of the kernel."""
        named: list[Row] = [
            {"object": rule["object"], "size_bytes": rule["size_bytes"], "place": action_text(rule["place"])}
            for rule in self.data["rules"]
        ]
        return [*named, {"object": "*", "size_bytes": None, "place": action_text(self.data["default"])}]

    def __repr__(self) -> str:
        return f"<Plan of {self.data['profile']} for {self.data['machine']}: {len(self.data['rules'])} rules>"


def action_text(action: Action) -> str:
    """What is asked of the kernel, in words.

    Example:
        >>> action_text({"weighted": {"ldram": 3, "cxl": 1}})
        'weighted interleave ldram 3 : cxl 1'
    """
    if isinstance(action, str):
        return action.replace("_", " ")
    (verb, nodes), *_ = action.items()
    if isinstance(nodes, dict):
        return "weighted interleave " + " : ".join(f"{node} {weight}" for node, weight in nodes.items())
    return f"{verb} {nodes if isinstance(nodes, str) else ', '.join(nodes)}"
