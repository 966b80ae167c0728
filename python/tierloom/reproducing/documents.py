"""The shape of what ``reproduce --json`` prints."""

from __future__ import annotations

from typing import Literal, TypedDict


class ClaimDoc(TypedDict):
    """A published claim and ours; a share is of 1, and what holds or does not is true or false."""

    id: str
    source: str
    kind: Literal["input", "prediction"]
    published: float | bool | None
    ours: float | bool | None
    band: list[float | None] | None
    """Lowest and highest accepted value, null where there is no end; null for what has no band."""
    verdict: Literal["in band", "missed", "not modelled"]
    why: str
    """Mechanism of a miss, or why there is no model; empty in band."""


class ClaimsDoc(TypedDict):
    """What ``reproduce --json`` prints."""

    claims: list[ClaimDoc]
