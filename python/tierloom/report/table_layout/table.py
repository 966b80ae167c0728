"""A table, and the look that all share in a pipe and in a terminal of any width.

A terminal shows the columns that it has room for and says which it left out; where not even the important ones fit,
every row becomes a block of lines. A reason that is too long for a cell stands below the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.text import Text

from tierloom.columns import Column, Row, plain_rows
from tierloom.report.table_layout.column_widths import NAME_WIDTH, need, widths
from tierloom.report.table_layout.line_breaks import cut, wrapped
from tierloom.report.table_layout.origin_marks import LEGEND, marked
from tierloom.report.table_layout.table_lines import Line, blocks, side_by_side, whole

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

    from tierloom.forms import Form

OURS = "bold green"
"""Style of what the reader came for."""

CHOSEN, OTHER = "* ", "  "
"""What stands before a row that the reader came for, and before the others: not everybody sees colours."""


@dataclass
class Table:
    """Rows under the columns that their answer declares, and sentences below them.

    Attributes:
        has_legend: Whether a terminal says what the marks of figures stand for.
    """

    columns: Sequence[Column]
    rows: Sequence[Row] = ()
    title: str | None = ""
    note: str = ""
    reasons: dict[str, list[str]] = field(default_factory=dict)
    has_legend: bool = False

    def add_reason(self, name: str, reason: str) -> None:
        """Why a row is as it is, below the table; rows of one reason share a sentence."""
        self.reasons.setdefault(reason, []).append(name)

    @property
    def notes(self) -> list[str]:
        """What stands below on a page, which writes out what kind of number a figure is."""
        return list(self._notes(self.note))

    @property
    def seen(self) -> list[Column]:
        """The columns that people read."""
        return [column for column in self.columns if column.rank != "frame"]

    def plain_rows(self) -> list[dict[str, Any]]:
        """The rows as a program reads them."""
        return plain_rows(self.columns, self.rows)

    def _notes(self, note: str) -> Iterator[str]:
        yield from (f"{', '.join(names)}: {reason}" for reason, names in self.reasons.items())
        if note:
            yield note

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """The lines of the table at this width."""
        width = options.max_width
        columns = [column for column in self.seen if column.rank != "page"]
        has_chosen = any(_is_ours(row) for row in self.rows)
        marks = [(CHOSEN if _is_ours(row) else OTHER) if has_chosen else "" for row in self.rows]
        rows = zip(self.rows, marks, strict=True)
        lines = [Line(_cells(console, columns, row), _style(row), mark) for row, mark in rows]
        fitting = _fitting(columns, lines, width - max(map(len, marks), default=0))
        if self.title:
            yield from whole(wrapped(Text(self.title, style="bold"), width))
        drawn = blocks(columns, lines, width) if fitting is None else side_by_side(columns, lines, fitting)
        yield from whole(drawn)
        said = [f"{CHOSEN}chosen." if has_chosen else "", self.note, LEGEND if self.has_legend else ""]
        note = " ".join(filter(None, said))
        notes = [*_left_out(columns, fitting, width), *self._notes(note)]
        for note in notes:
            yield from whole(wrapped(Text(note, style="dim"), width))
        if notes:
            yield Text("")


def _fitting(columns: Sequence[Column], lines: Sequence[Line], width: int) -> dict[int, int] | None:
    needs = [
        need(column, [line.cells[index].plain for line in lines], first=index == 0)
        for index, column in enumerate(columns)
    ]
    return widths(columns, needs, width)


def _left_out(columns: Sequence[Column], fitting: Mapping[int, int] | None, width: int) -> Iterator[str]:
    if fitting is not None and len(fitting) < len(columns):
        names = ", ".join(column.heading for index, column in enumerate(columns) if index not in fitting)
        yield f"Left out at {width} columns: {names}. A wider terminal shows them, and so does --json."


def _style(row: Row) -> str:
    return OURS if _is_ours(row) else row.get("style", "")


def _is_ours(row: Row) -> bool:
    return row.get("ours") is True


def _cells(console: Console, columns: Sequence[Column], row: Row) -> list[Text]:
    """Cells as they will be seen."""
    first, *others = (_cell(console, column, row) for column in columns)
    return [first if " " in first.plain else cut(first, NAME_WIDTH), *others]


def _cell(console: Console, column: Column, row: Row) -> Text:
    """A cell, with its mark; the console has the last word on what could steer a terminal."""
    value = row.get(column.key)
    if isinstance(value, Text):
        return value
    if kind := column.kind(row):
        return marked(column.text(row), kind)
    return console.render_str(column.text(row), markup=False, emoji=False, highlight=False)


def facts(
    title: str | None, told: Mapping[str, str], note: str = "", *, what: str = "", form: Form = "number"
) -> Table:
    """A table of one answer: a line a fact, what it is and what it comes to.

    Example:
        >>> facts("Savings", {"servers": "67 %"}).rows[0]["value"]
        '67 %'
    """
    columns = [Column("what", what), Column("value", "", form, "key")]
    return Table(columns, [{"what": name, "value": value} for name, value in told.items()], title, note)


def known(columns: Sequence[Column], rows: Sequence[Row], title: str) -> Table:
    """A table without the columns of what is told of no row."""
    return Table([column for column in columns if any(column.key in row for row in rows)], rows, title)


def noted(made: Table, note: str) -> Table:
    """The table with a note below."""
    made.note = note
    return made
