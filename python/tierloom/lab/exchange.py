"""The folder through which host and guest talk, and the commands that go through it.

The host leaves a shell script in ``jobs/NNNN`` and then its number in ``queue``; the guest's init runs
it and appends to ``stdout`` and ``stderr`` while it runs; ``exit`` appears when it has ended, and the
number in ``cancel`` ends it early. Files do what a channel would take an agent in the guest for,
several commands can run at once, and what a guest said before it died is still there.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Sink = Callable[[str, bytes], None]
    """Takes output while it appears: `"stdout"` or `"stderr"`, and bytes."""

TOOLS = "/run/tierloom-lab/bin"
"""Where the guest's own tools (cxl, daxctl, ndctl, numactl, …) lie."""

STREAMS = ("stdout", "stderr")
POLL_S = 0.03
GONE = "the guest ended before the command did"
LEFT_AT_HOME = re.compile(r"^(_|OLDPWD|PWD|SHLVL|LD_PRELOAD|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|(XDG|DBUS|SSH)_\w+)$")
"""Variables that mean something on the host only."""


class GuestGoneError(LabError):
    """The machine ended before the command did."""


@dataclass(frozen=True)
class LabResult:
    """A command that ran in a guest.

    Args:
        stdout: What it printed.
        stderr: What it said.
        exit_code: The shell's: 128 + signal when it was killed, 127 when there is no such program.
        seconds: How long it took by the host's clock, without the guest's start.
        topology: The machine it ran on.
    """

    stdout: str
    stderr: str
    exit_code: int
    seconds: float
    topology: str


@dataclass
class Job:
    """A command in the guest, while it runs."""

    exchange: Path
    name: str
    began: float = field(default_factory=time.monotonic)
    output: dict[str, bytearray] = field(default_factory=lambda: {name: bytearray() for name in STREAMS})

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self.exchange / "jobs" / self.name

    def exit_code(self) -> int | None:
        """Its exit code, once it has one."""
        file = self.folder / "exit"
        return int(file.read_text()) if file.exists() else None

    def read(self, sink: Sink | None) -> None:
        """Takes what was printed since the last time, and hands it on."""
        for name, seen in self.output.items():
            file = self.folder / name
            if file.exists() and file.stat().st_size > len(seen):
                with file.open("rb") as stream:
                    stream.seek(len(seen))
                    new = stream.read()
                seen += new
                if sink:
                    sink(name, new)

    def cancel(self) -> None:
        """Asks the guest to end it."""
        (self.exchange / "cancel" / self.name).touch()


def prepare(exchange: Path) -> None:
    """Makes the folders of an exchange."""
    for name in ("jobs", "queue", "cancel"):
        (exchange / name).mkdir(parents=True, exist_ok=True)


def submit(exchange: Path, command: Sequence[str], cwd: Path, *, stdin: bytes | None = None) -> Job:
    """Leaves a command for the guest.

    Args:
        exchange: The folder of the guest.
        command: Program and arguments.
        cwd: Folder to run it in.
        stdin: What the command can read; nothing by default.
    """
    job = Job(exchange, _new_name(exchange / "jobs"))
    (job.folder / "script").write_text(script(command, cwd, environment(os.environ)))
    if stdin is not None:
        (job.folder / "stdin").write_bytes(stdin)
    (exchange / "queue" / job.name).touch()
    return job


def finish(
    job: Job, topology: str, *, alive: Callable[[], bool], timeout_s: float | None, sink: Sink | None
) -> LabResult:
    """Waits for a command's end and hands its output on meanwhile.

    Args:
        job: The command.
        topology: Name of the machine it runs on.
        alive: Whether the machine still runs.
        timeout_s: Longest time it may take; it is cancelled then, and on an interrupt.
        sink: Takes its output while it appears.

    Raises:
        GuestGoneError: The machine ended.
        LabError: The time is over.
    """
    code = None
    try:
        while code is None:
            job.read(sink)
            _must_go_on(job, alive=alive, timeout_s=timeout_s)
            time.sleep(POLL_S)
            code = job.exit_code()
    except BaseException:
        job.cancel()
        raise
    seconds = time.monotonic() - job.began
    job.read(sink)
    stdout, stderr = (job.output[name].decode(errors="replace") for name in STREAMS)
    shutil.rmtree(job.folder, ignore_errors=True)
    return LabResult(stdout, stderr, code, seconds, topology)


def _must_go_on(job: Job, *, alive: Callable[[], bool], timeout_s: float | None) -> None:
    if not alive():
        message = f"{GONE}\nhint: its memory may have been too small: try more --memory"
        raise GuestGoneError(message)
    if timeout_s is not None and time.monotonic() - job.began > timeout_s:
        message = f"the command did not end in {timeout_s:g} s\nhint: emulation is slow; --timeout allows more"
        raise LabError(message)


def script(command: Sequence[str], cwd: Path, variables: Mapping[str, str]) -> str:
    """The shell script of a command."""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    return "\n".join([*exports, f"cd {shlex.quote(str(cwd))} || exit 126", f"exec {shlex.join(command)}", ""])


def environment(host: Mapping[str, str]) -> dict[str, str]:
    """The host's variables, with this Python's folder and the guest's tools behind what PATH has."""
    kept = {name: value for name, value in host.items() if name.isidentifier() and not LEFT_AT_HOME.match(name)}
    path = [host.get("PATH", "/usr/bin:/bin"), str(Path(sys.executable).parent), TOOLS]
    return {**kept, "PATH": ":".join(path)}


def _new_name(jobs: Path) -> str:
    """A number that no other command has, even one that another process submits now."""
    for number in itertools.count():
        try:
            (jobs / f"{number:04}").mkdir()
        except FileExistsError:
            continue
        return f"{number:04}"
    raise AssertionError
