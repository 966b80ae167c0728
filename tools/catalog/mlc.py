"""Loaded-latency curves from logs of Intel's Memory Latency Checker, cleaned by rule.

    python tools/catalog/mlc.py POINTS.csv > python/tierloom/catalog/machines/bytedance-spr-a1000.toml

POINTS.csv holds one row per measured point of the logs that ByteDance published with its EuroSys
2024 study: server, cpu_node, threads, W (MLC's traffic code), random, inject_delay, latency_ns,
bw_GBps. The machine is the one that was measured: one quarter (SNC-4, two channels) of a socket's
DRAM, and a CXL card. A curve must rise strictly in bandwidth and never fall in latency; raw ones do
neither, so every one goes through `cleaned`.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

READ_FRACTION = {0: 1.0, 12: 0.8, 3: 0.75, 2: 0.667, 4: 0.6, 5: 0.5, 6: 0.0}
"""Share of reads by MLC's -W code; 6 writes past the cache. Codes 7 to 11 mix in such writes and are left out."""
THREADS = 16
"""Threads that load the memory: enough to reach every peak, and the count of the study's own table."""
MERGE = 0.005
"""Points closer than this share of the peak in bandwidth are one point, measured more than once."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Run:
    """One log: which server and node ran the threads, at which mix."""

    server: str
    node: str
    code: int


def read_points(path: Path) -> dict[Run, list[Point]]:
    """Sequential runs with `THREADS` threads, each from light to heavy load, as (GB/s, ns)."""
    runs: dict[Run, list[tuple[int, Point]]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if int(row["threads"]) != THREADS or row["random"] != "0":
                continue
            run = Run(row["server"], row["cpu_node"], int(row["W"]))
            point = (float(row["bw_GBps"]), float(row["latency_ns"]))
            runs.setdefault(run, []).append((int(row["inject_delay"]), point))
    return {run: [point for _, point in sorted(points, key=lambda entry: -entry[0])] for run, points in runs.items()}


def cleaned(points: list[Point]) -> list[Point]:
    """A curve from raw points in order of load.

    Points after the one with most bandwidth are dropped: they add waiting, not traffic. Neighbours
    closer together than `MERGE` x the peak become their mean. Latencies are then made monotone by isotonic
    regression (pool adjacent violators), which moves them as little as possible.
    """
    top = max(range(len(points)), key=lambda index: points[index][0])
    merged = _merge(sorted(points[: top + 1]), MERGE * points[top][0])
    latencies = _isotonic([latency for _, latency in merged])
    return [(round(bandwidth, 2), round(latency, 1)) for (bandwidth, _), latency in zip(merged, latencies, strict=True)]


def _merge(points: list[Point], distance: float) -> list[Point]:
    groups: list[list[Point]] = []
    for point in points:
        if groups and point[0] - groups[-1][0][0] < distance:
            groups[-1].append(point)
        else:
            groups.append([point])
    return [_mean(group) for group in groups]


def _mean(points: list[Point]) -> Point:
    count = len(points)
    return sum(bandwidth for bandwidth, _ in points) / count, sum(latency for _, latency in points) / count


def _isotonic(values: list[float]) -> list[float]:
    blocks: list[tuple[float, int]] = []
    for value in values:
        mean, count = value, 1
        while blocks and blocks[-1][0] > mean:
            before, size = blocks.pop()
            mean, count = (before * size + mean * count) / (size + count), size + count
        blocks.append((mean, count))
    return [mean for mean, count in blocks for _ in range(count)]


@dataclass(frozen=True)
class Route:
    """A path of the machine and the logs that measured it."""

    start: str
    end: str
    server: str
    node: str
    idle_ns: float
    codes: tuple[int, ...] = tuple(READ_FRACTION)


ALL_BUT_WRITES = tuple(code for code in READ_FRACTION if code != 6)
"""From the far socket, write-only runs show latencies below the idle one: the latency thread was not far."""
PATHS = [
    Route("socket0", "ldram", "ddr5", "d0", 97.0),
    Route("socket0", "rdram", "ddr5", "d7", 130.0, ALL_BUT_WRITES),
    Route("socket0", "cxl", "cxl", "d0", 251.0),
    Route("socket1", "rdram", "ddr5", "d0", 97.0),
    Route("socket1", "ldram", "ddr5", "d7", 130.0, ALL_BUT_WRITES),
    Route("socket1", "cxl", "cxl", "d3", 485.0, ALL_BUT_WRITES),
]

# The file it writes has lines as long as their sentences.
# ruff: noqa: E501
HEAD = """\
kind = "machine"
version = 1
name = "bytedance-spr-a1000"
title = "Sapphire Rapids servers with Astera A1000 CXL cards, as measured for EuroSys 2024: two channels of DDR5-4800 (one SNC-4 quarter) and a CXL card"
notes = [
  "This is what was measured, not a whole server: threads and DRAM of one quarter of a socket (SNC-4: two of eight channels) in one server, the CXL memory in another of the same kind.",
  "Curves: sequential traffic of 16 threads, one latency thread; points after the peak dropped, points closer together than 0.5 % of the peak bandwidth merged, latencies made monotone by isotonic regression.",
  "From the far socket there is no write-only curve: its latencies lie below the idle one, so the latency thread cannot have been far.",
  "Far DRAM rises from 131 to 190 ns between 1 and 6 GB/s in the logs, before any queue: links that wake up.",
]

