"""How unevenly data is touched: the share of accesses that the hottest part of the pages gets.

Zipf's law over records, the popularity of YCSB. Hashing spreads hot records over pages, so a page's heat is
the sum of a few records of unrelated ranks and pages are less uneven than records.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

PAGES = 1 << 16
"""Pages of the sample that stands for all: shares move by less than a tenth of a percent from here on."""

THETA = 0.99
"""Exponent of YCSB's Zipf generator (Cooper et al., SoCC 2010; ``ZipfianGenerator.ZIPFIAN_CONSTANT``)."""


def hottest(share: float, records_per_page: int = 4, theta: float = THETA) -> float:
    """Share of accesses that go to the hottest `share` of the pages.

    Args:
        share: Part of the pages, 0 to 1.
        records_per_page: Records of unrelated popularity on a page; 1 for the records themselves.
        theta: Exponent of Zipf's law; 0 touches all alike.

    Example:
        >>> hottest(0.5, theta=0.0)
        0.5
        >>> hottest(0.5, 1) > hottest(0.5, 4) > 0.8
        True
    """
    if theta == 0.0:
        return share
    heat = _sums(records_per_page, theta)
    return float(np.interp(share, np.linspace(0.0, 1.0, len(heat)), heat))


@cache
def _sums(records_per_page: int, theta: float) -> npt.NDArray[np.float64]:
    """Cumulated share of accesses by pages, hottest first, from 0 to 1."""
    records = PAGES * records_per_page
    popularity = np.arange(1, records + 1, dtype=float) ** -theta
    mixed = np.random.default_rng(1).permutation(popularity)
    pages = np.sort(mixed.reshape(PAGES, records_per_page).sum(axis=1))[::-1]
    sums: npt.NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(pages) / pages.sum()])
    return sums
