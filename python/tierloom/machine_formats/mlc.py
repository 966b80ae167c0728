"""Logs of Intel's Memory Latency Checker as a sketch: what it prints is what it means, line by line.

Read are the latency and bandwidth matrices, the peak bandwidths by mix, loaded latencies, and the one
line of ``--idle_latency``, in any order and between any other lines; MB is 10^6 bytes, as the log says.
Loaded latencies and peaks by mix are of the whole system: all CPUs, each on its own node. Where the
log's matrices tell how many of those there are, each gets its share; otherwise the reader must be told
which path a log is of.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tierloom.machine_formats.sketch import Curve, Known, Point, Sketch
from tierloom.machine_formats.texts import GB_S, bandwidth_gb_s, flaw, latency_ns, text_of

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "mlc"
READS = {None: 1.0, 2: 2 / 3, 3: 0.75, 4: 0.6, 5: 0.5, 6: 0.0, 12: 0.8}
"""Share of reads by the code of ``-W``; 6 writes past the caches."""
MOST_NODES = 1024
Matrix = dict[tuple[int, int], float]
Figure = Callable[[str, "Path", str], float]
"""Reads a word of a file at a place in it."""


@dataclass
class _Log:
    """What one log says, in its own units."""

    path: Path
    idle_ns: Matrix = field(default_factory=dict)
    mb_s: Matrix = field(default_factory=dict)
    peaks_mb_s: dict[str, float] = field(default_factory=dict)
    loaded: list[Point] = field(default_factory=list)
    """MB/s and ns, as printed: from the heaviest load to the lightest."""
    lone_idle_ns: float | None = None
    reads: float = 1.0
    version: str = ""


def read(path: Path, ends: tuple[int, int] | None = None) -> Sketch:
    """Reads a log.

    Args:
        path: What ``mlc`` printed.
        ends: Node of the CPUs and node of the memory that loaded latencies and a single idle latency are of.

    Raises:
        MachineError: It is no such log, or a line of it makes no sense.
    """
    log = _parse(path)
    text = f"Intel Memory Latency Checker{log.version}, log {path.name}"
    sketch = Sketch(sources={SOURCE: text})
    for (start, end), ns in log.idle_ns.items():
        sketch.route(start, end).idle_ns = Known(ns, "measured", SOURCE, "idle latency matrix")
    for (start, end), mb_s in log.mb_s.items():
        sketch.route(start, end).read_gb_s = Known(mb_s / 1e3, "measured", SOURCE, "read-only bandwidth matrix")
    if log.lone_idle_ns is not None:
        sketch.route(*(ends or (0, 0))).idle_ns = Known(log.lone_idle_ns, "measured", SOURCE, "--idle_latency")
    _peaks(log, sketch)
    _loaded(log, sketch, ends)
    return sketch


def _own_nodes(log: _Log) -> list[int]:
    """Nodes with both CPUs and memory, as far as the matrices tell."""
    return sorted({start for start, end in [*log.idle_ns, *log.mb_s] if start == end})


def _peaks(log: _Log, sketch: Sketch) -> None:
    """Write peaks from the peak of all reads and that of one write for each read.

    Where reads and writes share a bus, ``1/B = r/R + (1-r)/W``; at ``r`` = 1/2 that is ``1/W = 2/B - 1/R``.
    """
    reads, even = log.peaks_mb_s.get("ALL Reads"), log.peaks_mb_s.get("1:1 Reads-Writes")
    if not reads or not even or 2 / even <= 1 / reads:
        return
    share = 1 / (2 / even - 1 / reads) / reads
    for node in _own_nodes(log):
        route = sketch.route(node, node)
        if route.read_gb_s and GB_S[0] <= share * route.read_gb_s.value <= GB_S[1]:
            how = (
                f"1/W = 2/B - 1/R with the system's peaks R {reads:g} and B {even:g} MB/s: {share:.3f} of the read peak"
            )
            route.write_gb_s = Known(round(share * route.read_gb_s.value, 3), "derived", SOURCE, how)


def _loaded(log: _Log, sketch: Sketch, ends: tuple[int, int] | None) -> None:
    if not log.loaded:
        return
    own = _own_nodes(log)
    if ends is None and not own:
        problem = "nothing tells which CPUs and memory the loaded latencies are of"
        hint = f"say so: 0:0={log.path} for the CPUs and the memory of node 0"
        raise flaw(log.path, "Measuring Loaded Latencies", problem, hint)
    routes = [ends] if ends else [(node, node) for node in own]
    shared = f"; the system's bandwidth shared by {len(routes)} nodes" if len(routes) > 1 else ""
    how = f"loaded latencies by injected delay{shared}, made to rise"
    origin = Known(None, "derived" if shared else "measured", SOURCE, how)
    points = [(mb_s / 1e3 / len(routes), ns) for mb_s, ns in reversed(log.loaded)]
    for route in routes:
        sketch.route(*route).curves[log.reads] = Curve(points, origin)


def _parse(path: Path) -> _Log:
    log = _Log(path)
    lines = text_of(path).splitlines()
    at = 0
    while at < len(lines):
        at = _line(log, lines, at)
    if not (log.idle_ns or log.mb_s or log.loaded or log.lone_idle_ns):
        hint = "give what mlc printed: --latency_matrix, --bandwidth_matrix, --loaded_latency or --idle_latency"
        raise flaw(path, "", "holds no table of Intel MLC", hint)
    return log


def _line(log: _Log, lines: list[str], at: int) -> int:
    """Takes the table that begins at a line, or the line; returns where to go on."""
    line = lines[at].strip()
    if line.startswith("Measuring idle latencies"):
        return _matrix(log, log.idle_ns, latency_ns, lines, at + 1)
    if line.startswith("Measuring Memory Bandwidths between nodes"):
        return _matrix(log, log.mb_s, _mb_s, lines, at + 1)
    if line.startswith("Measuring Loaded Latencies"):
        return _table(log, lines, at + 1)
    if found := re.match(r"Intel\(R\) Memory Latency Checker.*?(v[\w.]+)", line):
        log.version = f" {found[1]}"
    elif line.startswith("Command line parameters:"):
        log.reads = _reads(log, line, at)
    elif found := re.match(r"(ALL Reads|\d:\d Reads-Writes)\s*:\s*(\S+)", line):
        log.peaks_mb_s[found[1]] = _mb_s(found[2], log.path, f"line {at + 1}")
    elif found := re.match(r"Each iteration took .*\(\s*(\S+)\s*ns\s*\)", line):
        log.lone_idle_ns = latency_ns(found[1], log.path, f"line {at + 1}")
    return at + 1


def _reads(log: _Log, line: str, at: int) -> float:
    found = re.search(r"\s-W\s?(\d{1,3})\b", line)
    code = int(found[1]) if found else None
    if code not in READS:
        known = ", ".join(f"-W{known}" for known in READS if known)
        problem = f"traffic -W{code} has no plain share of reads"
        raise flaw(log.path, f"line {at + 1}", problem, f"leave this log out; read are -R, {known}")
    return READS[code]


def _mb_s(word: str, path: Path, where: str) -> float:
    """A bandwidth, as the log has it."""
    return bandwidth_gb_s(word, path, where, unit=1e-3) * 1e3


def _matrix(log: _Log, matrix: Matrix, figure: Figure, lines: list[str], at: int) -> int:
    columns: list[int] | None = None
    for index in range(at, len(lines)):
        words = lines[index].split()
        if columns is None:
            if words[:2] == ["Numa", "node"] and len(words) > 2:
                columns = [_node(word, log, index) for word in words[2:]]
            elif lines[index].startswith("Measuring"):
                break
        elif words and words[0].isdecimal():
            _row(log, matrix, figure, columns, words, index)
        else:
            return index
    if columns is None:
        problem = "no line `Numa node 0 1 …` follows"
        raise flaw(log.path, f"line {at}", problem, "give the whole log, as it was printed")
    return len(lines)


def _row(log: _Log, matrix: Matrix, figure: Figure, columns: list[int], words: list[str], index: int) -> None:
    if len(words) != len(columns) + 1:
        problem = f"{len(words) - 1} figures for {len(columns)} nodes"
        raise flaw(log.path, f"line {index + 1}", problem, "give the whole log, as it was printed")
    start = _node(words[0], log, index)
    for end, word in zip(columns, words[1:], strict=True):
        if word != "-":
            matrix[start, end] = figure(word, log.path, f"line {index + 1}")


def _node(word: str, log: _Log, index: int) -> int:
    if not re.fullmatch(r"\d{1,4}", word) or int(word) >= MOST_NODES:
        raise flaw(
            log.path, f"line {index + 1}", f"`{word[:40]}` is not a node", "give the whole log, as it was printed"
        )
    return int(word)


def _table(log: _Log, lines: list[str], at: int) -> int:
    """Rows of injected delay, latency (ns) and bandwidth (MB/s) below a ruler of ``=``."""
    ruler = next((index for index in range(at, len(lines)) if lines[index].strip().startswith("====")), None)
    if ruler is None:
        raise flaw(log.path, f"line {at}", "no table follows", "give the whole log, as it was printed")
    for index in range(ruler + 1, len(lines)):
        words = lines[index].split()
        if not words or not words[0].isdecimal():
            return index
        if len(words) != 3:
            problem = f"{len(words)} figures where delay, latency and bandwidth should stand"
            raise flaw(log.path, f"line {index + 1}", problem, "give the whole log, as it was printed")
        where = f"line {index + 1}"
        log.loaded.append((_mb_s(words[2], log.path, where), latency_ns(words[1], log.path, where)))
    return len(lines)
