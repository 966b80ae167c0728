"""One published finding beside ours. A noun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["reproduced", "fitted", "input", "missed", "conflict"]
"""Predicted within the tolerance; fitted to it; taken from it; not met; at odds with other findings of its source."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One published finding and ours; a share is of 1."""

    name: str
    published: float
    ours: float
    verdict: Verdict
    note: str = ""
