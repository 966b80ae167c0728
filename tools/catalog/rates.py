"""How fast a core computes when it does not wait for memory.

Measured by us on the programs that the studies ran, on a core of the same make as one study's processor
(`measured.toml`). The rules:

- A program computes for operations / rate seconds. The rate is that of the largest run whose data all stays in the
  last-level cache, so that cache hits count as computing and waits for memory do not: those follow from the traffic.
- Computing takes no longer than a whole run does, waits and all: where some run is faster yet, its rate counts.
- Traffic is sweeps x size x iterations (`npb`, `cloverleaf`), or lines of a lookup x lookups (`xsbench`).

Rates are per second of one thread: floating-point operations as the benchmarks of NPB count them, XSBench's
lookups, CloverLeaf's cells. They are not scaled to another processor's clock.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

MEASURED = Path(__file__).with_name("measured.toml")
FOUND = tomllib.loads(MEASURED.read_text(encoding="utf-8"))
CG_NONZER = {1_400: 7, 7_000: 8, 75_000: 13, 150_000: 15}
"""Of CG's classes S, W, B and C, by their rows."""


def source(program: str) -> str:
    """Where the rate of a program comes from, as a profile's sources say it."""
    return (
        f"{FOUND['programs'][program]}; {FOUND['processor']}; measured on {FOUND['date']}: {FOUND['clock']}. "
        "Computing: the rate of the largest run that stays in the last-level cache"
    )


@dataclass(frozen=True)
class Run:
    """One measured run of one thread.

    Attributes:
        size: Class, as the suite names it, or the data's shape.
        operations: What one iteration does.
        seconds: CPU time of one iteration.
        in_cache: All data stays in the last-level cache.
    """

    size: str
    operations: float
    seconds: float
    in_cache: bool

    @property
    def rate(self) -> float:
        """Operations per second, waits included where there are any."""
        return self.operations / self.seconds


def runs(name: str) -> list[Run]:
    """Measured runs of a program, by growing class."""
    return [
        Run(each["class"], operations(name, each["n"]), each["seconds"], each["in_cache"])
        for each in FOUND["runs"]
        if each["name"] == name
    ]


def rate(name: str) -> float:
    """Operations per second of computing, by the rules above."""
    found = runs(name)
    largest_in_cache = [run.rate for run in found if run.in_cache][-1]
    return max([largest_in_cache, *(run.rate for run in found if not run.in_cache)])


def errors(name: str, *, in_cache: bool) -> dict[str, float]:
    """By how much the seconds of each class are off when the rate of the class before is taken for it."""
    found = [run for run in runs(name) if run.in_cache == in_cache]
    return {later.size: later.rate / before.rate - 1.0 for before, later in pairwise(found)}


def operations(name: str, n: int) -> float:
    """Operations of one iteration: of n^3 points, of n points (FT), rows (CG), cells along an edge, or a lookup."""
    if name == "cg":
        return cg_operations(n, CG_NONZER[n])
    if name == "xsbench":
        return 1.0
    if name == "cloverleaf":
        return float(n**2)
    return {"bt": bt_operations, "sp": sp_operations, "lu": lu_operations, "mg": mg_operations, "ft": ft_operations}[
        name
    ](n)


def bt_operations(n: int) -> float:
    """Floating-point operations of one BT iteration on n^3 points, as NPB's bt prints them."""
    return 3478.8 * n**3 - 17655.7 * n**2 + 28023.7 * n


def sp_operations(n: int) -> float:
    """Floating-point operations of one SP iteration on n^3 points, as NPB's sp prints them."""
    return 881.174 * n**3 - 4683.91 * n**2 + 11484.5 * n - 19272.4


def lu_operations(n: int) -> float:
    """Floating-point operations of one LU iteration on n^3 points, as NPB's lu prints them."""
    return 1984.77 * n**3 - 10923.3 * n**2 + 27770.9 * n - 144010.0


def ft_operations(points: int) -> float:
    """Floating-point operations of one FT iteration, as NPB's ft prints them."""
    return points * (5.23518 + 7.21113 * math.log(points))


def mg_operations(n: int) -> float:
    """Floating-point operations of one MG iteration on n^3 points, as NPB's mg prints them."""
    return 58.0 * n**3


def cg_operations(rows: int, nonzer: int) -> float:
    """Floating-point operations of one outer CG iteration, as NPB's cg prints them."""
    per_row = nonzer * (nonzer + 1)
    return 2.0 * rows * (3 + per_row + 25 * (5 + per_row) + 3)
