"""How values are written for people, by what they are: bytes, times, shares."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from tierloom.units import bytes_text, percent_text, rate_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Left = Literal["text", "code"]
"""Forms that keep to the left."""

Count = Literal[
    "number", "count", "more", "whole", "tenths", "hundredths", "digits", "significant", "rate", "price", "address"
]
Amount = Literal["bytes", "gib", "gb", "ns", "gb_s", "gb_s_digits"]
Share = Literal["percent", "percent_tenths", "percent_hundredths", "gain", "gain_whole", "either_way", "times"]
Time = Literal["seconds", "seconds_hundredths"]
Form = Left | Count | Amount | Share | Time
"""How a column writes its values."""

ENDINGS: tuple[tuple[str, Form], ...] = (
    *(("_bytes", "bytes"), ("_gb_s", "gb_s"), ("tokens_s", "number"), ("_ns", "ns"), ("_s", "seconds")),
    *(("_share", "percent"), ("share", "percent")),
)
"""How values are written by the unit in their key; the first ending that fits."""

EMPTY = "·"
"""What is not known, or nothing."""


def written(value: Any, form: Form) -> str:  # noqa: ANN401 (whatever a row holds)
    """A value as its column writes it.

    Example:
        >>> written(0.25, "percent"), written(2e9, "gb"), written(None, "bytes"), written(True, "text")
        ('25 %', '2.0 GB', '·', 'yes')
    """
    if value is None:
        return EMPTY
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    return WRITERS.get(form, number)(float(value)) if math.isfinite(value) else EMPTY


def form_of(key: str, values: Sequence[object]) -> Form:
    """How a column that nobody declared is written, by its name and what is in it.

    Example:
        >>> form_of("size_bytes", [4096, None]), form_of("policy", ["local"])
        ('bytes', 'text')
    """
    told = [value.get("value") if isinstance(value, dict) else value for value in values if value is not None]
    if not told or not all(isinstance(value, int | float) and not isinstance(value, bool) for value in told):
        return "text"
    fitting: list[Form] = [form for ending, form in ENDINGS if key.endswith(ending)]
    return fitting[0] if fitting else "number"


def span(low: float, high: float, form: Form) -> str:
    """A range as its column writes it; of shares, in percent.

    Example:
        >>> span(0.48, 0.52, "percent"), span(1.0, 2.0, "seconds")
        ('48.0-52.0', '1.00 s to 2.00 s')
    """
    if form == "percent":
        return f"{low * 100:.1f}-{high * 100:.1f}"
    return f"{written(low, form)} to {written(high, form)}"


def number(value: float) -> str:
    """A plain number with four digits, whole ones in full."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:,.4g}"


def latency(value: float) -> str:
    """ns, or a larger unit from a microsecond on."""
    return f"{value:.0f} ns" if abs(value) < 1000 else seconds_text(value * 1e-9)


WRITERS: dict[str, Callable[[float], str]] = {
    "address": lambda value: f"{int(value):#x}",
    "bytes": lambda value: bytes_text(value) if value >= 0 else f"-{bytes_text(-value)}",
    "count": lambda value: f"{value:,.0f}",
    "digits": lambda value: f"{value:.4g}",
    "either_way": lambda value: f"±{value * 100:.0f} %",
    "gain": lambda value: f"{value * 100:+.1f} %",
    "gain_whole": lambda value: f"{value * 100:+.0f} %",
    "gb": lambda value: f"{value / 1e9:.1f} GB" if value >= 1e8 or value == 0 else f"{value / 1e6:.1f} MB",
    "gb_s": lambda value: f"{value:,.1f} GB/s" if value >= 0.1 or value == 0 else f"{value:.2g} GB/s",
    "gb_s_digits": lambda value: f"{value:.3g} GB/s",
    "gib": lambda value: f"{value:,.3g}" if abs(value) < 100 else f"{value:,.1f}",
    "hundredths": lambda value: f"{value:.2f}",
    "more": lambda value: f"{value:+,.0f}",
    "ns": latency,
    "percent": lambda value: percent_text(value) if value >= 0 else f"-{percent_text(-value)}",
    "percent_hundredths": lambda value: f"{value * 100:.2f} %",
    "percent_tenths": lambda value: f"{value * 100:.1f} %",
    "price": lambda value: f"{value:.2f}" if value < 100 else f"{value:.0f}",
    "rate": rate_text,
    "seconds": lambda value: seconds_text(value) if value > 0 else f"{value:g} s",
    "seconds_hundredths": lambda value: f"{value:.2f} s",
    "significant": lambda value: f"{value:.3g}",
    "tenths": lambda value: f"{value:,.1f}",
    "times": lambda value: f"{value:.2f}x",
    "whole": lambda value: f"{value:.0f}",
}
