"""Peaks by mix of a memory whose reads and writes do not share one bus, from a few that were measured.

Where a mix carries more than reads alone, what bounds reads is not the memory's bus but the way to it (the read
lanes of a chiplet's link, a CXL link): ``1/B^q = (r/read)^q + ((1-r)/write)^q + (1/both)^q``, the form that machine
files call ``full``, with `both` the two lanes together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ABOVE = 1.02
"""A mix is above reads alone from here: twice what runs of ``mlc --max_bandwidth`` differ by, 1 %: assumed."""
SHARPNESS = 4.5
"""Where two mixes leave it open: as of the simulated CXL expander's curves (Mess)."""
SHARPNESSES = [quarter / 4 for quarter in range(6, 81)]
ROUNDS = 60
"""Of the search for what both lanes carry, which hangs on what each does: half of them reach a ten-thousandth."""


@dataclass(frozen=True)
class Lanes:
    """Limits in GB/s, or in whatever the peaks are."""

    read: float
    write: float
    sharpness: float

    @property
    def both(self) -> float:
        """Of the two together."""
        return self.read + self.write

    def peak(self, reads: float) -> float:
        """The peak of a mix."""
        limits = (reads / self.read, (1.0 - reads) / self.write, 1.0 / self.both)
        whole: float = sum(limit**self.sharpness for limit in limits) ** (-1.0 / self.sharpness)
        return whole

    def scaled(self, by: float) -> Lanes:
        """The same lanes, so many times as wide."""
        return Lanes(self.read * by, self.write * by, self.sharpness)


def fit(peaks: Mapping[float, float]) -> Lanes | None:
    """The lanes that carry these peaks by share of reads; None where one bus explains them, or too few are told."""
    alone = peaks.get(1.0)
    mixes = {share: peak for share, peak in peaks.items() if share < 1.0}
    if not alone or not mixes or max(mixes.values()) <= ABOVE * alone:
        return None
    unit = max(mixes.values())
    shares = {share: peak / unit for share, peak in peaks.items()}
    choices = SHARPNESSES if len(mixes) > 1 else [SHARPNESS]
    found = [lanes for sharpness in choices if (lanes := _of_sharpness(shares, sharpness))]
    best = min(found, key=lambda lanes: error(lanes, shares), default=None)
    return best.scaled(unit) if best else None


def error(lanes: Lanes, peaks: Mapping[float, float]) -> float:
    """The largest relative difference."""
    return max(abs(lanes.peak(share) / peak - 1.0) for share, peak in peaks.items())


def _of_sharpness(peaks: Mapping[float, float], sharpness: float) -> Lanes | None:
    """Least squares of the relative error of ``1/B^q``, which is linear in the lanes' own terms."""
    both = 2.0 * max(peaks.values())
    lanes = None
    for _ in range(ROUNDS):
        terms = _terms(peaks, sharpness, both)
        if terms is None:
            return None
        read, write = (term ** (-1.0 / sharpness) for term in terms)
        lanes = Lanes(read, write, sharpness)
        both = (both * lanes.both) ** 0.5
    return lanes


def _terms(peaks: Mapping[float, float], q: float, both: float) -> tuple[float, float] | None:
    """``(1/read)^q`` and ``(1/write)^q`` by the normal equations of two unknowns."""
    rows = [((r * peak) ** q, ((1.0 - r) * peak) ** q, 1.0 - (peak / both) ** q) for r, peak in peaks.items()]
    rr, ww, rw = (sum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (1, 1), (0, 1)))
    ry, wy = (sum(row[i] * row[2] for row in rows) for i in (0, 1))
    determinant = rr * ww - rw * rw
    if determinant <= 0.0:
        return None
    read, write = (ry * ww - wy * rw) / determinant, (wy * rr - ry * rw) / determinant
    return (read, write) if read > 0.0 and write > 0.0 else None
