"""Measuring the machine that this runs on: latency and bandwidth of every path, as a `Machine`."""

from __future__ import annotations

import datetime as dt
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, cast

import tierloom._core as _core
from tierloom import progress_bar
from tierloom.arguments import reads
from tierloom.nouns import Machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tierloom.schema import MeasurementDoc, WarningDoc


class DescriptionDoc(TypedDict):
    """What the kernel tells of a machine; the parts are described in ``crates/probe/src/describe.rs``."""

    host: dict[str, Any]
    migration: dict[str, Any]
    firmware: list[dict[str, Any]]
    cxl_devices: list[dict[str, Any]]
    cxl_regions: list[dict[str, Any]]
    warnings: list[WarningDoc]


class NodeFactsDoc(TypedDict):
    """What is known of a memory node; the keys are described in ``crates/probe/src/memory_kinds.rs``."""

    node: int
    said: str | None
    device: str | None
    read_mb_s: int | None
    has_cpus: bool
    of_gpu: bool
    bytes: int | None


class MachineFactsDoc(TypedDict):
    """What is known of a machine's nodes and CPUs, likewise."""

    model: str
    nodes: list[NodeFactsDoc]
    sockets: list[int]
    owners: list[int]
    hidden_cpus: bool
    distances: list[tuple[int, int, int]]


class FoundKindDoc(TypedDict):
    """What a node is made of, whether that is a guess, and why."""

    node: int
    kind: str
    guessed: bool
    because: str


@dataclass(frozen=True)
class Measured:
    """This machine, and everything that was measured: ``data`` is the document that the verb prints as JSON."""

    machine: Machine
    data: MeasurementDoc

    @property
    def warnings(self) -> list[WarningDoc]:
        """What the reader should know before believing the numbers: what, cause, remedy."""
        return self.data["warnings"]


@reads()
def measure(
    name: str | None = None, *, quick: bool = False, progress: Callable[[float, float, str], None] | None = None
) -> Measured:
    """Measures this machine: some minutes, ten at most, or with `quick` less than one.

    Args:
        name: Name of the machine; this host's by default.
        quick: Take less than a minute and measure more coarsely.

            Fewer repetitions and footprints, and mixes of reads and writes with one and all threads only.
        progress: Called before each figure with the share that is done, the seconds left, and what
            is being measured. In a notebook a bar shows it by default.

    Raises:
        MeasurementError: Nothing can be measured here.
    """
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    with progress_bar.in_notebook("measuring") as bar:
        text, report = _core.measure_machine(name or host_name(), today, not quick, progress or bar)
    return Measured(Machine(text), cast("MeasurementDoc", report))


def host_name() -> str:
    """What a machine that is measured here is called by default."""
    return socket.gethostname().split(".")[0]


def describe(root: str | Path = "/") -> DescriptionDoc:
    """What the kernel tells about a machine, nothing measured: nodes, tiers, firmware's figures, CXL devices.

    Args:
        root: Folder that holds the machine's ``proc`` and ``sys``; this machine's by default.

    Raises:
        MachineError: No memory node is described there, or a file of it is damaged.
    """
    return cast("DescriptionDoc", _core.describe_machine(str(root)))


def memory_kinds(machine: MachineFactsDoc) -> list[FoundKindDoc]:
    """What each memory of a machine is made of, by the rule that measurement applies to this one.

    Args:
        machine: What is known of its nodes and CPUs.
    """
    return cast("list[FoundKindDoc]", _core.memory_kinds(machine))


def rising_curve(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Measured ``(GB/s, ns)`` points, in the order of growing load, as a curve that rises in both.

    Points past the peak are dropped, equal loads become their mean, latencies their isotonic regression.

    Example:
        >>> rising_curve([(1.0, 100.0), (2.0, 90.0), (3.0, 120.0), (2.5, 300.0)])
        [(1.0, 95.0), (2.0, 95.0), (3.0, 120.0)]
    """
    return _core.rising_curve([list(point) for point in points])
