"""The section of a document that no builder knows: its figures, and its lists as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.columns import Column
from tierloom.forms import form_of, written
from tierloom.report.pages.parts import Section
from tierloom.report.table_layout.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tierloom.report.pages.sources import Shelf, Source

DEEPEST = 3
"""Levels of objects within objects that become columns."""

MOST_COLUMNS = 40


def section(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """Everything that the document says, as it says it."""
    return Section(kind="result", title=source.name, tables=list(tables(source.data)))


def tables(data: Mapping[str, Any], title: str = "") -> Iterator[Table]:
    """The plain values as one table, every list of objects as one, then what is inside objects."""
    plain = [{"what": words(key), "value": text(key, value)} for key, value in data.items() if is_plain(value)]
    if plain:
        yield Table([Column("what", title or "what"), Column("value", "value")], plain, title or "Figures")
    for key, value in data.items():
        name = f"{title}: {words(key)}" if title else words(key).capitalize()
        if isinstance(value, dict):
            yield from tables(value, name)
        elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            yield of_rows(value, name)


def of_rows(values: Sequence[Mapping[str, Any]], title: str) -> Table:
    """A list of objects; objects within them become columns of their own."""
    rows = [dict(flat(value)) for value in values]
    keys = list(dict.fromkeys(key for row in rows for key in row))[:MOST_COLUMNS]
    columns = [Column(key, words(key), form_of(key, [row.get(key) for row in rows])) for key in keys]
    return Table(columns, rows, title)


def flat(value: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The plain values in an object and in objects within it, by their path; a figure keeps its mark beside it."""
    for key, each in value.items():
        if is_figure(each):
            yield f"{before}{key}", each
        elif isinstance(each, dict) and depth < DEEPEST:
            yield from flat(each, f"{before}{key}.", depth + 1)
        elif is_plain(each):
            yield f"{before}{key}", ", ".join(map(str, each)) if isinstance(each, list) else each


def is_figure(value: object) -> bool:
    """A number that says what kind of number it is."""
    return isinstance(value, dict) and {"value", "kind"} <= value.keys()


def is_plain(value: object) -> bool:
    """A number, a text, a truth, or a short list of them."""
    if isinstance(value, list):
        return len(value) <= 12 and all(is_plain(each) and not isinstance(each, list) for each in value)
    return value is None or isinstance(value, str | int | float)


def text(key: str, value: Any) -> str:  # noqa: ANN401 (whatever JSON holds)
    """A value in words, by the unit in its key."""
    if isinstance(value, list):
        return ", ".join(text(key, each) for each in value)
    return written(value, form_of(key, [value]))


def words(key: str) -> str:
    """A key as a person would say it: no unit, no underscores."""
    for ending in ("_bytes", "_gb_s", "_ns", "_s"):
        if key.endswith(ending):
            unit = {"_gb_s": ", GB/s"}.get(ending, "")
            return key.removesuffix(ending).replace("_", " ") + unit
    return key.replace("_", " ")
