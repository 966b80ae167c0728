"""The table of a checkup: what was tried, what it is for, and what to do about what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from tierloom.report.tables.layout import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.doctor import Finding
    from tierloom.report.tables.layout import Table

STYLES = {"works": "green", "limited": "yellow", "missing": "red"}


def findings(found: Sequence[Finding]) -> Table:
    """A row a check, the remedy below what was found."""
    made = table(None, ("check", "left"), ("verdict", "left", "key"), ("needed by", "left"), ("found", "left", "key"))
    for each in found:
        told = Text(each.found)
        if each.remedy:
            told.append(f"\n→ {each.remedy}", style="cyan")
        made.add_row(each.check, Text(each.verdict, style=STYLES[each.verdict]), each.serves, told)
    return made
