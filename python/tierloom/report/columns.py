"""The columns of an answer, declared once: a terminal, a page and a file of comma-separated values follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from tierloom.report.forms import Form, Left, span, written

if TYPE_CHECKING:
    from tierloom.schema import Kind

Side = Literal["left", "right"]
Rank = Literal["key", "detail", "extra", "page"]
"""How soon a column leaves a terminal that is too narrow: `key` stays, `extra` goes first, `page` is never there."""

Row = Mapping[str, Any]
"""One row: values by the key of their column, in the unit that the key names. A value may be a `Figure` of a machine,
which says what kind of number it is; what is None is not known, and what is not there has no place in this row. A true
`ours` marks what the reader came for."""


def told(row: Row) -> Row:
    """A row without what is None: its cell stays empty.

    Example:
        >>> told({"threads": 8, "published_gb_s": None})
        {'threads': 8}
    """
    return {key: value for key, value in row.items() if value is not None}


@dataclass(frozen=True)
class Column:
    """Where its values are in a row, what stands above them, how they are written, and how soon it may go.

    Attributes:
        to: Key of the other end, where the values are ranges.
    """

    key: str
    heading: str
    form: Form = "text"
    rank: Rank = "detail"
    to: str = ""

    @property
    def side(self) -> Side:
        """Where its cells keep to: numbers can be compared when they end together."""
        return "left" if self.form in get_args(Left) else "right"

    def text(self, row: Row) -> str:
        """What stands in its cell."""
        value = row.get(self.key, "")
        if self.to:
            return "" if value in (None, "") else span(value, row[self.to], self.form)
        return written(value["value"] if isinstance(value, Mapping) else value, self.form)

    def kind(self, row: Row) -> Kind | None:
        """What kind of number stands there, where that is told."""
        value = row.get(self.key)
        return value["kind"] if isinstance(value, Mapping) else None

    def plain(self, row: Row) -> dict[str, Any]:
        """Its values as a program reads them: both ends of a range, and a figure's kind behind the figure."""
        value = row.get(self.key)
        if isinstance(value, Mapping):
            return {self.key: value["value"], f"{self.key}.kind": value["kind"]}
        return {self.key: value} | ({self.to: row.get(self.to)} if self.to else {})
