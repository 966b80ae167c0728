"""Differences of two profiles or results as a table and a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tierloom.report.tables.layout import noted, table
from tierloom.units import bytes_text

if TYPE_CHECKING:
    from tierloom.differences import Change, Difference, DifferenceDoc

STYLE = {"changed": "yellow", "within uncertainty": "dim", "only in A": "red", "only in B": "green"}
SHOWN = 40
"""Changes that a table shows; the document has all."""
LONG = 1e6
"""A number of more digits than A and B have room for side by side in 80 columns; the document has all of them."""


def document(difference: Difference) -> DifferenceDoc:
    """What ``--json`` prints."""
    return {
        "compared": difference.kind,
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


def shown(difference: Difference, a: str, b: str) -> Group:
    """The largest changes first, and how many there are."""
    made = table(
        f"A: {a}   B: {b}",
        ("object" if difference.kind == "profiles" else "where", "left"),
        ("figure", "left", "key"),
        ("A", "right", "key"),
        ("B", "right", "key"),
        ("ranges", "right", "extra"),
        ("change", "right"),
        ("verdict", "left", "key"),
    )
    for change in difference.changes[:SHOWN]:
        cells = _cells(change)
        made.add_row(change.where, change.what, *cells, Text(change.verdict, style=STYLE[change.verdict]))
    if difference.remarks:
        noted(made, " ".join(f"{remark}." for remark in difference.remarks))
    return Group(made, Text(_words(difference), style="bold")) if difference.changes else Group(Text("nothing changed"))


def _cells(change: Change) -> tuple[str, str, str, str]:
    relative = change.relative
    return (
        _figure(change.what, change.a),
        _figure(change.what, change.b),
        ", ".join(f"{ends[0]:.3g} to {ends[1]:.3g}" for ends in (change.range_a, change.range_b) if ends),
        "" if relative is None else f"{relative:+.1%}",
    )


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
