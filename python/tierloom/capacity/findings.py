"""One published finding beside ours. A noun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WITHIN = 0.05
"""How far from a published figure ours may be, set when the models were specified."""

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


def near(ours: float, published: float) -> Verdict:
    """Reproduced where ours is :data:`WITHIN` of what was published, relative to that; missed elsewhere."""
    return "reproduced" if abs(ours / published - 1.0) <= WITHIN else "missed"
