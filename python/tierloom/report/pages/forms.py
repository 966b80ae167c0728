"""How values are written on a page, by what they are: bytes, times, shares."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from tierloom.units import bytes_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Callable

Form = Literal["text", "code", "number", "count", "bytes", "gib", "seconds", "ns", "gb_s", "percent", "times", "mark"]
"""How a column writes its values; all but `text`, `code` and `mark` keep to the right."""

EMPTY = "·"


def written(value: Any, form: Form) -> str:  # noqa: ANN401 (whatever a row holds)
    """A value as its column writes it."""
    if value is None or value == "":
        return EMPTY
    if isinstance(value, str | bool) or not isinstance(value, int | float):
        return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    return WRITERS.get(form, number)(float(value)) if math.isfinite(value) else EMPTY


def number(value: float) -> str:
    """A plain number with four digits, whole ones in full."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:,.4g}"


def latency(value: float) -> str:
    """ns, or a larger unit from a microsecond on."""
    return f"{value:.0f} ns" if abs(value) < 1000 else seconds_text(value * 1e-9)


WRITERS: dict[str, Callable[[float], str]] = {
    "bytes": lambda value: bytes_text(value) if value >= 0 else f"-{bytes_text(-value)}",
    "count": lambda value: f"{value:,.0f}",
    "gb_s": lambda value: f"{value:,.1f} GB/s" if value >= 0.1 or value == 0 else f"{value:.2g} GB/s",
    "gib": lambda value: f"{value:,.3g}" if abs(value) < 100 else f"{value:,.1f}",
    "ns": latency,
    "percent": lambda value: percent_text(value) if value >= 0 else f"-{percent_text(-value)}",
    "seconds": lambda value: seconds_text(value) if value > 0 else f"{value:g} s",
    "times": lambda value: f"{value:.2f}x",
}
