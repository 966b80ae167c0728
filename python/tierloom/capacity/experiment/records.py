"""A key-value workload with less and less memory: records of a file, touched by Zipf's law.

An instrument. The mixes are YCSB's A, B, C and F; the store's memory is the page cache that its control
group may have; without a group all of it fits, and the answer says that there was none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tierloom.capacity.experiment import data, key_value, processes
from tierloom.capacity.experiment.processes import Measured, Progress, Setting

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

UPDATES = {"ycsb-a": 2, "ycsb-b": 20, "ycsb-c": 0, "ycsb-f": 2}
"""Every how manieth operation writes its record back: half, one in twenty, none; F reads what it writes, as all
of them do here."""

RECORD_BYTES = 1024
PIECE = 4096
"""Records that are made at once."""


class Study(key_value.Study):
    """A study of a file of records."""

    @staticmethod
    def mixes() -> Iterable[str]:
        """Those of YCSB's mixes that neither insert nor scan."""
        return UPDATES

    @staticmethod
    def least_bytes() -> int:
        """One piece."""
        return PIECE * RECORD_BYTES


def measure(study: Study, progress: Progress = processes.silent) -> Measured:
    """Runs the study.

    Raises:
        MeasurementError: A run failed.
    """
    progress(0, 1, "writing records")
    file = _records(study)

    def one(setting: Setting) -> dict[str, Any]:
        data.forget(file)
        request = {
            "file": str(file),
            "records": study.data_bytes // RECORD_BYTES,
            "record_bytes": RECORD_BYTES,
            "operations": study.operations,
            "threads": study.threads,
            "update_every": UPDATES[study.mix],
            "theta": study.theta,
            "seed": study.seed,
        }
        return processes.ask("records_worker", request, setting)

    try:
        return processes.run_all(study, one, lambda size: size, progress)
    finally:
        file.unlink()


def _records(study: Study) -> Path:
    """A file of records that are all different."""
    study.folder.mkdir(parents=True, exist_ok=True)
    path = study.folder / "records.bin"
    random = np.random.default_rng(study.seed)
    with path.open("wb") as file:
        for _ in range(study.data_bytes // RECORD_BYTES // PIECE + 1):
            file.write(random.bytes(PIECE * RECORD_BYTES))
    return path
