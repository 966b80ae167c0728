"""The lines of a log of Intel's Memory Latency Checker as tables, in its own units.

Heads are those of MLC 3.1 (``Memory node`` over ``Socket 0 1``) to 3.11 (``Numa node 0 1``); blank lines may stand
anywhere, as logs are pasted. Of a table that is there twice the later one counts, and the log says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tierloom.machine_formats import unsupported_formats
from tierloom.machine_formats.texts import bandwidth_gb_s, flaw, latency_ns, number, text_of

if TYPE_CHECKING:
    from pathlib import Path

    from tierloom.machine_formats.sketch import Point

READS = {None: 1.0, 2: 2 / 3, 3: 0.75, 4: 0.6, 5: 0.5, 6: 0.0, 12: 0.8}
"""Share of reads by the code of ``-W``; 6 writes past the caches."""
MOST_NODES = 1024
WHOLE = "give the whole log, as it was printed"
Matrix = dict[tuple[int, int], float]
Figure = Callable[[str, "Path", str], float]
"""Reads a word of a file at a place in it."""


@dataclass
class Log:
    """What one log says."""

    path: Path
    idle_ns: Matrix = field(default_factory=dict)
    mb_s: Matrix = field(default_factory=dict)
    peaks_mb_s: dict[float, float] = field(default_factory=dict)
    """By share of reads."""
    loaded: dict[float, list[Point]] = field(default_factory=dict)
    """MB/s and ns by share of reads, as printed: from the heaviest load to the lightest."""
    idle_by_buffer: dict[float, float] = field(default_factory=dict)
    """ns by MiB of the buffer; of 0 MiB where it is not told."""
    buffer_mib: float = 0.0
    reads: float = 1.0
    version: str = ""
    again: list[str] = field(default_factory=list)
    """Tables that were there before, in other words."""


def parse(path: Path) -> Log:
    """Reads a log.

    Raises:
        MachineError: It is no such log, or a line of it makes no sense.
    """
    log = Log(path)
    text = text_of(path)
    lines, at = text.splitlines(), 0
    while at < len(lines):
        at = _line(log, lines, at)
    if not (log.idle_ns or log.mb_s or log.loaded or log.idle_by_buffer or log.peaks_mb_s):
        if other := unsupported_formats.named(text):
            raise flaw(path, "", f"{other}, no log of Intel MLC", unsupported_formats.HINT)
        hint = "give what mlc printed: --latency_matrix, --bandwidth_matrix, --loaded_latency or --idle_latency"
        raise flaw(path, "", "holds no table of Intel MLC", hint)
    return log


def _line(log: Log, lines: list[str], at: int) -> int:
    """Takes the table that begins at a line, or the line; returns where to go on."""
    line = lines[at].strip()
    if line.startswith("Measuring idle latencies"):
        return _matrix(log, log.idle_ns, latency_ns, lines, at + 1)
    if line.startswith("Measuring Memory Bandwidths between nodes"):
        return _matrix(log, log.mb_s, _mb_s, lines, at + 1)
    if line.startswith("Measuring Loaded Latencies"):
        return _table(log, lines, at + 1)
    _words(log, line, at)
    return at + 1


def _words(log: Log, line: str, at: int) -> None:
    """Takes a line that stands for itself."""
    where = f"line {at + 1}"
    if found := re.match(r"Intel\(R\) Memory Latency Checker.*?(v[\w.]+)", line):
        log.version = f" {found[1]}"
    elif line.startswith("Command line parameters:"):
        log.reads = _reads(log, line, at)
    elif found := re.match(r"Using buffer size of (\S+?)\s*MiB", line):
        log.buffer_mib = number(found[1], log.path, where)
    elif found := re.match(r"(ALL Reads|(\d):(\d) Reads-Writes)\s*:\s*(\S+)", line):
        share = _share(found[2], found[3]) if found[2] else 1.0
        log.peaks_mb_s[share] = _mb_s(found[4], log.path, where)
    elif found := re.match(r"Each iteration took .*\(\s*(\S+)\s*ns\s*\)", line):
        log.idle_by_buffer[log.buffer_mib] = latency_ns(found[1], log.path, where)


def _share(reads: str, writes: str) -> float:
    return int(reads) / max(1, int(reads) + int(writes))


def _reads(log: Log, line: str, at: int) -> float:
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


def _matrix(log: Log, matrix: Matrix, figure: Figure, lines: list[str], at: int) -> int:
    if matrix:
        log.again.append(lines[at - 1].strip())
        matrix.clear()
    columns: list[int] | None = None
    for index in range(at, len(lines)):
        words = lines[index].split()
        if not words:
            continue
        if columns is None:
            columns = _head(lines[index], log, index)
            if columns is None and lines[index].lstrip().startswith("Measuring"):
                break
        elif words[0].isdecimal():
            _row(log, matrix, figure, columns, words, index)
        else:
            return index
    if columns is None:
        raise flaw(log.path, f"line {at}", "no line `Numa node 0 1 …` follows", WHOLE)
    return len(lines)


def _head(line: str, log: Log, index: int) -> list[int] | None:
    """The numbers of the columns; None of a line that only says that they are nodes."""
    found = re.match(r"\s*(?:Numa node|Memory node|Socket)\s+(?!Numa|Memory)(\S.*)", line)
    return [_node(word, log, index) for word in found[1].split()] if found else None


def _row(log: Log, matrix: Matrix, figure: Figure, columns: list[int], words: list[str], index: int) -> None:
    if len(words) != len(columns) + 1:
        problem = f"{len(words) - 1} figures for {len(columns)} nodes"
        raise flaw(log.path, f"line {index + 1}", problem, WHOLE)
    start = _node(words[0], log, index)
    for end, word in zip(columns, words[1:], strict=True):
        if word != "-":
            matrix[start, end] = figure(word, log.path, f"line {index + 1}")


def _node(word: str, log: Log, index: int) -> int:
    if not re.fullmatch(r"\d{1,4}", word) or int(word) >= MOST_NODES:
        raise flaw(log.path, f"line {index + 1}", f"`{word[:40]}` is not a node", WHOLE)
    return int(word)


def _table(log: Log, lines: list[str], at: int) -> int:
    """Rows of injected delay, latency (ns) and bandwidth (MB/s) below a ruler of ``=``."""
    ruler = next((index for index in range(at, len(lines)) if lines[index].strip().startswith("====")), None)
    if ruler is None:
        raise flaw(log.path, f"line {at}", "no table follows", WHOLE)
    share = _mix(log, lines[at:ruler])
    if share in log.loaded:
        log.again.append(f"{lines[at - 1].strip()}, {share:.0%} reads")
    points = log.loaded[share] = []
    for index in range(ruler + 1, len(lines)):
        words = lines[index].split()
        if words and not words[0].isdecimal():
            return index
        if words:
            points.append(_point(log, words, index))
    return len(lines)


def _mix(log: Log, head: list[str]) -> float:
    """Share of reads of a table: as its head says, else as the command line does."""
    for line in head:
        if found := re.match(r"\s*Using\b.*?\b(\d{1,2}):(\d{1,2})\b", line):
            return _share(found[1], found[2])
        if re.match(r"\s*Using Read-only traffic", line, re.IGNORECASE) and log.reads == 1.0:
            return 1.0
    return log.reads


def _point(log: Log, words: list[str], index: int) -> Point:
    if len(words) != 3:
        problem = f"{len(words)} figures where delay, latency and bandwidth should stand"
        raise flaw(log.path, f"line {index + 1}", problem, WHOLE)
    where = f"line {index + 1}"
    return _mb_s(words[2], log.path, where), latency_ns(words[1], log.path, where)
