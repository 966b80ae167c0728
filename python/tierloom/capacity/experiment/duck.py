"""DuckDB on TPC-H data with less and less memory: the experiment behind ``tierloom capacity measure``.

An instrument. The database is dropped from the page cache before every run, and spills to a folder of its own.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierloom.capacity.experiment import data, processes
from tierloom.capacity.experiment.processes import Measured, Progress, Setting
from tierloom.capacity.experiment.queries import DEFAULT, QUERIES
from tierloom.errors import RequestError
from tierloom.units import MIB

ROOM_BYTES = 300 * MIB
"""Memory of the control group beyond the database's limit: the interpreter, the engine's code, and a page
cache that files pass through. A process with an empty database takes 64 MiB (measured, DuckDB 2.0.0)."""


@dataclass(frozen=True, kw_only=True)
class Study(processes.Study):
    """What to run.

    Attributes:
        scale: TPC-H's scale factor.
        streams: Numbers of streams.
        threads: Threads of the engine.
        queries: Names in `QUERIES`.
    """

    scale: float
    streams: tuple[int, ...] = (1,)
    threads: int = 2
    queries: tuple[str, ...] = DEFAULT

    def __post_init__(self) -> None:
        unknown = [name for name in self.queries if name not in QUERIES]
        if unknown or not self.queries:
            message = f"there is no query `{', '.join(unknown)}`\nhint: there are {', '.join(QUERIES)}"
            raise RequestError(message)
        if not self.memories or min(self.memories) <= 0 or not self.streams or min(self.streams) < 1:
            message = "memory sizes and streams have to be above 0\nhint: --memory 200MiB,400MiB --streams 1,2"
            raise RequestError(message)
        if not 0.0 < self.scale <= 1000.0:
            message = f"a scale factor of {self.scale:g}\nhint: 1 is about 1 GB of raw data"
            raise RequestError(message)


def measure(study: Study, progress: Progress = processes.silent) -> Measured:
    """Runs the study.

    Raises:
        MeasurementError: A package is missing, a run failed, or two runs gave different answers.
    """
    progress(0, 1, f"making TPC-H data, scale factor {study.scale:g}")
    database = data.database(study.folder, study.scale)
    return processes.run_all(
        study, lambda setting: _one(study, database, setting), lambda size: size + ROOM_BYTES, progress, study.streams
    )


def _one(study: Study, database: Path, setting: Setting) -> dict[str, Any]:
    """One run with the database dropped from the page cache."""
    data.forget(database)
    with tempfile.TemporaryDirectory(dir=study.folder, prefix="spill-") as spill:
        request = {
            "database": str(database),
            "spill_folder": spill,
            "threads": study.threads,
            "queries": [QUERIES[name] for name in study.queries],
            "streams": setting.streams,
        }
        return processes.ask("duck_worker", request, setting)
