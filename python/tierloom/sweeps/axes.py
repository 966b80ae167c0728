"""One axis of a study: a list of values, or a span between two numbers.

A span knows its values for a grid (``steps`` of them, even or even in the logarithm) and the value at any
share of its way, for Latin hypercubes and searches. Both ends may carry a unit or ``%``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from tierloom.errors import RequestError

Value = str | int | float | bool
"""What a point's parameter can be."""

_NUMBER = re.compile(r"\s*([-+]?\d+(?:\.\d+)?)\s*([A-Za-z%/]*)\s*")
SPAN_KEYS = {"from", "to", "steps", "log"}
"""Keys of a span."""


@dataclass(frozen=True)
class Choice:
    """One of some values."""

    values: tuple[Value, ...]

    def grid(self) -> list[Value]:
        """All values."""
        return list(self.values)

    def at(self, share: float) -> Value:
        """The value at a share of the way, 0 to 1: each has the same part of it."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]


@dataclass(frozen=True)
class Span:
    """From one number to another, both included; whole numbers when both ends are."""

    low: float
    high: float
    unit: str = ""
    steps: int | None = None
    log: bool = False
    whole: bool = False

    def grid(self) -> list[Value]:
        """So many values as `steps` says, each once."""
        last = (self.steps or 2) - 1
        values = [self.at(step / last) for step in range(last + 1)]
        return list(dict.fromkeys(values))

    def at(self, share: float) -> Value:
        """The value at a share of the way, 0 to 1."""
        if self.log:
            number = math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        else:
            number = self.low + share * (self.high - self.low)
        return self.value(number)

    def value(self, number: float) -> Value:
        """A number as the parameter has it: whole, or with its unit; ends are hit exactly."""
        number = min(max(number, self.low), self.high)
        if self.whole:
            number = round(number)
        return f"{number:.12g}{self.unit}" if self.unit else number


Axis = Choice | Span


def axis(raw: Any, where: str) -> Axis:  # noqa: ANN401 (what TOML holds)
    """Reads an axis of a study file; `where` names it in errors.

    Raises:
        RequestError: It is neither a list of values nor a span.
    """
    if isinstance(raw, list):
        return _choice(raw, where)
    if isinstance(raw, dict):
        return _span(raw, where)
    message = (
        f"{where}: {raw!r} is one value\nhint: an axis is a list, or {{ from = 1, to = 8 }}; one value is a parameter"
    )
    raise RequestError(message)


def _choice(raw: list[Any], where: str) -> Choice:
    if not raw or not all(isinstance(item, str | int | float | bool) for item in raw):
        message = f"{where}: a list has to hold one value or more: text, numbers, true or false\nhint: [8, 16, 32]"
        raise RequestError(message)
    return Choice(tuple(dict.fromkeys(raw)))


def _span(raw: dict[str, Any], where: str) -> Span:
    unknown = sorted(set(raw) - SPAN_KEYS)
    if unknown or not {"from", "to"} <= set(raw):
        message = f"{where}: {', '.join(unknown) or 'from or to is missing'}\nhint: a span has from, to, steps, log"
        raise RequestError(message)
    (low, unit), (high, other) = (_number(raw[end], f"{where}.{end}") for end in ("from", "to"))
    steps, log = raw.get("steps"), raw.get("log", False)
    if unit != other or low >= high:
        message = f"{where}: {raw['from']} to {raw['to']} is no span\nhint: go upwards, in one unit"
        raise RequestError(message)
    if steps is not None and (not isinstance(steps, int) or isinstance(steps, bool) or steps < 2):
        message = f"{where}.steps: {steps} is no number of steps\nhint: a span has two or more"
        raise RequestError(message)
    if not isinstance(log, bool) or (log and low <= 0):
        message = f"{where}.log: a logarithmic span starts above 0\nhint: leave log out, or raise from"
        raise RequestError(message)
    whole = not unit and isinstance(raw["from"], int) and isinstance(raw["to"], int)
    return Span(low, high, unit, steps, log, whole)


def _number(raw: Any, where: str) -> tuple[float, str]:  # noqa: ANN401
    if isinstance(raw, int | float) and not isinstance(raw, bool) and math.isfinite(raw):
        return raw, ""
    found = _NUMBER.fullmatch(raw) if isinstance(raw, str) else None
    if not found:
        message = f"{where}: {raw!r} is no number\nhint: write 8, 0.5, 64GiB or 25%"
        raise RequestError(message)
    return float(found[1]), found[2]
