"""Differences of two profiles or results as a table and a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tierloom.columns import Column
from tierloom.report.table_layout.table import known, noted
from tierloom.units import bytes_text

if TYPE_CHECKING:
    from tierloom.columns import Row
    from tierloom.differences import ChangeDoc, Difference, DifferenceDoc

STYLE = {"changed": "yellow", "within uncertainty": "dim", "only in A": "red", "only in B": "green"}
ENDS = ("low", "high")
SHOWN = 40
"""Changes that a table shows; the document has all."""
LONG = 1e6
"""A number of more digits than A and B have room for side by side in 80 columns; the document has all of them."""


def document(difference: Difference) -> DifferenceDoc:
    """What ``--json`` prints."""
    return {
        "compared": difference.kind,
        "answer": list(difference.answer),
        "remarks": list(difference.remarks),
        "changed": difference.changed,
        "changes": [
            {
                "where": change.where,
                "what": change.what,
                "a": change.a,
                "b": change.b,
                "range_a": list(change.range_a) if change.range_a else None,
                "range_b": list(change.range_b) if change.range_b else None,
                "relative": change.relative,
                "verdict": change.verdict,
            }
            for change in difference.changes
        ],
    }


FIGURE = (
    *(Column("what", "figure", rank="key"), Column("a", "A", "number", "key"), Column("b", "B", "number", "key")),
    *(
        Column("low_a", "A's range", "number", "extra", "high_a"),
        Column("low_b", "B's range", "number", "extra", "high_b"),
    ),
    *(Column("relative", "change", "gain"), Column("verdict", "verdict", rank="key")),
)
"""What is told of a figure that differs; of what, stands before it."""


def change_row(change: ChangeDoc) -> Row:
    """A change as a row; what changed is marked."""
    both = [(side, ends) for side, ends in (("a", change["range_a"]), ("b", change["range_b"])) if ends]
    ranges = {f"{end}_{side}": value for side, ends in both for end, value in zip(ENDS, ends, strict=True)}
    return {**change, **ranges, "ours": change["verdict"] == "changed"}


def shown(difference: Difference, a: str, b: str) -> Group:
    """The largest changes first, and how many there are."""
    if not difference.changes:
        return Group(Text("nothing changed"))
    columns = [Column("where", "object" if difference.kind == "profiles" else "where"), *FIGURE]
    rows = [_line(change) for change in document(difference)["changes"][:SHOWN]]
    made = noted(known(columns, rows, f"A: {a}   B: {b}"), " ".join(f"{remark}." for remark in difference.remarks))
    answer = [*map(Text, difference.answer), Text()] if difference.answer else []
    return Group(*answer, made, Text(_words(difference), style="bold"))


def _line(change: ChangeDoc) -> Row:
    """A row of a terminal, whose A and B are written by the unit of the figure."""
    a, b = (_figure(change["what"], value) for value in (change["a"], change["b"]))
    verdict = Text(change["verdict"], style=STYLE[change["verdict"]])
    told = {key: value for key, value in change_row(change).items() if value is not None}
    return {**told, "a": a, "b": b, "verdict": verdict, "ours": False}


def _figure(what: str, value: float | None) -> str:
    if value is None:
        return ""
    if what.endswith("_bytes") and value >= 0:
        return bytes_text(value)
    return f"{value:,.0f}" if LONG > abs(value) >= 1e4 else f"{value:.4g}"


def _words(difference: Difference) -> str:
    total, changed = len(difference.changes), difference.changed
    more = f"; {total - SHOWN} more under --json" if total > SHOWN else ""
    return f"{changed} changed, {total - changed} within uncertainty{more}"
