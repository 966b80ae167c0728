"""The table of a checkup: what was tried, what it is for, and what to do about what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from tierloom.columns import Column, Row
from tierloom.report.table_layout.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.doctor import Finding

STYLES = {"works": "green", "limited": "yellow", "missing": "red"}


def findings(found: Sequence[Finding]) -> Table:
    """A row a check, the remedy below what was found."""
    return Table(FINDINGS, [_row(each) for each in found], None)


FINDINGS = (
    *(Column("check", "check"), Column("verdict", "verdict", rank="key"), Column("serves", "needed by")),
    Column("found", "found", rank="key"),
)


def _row(finding: Finding) -> Row:
    found = Text(finding.found)
    if finding.remedy:
        found.append(f"\n→ {finding.remedy}", style="cyan")
    verdict = Text(finding.verdict, style=STYLES[finding.verdict])
    return {"check": finding.check, "verdict": verdict, "serves": finding.serves, "found": found}
