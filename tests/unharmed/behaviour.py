"""What a program did, as far as the world outside can tell, and how it differs from what it does on its own.

The law of `tests/unharmed`: a program that Tierloom looks at or places has the behaviour that it has alone.
"""

from __future__ import annotations

import difflib
import re
import shlex
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace

SHOWN = 4000
"""Characters of a difference that are shown; the first lines tell most."""


@dataclass(frozen=True)
class Behaviour:
    """What was seen of one run of a program."""

    stdout: bytes
    stderr: bytes
    code: int | None
    """How it ended, as a shell tells it: the exit code, or 128 + the signal; none when it hung and was killed."""
    orphans: tuple[str, ...] = ()
    """Descendants that outlived their parent and ended in good time: `name: how`, sorted."""
    left: tuple[str, ...] = ()
    """Descendants that were still there long after its end, by name, sorted."""
    files: tuple[str, ...] = ()
    """What Tierloom left in shared memory."""
    trouble: str = ""
    """What Tierloom itself failed with."""
    told: dict = field(default_factory=dict, compare=False)
    """What Tierloom said of the run; no part of the program's behaviour."""

    def end(self) -> str:
        """The ending in words."""
        if self.code is None:
            return "hung"
        if self.code > 128 and self.code - 128 in set(signal.Signals):
            return f"{self.code} ({signal.Signals(self.code - 128).name})"
        return str(self.code)

    def seen_by(self, visible: Callable[[bytes], bytes]) -> Behaviour:
        """The same without what differs by its nature."""
        return replace(self, stdout=visible(self.stdout), stderr=visible(self.stderr))


def differences(alone: Behaviour, other: Behaviour, *, words: bool = True, ours_follow: bool = False) -> list[str]:
    """All that is not as it is alone.

    Args:
        alone: The program on its own.
        other: The program under Tierloom.
        words: Whether its stderr is the same in every run.
        ours_follow: Whether the words of Tierloom come after its own on stderr.
    """
    stderr = other.stderr[: len(alone.stderr)] if ours_follow else other.stderr
    pairs = (
        ("end", alone.end(), other.end()),
        ("stdout", _text(alone.stdout), _text(other.stdout)),
        ("stderr", _text(alone.stderr), _text(stderr)) if words else ("stderr", "", ""),
        ("orphans", "\n".join(alone.orphans), "\n".join(other.orphans)),
        ("left behind", "\n".join(alone.left), "\n".join(other.left)),
        ("shared memory", "", "\n".join(other.files)),
        ("Tierloom", "", other.trouble),
    )
    return [_difference(*pair) for pair in pairs if pair[1] != pair[2]]


def report(found: list[str], command: list[str], folder: object) -> str:
    """The differences of one way, and how to see them again."""
    return "\n".join([*found, f"again: cd {folder} && {shlex.join(command)}"])


def hidden(*patterns: tuple[str, str]) -> Callable[[bytes], bytes]:
    """Takes away what differs by its nature: pairs of a pattern and what stands for it."""

    def visible(output: bytes) -> bytes:
        for pattern, instead in patterns:
            output = re.sub(pattern.encode(), instead.encode(), output)
        return output

    return visible


def _text(output: bytes) -> str:
    return output.decode(errors="backslashreplace")


def _difference(what: str, alone: str, other: str) -> str:
    if "\n" not in alone.strip() and "\n" not in other.strip():
        return f"{what}: {other.strip()!r}, alone {alone.strip()!r}"[:SHOWN]
    lines = difflib.unified_diff(alone.splitlines(), other.splitlines(), "alone", "under Tierloom", n=1, lineterm="")
    return f"{what}:\n" + "\n".join(lines)[:SHOWN]
