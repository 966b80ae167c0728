"""The few lines that a person reads first of a sweep: how it went, the best point, why points failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.columns import Column
from tierloom.report.table_layout.table import Table, facts

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tierloom.sweeps import Sweep


def summary(found: Sweep) -> list[RenderableType]:
    """Tables of one sweep."""
    parts: list[RenderableType] = [_counts(found)]
    if found.data["best"]:
        parts.append(_best(found))
    if found.data["failures"]:
        parts.append(Table(FAILURES, found.data["failures"], "Points without a result"))
    return parts


def _counts(found: Sweep) -> RenderableType:
    data = found.data
    rate = data["computed"] / data["seconds"] if data["computed"] else None
    return Table(COUNTS, [{**data, "points_s": rate}], f"{data['study']}: {data['verb']}")


COUNTS = (
    *(Column(name, name, "count") for name in ("points", "done", "refused", "lost")),
    *(Column("computed", "computed now", "count"), Column("seconds", "took", "seconds")),
    Column("points_s", "points/s", "count"),
)
FAILURES = (Column("points", "points", "count"), Column("reason", "reason"))


def _best(found: Sweep) -> RenderableType:
    objective, best = found.data["objective"], found.data["best"]
    column = objective["column"]
    least = "least" if objective["sense"] == "minimize" else "most"
    spread = ", ".join(f"{name} {objective[name]:.4g}" for name in ("least", "median", "most"))
    told = {name: f"{value:.4g}" if isinstance(value, float) else str(value) for name, value in best.items()}
    return facts(None, told, f"{column} of all points: {spread}", what=f"the point of the {least} {column}")
