"""The lines of a table: cells beside one another under their headings, or every row as a block of its own."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.text import Text

from tierloom.report.table_layout.column_widths import GAP, MARGIN
from tierloom.report.table_layout.line_breaks import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tierloom.columns import Column

INDENT = 2
"""Columns before the lines of a block that belong to its first."""


@dataclass(frozen=True)
class Line:
    """The cells of a row, one a column, their style, and a mark before them, as wide in every row of a table."""

    cells: Sequence[Text]
    style: str
    mark: str = ""


def side_by_side(columns: Sequence[Column], rows: Sequence[Line], widths: Mapping[int, int]) -> Iterator[Text]:
    """A heading, a rule, and the rows, of the columns that have a width."""
    mark = " " * max((len(row.mark) for row in rows), default=0)
    yield Text("")
    yield from _heading(columns, widths, mark)
    yield Text(" " * MARGIN + "─" * (len(mark) + sum(widths.values()) + GAP * (len(widths) - 1)))
    for row in rows:
        cells = [wrapped(row.cells[index], width) for index, width in widths.items()]
        yield from _beside(columns, cells, widths, row.mark, row.style)
    yield Text("")


def _heading(columns: Sequence[Column], widths: Mapping[int, int], mark: str) -> Iterator[Text]:
    """Headings stand on the rule below them, whatever their height."""
    cells = [wrapped(Text(columns[index].heading), width) for index, width in widths.items()]
    tall = max(map(len, cells))
    yield from _beside(columns, [[*[Text("")] * (tall - len(cell)), *cell] for cell in cells], widths, mark, "bold")


def _beside(
    columns: Sequence[Column], cells: Sequence[Sequence[Text]], widths: Mapping[int, int], mark: str, style: str
) -> Iterator[Text]:
    for line in zip_longest(*cells, fillvalue=Text("")):
        each = zip(line, widths.items(), strict=True)
        placed = [_placed(text, columns[index], width) for text, (index, width) in each]
        joined = Text.assemble(" " * MARGIN, mark, Text(" " * GAP).join(placed), style=style)
        joined.rstrip()
        yield joined
        mark = " " * len(mark)


def _placed(text: Text, column: Column, width: int) -> Text:
    room = " " * (width - text.cell_len)
    return Text.assemble(room, text) if column.side == "right" else Text.assemble(text, room)


def blocks(columns: Sequence[Column], rows: Sequence[Line], width: int) -> Iterator[Text]:
    """Every row as lines of `heading: value`; what is empty is left out."""
    for row in rows:
        yield Text("")
        for index, (column, cell) in enumerate(zip(columns, row.cells, strict=True)):
            if cell.plain:
                label = f"{column.heading}: " if column.heading else ""
                mark = "" if index else row.mark.strip() and row.mark
                told = Text.assemble(mark, label, cell, style=row.style)
                yield from indented(told, INDENT * min(index, 1), width)
    yield Text("")


def indented(text: Text, indent: int, width: int) -> Iterator[Text]:
    """A paragraph that begins so far from the left, and goes on a little farther."""
    first, *rest = wrapped(text, width - indent - INDENT)
    yield Text.assemble(" " * indent, first)
    yield from (Text.assemble(" " * (indent + INDENT), line) for line in rest)


def whole(lines: Iterable[Text]) -> Iterator[Text]:
    """Lines as they are: nobody wraps them again."""
    for line in lines:
        line.no_wrap, line.overflow = True, "ignore"
        yield line
