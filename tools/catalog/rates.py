"""How fast a core computes when it does not wait for memory.

Published run times hold both. The time that the counted traffic takes at the bandwidth which the
same server reaches in the same log is taken off them; what is left is computing, cache hits and
waiting for other threads. At the logged sizes a part of that traffic stays in cache, so the rates
come out a little too high; the server's clock is not in the log. Rates are floating-point operations
per second of one thread, by the operation counts that the benchmarks print.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LOG_SOURCE = (
    "Public run logs of NPB 3.3 OMP-C, clang -O3, 64 threads of a Zen 4 server, 162^3 (BT, SP, LU) "
    "and 512^3 (FT), September 2026"
)
LOG_THREADS = 64

FT_POINTS = 512**3
EVOLVE_SECONDS = 0.148286819 / 10
"""FT's evolve loop, one iteration, from the log."""
EVOLVE_BYTES = FT_POINTS * (16 + 16 + 8 + 16 + 16)
"""Reads u0, twiddle and the lines of u1 that it overwrites; writes u0 and u1."""
LOG_BANDWIDTH = EVOLVE_BYTES / EVOLVE_SECONDS
"""Bytes per second that the logged server moves in a plain stream: about 652 GB/s."""


@dataclass(frozen=True)
class Run:
    """One logged run, per iteration."""

    operations: float
    seconds: float
    bytes: float

    @property
    def rate(self) -> float:
        """Operations per second of one thread, without the time of the traffic."""
        return self.operations / (self.seconds - self.bytes / LOG_BANDWIDTH) / LOG_THREADS


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
