"""The CXL device is a real one to the kernel: its region is committed, online, and safe to share files with."""

from __future__ import annotations

import ctypes
import json
import mmap
import re
import subprocess
from pathlib import Path
from typing import Any

TOPOLOGIES = ("cxl",)

SET_MEMPOLICY, MPOL_DEFAULT, MPOL_BIND = 238, 0, 2
"""`asm/unistd_64.h` and `linux/mempolicy.h`."""


def listed(*command: str) -> list[dict[str, Any]]:
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def check_the_region_is_committed_on_the_device() -> None:
    (region,) = listed("cxl", "list", "-R")
    assert region["type"] == "ram"
    assert region["decode_state"] == "commit"
    (memory,) = listed("cxl", "list", "-M")
    assert memory["ram_size"] == region["size"]
    assert memory["serial"] == 0x71137008


def check_its_memory_is_online_and_movable() -> None:
    (device,) = listed("daxctl", "list")
    assert device["mode"] == "system-ram"
    assert device["target_node"] == 1
    assert device["online_memblocks"] == device["total_memblocks"]
    assert device["movable"]


def check_the_address_map_leads_from_window_to_region_to_ram() -> None:
    lines = [line.split(" : ")[1] for line in Path("/proc/iomem").read_text().splitlines()]
    at = lines.index("CXL Window 0")
    assert lines[at : at + 4] == ["CXL Window 0", "region0", "dax0.0", "System RAM (kmem)"]


def check_the_node_has_the_attributes_that_the_device_reports() -> None:
    """Bandwidth is the narrowest part of the path, here the device's own 16 GB/s (its CDAT)."""
    initiators = Path("/sys/devices/system/node/node1/access0/initiators")
    assert int((initiators / "read_bandwidth").read_text()) == 16_000
    assert int((initiators / "read_latency").read_text()) > 150


def check_files_of_the_host_arrive_whole_in_cxl_pages() -> None:
    """A device that writes into CXL memory is what breaks such guests; here it must not.

    Only what the kernel takes for the file while it is read is bound to the node: a program bound to it
    as a whole would have its code there, at a hundredth of the speed.
    """
    file = next(path for path in (Path("/usr/bin/perl"), Path("/bin/bash")) if path.exists())
    far, near = read_onto(1, file), read_onto(0, file)
    assert len(far) == file.stat().st_size
    assert far == near, f"first difference at byte {next(at for at in range(len(far)) if far[at] != near[at])}"


def read_onto(node: int, file: Path) -> bytearray:
    """Contents of a file that comes from the host anew, every page of it onto this node."""
    Path("/proc/sys/vm/drop_caches").write_text("1")
    contents = bytearray(b".") * file.stat().st_size  # touched before anything is bound
    with file.open("rb", buffering=0) as stream:
        take_memory_from(node)
        try:
            got = 0
            while read := stream.readinto(memoryview(contents)[got:]):
                got += read
        finally:
            take_memory_from(None)
        assert got == len(contents)
        assert pages_by_node(stream.fileno(), file) == {node: -(-got // mmap.PAGESIZE)}
    return contents


def take_memory_from(node: int | None) -> None:
    """The calling thread's memory policy: files that it reads obey it, too (`filemap_alloc_folio`)."""
    kernel = ctypes.CDLL(None, use_errno=True)
    nodes = ctypes.c_ulong(0 if node is None else 1 << node)
    policy = ctypes.c_long(MPOL_DEFAULT if node is None else MPOL_BIND)
    if kernel.syscall(ctypes.c_long(SET_MEMPOLICY), policy, ctypes.byref(nodes), ctypes.c_ulong(64)):
        raise OSError(ctypes.get_errno(), "set_mempolicy")


def pages_by_node(open_file: int, file: Path) -> dict[int, int]:
    """Where the kernel keeps a file: its pages by node, as a mapping of all of them shows."""
    flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
    with mmap.mmap(open_file, 0, flags=flags, prot=mmap.PROT_READ):
        maps = Path("/proc/self/numa_maps").read_text().splitlines()
    (line,) = [line for line in maps if f"/{file.name} " in line]
    return {int(node): int(pages) for node, pages in re.findall(r" N(\d+)=(\d+)", line)}
