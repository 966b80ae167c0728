"""Redis or Valkey under YCSB's mixes with less and less memory, spilling to a file of records.

An instrument. The server keeps what it was given (``maxmemory``, least recently used out first); what it has put
out is read from the file, past the page cache, and put back: a cache in front of flash. Updates and inserts go to
both. Where everything fits there is no file: the store is in memory alone.
"""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierloom.capacity.experiment import blocks, key_value, processes
from tierloom.capacity.experiment.processes import Measured, Progress, Setting
from tierloom.capacity.experiment.ycsb import MIXES
from tierloom.debian import packages
from tierloom.errors import MissingPackageError
from tierloom.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable

SERVERS = ("valkey-server", "redis-server")
ROOM_BYTES = 320 * MIB
"""Memory of the control group beyond the server's limit: the server itself, fragments of its heap, and the client
with its drawn operations (assumed; an empty server takes 10 MiB, the client 60 MiB, measured with Redis 7.0.15)."""

FRAGMENTS = 1.2
"""Resident bytes of the server for each byte that it counts against ``maxmemory``; assumed."""


@dataclass(frozen=True, kw_only=True)
class Study(key_value.Study):
    """A study of a server: the first of :data:`SERVERS` that is there, where none is named."""

    server: str | None = None

    @staticmethod
    def mixes() -> Iterable[str]:
        """All of YCSB's core mixes."""
        return MIXES

    @staticmethod
    def least_bytes() -> int:
        """Enough for a thousand records."""
        return 2**20

    @property
    def records(self) -> int:
        """Records that are loaded."""
        return self.data_bytes // blocks.RECORD_BYTES


def measure(study: Study, progress: Progress = processes.silent) -> Measured:
    """Runs the study.

    Raises:
        MissingPackageError: There is no server or no client.
        MeasurementError: A run failed, or two gave different answers.
    """
    server = require(study.server)
    progress(0, 1, "writing records")
    file = study.folder / "store.bin"
    blocks.make(file, study.records + study.operations * 2, study.seed)
    try:
        return processes.run_all(
            study,
            lambda setting: _one(study, server, file, setting),
            lambda size: int(size * FRAGMENTS) + ROOM_BYTES,
            progress,
        )
    finally:
        file.unlink(missing_ok=True)


def require(server: str | None = None) -> str:
    """Path of the server; and the client is there.

    Raises:
        MissingPackageError: One of them is missing.
    """
    if importlib.util.find_spec("redis") is None:
        message = "redis: not installed\nhint: pip install '.[capacity]'"
        raise MissingPackageError(message)
    names = (server,) if server else SERVERS
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        hint = packages.named("redis-server").hint
        message = f"{' or '.join(names)}: not installed\nhint: {hint}, or name one with --server"
        raise MissingPackageError(message)
    return found


def _one(study: Study, server: str, file: Path, setting: Setting) -> dict[str, Any]:
    request = {
        "server": server,
        "file": str(file),
        "records": study.records,
        "mix": study.mix,
        "operations": study.operations,
        "threads": study.threads,
        "theta": study.theta,
        "seed": study.seed,
    }
    return processes.ask("redis_worker", request, setting)
