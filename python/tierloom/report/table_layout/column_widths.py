"""Which columns of a table a terminal has room for, and how wide each becomes.

Of a column's ranks `extra` ones go first, then those of `detail`, in each rank from the right; `key` ones stay.
Numbers are never broken, so what can shrink are texts, and headings between words. When the key columns do not fit
there is no table: its rows are written one below the other instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from tierloom.report.table_layout.line_breaks import longest_atom, longest_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.columns import Column

MARGIN, GAP = 1, 3
"""Columns before the first column and after the last, and between two of them."""
NAME_WIDTH = 44
"""Most columns that the names in a table's first column take."""
NAME_LEAST = 32
"""Columns to which a name that cannot be broken is cut where room is short."""
TEXT_WIDTH = 24
"""Columns below which a text is no longer read but spelled."""
TALL = 5
"""Lines of a cell that are too many, unless it has got `WIDE_TEXT` columns."""
WIDE_TEXT = 48


@dataclass(frozen=True)
class Need:
    """Columns of a terminal that a column takes at least, and with every cell on one line."""

    least: int
    most: int


def need(column: Column, cells: Sequence[str], *, first: bool) -> Need:
    """What a column takes with these cells."""
    lines = [line for cell in cells for line in cell.split("\n")]
    natural = max(map(cell_len, lines), default=0)
    if first:
        natural = min(natural, NAME_WIDTH)
    head_least = longest_word(column.heading)
    least = natural if column.side == "right" else _least(lines, natural)
    return Need(max(least, head_least), max(natural, cell_len(column.heading)))


def _least(lines: Sequence[str], natural: int) -> int:
    atoms = min(max(map(longest_atom, lines), default=0), NAME_LEAST)
    return min(natural, max(TEXT_WIDTH, atoms, min(WIDE_TEXT, natural // TALL)))


def widths(columns: Sequence[Column], needs: Sequence[Need], width: int) -> dict[int, int] | None:
    """The columns that stay, by index, and their widths; nothing when the key columns do not fit."""
    kept = list(range(len(columns)))
    for index in [*_leaving(columns), None]:
        if _taken([needs[each].least for each in kept]) <= width:
            return _spread({each: needs[each] for each in kept}, width)
        if index is not None:
            kept.remove(index)
    return None


def _leaving(columns: Sequence[Column]) -> list[int]:
    """Columns in the order in which they go; the first one says what a row is, and stays."""
    rest = range(len(columns) - 1, 0, -1)
    return [index for rank in ("extra", "detail") for index in rest if columns[index].rank == rank]


def _taken(each: Sequence[int]) -> int:
    return 2 * MARGIN + sum(each) + GAP * (len(each) - 1)


def _spread(needs: dict[int, Need], width: int) -> dict[int, int]:
    """What is over goes where the least makes a column whole."""
    over = width - _taken([each.least for each in needs.values()])
    found = {}
    for index, each in sorted(needs.items(), key=lambda item: item[1].most - item[1].least):
        more = min(over, max(0, each.most - each.least))
        found[index] = each.least + more
        over -= more
    return dict(sorted(found.items()))
