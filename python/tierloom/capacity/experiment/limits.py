"""Control groups that keep one run from more memory or storage bandwidth than it is to have.

A database under a memory limit spills to files, and the kernel keeps those in the page cache for as long as
there is memory: without a control group the storage is never touched. Version 1 and 2 of the kernel's
interface; where none may be made, the run goes on without and the study says so.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path("/")
TRIES = 50
EMPTY_S = 0.1


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a run may have.

    Attributes:
        memory_bytes: Memory, page cache included.
        storage_bytes_s: Bandwidth of reads and of writes; unlimited when none is given.
        device: Numbers of the block device, as ``254:0``.
    """

    memory_bytes: int
    storage_bytes_s: int | None = None
    device: str | None = None


@contextmanager
def group(limits: Limits, root: Path = ROOT) -> Iterator[list[Path]]:
    """A control group; yields the files that a process writes its number to in order to join.

    None where no group can be made.
    """
    made = _make(limits, root)
    try:
        yield [folder / "cgroup.procs" for folder in made]
    finally:
        for folder in made:
            _remove(folder)


def device_of(folder: Path, root: Path = ROOT) -> str | None:
    """Numbers of the whole disk below a folder; none for memory file systems."""
    number = folder.stat().st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    block = root / "sys/dev/block" / name
    if not block.exists():
        return None
    whole = block.resolve().parent / "dev"
    return whole.read_text(encoding="ascii").strip() if (block / "partition").exists() else name


def _make(limits: Limits, root: Path) -> list[Path]:
    """Folders of the new groups; what was begun and could not be finished is removed."""
    made: list[Path] = []
    try:
        for folder, settings in _wanted(limits, root):
            folder.mkdir()
            made.append(folder)
            for file, text in settings.items():
                (folder / file).write_text(text, encoding="ascii")
    except OSError:
        for folder in made:
            _remove(folder)
        return []
    return made


def _wanted(limits: Limits, root: Path) -> list[tuple[Path, dict[str, str]]]:
    """Folders to make and what to write into which of their files."""
    mount = root / "sys/fs/cgroup"
    own = _own(root)
    name = f"tierloom-{os.getpid()}"
    if "memory" not in own:
        home = (mount / own.get("", "/").lstrip("/")).parent
        settings = {"memory.max": str(limits.memory_bytes), "memory.swap.max": "0"}
        if limits.storage_bytes_s and limits.device:
            rate = limits.storage_bytes_s
            settings["io.max"] = f"{limits.device} rbps={rate} wbps={rate}"
        return [(home / name, settings)]
    wanted = [(_v1(mount, own, "memory") / name, {"memory.limit_in_bytes": str(limits.memory_bytes)})]
    if limits.storage_bytes_s and limits.device and "blkio" in own:
        text = f"{limits.device} {limits.storage_bytes_s}"
        throttle = {f"blkio.throttle.{way}_bps_device": text for way in ("read", "write")}
        wanted.append((_v1(mount, own, "blkio") / name, throttle))
    return wanted


def _v1(mount: Path, own: dict[str, str], controller: str) -> Path:
    return mount / controller / own[controller].lstrip("/")


def _own(root: Path) -> dict[str, str]:
    """This process's groups by controller; version 2 under the empty name."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    entries = [line.split(":", 2) for line in lines]
    return {controller: path for _, controllers, path in entries for controller in controllers.split(",")}


def _remove(folder: Path) -> None:
    """Removes a group; the kernel takes a moment to see that its processes are gone."""
    for _ in range(TRIES):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(EMPTY_S)
        else:
            return
