"""A virtual machine with several kinds of memory, for everyone: no root, no CXL hardware.

:func:`run` starts QEMU with a stock distribution kernel and a CPU-less memory node or an emulated
CXL device, runs one command in it with this host's programs and the current folder, and takes it
down again; :class:`Guest` keeps one for several commands. Timings in it mean nothing; where pages
are, and what the kernel does with them, is real.

Reading order: ``packages`` → ``image`` → ``topology`` → ``qemu`` → ``exchange`` → ``guest`` → ``standing``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tierloom.lab.exchange import TOOLS, LabResult
from tierloom.lab.guest import Guest
from tierloom.lab.topology import TOPOLOGIES, named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.lab.exchange import Sink
    from tierloom.units import Amount

__all__ = ["TOPOLOGIES", "Guest", "LabResult", "is_guest", "run"]

TIMEOUT_S = 600.0
"""Longest time a command may take unless more is allowed."""

GRACE_S = 360
"""What a guest lives beyond its command's time: it switches itself off should the host forget it."""


def is_guest() -> bool:
    """Whether this machine is one of the lab's."""
    return Path(TOOLS).is_dir()


def run(
    command: Sequence[str],
    *,
    topology: str = "two-tier",
    share: Sequence[Path] = (),
    memory: str | Sequence[Amount] | None = None,
    timeout_s: float = TIMEOUT_S,
    store: Path | None = None,
    pmem_mode: str = "fsdax",
    accelerator: str = "tcg",
    stdin: bytes | None = None,
    sink: Sink | None = None,
) -> LabResult:
    """Runs a command in a virtual machine that is there for it alone.

    Args:
        command: Program and arguments, as this host would find them.
        topology: One of :data:`TOPOLOGIES`.
        share: Folders that it may write beside the current one.

            It reads everything else that this user can read; what it writes there is gone with the machine.
        memory: Sizes of its nodes, DRAM first: ``"1GiB,2GiB"``.
        timeout_s: Seconds that the command may take, without the machine's start.
        store: Folder that keeps what a persistent device holds (cxl-pmem).
        pmem_mode: What a new persistent device becomes: ``"fsdax"``, a file system on /mnt/pmem0, or ``"devdax"``,
            /dev/dax0.0.
        accelerator: ``"tcg"``, emulation in software, works everywhere; ``"kvm"`` where you may use it, without CXL.
        stdin: What the command can read.
        sink: Takes output while it appears: name of the stream, and bytes.

    Raises:
        LabError: QEMU or packages are missing, the machine does not come up, or the time is over.
        RequestError: There is no such topology, or a size or folder is wrong.
    """
    machine = named(topology).sized(memory)
    shares = [Path.cwd(), *share]
    with Guest(
        machine,
        shares=shares,
        store=store,
        pmem_mode=pmem_mode,
        accelerator=accelerator,
        lifetime_s=round(timeout_s) + GRACE_S,
    ) as guest:
        return guest.run(command, timeout_s=timeout_s, stdin=stdin, sink=sink)
