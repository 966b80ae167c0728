"""A profile: a program's data objects and how they are touched."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import tierloom._core as _core
from tierloom import arguments, catalog, profile_folder
from tierloom.errors import ProfileError
from tierloom.notebook_tables import Charted, Tabular
from tierloom.nouns.profile_objects import OBJECTS, object_rows
from tierloom.readers import reading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from tierloom.columns import Column, Row
    from tierloom.nouns.machine import Machine
    from tierloom.schema import ObjectDoc, ProfileDoc


SIGNS = frozenset({"version", "name", "program", "objects", "phases"})
"""Keys of a profile: a document without any of them is something else."""

RECORD = "record the program with `tierloom profile`, or `tierloom.record`"


UNKNOWN_OFFSET = 2**64 - 1
"""Of samples that touched an object nobody knows where."""


class Profile(Charted, Tabular):
    """A program's data objects and how they are touched.

    Example:
        >>> Profile.load("mg-e").footprint_bytes > 10**9
        True
    """

    def __init__(self, text: str, file: str = "profile", folder: Path | None = None) -> None:
        self.core = _core.Profile.from_json(arguments.text(file, text), file)
        self.folder = folder

    @classmethod
    def of_core(cls, core: _core.Profile, folder: Path | None = None) -> Profile:
        """A profile that the core made."""
        profile = cls.__new__(cls)
        profile.core, profile.folder = core, folder
        return profile

    @classmethod
    def from_data(cls, data: Mapping[str, object], file: str = "profile", folder: Path | None = None) -> Profile:
        """A profile of a document such as :attr:`data`, checked; `file` is only named in errors.

        Raises:
            ProfileError: The document does not hold a profile.
        """
        return cls.of_core(_core.Profile.from_document(data, file), folder)

    def __reduce__(self) -> tuple[type[Profile], tuple[str, str, Path | None]]:
        return Profile, (self.text, "profile", self.folder)

    @cached_property
    def data(self) -> ProfileDoc:
        """What the file says, as a document."""
        return cast("ProfileDoc", self.core.document())

    @cached_property
    def text(self) -> str:
        """What the file says."""
        return self.core.to_json()

    @classmethod
    def load(cls, name_or_path: str | Path) -> Profile:
        """Reads a profile by its name in the catalog or the path of its ``.profile`` folder.

        Raises:
            ProfileError: There is no such profile, or the folder does not hold one.
        """
        text = catalog.profile_text(arguments.path("profile", name_or_path, ProfileError))
        path = Path(name_or_path)
        try:
            return cls(text.content, text.file, path if path.is_dir() else None)
        except ProfileError as problem:
            if isinstance(data := _json(text.content), dict) and not data.keys() & SIGNS:
                message = (
                    f"{text.file}: this is no profile: it says nothing of a program, objects or phases\n"
                    f"hint: {catalog.PROFILED}"
                )
                raise ProfileError(message) from problem
            if Path(text.file).name != catalog.PROFILE_FILE or data is not None:
                raise
            what, _, _ = str(problem).partition("\nhint:")
            message = f"{what}; it is cut off or damaged\nhint: {profile_folder.AGAIN}"
            raise ProfileError(message) from problem

    @classmethod
    def of(cls, given: Profile | str | Path) -> Profile:
        """What is meant by a profile, a name of the catalog, or a path."""
        return given if isinstance(given, Profile) else cls.load(given)

    @staticmethod
    def names() -> list[str]:
        """Names of the profiles in the catalog, sorted."""
        return catalog.profile_names()

    @property
    def name(self) -> str:
        """Short name: the program's."""
        return self.data["name"]

    @property
    def footprint_bytes(self) -> int:
        """Bytes of all objects at their full size."""
        return sum(item["size_bytes"] for item in self.data["objects"])

    @property
    def bytes_at_once(self) -> int:
        """Most bytes of its objects that are there at once: some come when others have gone."""
        return self.core.bytes_at_once()

    @property
    def has_samples(self) -> bool:
        """Whether samples of a run lie in the profile's folder."""
        path = None if self.folder is None else self.folder / catalog.SAMPLES_FILE
        return path is not None and path.exists() and path.stat().st_size > 0

    def samples(self) -> npt.NDArray[np.void]:
        """The samples as a NumPy structured array, memory-mapped from the profile's folder.

        Columns: ``time_ns``, ``offset`` (bytes into the object; `UNKNOWN_OFFSET` where what was loaded has overwritten
        the index), ``thread``, ``object`` (position in the profile; negative for unattributed samples,
        ``-1 - position``), ``access`` (0 none, 1 read, 2 write, 3 both).

        Raises:
            ProfileError: The profile was derived on paper or saved without samples, or their file is damaged.
        """
        import numpy as np

        if self.folder is None:
            message = f"profile `{self.name}` has no samples: it was not recorded\nhint: {RECORD}"
            raise ProfileError(message)
        path = self.folder / catalog.SAMPLES_FILE
        if not self.has_samples:
            message = f"{path}: the profile was saved without samples\nhint: {RECORD}"
            raise ProfileError(message)
        with reading(path, "whole array of samples", RECORD, ProfileError):
            rows: npt.NDArray[np.void] = np.lib.format.open_memmap(path, mode="r")
        return rows

    @property
    def is_anchored(self) -> bool:
        """Whether it waits as it was seen to, and not as the model says."""
        return any("wait_factor" in access for phase in self.data["phases"] for access in phase["accesses"])

    def likely_on(self, machine: Machine, socket: str | None = None, ran_on: Machine | None = None) -> Profile:
        """The profile as it likely is on another machine: behind its last-level cache, waiting as it did in its run.

        Args:
            machine: Where it is to run.
            socket: Where its threads run; the machine's first socket by default.
            ran_on: The machine that it was recorded on, where somebody measured it: what its waiting is held against.

        Returns:
            What it is where nothing more is known, or there is no such socket.

        Raises:
            MachineError: `ran_on` cannot be what it ran on; says why.
        """
        core = self.core.likely_on(machine.core, socket, None if ran_on is None else ran_on.core)
        return self if core is None else Profile.of_core(core, self.folder)

    def save(self, folder: str | Path, samples: bytes | None = None) -> None:
        """Writes the folder that :meth:`load` reads: ``profile.json`` and ``samples.npy``.

        What :meth:`load` then gives is this profile again, to the byte.

        Args:
            folder: Where to; made where it is not there.
            samples: The samples as an ``.npy`` file; by default those of the folder that this profile was loaded
                from, and none for a profile that has none.

        Raises:
            OutputError: There is no room for them.
            RequestError: The folder cannot be written.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     Profile.load("mg-e").save(folder)
            ...     Profile.load(folder).text == Profile.load("mg-e").text
            True
        """
        place = Path(arguments.path("folder", folder))
        profile_folder.save(place, self.text, self._samples_file() if samples is None else samples)
        self.folder = place

    def _samples_file(self) -> bytes:
        """The file of the samples, empty where there is none."""
        if self.folder is None or not self.has_samples:
            return b""
        with reading(self.folder / catalog.SAMPLES_FILE, "samples", RECORD, ProfileError):
            return (self.folder / catalog.SAMPLES_FILE).read_bytes()

    @property
    def columns(self) -> Sequence[Column]:
        """Of an object."""
        return OBJECTS

    def told(self) -> list[Row]:
        """A row an object: its size, its share of all waiting, its traffic to memory, and how it is mostly touched."""
        return object_rows(self.data)

    @property
    def objects(self) -> list[ObjectDoc]:
        """The program's data objects."""
        return self.data["objects"]

    def __repr__(self) -> str:
        return f"<Profile {self.name}: {len(self.data['objects'])} objects>"


def _json(text: str) -> Any:  # noqa: ANN401 (that is what JSON is)
    """What a text says; none where it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
