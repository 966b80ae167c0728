"""The few lines that a person reads first of a sweep: how it went, the best point, why points failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.report.tables.layout import noted, table
from tierloom.units import seconds_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tierloom.sweeps import Sweep


def summary(found: Sweep) -> list[RenderableType]:
    """Tables of one sweep."""
    parts: list[RenderableType] = [_counts(found)]
    if found.data["best"]:
        parts.append(_best(found))
    if found.data["failures"]:
        parts.append(_failures(found))
    return parts


def _counts(found: Sweep) -> RenderableType:
    data = found.data
    made = table(
        f"{data['study']}: {data['verb']}",
        *(("points", "right"), ("done", "right"), ("refused", "right"), ("lost", "right")),
        *(("computed now", "right"), ("took", "right"), ("points/s", "right")),
    )
    rate = f"{data['computed'] / data['seconds']:,.0f}" if data["computed"] else "-"
    counts = [f"{data[name]:,}" for name in ("points", "done", "refused", "lost", "computed")]
    made.add_row(*counts, seconds_text(data["seconds"]), rate)
    return made


def _best(found: Sweep) -> RenderableType:
    objective, best = found.data["objective"], found.data["best"]
    column = objective["column"]
    least = "least" if objective["sense"] == "minimize" else "most"
    spread = ", ".join(f"{name} {objective[name]:.4g}" for name in ("least", "median", "most"))
    made = table(None, (f"the point of the {least} {column}", "left"), ("", "right", "key"))
    for name, value in best.items():
        made.add_row(name, f"{value:.4g}" if isinstance(value, float) else str(value))
    return noted(made, f"{column} of all points: {spread}")


def _failures(found: Sweep) -> RenderableType:
    made = table("Points without a result", ("points", "right"), ("reason", "left"))
    for failure in found.data["failures"]:
        made.add_row(f"{failure['points']:,}", failure["reason"])
    return made
