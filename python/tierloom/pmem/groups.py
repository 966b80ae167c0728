"""The five test groups of the study that measured STREAM on CXL memory as persistent memory.

Data: ``catalog/pmem/streamer.toml``. Each group is several series: threads on the memory's own socket,
on the other one or on both; App-Direct or plain memory; and what was published for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from tierloom import catalog
from tierloom.errors import RequestError
from tierloom.pmem.cpu_affinity import sockets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.pmem.cpu_affinity import Affinity, Cpu

Memory = Literal["dram", "cxl"]
MEMORIES: tuple[Memory, ...] = ("dram", "cxl")


@dataclass(frozen=True)
class Series:
    """One curve of a group.

    Args:
        group: Its group, such as ``1.a``.
        name: What it is called.
        mode: ``app-direct`` (a pool) or ``memory-mode`` (ordinary memory).
        memory: ``dram`` or ``cxl``.
        threads_on: Where threads are, seen from the memory: ``local``, ``remote`` or ``all`` sockets.
        affinity: In which order threads take CPUs.
        triad_gb_s: Published Triad bandwidth by number of threads.
        like: The volatile series with the same threads and memory, where there is one.
    """

    group: str
    name: str
    mode: str
    memory: Memory
    threads_on: str
    affinity: Affinity
    triad_gb_s: dict[int, float]
    like: str | None

    def cpus(self, allowed: Sequence[Cpu], home: int) -> list[Cpu]:
        """The CPUs it takes on a machine whose memory under test is at socket `home`; none where it cannot be."""
        if self.threads_on == "local":
            return [cpu for cpu in allowed if cpu.socket == home]
        if self.threads_on == "remote":
            return [cpu for cpu in allowed if cpu.socket != home]
        return list(allowed) if len(sockets(allowed)) > 1 else []

    def overheads(self) -> dict[int, float]:
        """Published App-Direct overhead of Triad by number of threads, as a share of the volatile bandwidth."""
        if self.like is None:
            return {}
        volatile = _by_name()[self.like].triad_gb_s
        return {n: 1 - gb_s / volatile[n] for n, gb_s in self.triad_gb_s.items() if n in volatile}


@dataclass(frozen=True)
class Group:
    """A test group."""

    name: str
    title: str
    series: tuple[Series, ...]


def source() -> str:
    """Where the published figures are from."""
    return str(_data()["source"])


def names() -> list[str]:
    """Names of the groups."""
    return [group["name"] for group in _data()["groups"]]


def group(name: str) -> Group:
    """A group by its name.

    Raises:
        RequestError: There is none of this name.
    """
    for data in _data()["groups"]:
        if data["name"] == name:
            return Group(name, data["title"], tuple(_series(name, series) for series in data["series"]))
    message = f"there is no test group `{name}`\nhint: groups are {', '.join(names())}"
    raise RequestError(message)


@cache
def _data() -> dict[str, Any]:
    return catalog.catalog_table("pmem", "streamer")


@cache
def _by_name() -> dict[str, Series]:
    return {f"{series.group} {series.name}": series for name in names() for series in group(name).series}


def _series(group: str, data: dict[str, Any]) -> Series:
    figures = {int(threads): float(gb_s) for threads, gb_s in data["triad_gb_s"].items()}
    return Series(
        group,
        data["name"],
        data["mode"],
        data["memory"],
        data["threads_on"],
        data["affinity"],
        figures,
        data.get("like"),
    )
