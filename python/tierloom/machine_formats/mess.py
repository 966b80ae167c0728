"""Curve directories of the Mess benchmark (BSC) as one path of a sketch.

A directory holds ``bwlat_R.txt`` for each percentage R of reads: a line a point, MB/s and latency, from
the heaviest load to the lightest. Nothing in it says whether latencies are ns or CPU cycles; both are
published. Newer versions write ``memory_curves.csv`` with GB/s and ns, which is read too. Published
directories hold files with one column and curves with negative bandwidth: those are refused by line.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

from tierloom.machine_formats.sketch import Curve, Known, Point, Sketch
from tierloom.machine_formats.texts import bandwidth_gb_s, flaw, latency_ns, number, text_of

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "mess"
CSV_NAME = "memory_curves.csv"
COLUMNS = (
    ("read_pct_rounded", "rd_percentage"),
    ("bandwidth_smooth", "bandwidth"),
    ("latency_smooth", "latency"),
)
"""Names of the columns for percentage of reads, GB/s and ns; the first that is there counts."""


def is_mess(path: Path) -> bool:
    """Whether a path is a curve directory or a curve file of Mess."""
    return (path.is_dir() and bool(_files(path) or (path / CSV_NAME).is_file())) or path.name == CSV_NAME


def read(path: Path, ends: tuple[int, int] | None = None, ghz: float | None = None) -> Sketch:
    """Reads a curve directory, or a ``memory_curves.csv``.

    Args:
        path: Directory or file.
        ends: Node of the CPUs and node of the memory that the curves are of; 0 and 0 by default.
        ghz: Clock of the CPU whose cycles the latencies of ``bwlat_R.txt`` are; ns by default.

    Raises:
        MachineError: It holds no curves, or a line makes no sense.
    """
    unit = f"cycles at {ghz:g} GHz" if ghz else "ns"
    sketch = Sketch(sources={SOURCE: f"Mess curves {path.name}, latencies in {unit}"})
    files = _files(path) if path.is_dir() else []
    curves = _from_texts(files, ghz) if files else _from_csv(path / CSV_NAME if path.is_dir() else path)
    origin = Known(None, "measured", SOURCE, "bandwidth-latency points, made to rise")
    for reads, points in sorted(curves.items()):
        heaviest_first = points[0][0] > points[-1][0]
        ordered = points[::-1] if heaviest_first else points
        sketch.route(*(ends or (0, 0))).curves[reads] = Curve(ordered, origin)
    if files and not ghz:
        least = min(ns for points in curves.values() for _, ns in points)
        sketch.warnings.append(
            {
                "what": f"the latencies of {path.name}, from {least:g}, are read as ns",
                "cause": "Mess writes bwlat files in ns or in CPU cycles and does not say which",
                "remedy": "say --ghz F if they are cycles of a clock of F GHz",
            }
        )
    return sketch


def _files(folder: Path) -> list[Path]:
    found = {}
    for path in sorted(folder.glob("bwlat_*.txt")):
        percent = re.fullmatch(r"bwlat_(\d{1,3})\.txt", path.name)
        if percent and int(percent[1]) <= 100:
            found[int(percent[1])] = path
    return [found[percent] for percent in sorted(found)]


def _from_texts(files: list[Path], ghz: float | None) -> dict[float, list[Point]]:
    curves = {}
    for path in files:
        points = []
        for index, line in enumerate(text_of(path).splitlines(), start=1):
            words = line.split()
            if words:
                points.append(_point(words, path, f"line {index}", ghz))
        curves[int(path.stem.removeprefix("bwlat_")) / 100] = _curve(points, path)
    return curves


def _point(words: list[str], path: Path, where: str, ghz: float | None) -> Point:
    if len(words) != 2:
        problem = f"{len(words)} column(s) where bandwidth and latency should stand"
        raise flaw(path, where, problem, "leave this file out of the directory, or mend it")
    return bandwidth_gb_s(words[0], path, where, unit=1e-3, idle=True), latency_ns(words[1], path, where, ghz=ghz)


def _curve(points: list[Point], path: Path) -> list[Point]:
    if len({gb_s for gb_s, _ in points}) < 2:
        raise flaw(path, "", f"{len(points)} point(s) make no curve", "leave this file out of the directory")
    return points


def _from_csv(path: Path) -> dict[float, list[Point]]:
    rows = csv.DictReader(text_of(path).splitlines())
    head = rows.fieldnames or []
    names = [next((name for name in choice if name in head), None) for choice in COLUMNS]
    if None in names:
        wanted = ", ".join(" or ".join(choice) for choice in COLUMNS)
        raise flaw(path, "line 1", "the columns of Mess's curves are not there", f"it needs {wanted}")
    curves: dict[float, list[Point]] = {}
    for index, row in enumerate(rows, start=2):
        where = f"line {index}"
        percent, loaded, latency = (row[str(name)] or "" for name in names)
        reads = number(percent, path, where)
        if reads > 100:
            raise flaw(path, where, f"{reads:g} is no percentage", "mend or remove the line")
        point = bandwidth_gb_s(loaded, path, where, unit=1.0, idle=True), latency_ns(latency, path, where)
        curves.setdefault(reads / 100, []).append(point)
    if not curves:
        raise flaw(path, "", "holds no point", "give a directory of bwlat_R.txt files or a memory_curves.csv")
    return {reads: _curve(points, path) for reads, points in curves.items()}
