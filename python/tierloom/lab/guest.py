"""A virtual machine of the lab: started, given commands, and stopped.

Fifth step: image, topology and QEMU come together here. Promises that the machine is gone when its
``with`` block ends, however it ends, and when this process dies.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tierloom.child_processes import ends_with_us
from tierloom.errors import LabError, RequestError
from tierloom.lab import exchange, qemu

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.lab.exchange import LabResult, Sink
    from tierloom.lab.topology import Topology

BOOT_S = 600
"""A guest that is not up by then will not come up: two idle processors take 7 s, a tenth of one takes 130 s."""

STOP_S = 10
CONSOLE_LINES = 12


def cache_folder() -> Path:
    """Where packages, images and guests are kept: ``tierloom/lab`` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "tierloom" / "lab"


class Guest:
    """A running virtual machine; use it in a ``with`` block.

    Args:
        topology: What memory it has.
        shares: Folders of the host that it may write; it sees everything else as it is, and keeps
            what it writes there in its own memory.
        store: Folder that keeps the contents of a persistent CXL device; made when it is not there.
        pmem_mode: What a new persistent device becomes: ``"fsdax"`` (/mnt/pmem0) or ``"devdax"`` (/dev/dax0.0).
        accelerator: ``"tcg"`` (software emulation) or ``"kvm"``.
        lifetime_s: The guest switches itself off after so many seconds; 0 for never.
        folder: Where its files go; a folder of its own in the cache by default.
        stays: Whether it outlives this process.

    Raises:
        LabError: It cannot be made, or does not come up.
        RequestError: A folder cannot be shared.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        shares: Sequence[Path] = (),
        store: Path | None = None,
        pmem_mode: str = "fsdax",
        accelerator: str = "tcg",
        lifetime_s: int = 0,
        folder: Path | None = None,
        stays: bool = False,
    ) -> None:
        self.topology = topology
        self.shares = outermost(shares)
        self.folder = folder or _own_folder()
        self.exchange = self.folder / "exchange"
        self._stays = stays
        self._lifetime_s = lifetime_s
        self._pmem_mode = pmem_mode
        self._process: subprocess.Popen[bytes] | None = None
        try:
            exchange.prepare(self.exchange)
            self._process = self._started(store, accelerator)
            self.boot_s = self._ready()
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """Process of the emulator; 0 when there is none."""
        return self._process.pid if self._process else 0

    def run(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        timeout_s: float | None = None,
        stdin: bytes | None = None,
        sink: Sink | None = None,
    ) -> LabResult:
        """Runs a command in the guest and waits for its end.

        Args:
            command: Program and arguments, as the host would find them.
            cwd: Folder to run it in; the current one by default.
            timeout_s: Longest time it may take.
            stdin: What it can read.
            sink: Takes its output while it appears.

        Raises:
            LabError: The guest died, or the time is over.
        """
        job = exchange.submit(self.exchange, command, cwd or Path.cwd(), stdin=stdin)
        try:
            return exchange.finish(job, self.topology.name, alive=self.is_alive, timeout_s=timeout_s, sink=sink)
        except exchange.GuestGoneError as gone:
            raise LabError(self._last_words(exchange.GONE + self._how_it_ended())) from gone

    def is_alive(self) -> bool:
        """Whether the emulator still runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Ends it, with everything written to shared folders."""
        with contextlib.suppress(LabError):
            self.run(["sync"], cwd=Path("/"), timeout_s=STOP_S)
        self.kill()

    def kill(self) -> None:
        """Ends it as a power failure would: a persistent device keeps what reached it, the rest is gone."""
        if self._process:
            self._process.kill()
            self._process.wait()
        if not self._stays:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _started(self, store: Path | None, accelerator: str) -> subprocess.Popen[bytes]:
        from tierloom.lab import image

        emulator = qemu.find()
        made = image.build(cache_folder())
        initrd = self.folder / "initrd.cpio"
        initrd.write_bytes(made.initrd.read_bytes() + self._configuration())
        setting = qemu.Setting(
            initrd=initrd,
            exchange=self.exchange,
            shares=self.shares,
            console=self.folder / "console.log",
            shell=self.folder / "shell.sock",
            store=_device_contents(store) if self.topology.name == "cxl-pmem" else None,
            accelerator=accelerator,
        )
        command = qemu.command(emulator, made, self.topology, setting)
        with (self.folder / "qemu.log").open("wb") as log:
            return subprocess.Popen(
                [*([] if self._stays else ends_with_us()), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _configuration(self) -> bytes:
        """A second archive behind the image's: the guest's init, and what it should do."""
        from tierloom.lab import image

        purposes = " ".join(("share", *self.topology.modules))
        settings = f"TOPOLOGY={self.topology.name}\nMODULES='{purposes}'\nLIFETIME_S={self._lifetime_s}\n"
        settings += f"STAYS={int(self._stays)}\nPMEM_MODE={self._pmem_mode}\n"
        programs = {name: _guest_file(name) for name in ("init", "prepare")}
        files = {
            "lab.conf": settings.encode(),
            "shares": "".join(f"{path}\n" for path in self.shares).encode(),
        }
        return image.archive(
            {name: (stat.S_IFREG | 0o755, data) for name, data in programs.items()}
            | {name: (stat.S_IFREG | 0o644, data) for name, data in files.items()}
        )

    def _ready(self) -> float:
        began = time.monotonic()
        while not (self.exchange / "ready").exists():
            if not self.is_alive() or (self.exchange / "failed").exists():
                raise LabError(self._last_words("the guest did not come up"))
            if time.monotonic() - began > BOOT_S:
                raise LabError(self._last_words(f"the guest did not come up in {BOOT_S} s"))
            time.sleep(exchange.POLL_S)
        return time.monotonic() - began

    def _how_it_ended(self) -> str:
        """A signal is the emulator's own failure, not the guest's."""
        code = self._process.poll() if self._process else None
        return f": {qemu.PROGRAM} died of {signal.Signals(-code).name}" if code and code < 0 else ""

    def _last_words(self, what: str) -> str:
        reason = [self.exchange / "failed", self.folder / "qemu.log", self.folder / "console.log"]
        told = [path.read_text(errors="replace").strip().splitlines() for path in reason if path.exists()]
        lines = [line for lines in told for line in lines[-CONSOLE_LINES:] if line.strip()]
        return "\n".join([what, *lines, "hint: the lines above are the guest's and the emulator's own last words"])


def outermost(folders: Sequence[Path]) -> tuple[Path, ...]:
    """Folders to share, each once: one inside another comes with it.

    Raises:
        RequestError: One is no folder, or is the whole of the host.
    """
    found = sorted({path.resolve() for path in folders})
    for path in found:
        if not path.is_dir():
            message = f"{path} is no folder, so the guest cannot have it\nhint: --share takes folders that are there"
            raise RequestError(message)
        if path == Path("/"):
            message = "the whole of / cannot be shared for writing\nhint: change to the folder of your project first"
            raise RequestError(message)
    return tuple(path for path in found if not any(other in path.parents for other in found))


def _own_folder() -> Path:
    """A new folder, named for this process; those of processes that were killed are cleared away."""
    guests = cache_folder() / "guests"
    guests.mkdir(parents=True, exist_ok=True)
    for left in guests.glob("run-*-*"):
        if not Path(f"/proc/{left.name.split('-')[1]}").exists():
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"run-{os.getpid()}-", dir=guests))


def _device_contents(store: Path | None) -> Path:
    folder = (store or cache_folder() / "pmem").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _guest_file(name: str) -> bytes:
    return resources.files("tierloom.lab").joinpath("guest", name).read_bytes()