[sources]
logs = "MLC 3.10 logs of the EuroSys 2024 study of ASIC CXL memory (doi 10.1145/3627703.3650061): bytedance/eurosys24-artifacts, commit 1cd95f3, Apache-2.0"
study = "Exploring Performance and Cost Optimization with ASIC-Based CXL Memory, EuroSys 2024: two-socket Sapphire Rapids, 1 TB DDR5-4800, 512 GB CXL (Astera A1000); idle latencies 97, 130, 251, 485 ns"
glc = "Golden Cove: 16 L1 fill buffers (Intel Architecture Day 2021)"
ark = "Sapphire Rapids: 1.875 MB of L3 a core"
"""

SOCKET = """
[[sockets]]
name = "{name}"
cpu = "Intel Xeon (Sapphire Rapids), one quarter of a socket"
cores = {{ value = 12, kind = "published", source = "logs", how = "cores of each of the eight nodes in the logs" }}
llc_bytes = {{ value = 23592960, kind = "derived", source = "ark", how = "12 x 1.875 MiB" }}
llc_per_core_bytes = {{ value = 23592960, kind = "derived", source = "ark", how = "SNC-4: a core uses its quarter's slices" }}
stream_lines = {{ value = 27.4, kind = "derived", source = "logs", how = "one thread reads 18.1 GB/s near: 18.1 x 97 / 64; 66 from the CXL card near (17 x 250 / 64), 37 far" }}
demand_lines = {{ value = 16.0, kind = "published", source = "glc" }}
"""

MEMORY = """
[[memories]]
name = "{name}"
kind = "{kind}"
socket = "{socket}"
capacity_bytes = {{ value = {size}, kind = "{mark}", source = "study", how = "{how}" }}
"""


def machine(runs: dict[Run, list[Point]]) -> Iterator[str]:
    """The machine's file, piece by piece."""
    yield HEAD
    yield SOCKET.format(name="socket0")
    yield SOCKET.format(name="socket1")
    quarter = "1 TB / 8 quarters, read as GiB"
    yield MEMORY.format(name="ldram", kind="dram", socket="socket0", size=128 << 30, mark="derived", how=quarter)
    yield MEMORY.format(name="rdram", kind="dram", socket="socket1", size=128 << 30, mark="derived", how=quarter)
    yield MEMORY.format(
        name="cxl", kind="cxl", socket="socket0", size=512 << 30, mark="published", how="512 GB, read as GiB"
    )
    for path in PATHS:
        yield from path_text(path, runs)


def path_text(path: Route, runs: dict[Run, list[Point]]) -> Iterator[str]:
    """One path with its curves, by growing share of reads."""
    idle = f'{{ value = {path.idle_ns}, kind = "published", source = "study" }}'
    yield f'\n[[paths]]\nfrom = "{path.start}"\nto = "{path.end}"\nidle_ns = {idle}\n'
    for code in sorted(path.codes, key=READ_FRACTION.__getitem__):
        yield curve_text(path, code, cleaned(runs[Run(path.server, path.node, code)]))


def curve_text(path: Route, code: int, points: Iterable[Point]) -> str:
    """One curve."""
    pairs = ", ".join(f"[{bandwidth}, {latency}]" for bandwidth, latency in points)
    how = f"{path.server}/log_{path.node}_c{THREADS}_w{code}_r0, cleaned: see notes"
    return (
        f"[[paths.load.points]]\nread_fraction = {READ_FRACTION[code]}\npoints = [{pairs}]\n"
        f'origin = {{ kind = "derived", source = "logs", how = "{how}" }}\n'
    )


if __name__ == "__main__":
    sys.stdout.writelines(machine(read_points(Path(sys.argv[1]))))
