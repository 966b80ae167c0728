"""How verbs talk: data on stdout, words on stderr, one JSON document under ``--json``.

Every verb comes by here, so Rich is loaded when there is something to show.
"""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from tierloom.commands.terminal import visible, visible_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from tierloom.commands.console import Terminal
    from tierloom.schema import WarningDoc

VERSION = 2
"""Of answers under ``--json``: it rises when a key goes or means something else. Nouns have that of their files."""

PIPE_WIDTH = 140
"""Columns for tables that no terminal shows and whose width ``COLUMNS`` does not set."""


def show(*parts: RenderableType) -> None:
    """Tables and other data, on stdout."""
    console = _console(sys.stdout)
    for part in parts:
        _print(console, part)


def document(kind: str, data: Mapping[str, object]) -> None:
    """The one JSON document of ``--json``, on stdout; it says first what it is."""
    told = {"kind": kind, "version": VERSION, **data}
    sys.stdout.write(visible_json(json.dumps(told, indent=2, ensure_ascii=False)) + "\n")


def text(content: str) -> None:
    """What another program reads, on stdout: as it is in a pipe or a file, harmless on a terminal."""
    sys.stdout.write(visible(content) if sys.stdout.isatty() else content)


def tell(*parts: RenderableType) -> None:
    """Words, and tables that accompany a program's own output, on stderr."""
    console = _console(sys.stderr)
    for part in parts:
        _print(console, part)


def wrote(what: str, path: object) -> None:
    """What was written, and where."""
    tell(_styled("wrote ", (str(path), "bold"), f" ({what})"))


def then(command: str | None) -> None:
    """The next command to type, where there is one."""
    if command is not None:
        _tell_unbroken("next: ", (command, "cyan"))


def step(command: str) -> None:
    """A command that one of our own verbs runs for the reader, as the reader would type it."""
    _tell_unbroken(("$ ", "dim"), (command, "bold"))


def warn(text: str) -> None:
    """What the reader should know before believing the numbers."""
    lines = _lines(f"warning: {text}", _console(sys.stderr).width)
    _tell_unbroken(("warning: ", "yellow"), lines.removeprefix("warning: "))


def doubts(warnings: Sequence[WarningDoc]) -> None:
    """Warnings of a measurement or of a machine: what, why, and what to do."""
    for warning in warnings:
        warn(f"{warning['what']}: {warning['cause']}; {warning['remedy']}")


def error(text: str) -> None:
    """What is wrong, where, and what to do."""
    first, *rest = text.split("\n")
    tell(_styled(("error: ", "bold red"), first))
    for line in rest:
        if line.strip().startswith("hint:"):
            _tell_unbroken(("hint:", "bold cyan"), line.strip().removeprefix("hint:"))
        else:
            tell(line)


@contextmanager
def progress(what: str) -> Iterator[None]:
    """A spinner on stderr while something longer goes on; silent where nobody watches."""
    console = _console(sys.stderr)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


@contextmanager
def elapsing(what: str) -> Iterator[None]:
    """The same with the time that it has taken so far."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = _console(sys.stderr)
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bars.add_task(what, total=None)
        yield


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float, float | None, str], None]]:
    """A bar on stderr, moved by calling it with a share, the seconds left if they are known, and words.

    In a pipe it is silent.
    """
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}"))
    console = _console(sys.stderr)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task(what, total=1.0, left="")
        yield lambda share, left_s, words: bars.update(
            task,
            completed=share,
            left="" if left_s is None else f"{left_s:.0f} s left",
            description=words,
        )


@contextmanager
def program_output(*, to_stderr: bool) -> Iterator[None]:
    """Sends the stdout of programs that run meanwhile to stderr, where our own stdout holds data."""
    if not to_stderr:
        yield
        return
    sys.stdout.flush()
    ours = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(ours, 1)
        os.close(ours)


def _print(console: Terminal, part: RenderableType) -> None:
    """One part; sentences are broken as the cells of tables are, never between a number and its unit."""
    if isinstance(part, str):
        from rich.text import Text

        from tierloom.report.table_layout.line_breaks import wrapped

        lines = "\n".join(line.plain for line in wrapped(Text(visible(part)), console.width))
        console.print(lines, soft_wrap=True)
    else:
        console.print(part)


def _tell_unbroken(*parts: str | tuple[str, str]) -> None:
    """Words whose lines are as they are: a command that is broken cannot be copied."""
    _console(sys.stderr).print(_styled(*parts), soft_wrap=True)


def _lines(text: str, width: int) -> str:
    """Lines of a width, broken between words, never inside a command in backticks."""
    lines = [""]
    for word in re.findall(r"(?:`[^`]*`|\S)+", text):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def _styled(*parts: str | tuple[str, str]) -> Text:
    from rich.text import Text

    return Text.assemble(*parts)


def _console(stream: TextIO) -> Terminal:
    from tierloom.commands.console import Terminal

    piped = not stream.isatty() and "COLUMNS" not in os.environ
    width = PIPE_WIDTH if piped else None
    # Rich would colour `16.` of `16.0GiB`.
    return Terminal(file=stream, width=width, soft_wrap=False, emoji=False, markup=False, highlight=False)
