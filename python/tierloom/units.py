"""Amounts: what files and texts write them in, and how people type and read them."""

from __future__ import annotations

import numbers
import re

import tierloom._core as _core
from tierloom.errors import RequestError

MIB = 2**20
GIB = 2**30
GB = 10**9

PAGE_BYTES = 4096
"""Base page of x86-64."""

LINE_BYTES = 64
"""Cache line: what one outstanding miss brings."""

MOST_BYTES = 2**62
"""More than any machine has."""

Amount = str | int | float
"""Bytes as a number, or text such as ``64GiB``, ``1.5GB``, ``50%``; text that is a bare number is refused."""


def amount_in_bytes(amount: Amount, whole_bytes: int) -> int:
    """Reads an amount of memory; a percentage is of `whole_bytes`, and no amount where those are 0.

    Raises:
        RequestError: It is no amount of memory, or text without a unit.

    Example:
        >>> amount_in_bytes("50%", 4096), amount_in_bytes(64e9, 0)
        (2048, 64000000000)
    """
    if not isinstance(amount, str):
        return _counted(amount)
    if not amount.isascii():
        raise _no_amount(amount)
    return _core.parse_budget(amount, whole_bytes) if whole_bytes else _core.parse_bytes(amount)


def _counted(amount: object) -> int:
    """Bytes that were given as a number; one between 0 and 1 is a share that somebody forgot to write as one."""
    if isinstance(amount, bool) or not isinstance(amount, numbers.Real):
        raise _no_amount(amount)
    value = float(amount)
    if not 0.0 <= value <= MOST_BYTES or 0.0 < value < 1.0:
        raise _no_amount(amount)
    return int(amount) if isinstance(amount, numbers.Integral) else round(value)


def _no_amount(amount: object) -> RequestError:
    text = str(amount)[:60].encode("ascii", "backslashreplace").decode()
    return RequestError(f"`{text}` is no amount of memory\nhint: write for example 64GiB, 50%, or a number of bytes")


def bandwidth_gb_s(text: str) -> float | None:
    """Reads a bandwidth, in GB/s; nothing where the text is none.

    Example:
        >>> bandwidth_gb_s("12GB/s"), bandwidth_gb_s("1.2 TB/s"), bandwidth_gb_s("12GB")
        (12.0, 1200.0, None)
    """
    return _with_unit(text, {"gb/s": 1.0, "tb/s": 1e3})


def latency_ns(text: str) -> float | None:
    """Reads a latency, in ns; nothing where the text is none.

    Example:
        >>> latency_ns("250ns"), latency_ns("1.5 us"), latency_ns("250")
        (250.0, 1500.0, None)
    """
    return _with_unit(text, {"ns": 1.0, "us": 1e3})


_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z/]+)", re.ASCII | re.IGNORECASE)


def _with_unit(text: str, units: dict[str, float]) -> float | None:
    found = _WITH_UNIT.fullmatch(text.strip())
    return float(found[1]) * units[found[2].lower()] if found and found[2].lower() in units else None


def fraction(share: str | float) -> float:
    """Reads ``5%`` or ``0.05`` as a fraction of at least 0.

    Raises:
        RequestError: The text is no fraction.

    Example:
        >>> fraction("5%")
        0.05
    """
    try:
        text = str(share).strip()
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        message = f"`{share}` is not a share\nhint: write for example 5% or 0.05"
        raise RequestError(message)
    return value


def count_text(number: int, what: str) -> str:
    """Writes a number of things, one of which has no s.

    Example:
        >>> count_text(1, "thread"), count_text(32, "thread")
        ('1 thread', '32 threads')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def tally_text(number: float) -> str:
    """Writes how often something happened: with two significant digits, and plainly below a thousand.

    Example:
        >>> tally_text(7.842e8), tally_text(8.002), tally_text(0.0)
        ('7.8e+08', '8', '0')
    """
    return f"{number:.0f}" if round(number) < 1000 else f"{number:.1e}"


def bytes_text(amount: float) -> str:
    """Writes bytes with the largest binary unit that keeps the number at or above one.

    Example:
        >>> bytes_text(3 * 2**29)
        '1.5GiB'
    """
    return _core.format_bytes(round(amount))


def binary_unit(most_bytes: float) -> tuple[int, str]:
    """The largest binary unit of which there are at least two: its bytes, and its name.

    Example:
        >>> binary_unit(3 * 2**30)
        (1073741824, 'GiB')
    """
    units = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"))
    return next(((scale, unit) for scale, unit in units if most_bytes >= 2 * scale), (2**10, "KiB"))


def seconds_text(seconds: float) -> str:
    """Writes a time with three significant digits, in s, ms or µs.

    Example:
        >>> seconds_text(0.01234), seconds_text(0.0)
        ('12.3 ms', '0 µs')
    """
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= scale:
            return f"{_significant(seconds / scale)} {unit}"
    shown = _significant(seconds * 1e6)
    return f"{shown} µs" if float(shown) else "0 µs"


def span_text(seconds: float) -> str:
    """Writes how long something will take, about: in s, min or h.

    Example:
        >>> span_text(0.4), span_text(95.0), span_text(1000.0), span_text(20000.0)
        ('1 s', '95 s', '17 min', '5.6 h')
    """
    if seconds < 120.0:
        return f"{max(seconds, 1.0):.0f} s"
    minutes = seconds / 60.0
    return f"{minutes:.0f} min" if minutes < 120.0 else f"{minutes / 60.0:.1f} h"


def rate_text(rate: float) -> str:
    """Writes a rate with three significant digits, without powers of ten.

    Example:
        >>> rate_text(0.01234), rate_text(12.34), rate_text(1234.5)
        ('0.0123', '12.3', '1234')
    """
    return f"{rate:.0f}" if rate >= 100 else f"{rate:.3g}"


def percent_text(share: float) -> str:
    """Writes a share as a percentage; a decimal only where it says something.

    Example:
        >>> percent_text(0.734), percent_text(0.0123), percent_text(0.0)
        ('73 %', '1.2 %', '0 %')
    """
    if share == 0.0 or share >= 0.0995:
        return f"{abs(share) * 100:.0f} %"
    return f"{share * 100:.1f} %"


UNKNOWN = 1000
"""A figure that may be so many times as much is not known; only what it is at most is."""


def doubt_text(off: float) -> str:
    """Writes how much more a figure may be, as a part of it: a percentage, or from twice as much on a factor.

    Example:
        >>> doubt_text(0.06), doubt_text(10.6), doubt_text(330661.0)
        ('±6.0 %', '~12x', 'unknown')
    """
    if off >= UNKNOWN:
        return "unknown"
    return f"±{percent_text(off)}" if off < 1 else f"~{1 + off:.0f}x"


def _significant(number: float) -> str:
    if number >= 100:
        return f"{number:.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"
