"""Code stays in DRAM: in emulated CXL memory it runs at a hundredth of the speed, and now and then brings QEMU down.

A check that fills DRAM makes the kernel drop pages of files, or demote them. Those that are needed meanwhile are read
again into CXL memory, and whatever runs the same programs later runs from there. So what every check runs is locked
where it is, and what came there all the same is brought back.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
from pathlib import Path

NODES = Path("/sys/devices/system/node")
MIGRATE_PAGES = 256
"""`asm/unistd_64.h`."""

OURS = ("_core.abi3.so", "native/libtierloom_preload.so")
"""What Tierloom runs in its own process and in the program's."""

KERNEL = ctypes.CDLL(None, use_errno=True)
KERNEL.mmap.restype = ctypes.c_void_p


def hold_code() -> None:
    """Locks what Python, the C library and Tierloom run, for all processes that map it, as long as this one lives."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if " r-xp " in line and "/" in line:
            start, end = (int(address, 16) for address in line.split()[0].split("-"))
            lock(start, end - start)
    for name in OURS:
        hold(Path(__file__).parents[2] / "python" / "tierloom" / name)


def hold(path: Path) -> None:
    """Maps a file for good, and locks its pages."""
    size = path.stat().st_size
    with path.open("rb") as file:
        reading = mmap.PROT_READ, mmap.MAP_SHARED, file.fileno()
        start = KERNEL.mmap(None, ctypes.c_size_t(size), *reading, ctypes.c_long(0))
    lock(start, size)


def lock(start: int, size: int) -> None:
    """Keeps pages where they are: neither dropped nor demoted."""
    if KERNEL.mlock(ctypes.c_void_p(start), ctypes.c_size_t(size)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def bring_code_home() -> None:
    """All processes and files' pages leave the far nodes."""
    far = [int(path.name.removeprefix("node")) for path in NODES.glob("node[1-9]*")]
    if not sum(file_kib(node) for node in far):
        return
    here, there = ctypes.c_ulong(1), ctypes.c_ulong(sum(1 << node for node in far))
    for process in [int(path.name) for path in Path("/proc").glob("[1-9]*")]:
        ends = ctypes.byref(there), ctypes.byref(here)
        KERNEL.syscall(ctypes.c_long(MIGRATE_PAGES), ctypes.c_long(process), ctypes.c_ulong(64), *ends)
    Path("/proc/sys/vm/drop_caches").write_text("1")


def file_kib(node: int) -> int:
    """Pages of files on a node."""
    return int(re.search(r"FilePages: +(\d+) kB", (NODES / f"node{node}" / "meminfo").read_text())[1])
