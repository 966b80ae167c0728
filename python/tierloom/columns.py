"""The columns of an answer, declared once: terminals, pages, notebooks, data frames and CSV files follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from tierloom.forms import Form, Left, form_of, span, written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.schema import Kind

Side = Literal["left", "right"]
Rank = Literal["key", "detail", "extra", "page", "frame"]
"""How soon a column leaves a terminal that is too narrow: `key` stays, `extra` goes first, `page` is never there, and
`frame` is for programs only: a data frame or a file."""

Row = Mapping[str, Any]
"""One row: values by the key of their column, in the unit that the key names. A value may be a `Figure` of a machine,
which says what kind of number it is, or `Worded`; what is None is not known, and what is not there has no place in this
row. A true `ours` marks what the reader came for."""


class Worded(NamedTuple):
    """A value that people read in words of its own, and programs as it is."""

    value: Any
    words: str


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
        about: What the values are, in a line; empty where the heading says it.
    """

    key: str
    heading: str
    form: Form = "text"
    rank: Rank = "detail"
    to: str = ""
    about: str = ""

    @property
    def side(self) -> Side:
        """Where its cells keep to: numbers can be compared when they end together."""
        return "left" if self.form in get_args(Left) else "right"

    def text(self, row: Row) -> str:
        """What stands in its cell."""
        value = row.get(self.key, "")
        if isinstance(value, Worded):
            return value.words
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
        plain = value.value if isinstance(value, Worded) else value
        return {self.key: plain} | ({self.to: row.get(self.to)} if self.to else {})


def undeclared(keys: Sequence[str], rows: Sequence[Row]) -> list[Column]:
    """Columns of rows that say what they are by their keys alone, as points of a study do.

    Example:
        >>> [column.form for column in undeclared(["policy", "time_s"], [{"policy": "local", "time_s": 1.5}])]
        ['text', 'seconds']
    """
    return [Column(key, key, form_of(key, [row[key] for row in rows])) for key in keys]


def plain_rows(columns: Sequence[Column], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows as a program reads them: all with the same keys, none where there is no value.

    Example:
        >>> plain_rows([Column("a", "A"), Column("b", "B")], [{"a": 1}, {"b": Worded(2, "two")}])
        [{'a': 1, 'b': None}, {'a': None, 'b': 2}]
    """
    plain = [{key: value for column in columns for key, value in column.plain(row).items()} for row in rows]
    empty = dict.fromkeys(key for row in plain for key in row)
    return [empty | row for row in plain]
