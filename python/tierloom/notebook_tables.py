"""What the nouns and answers have in common in a notebook: rows, as a table there or in a data frame, and charts.

A class says once what its columns are; keys carry their unit. Polars and pandas are loaded when they are
asked for, and only then have to be installed. Charts are those of a report, which is loaded likewise.
"""

from __future__ import annotations

import html
import importlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import tierloom
from tierloom.columns import plain_rows
from tierloom.errors import MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import polars as pl

    from tierloom import Charts
    from tierloom.columns import Column
    from tierloom.columns import Row as ColumnRow

Cell = str | int | float | bool | None
Row = dict[str, Cell]

SHOWN = 40
"""Rows that a notebook shows at once; data frames have them all."""


class Framed(ABC):
    """Something that has rows, which :meth:`to_pandas` and :meth:`to_polars` hand on."""

    @property
    @abstractmethod
    def columns(self) -> Sequence[Column]:
        """What each row says: key with its unit, heading, and how a value is written."""

    @abstractmethod
    def told(self) -> Sequence[ColumnRow]:
        """The rows as a table for people has them; :meth:`rows` is for programs."""

    def rows(self) -> list[Row]:
        """The table, a row at a time; each key with its unit, all rows with the same keys."""
        return plain_rows(self.columns, self.told())

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas data frame.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        frame: pd.DataFrame = package("pandas").DataFrame(self.rows())
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The rows as a Polars data frame.

        Raises:
            MissingPackageError: Polars is not installed.
        """
        frame: pl.DataFrame = package("polars").DataFrame(self.rows(), infer_schema_length=None)
        return frame


class Tabular(Framed):
    """Something that is a table, which a notebook shows as one."""

    def _repr_html_(self) -> str:
        """What Jupyter shows in the place of ``repr``."""
        rows = self.told()
        return table(repr(self), self.columns, rows[:SHOWN], len(rows))


class Charted:
    """Something that a report has charts of."""

    def charts(self) -> Charts:
        """What a report draws of it, each chart as a notebook shows it; see :func:`tierloom.charts`.

        Raises:
            RequestError: It lacks what a report needs, as old or edited files may.

        Example:
            >>> tierloom.machine("liu-a").charts()
            <Charts: Latency under load, from socket1; Latency under load, from socket0>
        """
        # The report stands above this room: the package loads it by name, when somebody asks.
        return tierloom.charts(self)


def table(title: str, columns: Sequence[Column], rows: Sequence[ColumnRow], total: int) -> str:
    """The first rows of a total as an HTML table; a heading's tooltip is the key in data frames.

    Example:
        >>> from tierloom.columns import Column
        >>> shown = table("five", [Column("size_bytes", "size", "bytes")], [{"size_bytes": 1024}], 5)
        >>> "and 4 more" in shown, "1KiB" in shown
        (True, True)
    """
    seen = [column for column in columns if column.rank != "frame"]
    heads = "".join(f'<th title="{html.escape(each.key)}">{html.escape(each.heading)}</th>' for each in seen)
    body = "".join(_line(seen, row) for row in rows)
    more = total - len(rows)
    rest = f"<p>and {more} more: <code>.to_polars()</code> has them all</p>" if more > 0 else ""
    caption = f"<caption>{html.escape(title)}</caption>"
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{rest}"


def package(name: str) -> Any:  # noqa: ANN401 (a module)
    """A package that only data frames need.

    Raises:
        MissingPackageError: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        message = f"{name} is not installed\nhint: pip install {name}, or pip install '.[frames]' for both"
        raise MissingPackageError(message) from problem


def _line(columns: Sequence[Column], row: ColumnRow) -> str:
    cells = (f'<td style="text-align: {each.side}">{html.escape(each.text(row))}</td>' for each in columns)
    return f"<tr>{''.join(cells)}</tr>"
