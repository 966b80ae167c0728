"""Spark with less and less memory: a support vector machine over cached data, and a query that shuffles.

An instrument. Memory is the heap of one Java process (``spark.driver.memory``, local mode); what Spark's memory
manager cannot keep goes to files in a folder of the run's own. The control group's memory is the heap and a fixed
room, so that those files do not stay in the page cache.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierloom.capacity.experiment import processes
from tierloom.capacity.experiment.processes import Measured, Progress, Setting
from tierloom.debian import packages
from tierloom.errors import MissingPackageError, RequestError
from tierloom.units import MIB

JOBS = {
    "svm": "a linear support vector machine over cached rows: ten passes, as the published study's",
    "shuffle": "two tables joined and grouped by sorting: what does not fit is spilled",
}

LEAST_HEAP_BYTES = 472 * MIB
"""Spark refuses less: one and a half times 300 MiB that it keeps for itself (``UnifiedMemoryManager``), and Java
shows less heap than it was given."""

ROOM_BYTES = 700 * MIB
"""Memory of the control group beyond the heap: Java's code, classes, threads and buffers, the Python process, and a
page cache that files pass through. With a heap of 512 MiB that is all in use they take 450 MiB (measured, Spark
4.1)."""


@dataclass(frozen=True, kw_only=True)
class Study(processes.Study):
    """What to run: the job and its rows; memory is heaps."""

    job: str
    rows: int
    threads: int = 2

    def __post_init__(self) -> None:
        if self.job not in JOBS:
            message = f"there is no job `{self.job}`\nhint: there are {', '.join(JOBS)}"
            raise RequestError(message)
        if not self.memories or min(self.memories) < LEAST_HEAP_BYTES:
            message = (
                f"Spark does not start with less than {LEAST_HEAP_BYTES // MIB} MiB\nhint: --memory 512MiB,1GiB,2GiB"
            )
            raise RequestError(message)


def measure(study: Study, progress: Progress = processes.silent) -> Measured:
    """Runs the study.

    Raises:
        MissingPackageError: There is no pyspark, or no Java.
        MeasurementError: A run failed, or two gave different answers.
    """
    require()
    study.folder.mkdir(parents=True, exist_ok=True)
    return processes.run_all(study, lambda setting: _one(study, setting), lambda size: size + ROOM_BYTES, progress)


def require() -> None:
    """Everything that Spark needs is there.

    Raises:
        MissingPackageError: It is not.
    """
    if importlib.util.find_spec("pyspark") is None:
        message = "pyspark: not installed\nhint: pip install '.[spark]'"
        raise MissingPackageError(message)
    if shutil.which("java") is None:
        message = f"java: not installed\nhint: {packages.named('default-jre-headless').hint}"
        raise MissingPackageError(message)


def _one(study: Study, setting: Setting) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=study.folder, prefix="spill-") as spill:
        request = {
            "job": study.job,
            "rows": study.rows,
            "threads": study.threads,
            "seed": study.seed,
            "spill_folder": str(Path(spill).resolve()),
        }
        return processes.ask("spark_worker", request, setting)
