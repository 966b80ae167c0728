"""Text in a narrow place: broken between words, and long names behind a separator; the longest lose their middle."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.text import Text

CUT = "…"

_WORD = re.compile(r"\d\S* (?:%|[nmµ]?s|[kKMGT]?i?B(?:/s)?)(?![\w/])\S*|[\w-]+ \d[\d.]*[KMGT]iB(?:,|$)|\S+")
"""A word; a number and its unit are one, and in a list a name and its size."""
_INSIDE = r"(?:[^/:]|:(?=\d))"
_PART = re.compile(rf"{_INSIDE}*(?:/|:(?!\d))+(?:[^\w/:]+$)?|{_INSIDE}+")
"""A part of a path or of a qualified name, with the separator behind it, and the end of a sentence behind that. The
number of a line stays with its file, and no number holds a separator."""


def wrapped(text: Text, width: int) -> list[Text]:
    """Lines of at most so many columns, in which every word and every number is whole or visibly cut.

    Example:
        >>> [line.plain for line in wrapped(Text("made at src/solver/main.c:12 (grid)"), 14)]
        ['made at src/', 'solver/', 'main.c:12', '(grid)']
    """
    return [part for line in text.split("\n", allow_blank=True) for part in _line(line, width)]


def _line(text: Text, width: int) -> list[Text]:
    if cell_len(text.plain) <= width:
        return [text]
    lines: list[Text] = []
    start = end = 0
    for first, last in _pieces(text.plain, width):
        if end > start and cell_len(text.plain[start:last]) > width:
            lines.append(cut(text[start:end], width))
            start = first
        end = last
    return [*lines, cut(text[start:end], width)]


def _pieces(plain: str, width: int) -> list[tuple[int, int]]:
    """Where the pieces lie that stay whole: words, and the parts of a name that is longer than a line."""
    found = []
    for word in _WORD.finditer(plain):
        parts = _PART.finditer(word[0]) if cell_len(word[0]) > width else iter(())
        found += [(word.start() + part.start(), word.start() + part.end()) for part in parts] or [word.span()]
    return found


def cut(text: Text, width: int) -> Text:
    """The text with its middle left out where it is too long: names differ at their ends.

    Example:
        >>> cut(Text("solver::Grid<double>::allocate"), 15).plain
        'solver:…llocate'
    """
    plain = text.plain
    if cell_len(plain) <= width:
        return text
    head, tail = width // 2, (width - 1) // 2
    while head and cell_len(plain[:head]) + 1 + cell_len(plain[len(plain) - tail :]) > width:
        head, tail = max(head - 1, 0), max(tail - 1, 0)
    return Text.assemble(text[:head], CUT, text[len(plain) - tail :])


def longest_word(text: str) -> int:
    """Columns of the longest word, or number with its unit."""
    return max(map(cell_len, _WORD.findall(text)), default=0)


def longest_atom(text: str) -> int:
    """Columns of the longest piece that stays whole however narrow the place."""
    return max(map(longest_word, _PART.findall(text)), default=0)
