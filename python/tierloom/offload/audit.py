"""An independent count of bytes: what each place holds under a placement, against what it may hold.

It shares no arithmetic with the linear programme: it starts from the sizes of the model's parts and
from the block, and adds up. A plan that fails it is a defect of the planner, never handed out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.errors import PlacementError
from tierloom.offload.problem import GPU
from tierloom.units import GIB

if TYPE_CHECKING:
    from tierloom.offload.model import Cache
    from tierloom.offload.placement import Bytes, Placement
    from tierloom.offload.problem import Problem

ROUNDING = 1e-6
"""Share by which the solver's floating point may miss a sum."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """What one place holds, bytes."""

    place: str
    weights: float
    kv: float
    hidden: float
    buffers: float
    allowed: float
    capacity: float

    @property
    def total(self) -> float:
        """Everything together."""
        return self.weights + self.kv + self.hidden + self.buffers


def count(problem: Problem, placement: Placement) -> list[Held]:
    """What every place holds, the GPU first, then the tiers, nearest first."""
    weights = placement.weights_by_place
    on_gpu = weights.get(GPU, 0.0) / problem.model.weight_bytes
    buffers = 2.0 * problem.model.layer_bytes * (1.0 - on_gpu) + problem.gpu_work_bytes(placement.gpu_batch)
    buffers += placement.batch * problem.draft_kv_bytes
    sizes = [(GPU, problem.gpu.memory_bytes, problem.runtime.gpu_margin, buffers)]
    for tier in problem.host.tiers:
        staging = 0.0 if len(sizes) > 1 else problem.staging_bytes(placement.gpu_batch)
        sizes.append((tier.name, tier.capacity_bytes, problem.runtime.host_margin, staging))
    return [
        Held(
            place=place,
            weights=weights.get(place, 0.0),
            kv=placement.kv.get(place, 0.0),
            hidden=placement.hidden.get(place, 0.0),
            buffers=extra,
            allowed=margin * capacity,
            capacity=capacity,
        )
        for place, capacity, margin, extra in sizes
    ]


def check(problem: Problem, placement: Placement) -> list[Held]:
    """The count, held against the capacities and against the sizes of what had to be placed.

    Raises:
        PlacementError: A place holds more than it may, or something is lost or doubled.
    """
    for part in problem.model.parts:
        _whole(f"weights of {part.name}", placement.weights[part.name], part.bytes)
    kv = sum(_kept(problem, cache, placement.batch) for cache in problem.model.caches)
    _whole("the KV cache", placement.kv, kv)
    held = count(problem, placement)
    for place in held:
        if place.total > place.allowed * (1.0 + ROUNDING):
            over = (place.total - place.allowed) / GIB
            message = f"the plan overfills {place.place} by {over:.2f} GiB\nhint: report this: it is a defect"
            raise PlacementError(message)
    return held


def _kept(problem: Problem, cache: Cache, batch: int) -> float:
    """Bytes that one kind of layer keeps of all sequences: what grows holds a shared prefix once, the rest does not."""
    positions = problem.variation.reserved(problem.prompt + problem.generate, problem.batch)
    if cache.window:
        return cache.position_bytes * batch * min(positions, cache.window)
    prefix = problem.shared if problem.batch else 0
    return cache.position_bytes * (batch * (positions - problem.shared) + prefix)


def _whole(what: str, placed: Bytes, size: float) -> None:
    if not math.isclose(sum(placed.values()), size, rel_tol=ROUNDING):
        message = f"{what}: {sum(placed.values()):.0f} of {size:.0f} bytes placed\nhint: report this: it is a defect"
        raise PlacementError(message)
