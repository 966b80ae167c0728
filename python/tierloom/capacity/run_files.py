"""Runs as a CSV file: what `measure` writes and `fit` reads.

The door between files and the engines of this room. A user's own file needs ``memory`` and ``seconds``;
the other columns are used where they are there.
"""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom import arguments
from tierloom.capacity.runs import Run
from tierloom.errors import RequestError
from tierloom.readers import reading
from tierloom.units import amount_in_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

HINT = "hint: the first line names the columns: memory,seconds and, where known, streams,read_bytes,written_bytes"


def read(path: Path) -> list[Run]:
    """Runs of a CSV file.

    Raises:
        RequestError: The file cannot be read, lacks a column, or a cell is no number above 0.
    """
    path = Path(arguments.path("path", path))
    with reading(path, "table of runs", HINT.removeprefix("hint: ")):
        return parse(path.read_text(encoding="utf-8"), str(path))


def parse(text: str, file: str) -> list[Run]:
    """Runs of the text of a CSV file; lines that start with # are passed over.

    Raises:
        RequestError: A column is missing or a cell makes no sense.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    rows = csv.DictReader(lines, strict=True)
    try:
        columns = rows.fieldnames or []
        if not {"memory", "memory_bytes"} & set(columns) or "seconds" not in columns:
            message = f"{file}: there is no column `{'seconds' if 'memory' in columns else 'memory'}`\n{HINT}"
            raise RequestError(message)
        runs = [_run(row, f"{file}: run {number}") for number, row in enumerate(rows, 1)]
    except csv.Error as problem:
        message = f"{file}: {problem}\n{HINT}"
        raise RequestError(message) from problem
    if not runs:
        message = f"{file}: no run\n{HINT}"
        raise RequestError(message)
    return runs


def write(runs: Sequence[Run], notes: Sequence[str] = ()) -> str:
    """The CSV file of runs, with notes as comments on top."""
    out = io.StringIO()
    out.writelines(f"# {note}\n" for note in notes)
    rows = csv.DictWriter(out, [field.name for field in fields(Run)], lineterminator="\n")
    rows.writeheader()
    rows.writerows({name: _short(value) for name, value in asdict(run).items()} for run in runs)
    return out.getvalue()


def _run(row: dict[str, str], where: str) -> Run:
    streams = _number(row, "streams", where, 1.0)
    if streams != int(streams) or streams < 1:
        message = f"{where}: `{row.get('streams')}` is no number of streams\n{HINT}"
        raise RequestError(message)
    seconds = _number(row, "seconds", where, None)
    size = _memory(row, where)
    if size <= 0 or seconds <= 0.0:
        message = f"{where}: memory and seconds have to be above 0\n{HINT}"
        raise RequestError(message)
    rest = {name: _number(row, name, where, 0.0) for name in ("cpu_s", "read_bytes", "written_bytes", "spilled_bytes")}
    return Run(memory_bytes=size, seconds=seconds, streams=int(streams), **rest)


def _memory(row: dict[str, str], where: str) -> int:
    """What we write is bytes, and says so in the column's name; what a person writes has a unit."""
    try:
        counted = row.get("memory_bytes")
        return int(counted) if counted else amount_in_bytes(row.get("memory") or "", 0)
    except (ValueError, RequestError) as problem:
        message = f"{where}: {str(problem).partition(chr(10))[0]}\n{HINT}"
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
        message = f"{where}: `{name}` is `{text}`, not a number of at least 0\n{HINT}"
        raise RequestError(message)
    return value


def _short(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6g}" if value < 1e6 else f"{value:.0f}"
