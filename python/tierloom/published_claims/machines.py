"""What machines of the catalog say of themselves: mostly inputs, shown as such."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tierloom.nouns import Machine
from tierloom.published_claims.computation import Runs, computes
from tierloom.published_claims.ledger import settings
from tierloom.units import GIB, LINE_BYTES, MIB


def _idle(
    machine: Machine, memory: str, socket: str | None = None, key: Literal["idle_ns", "random_idle_ns"] = "idle_ns"
) -> float:
    start = socket or machine.data["sockets"][0]["name"]
    path = next(path for path in machine.data["paths"] if (path["from"], path["to"]) == (start, memory))
    return path[key]["value"]


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
def random_ratio(_runs: Runs, *, machine: str, memory: str, other: str) -> float:
    """Idle latency of random reads of one memory over another's."""
    found = Machine.load(machine)
    return _idle(found, memory, key="random_idle_ns") / _idle(found, other, key="random_idle_ns")


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
    """Bandwidth and latency at which lines in flight equal bandwidth times latency, by bisection.

    The lines are the cores', or as many as the memory takes at once.
    """
    socket = machine.data["sockets"][0]
    curve = machine.curve(socket["name"], memory, reads, steps=400)
    (found,) = (each for each in machine.data["memories"] if each["name"] == memory)
    most = found["lines_in_flight"]["value"] if "lines_in_flight" in found else math.inf
    lines_bytes = min(threads * socket["stream_lines"]["value"], most) * LINE_BYTES
    low, high = 0.0, curve.points[-1][0] / curve.peak_gb_s
    for _ in range(60):
        middle = (low + high) / 2
        short = middle * curve.peak_gb_s * curve.latency_ns(middle) < lines_bytes
        low, high = (middle, high) if short else (low, middle)
    gb_s = low * curve.peak_gb_s
    return gb_s, lines_bytes / gb_s


GIB_OF = {"GB": 1.0, "TB": 1024.0}
"""Units of capacity as makers of memory print them, GiB."""


@computes
def cores(_runs: Runs, *, machine: str) -> float:
    """Cores of a socket."""
    return float(Machine.load(machine).data["sockets"][0]["cores"]["value"])


@computes
def llc_mb(_runs: Runs, *, machine: str) -> float:
    """Last-level cache of a socket, MB as makers print it."""
    return float(Machine.load(machine).data["sockets"][0]["llc_bytes"]["value"]) / MIB


@computes
def capacity(_runs: Runs, *, machine: str, memory: str, unit: str) -> float:
    """Capacity of a memory, in GB or TB as makers print them."""
    return _capacity_gib(Machine.load(machine), memory) / GIB_OF[unit]


@computes
def channel_gb_s(_runs: Runs, *, mt_s: int) -> float:
    """What a channel of 64 bits carries at so many million transfers a second."""
    return mt_s * 8 / 1000


@computes
def best_peak_ratio(_runs: Runs, *, machine: str, memory: str, other: str) -> float:
    """Peak of one memory over another's, each at the mix of reads and writes that suits it best."""
    found, mixes = Machine.load(machine), [step / 20 for step in range(21)]
    mine, theirs = (max(_peak(found, name, reads) for reads in mixes) for name in (memory, other))
    return mine / theirs


@computes
def peaks_are_closest(_runs: Runs, *, machine: str, others: list[str], memory: str, other: str, reads: float) -> bool:
    """Whether peaks of two memories differ less on a machine than on others."""

    def apart(name: str) -> float:
        found = Machine.load(name)
        return abs(_peak(found, memory, reads) / _peak(found, other, reads) - 1)

    return all(apart(machine) < apart(each) for each in others)


@computes
def are_hops_away(_runs: Runs, *, machines: list[str], memory: str, near: str, hop: str, hops: int) -> bool:
    """Whether everywhere a memory is nearest to so many hops away, a hop being what the memory `hop` adds."""
    found = [Machine.load(name) for name in machines]
    away = [(_idle(each, memory) - _idle(each, near)) / (_idle(each, hop) - _idle(each, near)) for each in found]
    return all(round(each) == hops for each in away)


@computes
def is_slower_from(_runs: Runs, *, machine: str, memory: str, socket: str, than: str) -> bool:
    """Whether a memory's idle latency is longer from one socket than from another."""
    found = Machine.load(machine)
    return _idle(found, memory, socket) > _idle(found, memory, than)


@computes
def fewest_saturating_threads(
    runs: Runs, *, machines: list[str], memory: str, share: float, reads: float = 1.0
) -> float:
    """Fewest streaming threads that reach a share of the peak on any of some machines."""
    given = {"memory": memory, "share": share, "reads": reads}
    return min(float(saturating_threads(runs, machine=name, **given)) for name in machines)


@computes
def saturates_first(
    runs: Runs, *, machine: str, memory: str, others: list[str], share: float, reads: float = 1.0
) -> bool:
    """Whether fewer threads reach a share of the peak of one memory than of any other."""

    def threads(name: str) -> float:
        return float(saturating_threads(runs, machine=machine, memory=name, share=share, reads=reads))

    return all(threads(memory) < threads(other) for other in others)


@computes
def split_gb_s(_runs: Runs, *, machine: str, threads: dict[str, int], reads: float = 1.0) -> float:
    """Bandwidth of all memories together, so many streaming threads at each."""
    found = Machine.load(machine)
    return sum(_settled(found, memory, many, reads)[0] for memory, many in threads.items())


