"""Recordings that were kept: what one holds, its profile, and the files of code that it takes.

A recording says what was seen of a run, and which builds of the program and its libraries ran. Its profile is
worked out from it and from these files, on any machine that has them, and is the same everywhere.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import tierloom._core as _core
from tierloom import arguments, outputs
from tierloom.errors import RequestError
from tierloom.nouns import Profile
from tierloom.profiler import Recorded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.schema import CodeFileDoc, RecordingDoc

ENDING = ".recording"


@arguments.reads(path=arguments.path)
def analyse(
    path: str | Path,
    *,
    name: str | None = None,
    binaries: Sequence[str | Path] = (),
    counts: Sequence[str | Path] = (),
) -> Recorded:
    """The profile of a recording that was kept, here or on another machine.

    Args:
        path: The recording, as :func:`tierloom.record` keeps it.
        name: Name of the profile; the program's file name by default.
        binaries: Folders with the program and libraries that ran: by build id (.build-id/xx/yyyy), by whole path, or
            by name. What is in none of them is looked for where it ran.
        counts: Executions counted by valgrind (callgrind --dump-instr=yes) of the same program and input, a file a
            process; with --cache-sim=yes lines from memory, too.

    Raises:
        BuildError: The program is not here in the build that ran, or another build was counted.
        RequestError: There is no such recording, it is not of this version, or a file of counts is none.
        RecordingError: It cannot be read or worked out.
    """
    _check(path, binaries)
    profile, samples = _core.analyse_recording(path, name, list(binaries), list(counts))
    return Recorded(Profile.of_core(profile), samples)


@arguments.reads(path=arguments.path)
def describe(path: str | Path, *, binaries: Sequence[str | Path] = ()) -> RecordingDoc:
    """What a recording holds, and which of its files of code are here.

    Args:
        path: The recording.
        binaries: As for :func:`analyse`.

    Raises:
        RequestError: There is no such recording, or it is not of this version.
        RecordingError: It cannot be read.
    """
    _check(path, binaries)
    return cast("RecordingDoc", _core.describe_recording(path, list(binaries)))


@dataclass(frozen=True)
class Packed:
    """Files of code in a folder, and those that are not here as they ran."""

    copied: list[CodeFileDoc]
    lacking: list[CodeFileDoc]


@arguments.reads(path=arguments.path)
def pack(path: str | Path, folder: str | Path, *, binaries: Sequence[str | Path] = ()) -> Packed:
    """Copies the files of code of a recording, and debug information that was moved out of them, into a folder.

    Each goes to its whole path below it, debug information to its build id (`.build-id/xx/yyyy.debug`).

    With the recording and the folder the profile can be worked out on any machine.

    Args:
        path: The recording.
        folder: Where they go; what is there already stays.
        binaries: As for :func:`analyse`.

    Raises:
        OutputError: There is no room for them.
        RequestError: There is no such recording, or the folder cannot be written.
        RecordingError: The recording cannot be read.
    """
    files = describe(path, binaries=binaries)["binaries"]
    here = [file for file in files if file["state"] == "same"]
    for file in here:
        _copy(Path(file["file"]), Path(folder) / file["path"].lstrip("/"))
        if "debug_file" in file:
            _copy(Path(file["debug_file"]), Path(folder) / _debug_place(file))
    return Packed(here, [file for file in files if file["state"] != "same"])


def _debug_place(file: CodeFileDoc) -> str:
    """Where debuggers look for debug information: by build id, or beside the code where the linker noted none."""
    build = file["build"]
    if build.startswith("code-"):
        return str(Path(file["path"].lstrip("/")).with_name(Path(file["debug_file"]).name))
    return f".build-id/{build[:2]}/{build[2:]}.debug"


def _copy(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not (target.exists() and target.samefile(source)):
            with outputs.whole(target) as part:
                shutil.copyfile(source, part)
                shutil.copymode(source, part)
    except OSError as problem:
        raise outputs.refused(target, problem) from problem


def _check(path: str | Path, folders: Sequence[str | Path]) -> None:
    if not Path(path).is_file():
        message = f"{path}: there is no such file\nhint: give the recording that `tierloom profile --keep` wrote"
        raise RequestError(message)
    for folder in folders:
        if not Path(folder).is_dir():
            message = f"{folder}: there is no such folder\nhint: give a folder with the files of code that ran"
            raise RequestError(message)
