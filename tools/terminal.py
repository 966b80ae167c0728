"""A terminal for pages that are transcripts: a command is typed in a folder of its own, and its output is kept.

`newcomer.py` and `story.py` write their pages with it, `terminal_pictures.py` draws pictures of it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = Path(sys.executable).parent
"""Where `tierloom` is, beside the Python that runs this."""


@dataclass(frozen=True)
class Typed:
    """A command, why it was typed, and what came of it, as a page shows them."""

    command: str
    why: str
    code: int
    text: str
    hints: tuple[str, ...] = ()
    """Commands that it said might come next, as this machine is to be told."""


@dataclass
class Terminal:
    """Somebody at a terminal, in a folder of their own, on a machine that nobody has measured."""

    folder: Path
    columns: int = 140
    typed: list[Typed] = field(default_factory=list)

    def type(self, command: str, why: str = "") -> Typed:
        """Types a command, once."""
        done = self.run(command)
        said = done.stdout + done.stderr
        self.typed.append(Typed(self.told(command), why, done.returncode, self.told(said), hints(said)))
        return self.typed[-1]

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command that no page shows."""
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
        )

    @property
    def environment(self) -> dict[str, str]:
        """What programs see of who types: where `tierloom` is, and nothing of this machine's earlier days."""
        path = os.pathsep.join([str(PROGRAMS), os.environ["PATH"]])
        state = str(self.folder / "state")
        return {**os.environ, "PATH": path, "COLUMNS": str(self.columns), "NO_COLOR": "1", "XDG_STATE_HOME": state}

    def told(self, text: str) -> str:
        """An output without the places of this machine, so that it is everybody's."""
        return text.replace(f"{ROOT}/python/", "").replace(f"{self.folder}/", "").replace(str(self.folder), "")

    @property
    def failed(self) -> list[str]:
        """Commands that did."""
        return [each.command for each in self.typed if each.code != 0]


def hints(text: str) -> tuple[str, ...]:
    """Commands that an output says might come next, each in one line."""
    return tuple(re.findall(r"^next: (tierloom .*)$", text, re.MULTILINE))


def block(typed: Typed, text: str) -> str:
    """A command with its output, or what is shown of it, as a page has them."""
    return f"```text\n$ {typed.command}\n{text}```\n"


def shortened(text: str, lines: int) -> str:
    """The start and the end of an output, so many lines of each."""
    all_of_it = stripped(text)
    if len(all_of_it) <= 2 * lines + 1:
        return joined(all_of_it)
    return joined([*all_of_it[:lines], f"[{len(all_of_it) - 2 * lines} more lines]", *all_of_it[-lines:]])


def parts(text: str, *spans: tuple[str, int]) -> str:
    """Of an output the lines from each of some patterns on, so many of each.

    Raises:
        ValueError: An output without such a line.
    """
    lines = stripped(text)
    return joined([each if isinstance(each, str) else lines[each] for each in abridged(lines, *spans)])


def abridged(lines: list[str], *spans: tuple[str, int]) -> list[int | str]:
    """The same, as the places of the lines that are shown, and words for those between them."""
    chosen = {at + more for start, count in spans for at in [found(start, lines)] for more in range(count)}
    shown = sorted(at for at in chosen if at < len(lines))
    told: list[int | str] = []
    for before, at in pairwise([-1, *shown, len(lines)]):
        told += [*left_out(lines[before + 1 : at]), at]
    return told[:-1]


def found(pattern: str, lines: list[str]) -> int:
    """Where the first line is that begins so."""
    at = next((at for at, line in enumerate(lines) if re.match(pattern, line)), None)
    if at is None:
        message = f"no line begins with `{pattern}`:\n" + joined(lines)
        raise ValueError(message)
    return at


def left_out(lines: list[str]) -> list[str]:
    """What stands for lines that are not shown; blank ones are not missed."""
    return [f"[{len(lines)} more line{'s' if len(lines) > 1 else ''}]"] if any(lines) else []


def stripped(text: str) -> list[str]:
    """Lines, without blanks at their ends."""
    return [line.rstrip() for line in text.splitlines()]


def joined(lines: list[str]) -> str:
    """The text of lines."""
    return "".join(f"{line}\n" for line in lines)
