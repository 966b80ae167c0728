"""Logs of Intel's Memory Latency Checker as a sketch: what it prints is what it means, line by line.

Read are the latency and bandwidth matrices, the peak bandwidths by mix, loaded latencies, and the one
line of ``--idle_latency``, in any order and between any other lines; MB is 10^6 bytes, as the log says.
Loaded latencies and peaks by mix are of the whole system: all CPUs, each on its own node. Where the
log's matrices tell how many of those there are, each gets its share; otherwise the reader must be told
which path a log is of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.machine_formats import lanes
from tierloom.machine_formats.mlc_log import parse
from tierloom.machine_formats.sketch import Curve, Known, Sketch
from tierloom.machine_formats.texts import GB_S, flaw

if TYPE_CHECKING:
    from pathlib import Path

    from tierloom.machine_formats.mlc_log import Log
    from tierloom.machine_formats.sketch import Route
    from tierloom.schema import WarningDoc

SOURCE = "mlc"
CACHE_MIB = 96.0
"""The largest cache that one core reaches (3D V-Cache of EPYC 9004X, AMD's data sheet): smaller buffers lie in it."""


def read(path: Path, ends: tuple[int, int] | None = None) -> Sketch:
    """Reads a log.

    Args:
        path: What ``mlc`` printed.
        ends: Node of the CPUs and node of the memory that loaded latencies and a single idle latency are of.

    Raises:
        MachineError: It is no such log, or a line of it makes no sense.
    """
    log = parse(path)
    text = f"Intel Memory Latency Checker{log.version}, log {path.name}"
    sketch = Sketch(sources={SOURCE: text})
    for (start, end), ns in log.idle_ns.items():
        sketch.route(start, end).idle_ns = Known(ns, "measured", SOURCE, "idle latency matrix")
    for (start, end), mb_s in log.mb_s.items():
        sketch.route(start, end).read_gb_s = Known(mb_s / 1e3, "measured", SOURCE, "read-only bandwidth matrix")
    _idle(log, sketch, ends or (0, 0))
    _peaks(log, sketch, ends)
    _loaded(log, sketch, ends)
    sketch.warnings += [_twice(table, path) for table in log.again]
    return sketch


def _own_nodes(log: Log) -> list[int]:
    """Nodes with both CPUs and memory, as far as the matrices tell."""
    return sorted({start for start, end in [*log.idle_ns, *log.mb_s] if start == end})


def _idle(log: Log, sketch: Sketch, ends: tuple[int, int]) -> None:
    """The latency of the largest buffer: smaller ones lie in caches."""
    if not log.idle_by_buffer:
        return
    largest = max(log.idle_by_buffer)
    of = f" of {largest:g} MiB, the largest of {len(log.idle_by_buffer)}" if len(log.idle_by_buffer) > 1 else ""
    known = Known(log.idle_by_buffer[largest], "measured", SOURCE, f"--idle_latency{of}")
    sketch.route(*ends).idle_ns = known
    if 0.0 < largest <= CACHE_MIB:
        sketch.warnings.append(_in_a_cache(largest, known.value))


def _peaks(log: Log, sketch: Sketch, ends: tuple[int, int] | None) -> None:
    """What the system's peaks by mix say of reads against writes, for each node with CPUs by its read peak."""
    alone = log.peaks_mb_s.get(1.0)
    if not alone:
        return
    told = [ends] if ends and not _own_nodes(log) else None
    way, routes = lanes.fit(log.peaks_mb_s), told or _own(log, "Peak Injection Memory Bandwidths", "peaks")
    for start, end in routes:
        route = sketch.route(start, end)
        route.read_gb_s = route.read_gb_s or _share_of(alone, len(routes))
        if way:
            route.lanes = Known(way.scaled(route.read_gb_s.value / alone), "derived", SOURCE, _of_lanes(log, way))
        elif share := _one_bus(log.peaks_mb_s):
            _write_peak(log, route, share)


def _own(log: Log, table: str, figures: str) -> list[tuple[int, int]]:
    """The paths that figures of the whole system are of: from each node with CPUs to its own memory."""
    own = [(node, node) for node in _own_nodes(log)]
    if not own:
        problem = f"nothing tells which CPUs and memory the {figures} are of"
        hint = f"say so: 0:0={log.path} for the CPUs and the memory of node 0"
        raise flaw(log.path, f"Measuring {table}", problem, hint)
    return own


def _share_of(alone_mb_s: float, nodes: int) -> Known[float]:
    """A node's part of the system's peak of reads."""
    how = "the system's peak of reads" + (f", shared by {nodes} nodes" if nodes > 1 else "")
    return Known(round(alone_mb_s / 1e3 / nodes, 4), "derived" if nodes > 1 else "measured", SOURCE, how)


def _of_lanes(log: Log, way: lanes.Lanes) -> str:
    above, alone = max(log.peaks_mb_s.values()), log.peaks_mb_s[1.0]
    return (
        f"a mix carries {above:g} MB/s and reads alone {alone:g}, so each direction has a lane of its own, "
        f"fitted to the system's {len(log.peaks_mb_s)} peaks by mix within {lanes.error(way, log.peaks_mb_s):.1%}"
    )


def _one_bus(peaks: dict[float, float]) -> float | None:
    """Write peak over read peak where both take turns.

    ``1/B = r/R + (1-r)/W``; at ``r`` = 1/2 that is ``1/W = 2/B - 1/R``.
    """
    reads, even = peaks[1.0], peaks.get(0.5)
    if not even or 2 / even <= 1 / reads:
        return None
    return 1 / (2 / even - 1 / reads) / reads


def _write_peak(log: Log, route: Route, share: float) -> None:
    if route.read_gb_s and GB_S[0] <= share * route.read_gb_s.value <= GB_S[1]:
        reads, even = log.peaks_mb_s[1.0], log.peaks_mb_s[0.5]
        how = f"1/W = 2/B - 1/R with the system's peaks R {reads:g} and B {even:g} MB/s: {share:.3f} of the read peak"
        route.write_gb_s = Known(round(share * route.read_gb_s.value, 3), "derived", SOURCE, how)


def _loaded(log: Log, sketch: Sketch, ends: tuple[int, int] | None) -> None:
    if not log.loaded:
        return
    routes = [ends] if ends else _own(log, "Loaded Latencies", "loaded latencies")
    shared = f"; the system's bandwidth shared by {len(routes)} nodes" if len(routes) > 1 else ""
    how = f"loaded latencies by injected delay{shared}, made to rise"
    origin = Known(None, "derived" if shared else "measured", SOURCE, how)
    for share, rows in log.loaded.items():
        points = [(mb_s / 1e3 / len(routes), ns) for mb_s, ns in reversed(rows)]
        for route in routes if points else []:
            sketch.route(*route).curves[share] = Curve(points, origin)


def _twice(table: str, path: Path) -> WarningDoc:
    return {
        "what": f"{path.name} has this table twice, and the later one counts: {table}",
        "cause": "the log holds several runs, perhaps of several settings of the machine (sub-NUMA clusters)",
        "remedy": "cut the log into one file a run and import the one that is meant",
    }


def _in_a_cache(mib: float, ns: float) -> WarningDoc:
    return {
        "what": f"an idle latency of {ns:g} ns is that of a buffer of {mib:g} MiB",
        "cause": f"a buffer of up to {CACHE_MIB:g} MiB may lie in a last-level cache",
        "remedy": "measure it again with a buffer several times the cache: mlc --idle_latency -b2g",
    }
