"""Tables of a validation: how far predictions were off."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from tierloom.placed_runs import LOCAL
from tierloom.report.tables.layout import Heading, noted, table
from tierloom.report.tables.words import cut
from tierloom.schema import ValidationRowDoc
from tierloom.units import count_text, percent_text, seconds_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tierloom.schema import ValidationDoc
    from tierloom.validation import Validation

WORDS = 48
"""Characters of a command that a row shows."""


def tables(found: Validation) -> list[RenderableType]:
    """A sentence and a row for each program and what it ran under."""
    data = found.data
    told = [(heading, cell) for heading, cell, usual in CONDITIONS if any(cell(row) != usual for row in data["rows"])]
    made = table(
        f"Predicted and measured on {data['machine']}",
        ("program", "left"),
        ("threads", "right"),
        *(heading for heading, _ in told),
        ("measured", "right", "key"),
        ("from", "right", "extra"),
        ("to", "right", "extra"),
        ("predicted", "right", "key"),
        ("range", "right"),
        ("error", "right", "key"),
        ("run again", "right"),
        ("inside", "left"),
        ("model alone", "right"),
    )
    for row in data["rows"]:
        made.add_row(*_cells(row, [cell(row) for _, cell in told]))
    note = (
        f"measured: median of {count_text(data['runs'], 'run')}. predicted: anchored to the profiled run. run again: "
        "how far one run is from the others. model alone: without knowing what the profiled run took."
    )
    return [verdict(data), noted(made, note), *_ablations(data["rows"])]


def _ablations(rows: Sequence[ValidationRowDoc]) -> Iterator[RenderableType]:
    """A table of what programs save without waiting for an object, where one was ablated."""
    plain = [row for row in rows if row["placement"] == LOCAL and not row["neighbours_gb_s"]]
    alone = {_run(row): row for row in plain if row["ablated"] is None}
    ablated = [(row, alone[_run(row)]) for row in plain if row["ablated"] is not None]
    if not ablated:
        return
    made = table(
        "What a program saves with an object always in the cache",
        ("program", "left"),
        ("object", "left"),
        ("measured", "right", "key"),
        ("predicted", "right", "key"),
    )
    for row, whole in ablated:
        whole_s = statistics.median(whole["measured_s"])
        saved = whole_s - statistics.median(row["measured_s"]), whole["predicted_s"] - row["predicted_s"]
        shares = [percent_text(saved_s / whole_s) for saved_s in saved]
        made.add_row(command(row), row["ablated"] or "", *shares)
    yield noted(made, "of the time that it takes otherwise, with the kernel's time as it is then.")


def _run(row: ValidationRowDoc) -> tuple[str, int | None]:
    """What runs of a program have in common with that without ablation."""
    return shlex.join(row["command"]), row["told"]


def command(row: ValidationRowDoc) -> str:
    """The program of a row, as long as a cell may be."""
    return cut(Text(shlex.join(row["command"])), WORDS).plain


def verdict(data: ValidationDoc) -> str:
    """How good predictions are here, and how good they can be where runs differ, in sentences."""
    totals = data["summary"]
    if not data["rows"]:
        return "No program was validated."
    again = (
        f" One run of a program is off from the others by {_percent(totals['median_repeat'])} or less for half of "
        f"them, and within 5 % for {_percent(totals['repeat_within_5'])}: a prediction from one run cannot be "
        "expected to do better."
    )
    return (
        f"Half of the predictions are off by {_percent(totals['median_error'])} or less; "
        f"{_percent(totals['within_5'])} are within 5 %, {_percent(totals['within_10'])} within 10 %, and "
        f"{_percent(totals['inside'])} of the measured times are inside the range."
        f"{'' if totals['median_repeat'] is None else again} The model alone is off by "
        f"{_percent(totals['median_residual'])} in the median."
    )


def _percent(share: float | None) -> str:
    return "?" if share is None else percent_text(share)


def _neighbours(row: ValidationRowDoc) -> str:
    return f"{row['neighbours_gb_s']:.3g} GB/s" if row["neighbours_gb_s"] else ""


def _placement(row: ValidationRowDoc) -> str:
    return row["placement"]


def _ablated(row: ValidationRowDoc) -> str:
    return row["ablated"] or ""


CONDITIONS: tuple[tuple[Heading, Callable[[ValidationRowDoc], str], str], ...] = (
    (("neighbours", "right"), _neighbours, ""),
    (("placement", "left"), _placement, LOCAL),
    (("ablated", "left"), _ablated, ""),
)
"""Columns of what programs ran under, and the cell that is usual: where all cells are, the column is left out."""


def _cells(row: ValidationRowDoc, told: list[str]) -> list[str]:
    return [
        command(row),
        str(row["threads"]),
        *told,
        seconds_text(statistics.median(row["measured_s"])),
        seconds_text(min(row["measured_s"])),
        seconds_text(max(row["measured_s"])),
        seconds_text(row["predicted_s"]),
        f"{seconds_text(row['low_s'])} to {seconds_text(row['high_s'])}",
        f"{row['error']:+.0%}",
        "" if row["repeat"] is None else f"±{row['repeat']:.0%}",
        "yes" if row["inside"] else "no",
        f"{row['residual']:+.0%}",
    ]
