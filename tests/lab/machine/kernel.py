"""The guest is the machine that its topology says, in the kernel's own words."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

NODES = Path("/sys/devices/system/node")
TIERS = Path("/sys/devices/virtual/memory_tiering")
TOPOLOGY = os.environ.get("TIERLOOM_LAB_TOPOLOGY", "two-tier")
FAR = {"two-tier": [1], "cxl": [1], "three-tier": [1, 2], "cxl-pmem": []}[TOPOLOGY]
DECLARED = {1: (250, 30_000), 2: (450, 12_000)}
"""Nanoseconds and MB/s of `tierloom.lab.topology`; those of a CXL device also come from the device itself."""


def text(path: Path) -> str:
    return path.read_text().strip()


def tier_of(node: int) -> int:
    """The tier's number: the higher, the slower."""
    tiers = [tier for tier in TIERS.glob("memory_tier*") if str(node) in text(tier / "nodelist").split(",")]
    return int(tiers[0].name.removeprefix("memory_tier"))


def check_far_nodes_have_memory_and_no_processors() -> None:
    assert text(NODES / "has_memory") == ("0" if not FAR else f"0-{FAR[-1]}")
    assert text(NODES / "has_cpu") == "0"
    for node in FAR:
        free = re.search(r"MemFree: +(\d+) kB", text(NODES / f"node{node}" / "meminfo"))
        assert free
        assert int(free[1]) > 900_000


def check_the_kernel_says_what_the_firmware_declared() -> None:
    assert text(NODES / "node0/access0/initiators/read_latency") == "100"
    for node in FAR if "cxl" not in TOPOLOGY else []:
        initiators = NODES / f"node{node}" / "access0" / "initiators"
        assert (initiators / "node0").exists()
        said = int(text(initiators / "read_latency")), int(text(initiators / "read_bandwidth"))
        assert said == DECLARED[node]


def check_each_far_node_is_a_slower_tier_than_the_one_before() -> None:
    tiers = [tier_of(node) for node in [0, *FAR]]
    assert tiers == sorted(set(tiers)), tiers


def check_the_kernel_would_demote_to_the_next_tier() -> None:
    told = re.findall(r"Demotion targets for Node (\d+): preferred: (\d+)", kernel_log())
    assert dict(told) == {str(near): str(far) for near, far in zip([0, *FAR], FAR, strict=False)}


def check_weighted_interleave_is_there_for_every_node() -> None:
    weights = Path("/sys/kernel/mm/mempolicy/weighted_interleave")
    assert {path.name for path in weights.iterdir()} >= {f"node{node}" for node in [0, *FAR]}


def check_memory_bound_to_a_node_comes_from_it() -> None:
    for node in FAR:
        used = f"numactl --membind={node} dd if=/dev/zero of=/dev/shm/block bs=1M count=4"
        before = shared_kib(node)
        subprocess.run(used, shell=True, check=True, capture_output=True)  # noqa: S602
        assert shared_kib(node) - before == 4096
        Path("/dev/shm/block").unlink()  # noqa: S108


def shared_kib(node: int) -> int:
    """Exact once the counters that each processor keeps for itself are added up."""
    Path("/proc/sys/vm/stat_refresh").write_text("1")
    return int(re.search(r"Shmem: +(\d+) kB", text(NODES / f"node{node}" / "meminfo"))[1])


def check_the_kernel_complains_of_nothing() -> None:
    bad = re.findall(r".*(?:WARNING:|BUG:|Oops|Call Trace|general protection|Out of memory).*", kernel_log())
    assert not bad, bad


def kernel_log() -> str:
    return subprocess.run(["dmesg"], check=True, capture_output=True, text=True).stdout
