"""Runs as a CSV file: what `measure` writes and `fit` reads.

The door between files and the engines of this room. A user's own file needs ``memory`` and ``seconds``;
the other columns are used where they are there.
"""

from __future__ import annotations

import csv
import io
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom import arguments
from tierloom.capacity.runs import Run
from tierloom.errors import RequestError
from tierloom.readers import Flaws, reading
from tierloom.units import amount_in_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

HINT = "the first line names the columns: memory,seconds and, where known, streams,read_bytes,written_bytes"


def read(path: Path) -> list[Run]:
    """Runs of a CSV file.

    Raises:
        RequestError: The file cannot be read, lacks a column, or a cell is no number above 0.
    """
    path = Path(arguments.path("path", path))
    with reading(path, "table of runs", HINT):
        return parse(path.read_text(encoding="utf-8"), str(path))


def parse(text: str, file: str) -> list[Run]:
    """Runs of the text of a CSV file; lines that start with # are passed over.

    Raises:
        RequestError: A column is missing or a cell makes no sense.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    rows, flaws = csv.DictReader(lines, strict=True), Flaws()
    try:
        columns = rows.fieldnames or []
        if not {"memory", "memory_bytes"} & set(columns):
            flaws.add("there is no column `memory`", HINT)
        if "seconds" not in columns:
            flaws.add("there is no column `seconds`", HINT)
        flaws.refuse(file)
        found = [_run(flaws, row, f"run {number}") for number, row in enumerate(rows, 1)]
    except csv.Error as problem:
        message = f"{file}: {problem}\nhint: {HINT}"
        raise RequestError(message) from problem
    if not found:
        flaws.add("no run", HINT)
    flaws.refuse(file)
    return [run for run in found if run is not None]


def write(runs: Sequence[Run], notes: Sequence[str] = ()) -> str:
    """The CSV file of runs, with notes as comments on top."""
    out = io.StringIO()
    out.writelines(f"# {note}\n" for note in notes)
    rows = csv.DictWriter(out, [field.name for field in fields(Run)], lineterminator="\n")
    rows.writeheader()
    rows.writerows({name: _short(value) for name, value in asdict(run).items()} for run in runs)
    return out.getvalue()


def _run(flaws: Flaws, row: dict[str, str], where: str) -> Run | None:
    read = {name: flaws.of(_number, row, name, where, default) for name, default in NUMBERS.items()}
    size, streams, seconds = flaws.of(_memory, row, where), read.pop("streams"), read.pop("seconds")
    if streams is not None and (streams != int(streams) or streams < 1):
        flaws.add(f"{where}: `{row.get('streams')}` is no number of streams", HINT)
    if 0 in (size, seconds):
        flaws.add(f"{where}: memory and seconds have to be above 0", HINT)
    if size is None or streams is None or seconds is None:
        return None
    return Run(
        memory_bytes=size, seconds=seconds, streams=int(streams), **{key: each or 0.0 for key, each in read.items()}
    )


NUMBERS = {each.name: None if each.default is MISSING else each.default for each in fields(Run)[1:]}
"""Columns of numbers, and what a run without them has."""


def _memory(row: dict[str, str], where: str) -> int:
    """What we write is bytes, and says so in the column's name; what a person writes has a unit."""
    try:
        counted = row.get("memory_bytes")
        return max(0, int(counted) if counted else amount_in_bytes(row.get("memory") or "", 0))
    except (ValueError, RequestError) as problem:
        message = f"{where}: {str(problem).partition(chr(10))[0]}\nhint: {HINT}"
        raise RequestError(message) from problem


def _number(row: dict[str, str], name: str, where: str, default: float | None) -> float:
    text = (row.get(name) or "").strip()
    if not text and default is not None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        message = f"{where}: `{name}` is `{text}`, not a number of at least 0\nhint: {HINT}"
        raise RequestError(message)
    return value


def _short(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6g}" if value < 1e6 else f"{value:.0f}"
