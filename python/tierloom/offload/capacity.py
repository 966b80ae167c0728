"""Throughput against the capacity of each tier: what buying more of it, or less, would do."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from tierloom.errors import PlacementError
from tierloom.offload import planner

if TYPE_CHECKING:
    from tierloom.offload.documents import CapacityDoc
    from tierloom.offload.problem import Problem

STEPS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
"""Capacities that are tried, as shares of the tier's own."""


@dataclass(frozen=True, kw_only=True)
class CapacityPoint:
    """One capacity of one tier; no throughput where nothing fits."""

    capacity_bytes: float
    tokens_s: float | None
    batch: int | None


def curves(problem: Problem) -> list[CapacityDoc]:
    """The best plans with other capacities of each memory, one at a time, all else as it is."""
    return [
        {"tier": tier.name, "share": share, **asdict(point)}  # type: ignore[typeddict-item] # a point's fields
        for tier in problem.host.memories
        for share, point in zip(STEPS, curve(problem, tier.name), strict=True)
    ]


def curve(problem: Problem, tier: str) -> list[CapacityPoint]:
    """The best plans with other capacities of one tier, all else as it is.

    Raises:
        RequestError: There is no such tier.
    """
    whole = problem.host.tier(tier).capacity_bytes
    return [_point(problem, tier, share * whole) for share in STEPS]


def _point(problem: Problem, tier: str, capacity: float) -> CapacityPoint:
    host = problem.host.with_capacity(tier, capacity)
    if capacity == 0.0:
        kept = [each.name for each in host.tiers if each.name != tier]
        if not kept:
            return CapacityPoint(capacity_bytes=0.0, tokens_s=None, batch=None)
        host = host.only(kept)
    try:
        found = planner.plan(replace(problem, host=host))
    except PlacementError:
        return CapacityPoint(capacity_bytes=capacity, tokens_s=None, batch=None)
    return CapacityPoint(capacity_bytes=capacity, tokens_s=found.tokens_s, batch=found.placement.batch)
