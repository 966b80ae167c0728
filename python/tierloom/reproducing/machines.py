"""What machines of the catalog say of themselves: mostly inputs, shown as such."""

from __future__ import annotations

from tierloom.nouns import Machine
from tierloom.reproducing.computing import Runs, computes
from tierloom.units import LINE_BYTES


def _idle(machine: Machine, memory: str, socket: str | None = None) -> float:
    start = socket or machine.data["sockets"][0]["name"]
    path = next(path for path in machine.data["paths"] if (path["from"], path["to"]) == (start, memory))
    return path["idle_ns"]["value"]


def _peak(machine: Machine, memory: str, reads: float, socket: str | None = None) -> float:
    return machine.curve(socket or machine.data["sockets"][0]["name"], memory, reads).peak_gb_s


@computes
def idle_ns(_runs: Runs, *, machine: str, memory: str, socket: str | None = None) -> float:
    """Idle latency of a path."""
    return _idle(Machine.load(machine), memory, socket)


@computes
def idle_above(_runs: Runs, *, machine: str, memory: str, other: str) -> float:
    """By how many ns one memory's idle latency is above another's."""
    found = Machine.load(machine)
    return _idle(found, memory) - _idle(found, other)


@computes
def idle_ratio(_runs: Runs, *, machine: str, memory: str, other: str) -> float:
    """Idle latency of one memory over another's."""
    found = Machine.load(machine)
    return _idle(found, memory) / _idle(found, other)


@computes
def peak_gb_s(_runs: Runs, *, machine: str, memory: str, reads: float, socket: str | None = None) -> float:
    """Peak bandwidth of a path at a share of reads."""
    return _peak(Machine.load(machine), memory, reads, socket)


@computes
def peak_ratio(_runs: Runs, *, machine: str, memory: str, other: str, reads: float) -> float:
    """Peak bandwidth of one memory over another's."""
    found = Machine.load(machine)
    return _peak(found, memory, reads) / _peak(found, other, reads)


@computes
def saturated_ns(_runs: Runs, *, machine: str, memory: str, reads: float, socket: str | None = None) -> float:
    """Latency at the end of a path's curve."""
    found = Machine.load(machine)
    return found.curve(socket or found.data["sockets"][0]["name"], memory, reads).points[-1][1]


@computes
def loaded_ns(_runs: Runs, *, machine: str, memory: str, threads: int, reads: float = 1.0) -> float:
    """Latency where streaming threads and the memory settle: lines in flight over bandwidth."""
    return _settled(Machine.load(machine), memory, threads, reads)[1]


@computes
def loaded_gb_s(_runs: Runs, *, machine: str, memory: str, threads: int, reads: float = 1.0) -> float:
    """Bandwidth there."""
    return _settled(Machine.load(machine), memory, threads, reads)[0]


@computes
def saturating_threads(_runs: Runs, *, machine: str, memory: str, share: float, reads: float = 1.0) -> float:
    """Fewest streaming threads that reach a share of the peak."""
    found = Machine.load(machine)
    goal = share * _peak(found, memory, reads)
    cores = int(found.data["sockets"][0]["cores"]["value"])
    return float(next(n for n in range(1, cores + 1) if _settled(found, memory, n, reads)[0] >= goal or n == cores))


def _settled(machine: Machine, memory: str, threads: int, reads: float) -> tuple[float, float]:
    """Bandwidth and latency at which lines in flight equal bandwidth times latency, by bisection."""
    socket = machine.data["sockets"][0]
    curve = machine.curve(socket["name"], memory, reads, steps=400)
    lines_bytes = threads * socket["stream_lines"]["value"] * LINE_BYTES
    low, high = 0.0, curve.points[-1][0] / curve.peak_gb_s
    for _ in range(60):
        middle = (low + high) / 2
        short = middle * curve.peak_gb_s * curve.latency_ns(middle) < lines_bytes
        low, high = (middle, high) if short else (low, middle)
    gb_s = low * curve.peak_gb_s
    return gb_s, lines_bytes / gb_s
