"""From what a person types to the text of a file: a name of the catalog, or a path.

Everything that reads a machine, profile or plan goes through here, so that a name that is not known
is always answered with the names that are near.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom.errors import MachineError, PlanError, ProfileError, RequestError, StudyError, WorkloadError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

PROFILE_FILE = "profile.json"
SAMPLES_FILE = "samples.npy"


@dataclass(frozen=True)
class Text:
    """Text of a file, and how errors should call that file."""

    content: str
    file: str


def machine_names() -> list[str]:
    """Names of the machines in the catalog, sorted."""
    return _names("machines", ".toml")


def profile_names() -> list[str]:
    """Names of the profiles in the catalog, sorted."""
    return _names("profiles", ".profile")


def machine_text(name_or_path: str) -> Text:
    """Text of a machine by catalog name or path.

    Raises:
        MachineError: There is no such machine, or its file cannot be read.
    """
    if name_or_path in machine_names():
        return _catalog_text("machines", f"{name_or_path}.toml")
    if _looks_like_path(name_or_path):
        return _file_text(Path(name_or_path), MachineError)
    raise _unknown(MachineError, "machine", name_or_path, machine_names())


def profile_text(name_or_path: str) -> Text:
    """Text of a profile by catalog name, or by path of the ``.profile`` folder or the JSON file in it.

    Raises:
        ProfileError: There is no such profile, or its file cannot be read.
    """
    if name_or_path in profile_names():
        return _catalog_text("profiles", f"{name_or_path}.profile/{PROFILE_FILE}")
    path = Path(name_or_path)
    if path.is_dir():
        return _file_text(path / PROFILE_FILE, ProfileError)
    if _looks_like_path(name_or_path):
        return _file_text(path, ProfileError)
    raise _unknown(ProfileError, "profile", name_or_path, profile_names())


def is_profile(name_or_path: str) -> bool:
    """Whether a name or path is a profile's, as opposed to a workload's."""
    return name_or_path in profile_names() or name_or_path.endswith(".profile") or Path(name_or_path).is_dir()


def workload_names() -> list[str]:
    """Names of the workloads in the catalog, sorted."""
    return _names("workloads", ".toml")


def workload_text(name_or_path: str) -> Text:
    """Text of a workload by catalog name or path.

    Raises:
        WorkloadError: There is no such workload, or its file cannot be read.
    """
    if name_or_path in workload_names():
        return _catalog_text("workloads", f"{name_or_path}.toml")
    if _looks_like_path(name_or_path):
        return _file_text(Path(name_or_path), WorkloadError)
    raise _unknown(WorkloadError, "workload", name_or_path, workload_names())


def study_names() -> list[str]:
    """Names of the studies in the catalog, sorted."""
    return _names("studies", ".toml")


def study_text(name_or_path: str) -> Text:
    """Text of a study by catalog name or path.

    Raises:
        StudyError: There is no such study, or its file cannot be read.
    """
    if name_or_path in study_names():
        return _catalog_text("studies", f"{name_or_path}.toml")
    if _looks_like_path(name_or_path):
        return _file_text(Path(name_or_path), StudyError)
    raise _unknown(StudyError, "study", name_or_path, study_names())


def plan_text(path: str) -> Text:
    """Text of a plan file.

    Raises:
        PlanError: The file cannot be read.
    """
    return _file_text(Path(path), PlanError)


def native_file(name: str) -> Path | None:
    """A compiled file that ships beside the package (the preload library, the demo's program), if it is there."""
    path = Path(str(resources.files("tierloom"))) / "native" / name
    return path if path.is_file() else None


def _catalog(kind: str) -> Traversable:
    return resources.files("tierloom") / "catalog" / kind


def _names(kind: str, suffix: str) -> list[str]:
    folder = _catalog(kind)
    if not folder.is_dir():
        return []
    return sorted(entry.name.removesuffix(suffix) for entry in folder.iterdir() if entry.name.endswith(suffix))


def _catalog_text(kind: str, file: str) -> Text:
    return Text((_catalog(kind) / file).read_text(encoding="utf-8"), f"catalog/{kind}/{file}")


def _looks_like_path(text: str) -> bool:
    return "/" in text or text.endswith((".toml", ".json", ".profile")) or Path(text).exists()


def _file_text(path: Path, error: type[RequestError]) -> Text:
    try:
        return Text(path.read_text(encoding="utf-8"), str(path))
    except OSError as problem:
        message = f"{path}: {problem.strerror}\nhint: check the path"
        raise error(message) from problem
    except UnicodeDecodeError as problem:
        message = f"{path}: not a text file\nhint: give a file that tierloom wrote, not the program or its data"
        raise error(message) from problem


def _unknown(error: type[RequestError], noun: str, name: str, known: list[str]) -> RequestError:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    listed = ", ".join(near or known)
    hint = f"did you mean {listed}?" if near else f"the catalog has {listed}; a file is given by its path"
    for kind, (names, place) in _PLACES.items():
        if name in names():
            hint = f"`{name}` is a {kind} of the catalog; give it as {place}"
    return error(f"there is no {noun} `{name}`\nhint: {hint}")


_PLACES = {
    "machine": (machine_names, "`--machine`"),
    "profile": (profile_names, "the profile"),
    "workload": (workload_names, "`--workload` of `tierloom simulate`"),
    "study": (study_names, "the study of `tierloom sweep`"),
}
"""What the catalog has, and where on a command line each is asked for."""
