"""Reading other people's files: bytes to text and words to numbers, each with an error that says where."""

from __future__ import annotations

import math
from pathlib import Path

from tierloom.errors import MachineError

MOST_BYTES = 64 << 20
"""No topology or log is larger; a file that is was handed in by mistake."""


def flaw(path: Path | str, where: str, problem: str, hint: str) -> MachineError:
    """The error of a file that is not what it should be: what, where, and what to do."""
    place = f"{path}: {where}" if where else f"{path}"
    return MachineError(f"{place}: {problem}\nhint: {hint}")


def text_of(path: Path) -> str:
    """A text file.

    Raises:
        MachineError: It cannot be read, is not text, or is far too large.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise flaw(path, "", "is larger than any topology or log", "check that it is the file you meant")
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise flaw(path, "", problem.strerror or "cannot be read", "check the path") from problem
    except UnicodeDecodeError as problem:
        raise flaw(path, "", "not a text file", "give the log or the XML as it was written") from problem


def number(word: str, path: Path, where: str, *, above: bool = False) -> float:
    """A finite number of at least 0, or above it.

    Raises:
        MachineError: The word is no such number.
    """
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0.0 or (above and value == 0.0):
        wanted = "a number above 0" if above else "a number of at least 0"
        raise flaw(path, where, f"`{word[:40]}` is not {wanted}", "mend or remove the line, or take the log again")
    return value
