"""A profile's folder: which files it holds, how it comes about, and what is done with half of one.

While a program is profiled its recording grows in the folder; when it has ended, the profile and the samples
take its place. A folder with a recording is one whose profiler was stopped: the recording is worked out when
somebody asks for the profile.
"""

from __future__ import annotations

import ast
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import tierloom._core as _core
from tierloom import outputs
from tierloom.errors import BuildError, OutputError, ProfileError, RequestError, TierloomError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROFILE_FILE = "profile.json"
SAMPLES_FILE = "samples.npy"
RECORDING_FILE = "run.recording"
ENDING = ".profile"
AGAIN = "profile the program again, or work out the recording with `tierloom analyse` where `profile --keep` left one"
"""What to do about a file that a profiler wrote and that is damaged: nobody mends it by hand."""


@contextmanager
def prepared(folder: Path) -> Iterator[Path]:
    """Makes the folder, for a recording to grow in; where nothing comes of it, it is gone again.

    Yields:
        Where the recording goes.

    Raises:
        RequestError: The folder cannot be made.
    """
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        _make(folder)
        yield folder / RECORDING_FILE
    except BaseException:
        with suppress(OSError):
            for each in made:
                each.rmdir()
        raise


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        what = f"{problem.filename}: {problem.strerror}; the program was not started"
        message = f"{what}\nhint: check that the folder may be made and written, or choose another"
        raise RequestError(message) from problem


def save(folder: Path, profile: str, samples: bytes) -> None:
    """Writes the profile and its samples, whose recording is then not needed any more.

    Raises:
        OutputError: There is no room for them; the recording is still there.
        RequestError: The folder cannot be written.
    """
    recording = folder / RECORDING_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        outputs.write(folder / SAMPLES_FILE, samples)
        outputs.write(folder / PROFILE_FILE, profile + "\n")
        recording.unlink(missing_ok=True)
    except OutputError as problem:
        if not recording.exists():
            raise
        what, _, _ = str(problem).partition("\nhint:")
        message = (
            f"{what}\nhint: make room there; what was recorded is in {recording}, and `tierloom plan {folder}` goes on"
        )
        raise OutputError(message) from problem
    except OSError as problem:
        raise outputs.refused(folder, problem) from problem


def finish(folder: Path) -> str | None:
    """Works out the recording of a profiler that was stopped, if there is one; its profile.

    The profile and its samples are written into the folder, where that can be.

    Raises:
        ProfileError: The program runs yet, nothing was recorded of it, or it is another build by now.
    """
    recording = folder / RECORDING_FILE
    if not recording.is_file():
        if (folder / PROFILE_FILE).exists():
            return None
        message = (
            f"{folder}: there is no profile in it; a profiler that is stopped in its first moments leaves none\n"
            "hint: record the program again, or name the folder that `tierloom profile` wrote"
        )
        raise ProfileError(message)
    if _core.is_being_recorded(recording):
        message = f"{folder}: its program is being profiled now\nhint: wait for its end"
        raise ProfileError(message)
    try:
        profile, samples = _core.analyse_recording(recording, folder.name.removesuffix(ENDING), [], [])
    except BuildError as problem:
        raise ProfileError(str(problem)) from problem
    except RequestError as problem:
        what, _, _ = str(problem).partition("\nhint:")
        message = f"{what}; its profiler was stopped\nhint: record the program again"
        if (folder / PROFILE_FILE).exists():
            message += f", or remove {RECORDING_FILE} there to use the profile of an earlier run"
        raise ProfileError(message) from problem
    text = profile.to_json()
    with suppress(TierloomError):
        save(folder, text, samples)
    return text


def is_one(path: Path) -> bool:
    """Whether a path is a profile's folder, or the file in it."""
    return path.name == PROFILE_FILE or (
        path.is_dir() and (path.name.endswith(ENDING) or (path / PROFILE_FILE).exists())
    )


def check_samples(folder: Path) -> None:
    """A file of samples, where there is one, holds as many as it says.

    Raises:
        ProfileError: It was cut off.
    """
    path = folder / SAMPLES_FILE
    if not path.is_file() or path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        header = file.read(10)
        text = file.read(int.from_bytes(header[8:10], "little")).decode("latin-1")
    try:
        fields = ast.literal_eval(text.strip())
        row = sum(int(kind[2:]) for _, kind in fields["descr"])
        whole = path.stat().st_size >= len(header) + len(text) + row * fields["shape"][0]
    except (ValueError, SyntaxError, TypeError, KeyError, IndexError):
        whole = False
    if not whole:
        message = (
            f"{path}: it is cut off or damaged\n"
            "hint: record the program again, or remove that file: the profile is good without samples"
        )
        raise ProfileError(message)
