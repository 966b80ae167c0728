"""The one guest that stays between commands: ``lab up``, ``lab ssh``, ``lab down``.

Sixth step. Its folder in the cache holds the exchange, the emulator's process id and what it is; any
process of the same user can give it commands.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom.errors import LabError
from tierloom.lab import exchange
from tierloom.lab.guest import Guest, cache_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.lab.exchange import LabResult, Sink
    from tierloom.lab.topology import Topology

STOP_S = 10.0
NOT_UP = "no guest is up\nhint: `tierloom lab up` starts one"


@dataclass(frozen=True)
class Standing:
    """The guest that is up.

    Args:
        topology: Name of the machine.
        pid: Process of the emulator.
        since: When it came up, in seconds since 1970.
        shares: Folders that it may write.
    """

    topology: str
    pid: int
    since: float
    shares: tuple[str, ...]

    @property
    def shell(self) -> Path:
        """Socket of its shell."""
        return _folder() / "shell.sock"

    def is_alive(self) -> bool:
        """Whether its emulator runs; a process id may have gone to another program."""
        try:
            words = Path(f"/proc/{self.pid}/cmdline").read_bytes()
        except OSError:
            return False
        return str(self.shell).encode() in words

    def run(
        self,
        command: Sequence[str],
        *,
        timeout_s: float | None = None,
        stdin: bytes | None = None,
        sink: Sink | None = None,
    ) -> LabResult:
        """Runs a command in it; the arguments are those of :meth:`tierloom.lab.Guest.run`.

        Raises:
            LabError: The guest died, or the time is over.
        """
        job = exchange.submit(_folder() / "exchange", command, Path.cwd(), stdin=stdin)
        return exchange.finish(job, self.topology, alive=self.is_alive, timeout_s=timeout_s, sink=sink)


def up(
    topology: Topology,
    *,
    shares: Sequence[Path],
    store: Path | None = None,
    pmem_mode: str = "fsdax",
    accelerator: str = "tcg",
) -> Standing:
    """Starts the guest; the arguments are those of :class:`tierloom.lab.Guest`.

    Raises:
        LabError: One is up already, or it does not come up.
    """
    if found := status():
        message = f"a guest is up already ({found.topology})\nhint: `tierloom lab down` ends it"
        raise LabError(message)
    shutil.rmtree(_folder(), ignore_errors=True)
    _folder().mkdir(parents=True)
    guest = Guest(
        topology,
        shares=shares,
        store=store,
        pmem_mode=pmem_mode,
        accelerator=accelerator,
        folder=_folder(),
        stays=True,
    )
    standing = Standing(topology.name, guest.pid, time.time(), tuple(map(str, guest.shares)))
    (_folder() / "standing.json").write_text(json.dumps(vars(standing)))
    return standing


def status() -> Standing | None:
    """The guest that is up, or none."""
    file = _folder() / "standing.json"
    if not file.exists():
        return None
    found = json.loads(file.read_text())
    standing = Standing(found["topology"], found["pid"], found["since"], tuple(found["shares"]))
    return standing if standing.is_alive() else None


def need() -> Standing:
    """The guest that is up.

    Raises:
        LabError: None is.
    """
    if found := status():
        return found
    raise LabError(NOT_UP)


def down() -> None:
    """Ends the guest, with everything written to shared folders.

    Raises:
        LabError: None is up.
    """
    standing = need()
    with contextlib.suppress(LabError):
        standing.run(["sync"], timeout_s=STOP_S)
    with contextlib.suppress(ProcessLookupError):
        os.kill(standing.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    while standing.is_alive() and time.monotonic() < deadline:
        time.sleep(exchange.POLL_S)
    if standing.is_alive():
        os.kill(standing.pid, signal.SIGKILL)
    shutil.rmtree(_folder(), ignore_errors=True)


def _folder() -> Path:
    return cache_folder() / "guests" / "up"
