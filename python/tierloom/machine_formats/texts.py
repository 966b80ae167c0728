"""Reading other people's files: bytes to text and words to numbers, each with an error that says where."""

from __future__ import annotations

import math
from pathlib import Path

from tierloom.errors import MachineError

MOST_BYTES = 64 << 20
"""No topology or log is larger; a file that is was handed in by mistake."""


NS = (5.0, 1e5)
"""What a memory's latency can be: from a cache near the core to ten slow page faults. Beyond it the unit is another."""
GB_S = (1e-3, 1e5)
"""What a memory's bandwidth can be: from a page every few ms to ten times the largest that is sold."""


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


def latency_ns(word: str, path: Path, where: str, *, ghz: float | None = None) -> float:
    """A latency, in ns or in cycles of a clock.

    Raises:
        MachineError: The word is no latency of a memory.
    """
    ns = number(word, path, where, above=True) / (ghz or 1.0)
    if not NS[0] <= ns <= NS[1]:
        raise flaw(path, where, f"{ns:g} ns is no memory latency", "is it in cycles? say --ghz F, or mend the line")
    return ns


def bandwidth_gb_s(word: str, path: Path, where: str, *, unit: float, idle: bool = False) -> float:
    """A bandwidth of `unit` GB/s each; at the idle end of a curve it may be 0.

    Raises:
        MachineError: The word is no bandwidth of a memory.
    """
    gb_s = number(word, path, where, above=not idle) * unit
    if not (GB_S[0] <= gb_s or idle) or gb_s > GB_S[1]:
        raise flaw(path, where, f"{gb_s:g} GB/s is no memory bandwidth", "mend or remove the line, or take it again")
    return gb_s
