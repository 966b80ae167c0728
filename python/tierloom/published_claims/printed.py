"""A figure as a paper prints it, and the one rule of how close ours has to come. Nouns.

The rule, for every claim of every study:

- a printed number: within 10 % of it;
- a printed change, in per cent: within 25 % of it, or 2 points where that is wider;
- a printed ratio of two runs (``1.42x``): within 10 % of it or, where that is narrower, within 25 % of what it is
  above or below 1 (2 points at least);
- a bound (less than, at least) or a range: the paper's own;
- what is read off a picture or comes from authors' data: within 25 %;
- what holds or does not: exactly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

NUMBER, CHANGE, READ_OFF = 0.10, 0.25, 0.25
POINTS = 0.02

Ends = tuple[float | None, float | None]
"""Lowest and highest accepted value; none where there is no end."""

Bound = Literal["", "below", "above"]

_PRINTED = re.compile(r"^[~≈<>]?\s*(?P<number>[-+]?[\d,]*\.?\d+)\s*(?P<unit>[^\d\s]*)$")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of a paper.

    Attributes:
        printed: As it stands in the text, or the two ends of a range; none of what the text does not print.
        value: Its value, the middle of a range; a share for per cent.
        unit: Its unit; ``of 1`` for per cent, ``x`` for a ratio.
        ends: A bound or range that the paper gives.
        change: It says by how much one thing differs from another.
    """

    printed: tuple[str, ...]
    value: float
    unit: str
    ends: Ends | None
    change: bool

    @property
    def accepted(self) -> Ends:
        """Lowest and highest accepted value, by the rule."""
        if self.ends is not None:
            return self.ends
        reach = self._reach()
        return self.value - reach, self.value + reach

    def _reach(self) -> float:
        size = abs(self.value)
        if not self.printed:
            return READ_OFF * size
        if self.change and self.unit == "of 1":
            return max(CHANGE * size, POINTS)
        if self.unit == "x":
            return min(NUMBER * size, max(CHANGE * abs(self.value - 1.0), POINTS))
        return NUMBER * size


def figure(printed: str | Sequence[str], *, unit: str = "", bound: Bound = "", change: bool = False) -> Figure:
    """A figure from how it is printed; two of them are the ends of a range.

    Args:
        printed: As in ``80.3%``, ``153 ns``, ``2.8x``, ``336,469,816``.
        unit: Its unit, where the text prints none beside it; ``%`` makes a share of it.
        bound: The paper says less than, or more than.
        change: It says by how much one thing differs from another.

    Raises:
        ValueError: It is no figure.
    """
    texts = (printed,) if isinstance(printed, str) else tuple(printed)
    values, units = zip(*[_read(text, unit) for text in texts], strict=True)
    middle = sum(values) / len(values)
    ends = (min(values), max(values)) if len(values) > 1 else _bounded(middle, bound)
    return Figure(printed=texts, value=middle, unit=units[0], ends=ends, change=change)


def read_off(value: float, *, unit: str, bound: Bound = "", change: bool = False) -> Figure:
    """A figure that the text does not print."""
    share = unit == "%"
    found = value / 100.0 if share else value
    ends = _bounded(found, bound)
    return Figure(printed=(), value=found, unit="of 1" if share else unit, ends=ends, change=change)


def _bounded(value: float, bound: Bound) -> Ends | None:
    return {"": None, "below": (None, value), "above": (value, None)}[bound]


def _read(text: str, unit: str) -> tuple[float, str]:
    matched = _PRINTED.match(text)
    if matched is None:
        message = f"{text!r} is no figure"
        raise ValueError(message)
    number, told = float(matched["number"].replace(",", "")), unit or matched["unit"].strip()
    if told == "%":
        return number / 100.0, "of 1"
    return number, told
