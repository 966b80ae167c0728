"""From what a person types to the text of a file: a name of the catalog, or a path.

The door to the catalog. A name that is not known is always answered with the names that are near. Every verb comes
by here, and most need none of what reads the catalog: that is loaded when somebody asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierloom import profile_folder
from tierloom.errors import MachineError, PlanError, ProfileError, RequestError, StudyError, WorkloadError
from tierloom.profile_folder import PROFILE_FILE, SAMPLES_FILE

__all__ = ["PROFILE_FILE", "SAMPLES_FILE"]

NO_TEXT = "give a file that tierloom wrote, not the program or its data"
PROFILED = "`tierloom profile -- CMD` makes one of a program that runs; name its folder, or a profile of the catalog"


@dataclass(frozen=True)
class Text:
    """Text of a file, and how errors should call that file."""

    content: str
    file: str


def machine_names() -> list[str]:
    """Names of the machines in the catalog, sorted."""
    return catalog_names("machines")


def profile_names() -> list[str]:
    """Names of the profiles in the catalog, sorted."""
    return catalog_names("profiles", ".profile")


def machine_text(name_or_path: str) -> Text:
    """Text of a machine by catalog name, by path, or described in one line.

    Raises:
        MachineError: There is no such machine, or its file cannot be read.
    """
    from tierloom.catalog import one_line

    if name_or_path not in machine_names() and one_line.is_one_line(name_or_path):
        return Text(one_line.to_toml(name_or_path), f"machine `{name_or_path}`")
    return _named_text("machines", "machine", MachineError, name_or_path)


def profile_text(name_or_path: str) -> Text:
    """Text of a profile by catalog name, or by path of the ``.profile`` folder or the JSON file in it.

    A folder whose profiler was stopped gives the profile of what was recorded until then.

    Raises:
        ProfileError: There is no such profile, or its file cannot be read.
    """
    if name_or_path in profile_names():
        return catalog_text("profiles", f"{name_or_path}.profile/{PROFILE_FILE}")
    path = Path(name_or_path)
    if path.is_dir():
        profile_folder.check_samples(path)
        unfinished = profile_folder.finish(path)
        if unfinished is not None:
            return Text(unfinished, str(path))
        return _file_text(path / PROFILE_FILE, ProfileError, profile_folder.AGAIN)
    if path.name.endswith(".plan.toml") and path.is_file():
        message = (
            f"{path}: a plan is no profile, which is a folder that `tierloom profile` wrote\n"
            "hint: name the folder or a profile of the catalog; plans go to `run --plan`, or `plan --emit` prints them"
        )
        raise ProfileError(message)
    if _looks_like_path(name_or_path):
        return _profile_file(path)
    raise unknown(ProfileError, "profile", name_or_path, profile_names())


def _profile_file(path: Path) -> Text:
    """The text of the file of a profile, which is JSON; anything else is told to be no profile before it is read.

    Raises:
        ProfileError: It is no text, or no JSON.
    """
    text = _file_text(path, ProfileError, f"{NO_TEXT}; {PROFILED}")
    if text.content.strip() and not text.content.lstrip().startswith("{") and path.suffix != ".json":
        message = f"{path}: this is no profile, which is a folder that `tierloom profile` wrote\nhint: {PROFILED}"
        raise ProfileError(message)
    return text


def is_profile(name_or_path: str) -> bool:
    """Whether a name or path is a profile's, as opposed to a workload's."""
    return name_or_path in profile_names() or name_or_path.endswith(".profile") or Path(name_or_path).is_dir()


def workload_names() -> list[str]:
    """Names of the workloads in the catalog, sorted."""
    return catalog_names("workloads")


def workload_text(name_or_path: str) -> Text:
    """Text of a workload by catalog name or path.

    Raises:
        WorkloadError: There is no such workload, or its file cannot be read.
    """
    return _named_text("workloads", "workload", WorkloadError, name_or_path)


def study_names() -> list[str]:
    """Names of the studies in the catalog, sorted."""
    return catalog_names("studies")


def study_text(name_or_path: str) -> Text:
    """Text of a study by catalog name or path.

    Raises:
        StudyError: There is no such study, or its file cannot be read.
    """
    return _named_text("studies", "study", StudyError, name_or_path)


def plan_text(path: str) -> Text:
    """Text of a plan file.

    Raises:
        PlanError: The file cannot be read, or is a profile.
    """
    if profile_folder.is_one(Path(path)):
        message = (
            f"{path}: a profile is no plan, which is a file that `tierloom plan` writes\n"
            f"hint: make a plan of it with `tierloom plan {path}`"
        )
        raise PlanError(message)
    return _file_text(Path(path), PlanError)


def native_file(name: str) -> Path | None:
    """A compiled file that ships beside the package (the preload library, the demo's program), if it is there."""
    path = Path(__file__).parents[1] / "native" / name
    return path if path.is_file() else None


def catalog_names(kind: str, suffix: str = ".toml") -> list[str]:
    """Names of the files of a folder of the catalog, without their ending, sorted."""
    folder = _catalog(kind)
    if not folder.is_dir():
        return []
    return sorted(entry.name.removesuffix(suffix) for entry in folder.iterdir() if entry.name.endswith(suffix))


def catalog_text(kind: str, file: str) -> Text:
    """Text of a file of the catalog, which is there."""
    return Text((_catalog(kind) / file).read_text(encoding="utf-8"), f"catalog/{kind}/{file}")


def catalog_table(kind: str, name: str) -> dict[str, Any]:
    """What a TOML file of the catalog says, which is there."""
    import tomllib

    return tomllib.loads(catalog_text(kind, f"{name}.toml").content)


def unknown(
    error: type[RequestError],
    noun: str,
    name: str,
    known: list[str],
    otherwise: str = "a file is given by its path",
) -> RequestError:
    """The error to raise for a name that the catalog does not have: with those near it, else with all.

    Args:
        error: The noun's own error.
        noun: What was looked for, as a person says it.
        name: What was typed.
        known: What there is.
        otherwise: How something that is not in the catalog is given.
    """
    near = _near(name.lower(), known)
    hint = (
        f"did you mean {', '.join(near)}? {otherwise}" if near else f"the catalog has {', '.join(known)}; {otherwise}"
    )
    for kind, (names, place) in _PLACES.items():
        if name in names():
            hint = f"`{name}` is a {kind} of the catalog; give it as {place}"
    return error(f"there is no {noun} `{name}`\nhint: {hint}")


def _near(name: str, known: list[str]) -> list[str]:
    """Three names at most: first those that begin like it, as `a100-80` does like `a100`."""
    import difflib

    longer = [each for each in known if name and each.startswith(name)]
    alike = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return [*longer, *(each for each in alike if each not in longer)][:3]


def _catalog(kind: str) -> Path:
    return Path(__file__).parent / kind


def _named_text(kind: str, noun: str, error: type[RequestError], name_or_path: str) -> Text:
    known = catalog_names(kind)
    if name_or_path in known:
        return catalog_text(kind, f"{name_or_path}.toml")
    if _looks_like_path(name_or_path):
        return _file_text(Path(name_or_path), error)
    raise unknown(error, noun, name_or_path, known)


def _looks_like_path(text: str) -> bool:
    return "/" in text or text.endswith((".toml", ".json", ".profile")) or Path(text).exists()


def _file_text(path: Path, error: type[RequestError], no_text: str = NO_TEXT) -> Text:
    """What a file says; `no_text` is what to do where it holds none."""
    try:
        return Text(path.read_text(encoding="utf-8"), str(path))
    except OSError as problem:
        message = f"{path}: {problem.strerror}\nhint: check the path"
        raise error(message) from problem
    except UnicodeDecodeError as problem:
        message = f"{path}: not a text file\nhint: {no_text}"
        raise error(message) from problem


_PLACES = {
    "machine": (machine_names, "`--machine`"),
    "profile": (profile_names, "the profile"),
    "workload": (workload_names, "`--workload` of `tierloom simulate`"),
    "study": (study_names, "the study of `tierloom sweep`"),
}
"""What the catalog has, and where on a command line each is asked for."""