@computes
def best_split(_runs: Runs, *, machine: str, memory: str, reads: float = 1.0) -> float:
    """Threads at one memory where the cores of a socket are dealt out for the most bandwidth in all.

    A memory gains less by every further thread, so each thread goes where it gains most.
    """
    found = Machine.load(machine)
    socket = found.data["sockets"][0]
    names = [path["to"] for path in found.data["paths"] if path["from"] == socket["name"]]
    threads, gb_s = dict.fromkeys(names, 0), dict.fromkeys(names, 0.0)
    for _ in range(int(socket["cores"]["value"])):
        one_more = {name: _settled(found, name, threads[name] + 1, reads)[0] for name in names}
        best = max(names, key=lambda name: one_more[name] - gb_s[name])
        threads[best], gb_s[best] = threads[best] + 1, one_more[best]
    return float(threads[memory])


@computes
def interleaved_share(_runs: Runs, *, machine: str, kind: str) -> float:
    """Share of the pages in memories of a kind when pages are dealt out in turn to all nodes."""
    memories = Machine.load(machine).data["memories"]
    return sum(each["kind"] == kind for each in memories) / len(memories)


@computes
def modules_gb(_runs: Runs, *, modules: int, module_gb: int, cards: int = 0, card_gb: int = 0, per: int = 1) -> float:
    """Capacity of a server's DRAM modules and CXL cards, GB; of one of its cores with `per`."""
    return (modules * module_gb + cards * card_gb) / per


@computes
def modules_ratio(_runs: Runs, *, modules: int, module_gb: int, cards: int, card_gb: int) -> float:
    """That capacity over its DRAM's alone."""
    return 1.0 + cards * card_gb / (modules * module_gb)


@computes
def nominal_gb_s(
    _runs: Runs, *, channels: int, channel_gb_s: float, cards: int = 0, card_gb_s: float = 0.0, per: int = 1
) -> float:
    """Nominal bandwidth of a server's channels and CXL cards; of one of its cores with `per`."""
    return (channels * channel_gb_s + cards * card_gb_s) / per


@computes
def nominal_ratio(_runs: Runs, *, channels: int, channel_gb_s: float, cards: int, card_gb_s: float) -> float:
    """That bandwidth over its channels' alone."""
    return 1.0 + cards * card_gb_s / (channels * channel_gb_s)


@computes
def drives_mb_s(_runs: Runs, *, drives: int, drive_gb_s: float, per: int) -> float:
    """Bandwidth of a server's drives for each of its cores, MB/s."""
    return drives * drive_gb_s * 1000.0 / per


@computes
def year_gb_s(runs: Runs, *, document: str, year: int | str) -> float:
    """Nominal bandwidth of the best server of a year, from a document's table of channels."""
    row = _year(document, year)
    return float(nominal_gb_s(runs, channels=row["channels"], channel_gb_s=row["channel_gb_s"]))


@computes
def year_gb_s_per_core(runs: Runs, *, document: str, year: int | str) -> float:
    """The same for each of its cores."""
    return float(year_gb_s(runs, document=document, year=year)) / float(_year(document, year)["cores"])


def _year(document: str, year: int | str) -> Mapping[str, Any]:
    row: Mapping[str, Any] = settings(document)["years"][str(year)]
    return row


@computes
def server_tib(_runs: Runs, *, machine: str, memories: Sequence[str], times: int) -> float:
    """Capacity of some memories together, TiB, where the machine is one of so many alike parts of its server."""
    found = Machine.load(machine)
    return times * sum(_capacity_gib(found, memory) for memory in memories) / 1024.0


@computes
def far_peak_ratio(_runs: Runs, *, machine: str, memory: str, near: str, far: str, reads: float) -> float:
    """Peak bandwidth of a memory from a far socket over that from its own."""
    found = Machine.load(machine)
    return _peak(found, memory, reads, far) / _peak(found, memory, reads, near)


@computes
def steepens(_runs: Runs, *, machine: str, memories: Sequence[str], reads: Sequence[float]) -> bool:
    """Whether latency rises more over the last fifth of the bandwidth than before, for all memories and mixes."""
    found = Machine.load(machine)
    return all(_steepens(found, memory, mix) for memory in memories for mix in reads)


@computes
def relieved(_runs: Runs, *, machine: str, memory: str, other: str, reads: Sequence[float]) -> bool:
    """Whether, for all mixes, some of a memory's highest load put on another lowers the mean latency of an access."""
    found = Machine.load(machine)
    return all(_relieved(found, memory, other, mix) for mix in reads)


PARTS = 20
"""Parts of the load, up to half of which may go to the other memory."""


def _capacity_gib(machine: Machine, memory: str) -> float:
    return next(each["capacity_bytes"]["value"] for each in machine.data["memories"] if each["name"] == memory) / GIB


def _steepens(machine: Machine, memory: str, reads: float) -> bool:
    curve = machine.curve(machine.data["sockets"][0]["name"], memory, reads, steps=400)
    idle, bent, full = (curve.latency_ns(load) for load in (0.0, 0.8, 1.0))
    return full - bent > bent - idle


def _relieved(machine: Machine, memory: str, other: str, reads: float) -> bool:
    socket = machine.data["sockets"][0]["name"]
    mine, theirs = (machine.curve(socket, each, reads, steps=400) for each in (memory, other))
    load_gb_s, alone_ns = mine.points[-1]

    def mean_ns(moved: float) -> float:
        kept = 1.0 - moved
        here = mine.latency_ns(kept * load_gb_s / mine.peak_gb_s)
        return kept * here + moved * theirs.latency_ns(moved * load_gb_s / theirs.peak_gb_s)

    fits = [part / PARTS for part in range(1, PARTS // 2 + 1) if part / PARTS * load_gb_s <= theirs.points[-1][0]]
    return any(mean_ns(moved) < alone_ns for moved in fits)
