"""The CXL device is a real one to the kernel: its region is committed, online, and safe to share files with."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

TOPOLOGIES = ("cxl",)


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
    """A device that writes into CXL memory is what breaks such guests; here it must not."""
    file = Path("/usr/bin/perl")
    if not file.exists():
        file = Path("/bin/bash")
    before = file_kib()
    command = ["numactl", "--membind=1", "sha256sum", str(file)]
    far = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0]
    grown = file_kib() - before
    subprocess.run(["sync"], check=True)
    Path("/proc/sys/vm/drop_caches").write_text("1")
    assert grown * 1024 >= file.stat().st_size / 2
    assert far == hashlib.sha256(file.read_bytes()).hexdigest()


def file_kib() -> int:
    Path("/proc/sys/vm/stat_refresh").write_text("1")
    meminfo = Path("/sys/devices/system/node/node1/meminfo").read_text()
    return int(re.search(r"FilePages: +(\d+) kB", meminfo)[1])
