"""What a page is made of: sections of facts, charts, tables, drawings and notes.

Builders fill these from nouns and answers; the template only lays them out. A chart cannot be made
without the table of its data, so that whoever does not see the picture reads the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.columns import Row
    from tierloom.report.table_layout.table import Table


@dataclass(frozen=True)
class Chart:
    """A Vega or Vega-Lite specification and its data as a table.

    The page puts `values` where the specification's data is named `table`; the table's rows are the
    values unless others are given. `moves` says what a reader can move, which nobody can in a picture.
    """

    title: str
    spec: Mapping[str, Any]
    table: Table
    about: str = ""
    values: Sequence[Row] | None = None
    wide: bool = False
    moves: str = ""

    @property
    def told(self) -> str:
        """How to read it where it can be moved."""
        return f"{self.about} {self.moves}".strip()

    @property
    def data(self) -> Sequence[Row]:
        """What is drawn."""
        return self.table.rows if self.values is None else self.values


@dataclass(frozen=True)
class Picture:
    """Charts that one file shows, in rows of as many as it has columns."""

    title: str
    charts: Sequence[Chart]
    about: str = ""
    columns: int = 2


@dataclass(frozen=True)
class Drawing:
    """Boxes and wires that the template draws as SVG, once for each shape of screen."""

    title: str
    shapes: Mapping[str, Any]
    table: Table
    about: str = ""


@dataclass(frozen=True)
class Notes:
    """Sentences that the reader should know before believing the numbers."""

    title: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Fact:
    """One number that answers a question, large."""

    label: str
    value: str
    hint: str = ""


@dataclass(frozen=True)
class Section:
    """Everything about one noun or answer."""

    kind: str
    title: str
    about: str = ""
    facts: Sequence[Fact] = ()
    charts: Sequence[Chart | Drawing] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[Notes] = ()
