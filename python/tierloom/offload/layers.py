"""Whole tensors: the plan that can be applied.

The optimum of `rows` cuts tensors anywhere. A runtime moves whole tensors of a layer, and the KV cache of
one layer and GPU batch. Here the same programme is solved at the plan's block with whole numbers of
those; HiGHS' branch and bound stops within `GAP` of the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tierloom.errors import PlacementError
from tierloom.offload import audit, rows
from tierloom.offload.planner import TIER_AWARE, InferPlan, placed
from tierloom.offload.rows import Guess
from tierloom.offload.steps import steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.offload.linear import Programme
    from tierloom.offload.problem import Problem

GAP = 2e-3
"""Share of the optimum at which branch and bound stops."""


@dataclass(frozen=True, kw_only=True)
class LayerPlan:
    """A plan of whole tensors.

    Attributes:
        plan: Placement and times.
        tensors: By part, whole tensors in each place; of the KV cache (``kv``), pieces of one layer and
            GPU batch.
        of: By part, tensors or pieces in all.
        loss: Throughput lost against the optimum that cuts tensors, a share.
    """

    plan: InferPlan
    tensors: Mapping[str, Mapping[str, int]]
    of: Mapping[str, int]
    loss: float


def whole_layers(cut: InferPlan) -> LayerPlan:
    """The best plan of whole tensors for the block of a plan; a policy's shares are only counted.

    Raises:
        PlacementError: No whole tensors fit where cut ones do.
    """
    if cut.policy != TIER_AWARE:
        return _counted(cut)
    problem, placement = cut.problem, cut.placement
    made = rows.programme(problem, placement.gpu_batch, Guess(placement.batch), placement.batch)
    of = pieces(problem, placement.gpu_batches)
    for part in problem.model.parts:
        for place in problem.places:
            _count(
                made, f"n {part.name} {place}", rows.w(part.name, place), part.bytes / placement.batch, of[part.name]
            )
    for place in problem.places:
        _count(made, f"n kv {place}", rows.k(place), problem.kv_bytes, of["kv"])
    solution = made.solve_whole(GAP)
    if solution is None:
        message = "whole tensors do not fit where cut ones do\nhint: take a smaller batch"
        raise PlacementError(message)
    tensors = {name: {place: round(solution.values[f"n {name} {place}"]) for place in problem.places} for name in of}
    found = replace(
        placed(problem, placement.gpu_batch, placement.batch, solution),
        weights={
            part.name: {place: n * part.bytes / of[part.name] for place, n in tensors[part.name].items()}
            for part in problem.model.parts
        },
        kv={place: n * problem.kv_bytes * placement.batch / of["kv"] for place, n in tensors["kv"].items()},
    )
    timed = steps(problem, found)
    held = audit.check(problem, found)
    plan = replace(cut, placement=found, steps=timed, held=held)
    return LayerPlan(plan=plan, tensors=tensors, of=of, loss=max(0.0, 1.0 - timed.tokens_s / cut.tokens_s))


def pieces(problem: Problem, gpu_batches: int) -> dict[str, int]:
    """Tensors of each part, and pieces of the KV cache."""
    of = {part.name: part.layers * part.tensors for part in problem.model.parts}
    return of | {"kv": problem.model.layers * gpu_batches}


def _counted(cut: InferPlan) -> LayerPlan:
    """Whole pieces nearest to the shares that a policy gives: the kernel cuts tensors at pages."""
    of = pieces(cut.problem, cut.placement.gpu_batches)
    placed_ = {**cut.placement.weights, "kv": cut.placement.kv}
    tensors = {name: _largest_remainders(placed_[name], count) for name, count in of.items()}
    return LayerPlan(plan=cut, tensors=tensors, of=of, loss=0.0)


def _largest_remainders(parts: Mapping[str, float], count: int) -> dict[str, int]:
    whole = sum(parts.values())
    exact = {place: amount / whole * count for place, amount in parts.items()}
    given = {place: int(amount) for place, amount in exact.items()}
    for place in sorted(exact, key=lambda each: given[each] - exact[each])[: count - sum(given.values())]:
        given[place] += 1
    return given


def _count(made: Programme, name: str, variable: str, size: float, of: int) -> None:
    """Ties a variable of bytes to a whole number of equal pieces."""
    made.variable(name, high=float(of), whole=True)
    made.exactly(f"whole {name}", {variable: 1.0, name: -size / of}, 0.0)
