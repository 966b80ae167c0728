"""The look that all tables share: the same columns whether a terminal or a pipe reads them."""

from __future__ import annotations

from typing import Literal

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

Side = Literal["left", "right"]

NAME_WIDTH = 44
"""Most columns that the names in a table's first column take; they are cut, not wrapped."""


def table(title: str | None, *columns: tuple[str, Side]) -> Table:
    """An empty table; a column is a heading and the side that its cells keep to."""
    made = Table(
        title=title,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
    )
    for index, (heading, side) in enumerate(columns):
        named = index == 0
        made.add_column(
            heading,
            justify=side,
            no_wrap=named,
            overflow="ellipsis" if named else "fold",
            max_width=NAME_WIDTH if named else None,
        )
    return made


def noted(made: Table, note: str) -> Group:
    """A table with a note below; a table's own caption would be folded to its width."""
    return Group(made, Text(note, style="dim"), "")
