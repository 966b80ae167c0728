"""The look that all tables share, in a pipe and in a terminal of any width.

A table takes the columns that it has room for and says which it left out; where not even the important ones fit, every
row becomes a block of lines. A reason that is too long for a cell stands below the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from tierloom.report.tables.columns import NAME_WIDTH, Column, Rank, Side, need, widths
from tierloom.report.tables.drawing import Row, blocks, side_by_side, whole
from tierloom.report.tables.words import cut, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console, ConsoleOptions

Heading = tuple[str, Side] | tuple[str, Side, Rank]
"""A heading, the side that the cells keep to, and how soon the column may go."""


class Table:
    """Rows of cells, and sentences below them."""

    def __init__(self, title: str | None, columns: Sequence[Column]) -> None:
        """A table without rows."""
        self.title, self.columns = title, columns
        self.rows: list[tuple[Sequence[str | Text], str]] = []
        self.reasons: dict[str, list[str]] = {}
        self.note = ""

    def add_row(self, *cells: str | Text, style: str | None = None) -> None:
        """One more row; cells that are not given are empty."""
        self.rows.append(([*cells, *[""] * (len(self.columns) - len(cells))], style or ""))

    def add_reason(self, name: str, reason: str) -> None:
        """Why a row is as it is, below the table; rows of one reason share a sentence."""
        self.reasons.setdefault(reason, []).append(name)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """The lines of the table at this width."""
        width = options.max_width
        rows = [Row(_cells(console, cells), style) for cells, style in self.rows]
        fitting = self._fitting(rows, width)
        if self.title:
            yield from whole(wrapped(Text(self.title, style="bold"), width))
        drawn = blocks(self.columns, rows, width) if fitting is None else side_by_side(self.columns, rows, fitting)
        yield from whole(drawn)
        notes = list(self._notes(fitting, width))
        for note in notes:
            yield from whole(wrapped(Text(note, style="dim"), width))
        if notes:
            yield Text("")

    def _fitting(self, rows: Sequence[Row], width: int) -> dict[int, int] | None:
        needs = [
            need(column, [row.cells[index].plain for row in rows], first=index == 0)
            for index, column in enumerate(self.columns)
        ]
        return widths(self.columns, needs, width)

    def _notes(self, fitting: Mapping[int, int] | None, width: int) -> Iterator[str]:
        if fitting is not None and len(fitting) < len(self.columns):
            names = ", ".join(column.heading for index, column in enumerate(self.columns) if index not in fitting)
            yield f"Left out at {width} columns: {names}. A wider terminal shows them, and so does --json."
        yield from (f"{', '.join(names)}: {reason}" for reason, names in self.reasons.items())
        if self.note:
            yield self.note


def _cells(console: Console, cells: Sequence[str | Text]) -> list[Text]:
    """Cells as they will be seen: the console has the last word on what could steer a terminal."""
    seen = [
        cell if isinstance(cell, Text) else console.render_str(cell, markup=False, emoji=False, highlight=False)
        for cell in cells
    ]
    return [seen[0] if " " in seen[0].plain else cut(seen[0], NAME_WIDTH), *seen[1:]]


def table(title: str | None, *columns: Heading) -> Table:
    """An empty table."""
    return Table(title, [Column(*column) for column in columns])


def noted(made: Table, note: str) -> Table:
    """The table with a note below."""
    made.note = note
    return made
