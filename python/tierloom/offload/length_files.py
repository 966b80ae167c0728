"""Lengths of prompts and answers as people give them: a number, a range, or a file with one a line."""

from __future__ import annotations

from pathlib import Path

from tierloom import readers
from tierloom.errors import RequestError
from tierloom.offload import lengths
from tierloom.offload.lengths import Lengths

HINT = "write a number (512), a range (100..4000), or the name of a file with one length a line"


def lengths_of(told: str | int | Lengths, what: str) -> Lengths:
    """The lengths that are meant.

    A file holds one length a line, or comma-separated columns of which the first is the length; a first line that
    is no number is a heading.

    Args:
        told: A number, ``LOW..HIGH`` (all as often), or a file.
        what: What is so long, for errors: ``prompt`` or ``answer``.

    Raises:
        RequestError: It is none of these, or a length is below 1.
    """
    if isinstance(told, Lengths):
        return told
    text = str(told).strip()
    low, dots, high = text.partition("..")
    if dots and low.isdigit() and high.isdigit():
        return _checked(lengths.uniform(int(low), int(high)), text, what)
    try:
        return _checked(lengths.fixed(int(text)), text, what)
    except ValueError:
        return _checked(lengths.of(_listed(text)), text, what)


def _listed(file: str) -> list[int]:
    with readers.reading(file, "list of lengths", HINT):
        lines = enumerate(Path(file).read_text(encoding="utf-8").splitlines(), 1)
        (at, first), *rest = [(at, line.split(",")[0].strip()) for at, line in lines if line.strip()] or [(1, "")]
        cells = [(at, first), *rest] if first.isdigit() else rest
        flaws = readers.Flaws()
        if not cells:
            flaws.add("no list of lengths: there is no length in it", HINT)
        for at, cell in cells:
            if not cell.isdecimal() or int(cell) < 1:
                flaws.add(f"line {at}: `{cell}` is no length", HINT)
        flaws.refuse(file)
        return [int(cell) for _, cell in cells]


def _checked(found: Lengths, text: str, what: str) -> Lengths:
    if not 1 <= found.shortest <= found.longest:
        message = f"the {what} is {text}\nhint: it has to be at least 1; {HINT}"
        raise RequestError(message)
    return found
