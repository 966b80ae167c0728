"""The host: its memories as tiers, nearest first, and the processor that computes on them.

A noun, made from a `Machine` by `host_of`. The engines see bandwidths in bytes per second and
latencies in seconds here; names and units of files end at this door.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from tierloom.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.nouns import Machine
    from tierloom.schema import MemoryDoc


GPU_EXTRA_S = 500e-9
"""Latency that a GPU sees beyond DRAM's when it reads CXL memory through the CPU (arXiv 2405.14209)."""

CURVE_STEPS = 40

Route = Literal["root", "peer"]
"""How the GPU reaches a CXL device: through the CPU's root complex (CXL 1.1 and 2.0), or directly as a
peer (CXL 3.1)."""


@dataclass(frozen=True, kw_only=True)
class Tier:
    """One memory or block device of the host.

    Attributes:
        name: As in the machine file.
        kind: ``dram``, ``lpddr``, ``cxl``, ``hbm``, ``pmem`` or ``ssd``.
        capacity_bytes: Its capacity.
        read_bytes_s: Highest read bandwidth from the socket, bytes/s.
        write_bytes_s: Highest write bandwidth from the socket, bytes/s.
        idle_s: Latency at rest from the socket, s.
        gpu_extra_s: What a copy of the GPU waits beyond one from near DRAM, s.
        route: How the GPU reaches it.
        curve: Loaded latency of reads as ``(bytes/s, s)``, rising; empty for a block device.
    """

    name: str
    kind: str
    capacity_bytes: float
    read_bytes_s: float
    write_bytes_s: float
    idle_s: float
    gpu_extra_s: float = 0.0
    route: Route = "root"
    curve: tuple[tuple[float, float], ...] = ()

    @property
    def block(self) -> bool:
        """Whether it holds blocks and not bytes: no processor computes on it."""
        return self.kind == "ssd"


@dataclass(frozen=True, kw_only=True)
class Host:
    """The tiers of a host, nearest first, and the socket that computes.

    Attributes:
        name: The machine's.
        socket: Where the threads run.
        cores: Cores of that socket.
        lines: Cache lines that one core keeps in flight when it streams.
        tiers: The memories, nearest first.
        nodes: Names of all memories of the machine in the order of the kernel's node numbers.
        planned: What a plan file says of each of `nodes`; empty for a host that is no machine file's.
        fabric_bytes_s: What the root complex carries to the GPU beside the CPU's own reads of CXL
            memory; none when nothing is known to limit it.
    """

    name: str
    socket: str
    cores: int
    lines: float
    tiers: tuple[Tier, ...]
    nodes: tuple[str, ...]
    planned: tuple[dict[str, Any], ...] = field(default=(), compare=False)
    fabric_bytes_s: float | None = None

    @property
    def memories(self) -> tuple[Tier, ...]:
        """The tiers that a processor computes on."""
        return tuple(tier for tier in self.tiers if not tier.block)

    @property
    def capacity_bytes(self) -> float:
        """Capacity of all tiers."""
        return sum(tier.capacity_bytes for tier in self.tiers)

    def tier(self, name: str) -> Tier:
        """A tier by its name.

        Raises:
            RequestError: There is none of that name.
        """
        for tier in self.tiers:
            if tier.name == name:
                return tier
        names = ", ".join(tier.name for tier in self.tiers)
        message = f"there is no tier `{name}` on {self.name}\nhint: its tiers are {names}"
        raise RequestError(message)

    def only(self, names: Sequence[str]) -> Host:
        """The host with some of its tiers."""
        kept = {self.tier(name).name for name in names}
        return replace(self, tiers=tuple(tier for tier in self.tiers if tier.name in kept))

    def with_tier(self, tier: Tier) -> Host:
        """The host with one tier more, in the order of distance."""
        tiers = sorted((*self.tiers, tier), key=lambda each: each.idle_s)
        return replace(self, tiers=tuple(tiers))

    def with_capacity(self, name: str, capacity_bytes: float) -> Host:
        """The host with another capacity of one tier."""
        changed = replace(self.tier(name), capacity_bytes=capacity_bytes)
        return replace(self, tiers=tuple(changed if tier.name == name else tier for tier in self.tiers))


def host_of(machine: Machine, *, socket: str | None = None, peer: bool = False) -> Host:
    """The host that a machine file describes.

    Args:
        machine: The machine.
        socket: Where the threads and the GPU are; the machine's first socket by default.
        peer: The GPU reaches CXL devices directly, as CXL 3.1 allows; else through the CPU.

    Raises:
        RequestError: There is no such socket, or it reaches no memory.
    """
    sockets = {item["name"]: item for item in machine.data["sockets"]}
    home = socket or next(iter(sockets))
    if home not in sockets:
        message = f"there is no socket `{home}` on {machine.name}\nhint: its sockets are {', '.join(sockets)}"
        raise RequestError(message)
    memories = {item["name"]: item for item in machine.data["memories"]}
    reached = [path for path in machine.data["paths"] if path["from"] == home]
    tiers = [_tier(machine, home, memories[path["to"]], path["idle_ns"]["value"], peer=peer) for path in reached]
    return Host(
        name=machine.name,
        socket=home,
        cores=int(sockets[home]["cores"]["value"]),
        lines=sockets[home]["stream_lines"]["value"],
        tiers=tuple(sorted(tiers, key=lambda tier: tier.idle_s)),
        nodes=tuple(memories),
        planned=tuple(_planned(memory, tiers, home) for memory in memories.values()),
    )


def _planned(memory: MemoryDoc, tiers: Sequence[Tier], home: str) -> dict[str, Any]:
    """The entry of a plan file about one memory, as seen from a socket."""
    told: dict[str, Any] = {"name": memory["name"], "kind": memory["kind"], "near": memory["socket"] == home}
    told["capacity_bytes"] = memory["capacity_bytes"]["value"]
    for tier in tiers:
        if tier.name == memory["name"]:
            told |= {"idle_ns": round(tier.idle_s * 1e9, 3)}
            told |= {"gb_s": round(min(tier.read_bytes_s, tier.write_bytes_s) * 1e-9, 3)}
    return told


def block_tier(capacity_bytes: float, read_gb_s: float, write_gb_s: float) -> Tier:
    """A block device beside the memories; a read of NVMe flash takes about 80 us (assumed)."""
    return Tier(
        name="nvme",
        kind="ssd",
        capacity_bytes=capacity_bytes,
        read_bytes_s=read_gb_s * 1e9,
        write_bytes_s=write_gb_s * 1e9,
        idle_s=80e-6,
    )


def _tier(machine: Machine, socket: str, memory: MemoryDoc, idle_ns: float, *, peer: bool) -> Tier:
    reads, writes = (machine.curve(socket, memory["name"], share, CURVE_STEPS) for share in (1.0, 0.0))
    remote = memory["kind"] == "cxl"
    return Tier(
        name=memory["name"],
        kind=memory["kind"],
        capacity_bytes=memory["capacity_bytes"]["value"],
        read_bytes_s=reads.peak_gb_s * 1e9,
        write_bytes_s=writes.peak_gb_s * 1e9,
        idle_s=idle_ns * 1e-9,
        gpu_extra_s=GPU_EXTRA_S if remote and not peer else 0.0,
        route="peer" if remote and peer else "root",
        curve=tuple((gb_s * 1e9, ns * 1e-9) for gb_s, ns in reads.points),
    )
