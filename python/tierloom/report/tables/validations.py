"""Tables of a validation: how far predictions were off."""

from __future__ import annotations

import shlex
import statistics
from typing import TYPE_CHECKING

from rich.text import Text

from tierloom.columns import Column, told
from tierloom.placed_runs import LOCAL
from tierloom.report.table_layout.line_breaks import cut
from tierloom.report.table_layout.table import Table
from tierloom.units import count_text, percent_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from tierloom.columns import Row
    from tierloom.schema import ValidationDoc, ValidationRowDoc
    from tierloom.validation import Validation

WORDS = 48
"""Characters of a command that a row shows."""


def tables(found: Validation) -> list[RenderableType]:
    """A sentence and a row for each program and what it ran under."""
    data = found.data
    rows = [_row(row) for row in data["rows"]]
    unusual = [column for column in CONDITIONS if any(row[column.key] != USUAL[column.key] for row in rows)]
    columns = [*PROGRAM, *unusual, *FIGURES]
    note = (
        f"measured: median of {count_text(data['runs'], 'run')}. predicted: anchored to the profiled run. run again: "
        "how far one run is from the others. model alone: without knowing what the profiled run took."
    )
    made = Table(columns, rows, f"Predicted and measured on {data['machine']}", note)
    return [verdict(data), made, *_ablations(data["rows"])]


PROGRAM = (Column("program", "program"), Column("threads", "threads", "count"))
CONDITIONS = (
    *(Column("neighbours_gb_s", "neighbours", "gb_s_digits"), Column("placement", "placement")),
    Column("ablated", "ablated"),
)
USUAL = {"neighbours_gb_s": "", "placement": LOCAL, "ablated": ""}
"""What programs usually run under: where all do, the column is left out."""
FIGURES = (
    *(Column("measured_s", "measured", "seconds", "key"), Column("least_s", "from", "seconds", "extra")),
    *(Column("most_s", "to", "seconds", "extra"), Column("predicted_s", "predicted", "seconds", "key")),
    *(Column("low_s", "range", "seconds", to="high_s"), Column("error", "error", "gain_whole", "key")),
    *(Column("repeat", "run again", "either_way"), Column("inside", "inside")),
    Column("residual", "model alone", "gain_whole"),
)


def _row(row: ValidationRowDoc) -> Row:
    measured = row["measured_s"]
    spread = {"measured_s": statistics.median(measured), "least_s": min(measured), "most_s": max(measured)}
    under = {"neighbours_gb_s": row["neighbours_gb_s"] or "", "ablated": row["ablated"] or ""}
    return told({**row, **spread, **under, "program": command(row)})


def _ablations(rows: Sequence[ValidationRowDoc]) -> Iterator[RenderableType]:
    """A table of what programs save without waiting for an object, where one was ablated."""
    plain = [row for row in rows if row["placement"] == LOCAL and not row["neighbours_gb_s"]]
    alone = {_run(row): row for row in plain if row["ablated"] is None}
    ablated = [(row, alone[_run(row)]) for row in plain if row["ablated"] is not None]
    if not ablated:
        return
    saved = [_saved(row, whole) for row, whole in ablated]
    note = "of the time that it takes otherwise, with the kernel's time as it is then."
    yield Table(SAVED, saved, "What a program saves with an object always in the cache", note)


SAVED = (
    *(Column("program", "program"), Column("ablated", "object")),
    *(Column("measured", "measured", "percent", "key"), Column("predicted", "predicted", "percent", "key")),
)


def _saved(row: ValidationRowDoc, whole: ValidationRowDoc) -> Row:
    """What a program takes less than the whole one, as shares of the measured time of that."""
    whole_s = statistics.median(whole["measured_s"])
    return {
        "program": command(row),
        "ablated": row["ablated"],
        "measured": (whole_s - statistics.median(row["measured_s"])) / whole_s,
        "predicted": (whole["predicted_s"] - row["predicted_s"]) / whole_s,
    }


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
